"""UK homes of 2015 and 2023: what larger initial windows would gain and cost them, home by home."""

from firstflight.studies.uk_homes.study import UkHomes

STUDY = UkHomes()
