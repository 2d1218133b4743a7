"""A short run of the calibration; `python -m research.calibration` does the whole of it."""

from __future__ import annotations

import numpy as np
import pytest

from firstflight.analysis.ab import compare
from firstflight.engines.simulate import run_cell
from firstflight.scenario import Cell
from research.calibration import cases, means, simulated
from research.calibration.check import CASES, Outcome

REPETITIONS = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "coverage: mean, unpaired, 400",
        "coverage: p50, paired, 100",
        "coverage: p95, paired, 800",
        "coverage: mean, paired, clustered, 50",
        "coverage: mean, aggregates of 5 replicates, 5",
        "false alarms: p50, same law, 100",
        "false alarms: p50, simulated, 100",
    ],
)
def test_intervals_keep_what_they_promise(name: str) -> None:
    found = [CASES[name].once(seed) for seed in range(REPETITIONS)]
    shares = {figure: 100 * float(np.mean([one[figure] for one in found])) for figure in found[0]}
    assert Outcome(name, CASES[name].kind, REPETITIONS, shares).holds, shares


@pytest.mark.parametrize("paired", [True, False])
def test_means_of_many_samples_at_once_are_those_of_each_alone(paired: bool) -> None:
    draw = np.random.default_rng(1)
    base, treat, mean, treated = means.samples("treated", 400, paired, draw)
    assert (mean, treated) == cases.truths("mean")
    found = means.figures(base, treat, paired, draw)
    alone = [cases.compared(base[at], treat[at], "mean", paired, at) for at in range(means.TOGETHER)]
    for name, figure in found.items():
        assert [getattr(one, name).value for one in alone] == pytest.approx(figure.value.tolist())
    assert [one.standard_error for one in alone] == pytest.approx(found["difference"].error.tolist(), rel=1e-3)
    # The resamples are others, so ends differ by chance; all but a few intervals agree about the truth.
    covers = found["difference"].covers(treated - mean)["as it is"]
    alike = np.array([cases.covered(one, mean, treated)["difference"] for one in alone]) == covers
    assert alike.mean() >= 0.9


def test_the_laws_truths_are_those_of_a_large_sample() -> None:
    draw = np.random.default_rng(1)
    base = cases.LAW.baseline(400_000, draw)
    treat = cases.LAW.treatment(base, draw)
    assert cases.truths("mean") == pytest.approx((base.mean(), treat.mean()), rel=0.01)
    for statistic, p in (("p50", 0.5), ("p99", 0.99)):
        assert cases.truths(statistic) == pytest.approx((np.quantile(base, p), np.quantile(treat, p)), rel=0.02)


def test_an_outcome_tells_chance_from_failure() -> None:
    def outcome(share: float, repetitions: int = 2000) -> Outcome:
        return Outcome("", "coverage", repetitions, {"difference": share})

    assert outcome(95).within
    assert not outcome(93.5).within
    assert outcome(93.5).holds
    assert not outcome(92).holds
    assert not outcome(93.5, repetitions=20_000).holds


def test_the_same_users_with_the_same_initial_window_do_not_differ_at_all() -> None:
    users = [run_cell(Cell({}, simulated.scenario(1200, neighbors=False)), 7, 1)["transfers"] for _ in range(2)]
    rows = cases.frame(*(side["completion_time_s"].to_numpy() for side in users))
    for statistic in ("mean", "p95"):
        found = compare(rows, "time_s", cases.DESIGN, statistic=statistic)
        assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
