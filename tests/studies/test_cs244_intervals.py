"""The bootstrap of the CS244 study: what its resamples depend on."""

import numpy as np
import polars as pl

from firstflight.studies.cs244_2014 import intervals

VALUES = np.random.default_rng(3).normal(70, 10, 400)


def test_buckets_of_one_size_draw_their_own_resamples() -> None:
    # With resamples in common these two would err together, and their ratio would never move.
    alike = intervals.of_groups({0: VALUES, 1: VALUES}, "gain", lambda found: float(np.median(found[0] / found[1])))
    assert alike.value == 1
    assert alike.low < 1 < alike.high


def test_an_interval_depends_on_its_quantity_and_bucket_alone() -> None:
    gain = intervals.median(pl.Series(VALUES), "gain", 3)
    assert intervals.median(pl.Series(VALUES), "gain", 3) == gain
    assert intervals.median(pl.Series(VALUES), "gain", 4) != gain
    assert intervals.median(pl.Series(VALUES), "gain_percent", 3) != gain
