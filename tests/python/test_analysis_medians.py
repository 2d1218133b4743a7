"""Medians of repetitions, and the intervals of what is computed from them."""

from __future__ import annotations

import numpy as np
import pytest

from firstflight.analysis.medians import Medians, Sample, least, mean, middle, most


def test_a_sample_counts_what_was_left_out_and_takes_its_quartiles_from_the_rest() -> None:
    sample = Sample((4.0, 1.0, 2.0, 3.0, 5.0), left_out=6)
    assert sample.quartiles == (2.0, 3.0, 4.0)
    assert sample.count == 11
    assert sample.mostly_left_out
    assert not Sample((1.0,), left_out=1).mostly_left_out
    with pytest.raises(ValueError, match="no quartiles"):
        _ = Sample((), left_out=3).median


def test_a_statistic_of_medians_has_an_interval_where_something_was_repeated() -> None:
    draw = np.random.default_rng(7)
    samples = {
        "base": Sample(tuple(draw.normal(200, 4, 40))),
        "faster": Sample(tuple(draw.normal(150, 4, 40))),
        "once": Sample((100.0,)),
        "spoiled": Sample((), left_out=20),
    }
    data = Medians(samples)
    gain = data.estimate(lambda medians: 100 * (1 - medians("faster") / medians("base")))
    assert gain.low < gain.value < gain.high
    assert gain.high - gain.low == pytest.approx(4, abs=3)
    assert gain.replicates == 40
    assert "spoiled" not in data
    with pytest.raises(KeyError):
        data("spoiled")
    once = data.estimate(lambda medians: medians("once"))
    assert (once.value, once.replicates) == (100.0, 1)
    assert np.isnan(once.low)


def test_the_same_seed_gives_the_same_interval() -> None:
    samples = {"place": Sample(tuple(float(value) for value in range(20)))}
    first, second = (Medians(samples).estimate(lambda medians: medians("place")) for _ in range(2))
    assert (first.low, first.high) == (second.low, second.high)


def test_places_are_put_together_resample_by_resample() -> None:
    places = [np.array([1.0, 5.0]), np.array([3.0, 4.0]), np.array([2.0, 9.0])]
    assert [list(join(places)) for join in (least, most, mean, middle)] == [[1, 4], [3, 9], [2, 6], [2, 5]]
