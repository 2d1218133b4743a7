"""UK homes of 2015 and 2023: what larger initial windows would gain and cost them, home by home."""

from .study import UkHomes

STUDY = UkHomes()
