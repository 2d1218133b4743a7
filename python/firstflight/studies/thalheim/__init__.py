"""Thalheim's talk: what the initial window does to the time of one HTTP download, by delay, rate and size."""

from .study import Thalheim

STUDY = Thalheim()
