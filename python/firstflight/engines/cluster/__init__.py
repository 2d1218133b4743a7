"""Computes chunks on a Dask cluster: its own one on this machine, or one that is there already.

Replicates travel as numbers, cells as bytes and results as tables, or not at all: with a store, workers write them
there. Dask replaces a worker that dies; results that it had not delivered are computed again, to the same bytes.
"""
