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
    data = Medians(samples, "study")
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


def test_the_order_of_reading_does_not_move_an_interval() -> None:
    draw = np.random.default_rng(7)
    samples = {place: Sample(tuple(draw.normal(200, 4, 20))) for place in ("one", "other")}
    alone, after = Medians(samples, "study"), Medians(samples, "study")
    after("other")
    first, second = (data.estimate(lambda medians: medians("one")) for data in (alone, after))
    assert (first.low, first.high) == (second.low, second.high)
    # Places and studies draw by themselves: resamples in common would narrow or widen what is computed from both.
    places = Medians(dict.fromkeys(samples, samples["one"]), "study")
    assert list(places("one")) != list(places("other"))
    assert list(places("one")) != list(Medians(samples, "another study")("one"))


def test_places_are_put_together_resample_by_resample() -> None:
    places = [np.array([1.0, 5.0]), np.array([3.0, 4.0]), np.array([2.0, 9.0])]
    assert [list(join(places)) for join in (least, most, mean, middle)] == [[1, 4], [3, 9], [2, 6], [2, 5]]
