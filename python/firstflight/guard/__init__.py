"""Raising the initial window on a running host, per destination, with a stop rule and an exact undo."""
