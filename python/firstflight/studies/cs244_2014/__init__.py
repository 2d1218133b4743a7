"""The Mininet reproduction of CS244 2014: what IW 10 instead of 3 gains slow users, by their bandwidth."""

from firstflight.studies.cs244_2014.study import Cs244

STUDY = Cs244()
