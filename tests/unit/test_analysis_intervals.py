import math
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from scipy import stats

from firstflight.analysis.intervals import (
    CONFIDENCE,
    Means,
    bootstrap,
    jackknife,
    normal_quantile,
    seed_of,
    student,
    summarise,
    t_quantile,
)

SAMPLE = [0.91, 1.02, 0.97, 1.10, 0.95]


def test_student_interval_is_the_textbook_one():
    low, high = stats.t.interval(0.95, len(SAMPLE) - 1, np.mean(SAMPLE), stats.sem(SAMPLE))
    found = student(SAMPLE)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(SAMPLE), low, high))
    assert found.replicates == 5


def test_one_replicate_has_no_interval():
    found = student([2.0])
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_replicates_that_measured_nothing_are_left_out():
    assert student([1.0, math.nan, 3.0]).value == 2.0
    assert math.isnan(student([math.nan]).value)


def test_jackknife_of_a_mean_is_students_interval():
    values = {"cell": dict(enumerate(SAMPLE))}
    found, expected = jackknife(values, lambda data: data("cell")), student(SAMPLE)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_pairing_by_replicate_removes_what_cells_share():
    # Both cells rise together from replicate to replicate: their difference does not vary at all.
    values = {"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 1.5, 1: 2.5, 2: 3.5}}
    found = jackknife(values, lambda data: data("b") - data("a"))
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_interval_rests_on_the_replicates_that_all_cells_have():
    values = {"many": dict.fromkeys(range(10), 1.0), "few": {0: 1.0, 1: 3.0}}
    found = jackknife(values, lambda data: data("few") - data("many"))
    assert found.value == 1.0
    assert found.replicates == 2
    assert found.low < 1.0 < found.high


def test_a_cell_with_more_replicates_than_others_does_not_narrow_the_interval():
    # Deleting one of ten replicates hardly moves a mean: an interval made that way is far too narrow.
    few, many = {0: 1.0, 1: 3.0}, {0: 4.0, 1: 2.0} | dict.fromkeys(range(2, 10), 3.0)
    found = jackknife({"many": many, "few": few}, lambda data: data("many") - data("few"))
    expected = student([4.0 - 1.0, 2.0 - 3.0])
    assert found.value == pytest.approx(1.0)
    assert (found.high - found.low) == pytest.approx(expected.high - expected.low)


def test_a_count_has_the_interval_of_resampled_replicates():
    values = {"a": {0: 1.0, 1: 1.0, 2: -1.5}, "b": {0: 1.0, 1: 1.0, 2: 1.0}}
    found = bootstrap(values, lambda data: float((data("a") > 0) + (data("b") > 0)), seed_of("study", "count"))
    assert (found.value, found.low, found.high, found.replicates) == (2.0, 1.0, 2.0, 3)
    assert math.isnan(bootstrap({"a": {0: 1.0}}, lambda data: data("a"), 1).low)


def test_the_interval_of_a_count_covers_the_truth_as_often_as_it_says():
    # How many of six cells have a mean above 0.5, where the truth is 3: that of half of them lies well above.
    covered = 0
    for repetition in range(200):
        draw = np.random.default_rng(repetition)
        centres = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
        values = {cell: dict(enumerate(draw.normal(centre, 1, 10))) for cell, centre in enumerate(centres)}
        found = bootstrap(values, lambda data: float(sum(data(cell) > 0.5 for cell in range(6))), repetition)
        covered += found.low <= 3 <= found.high
    assert covered >= 185


def test_the_seed_of_resamples_comes_from_study_quantity_and_cell():
    cells = [
        ("rfc2415", "time", (1, 3)),
        ("rfc2415", "time", (1, 4)),
        ("rfc2415", "share", (1, 3)),
        ("x", "time", (1, 3)),
    ]
    assert len({seed_of(*cell) for cell in cells}) == len(cells)
    # The same in every process, unlike hash().
    assert seed_of("rfc2415", "time", (1, 3)) == 4977387466180489972


def test_statistic_without_common_replicates_has_no_interval():
    found = jackknife({"a": {0: 1.0}, "b": {1: 2.0}}, lambda data: data("a") + data("b"))
    assert found.value == 3.0
    assert math.isnan(found.low)


def test_reading_a_cell_that_was_not_measured_names_it():
    with pytest.raises(KeyError, match="nowhere"):
        Means({"cell": {0: 1.0}})("nowhere")


def test_summary_keeps_the_order_and_gives_null_where_one_replicate_has_no_interval():
    rows = pl.DataFrame(
        {
            "webs": [16, 16, 8],
            "replicate": [0, 1, 0],
            "value": [1.0, 3.0, 5.0],
        }
    )
    summary = summarise(rows, ["webs"])
    assert summary["webs"].to_list() == [16, 8]
    assert summary["ours"].to_list() == [2.0, 5.0]
    half = stats.t.ppf(0.975, 1) * math.sqrt(2) / math.sqrt(2)
    assert summary["low"].to_list() == [pytest.approx(2 - half), None]
    assert summary["high"].to_list() == [pytest.approx(2 + half), None]


def test_the_normal_quantile_is_that_of_the_confidence() -> None:
    assert normal_quantile() == pytest.approx(NormalDist().inv_cdf((1 + CONFIDENCE) / 2))
    # Student's t of many replicates comes to the same.
    assert t_quantile(1_000_000) == pytest.approx(normal_quantile(), rel=1e-5)
