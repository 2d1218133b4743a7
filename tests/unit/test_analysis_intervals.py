import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

import firstflight
from firstflight.analysis.intervals import CONFIDENCE, quantile, ratio, seed_of, t_quantile

SAMPLE = np.array([0.91, 1.02, 0.97, 1.10, 0.95])
ONES = np.ones(5)


def test_a_mean_over_replicates_has_students_interval():
    low, high = stats.t.interval(0.95, len(SAMPLE) - 1, np.mean(SAMPLE), stats.sem(SAMPLE))
    found = ratio(SAMPLE, ONES)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(SAMPLE), low, high))
    assert found.replicates == 5


def test_one_replicate_has_no_interval():
    for found in (ratio(SAMPLE[:1], ONES[:1]), quantile(SAMPLE, ONES, np.zeros(5), 0.5, counted=True)):
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_a_ratio_is_of_all_replicates_together_and_its_interval_the_jackknife_s():
    above, below = np.array([1.0, 4.0, 1.0]), np.array([10.0, 20.0, 10.0])
    found = ratio(above, below)
    assert found.value == 6 / 40
    without = np.array([5 / 30, 2 / 20, 5 / 30])
    half = stats.t.ppf(0.975, 2) * math.sqrt(2 / 3 * ((without - without.mean()) ** 2).sum())
    assert (found.low, found.high) == pytest.approx((0.15 - half, 0.15 + half))
    assert math.isnan(ratio(above, np.zeros(3)).value)


def test_a_quantile_is_of_all_rows_and_the_unfinished_are_beyond_every_time():
    values = np.array([3.0, 1.0, 2.0, 4.0, math.inf])
    of = np.array([0, 0, 0, 1, 1])
    assert quantile(values, ONES, of, 0.5, counted=True).value == 3
    assert quantile(values, ONES, of, 0.6, counted=True).value == pytest.approx(3.4)
    assert quantile(values, ONES, of, 0.9, counted=True).value == math.inf
    # As many rows as a weight says.
    assert quantile(values, np.array([1.0, 1, 1, 5, 1]), of, 0.5, counted=True).value == 4
    # By survey weight the least value with that share at or below.
    assert quantile(values, np.array([1.0, 1, 1, 1, 4]), of, 0.49, counted=False).value == 4


def test_the_interval_of_a_quantile_covers_the_truth_as_often_as_it_says():
    covered, repetitions = 0, 400
    for repetition in range(repetitions):
        draw = np.random.default_rng(repetition)
        # Rows of a replicate have something in common.
        values = np.exp(draw.normal(size=(20, 50)) + 0.3 * draw.normal(size=(20, 1)))
        found = quantile(values.ravel(), np.ones(1000), np.repeat(np.arange(20), 50), 0.9, counted=True)
        covered += found.low <= math.exp(NormalDist().inv_cdf(0.9) * math.hypot(1, 0.3)) <= found.high
    assert 0.92 <= covered / repetitions <= 0.98


def test_an_interval_that_reaches_among_the_unfinished_has_no_end_and_is_left_out():
    values = np.concatenate([np.arange(1.0, 94), np.full(7, math.inf)])
    found = quantile(values, np.ones(100), np.arange(100) % 5, 0.92, counted=True)
    assert found.value == pytest.approx(92.08)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


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


def test_students_t_of_many_replicates_is_the_normal_distributions() -> None:
    assert t_quantile(1_000_000) == pytest.approx(NormalDist().inv_cdf((1 + CONFIDENCE) / 2), rel=1e-5)


def test_every_interval_of_students_t_is_made_in_one_file() -> None:
    package = Path(firstflight.__file__).parent
    names = ("student_quantile", "student_cdf", "NormalDist().inv_cdf((1 +")
    using = [path for path in package.rglob("*.py") if any(name in path.read_text() for name in names)]
    assert [str(path.relative_to(package)) for path in using] == ["analysis/intervals.py"]
