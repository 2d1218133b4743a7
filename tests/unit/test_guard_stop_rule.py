"""The guard's stop rule: closed forms, error rates by simulation, clients that repeat themselves."""

import math
from bisect import bisect_left
from functools import cache
from ipaddress import ip_network

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import betainc, betaincc, betaln
from scipy.stats import beta, binom

from firstflight.errors import RequestError
from firstflight.guard.outcome import Outcome
from firstflight.guard.stop_rule import (
    EProcess,
    StopAnswer,
    StopRule,
    Trial,
    enough_events,
    least_events,
    log_e_value,
)


def by_quadrature(raised: int, events: int, share: float) -> float:
    """The e-value by its definition: the mean likelihood over the cut prior, against that of the share."""
    prior = beta(20 * share, 20 * (1 - share))
    mean, _ = quad(lambda x: x**raised * (1 - x) ** (events - raised) * prior.pdf(x) / prior.sf(share), share, 1)
    return mean / (share**raised * (1 - share) ** (events - raised))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("raised", "events"), [(0, 0), (1, 1), (0, 1), (7, 9), (2, 9), (30, 50)])
def test_the_e_value_is_the_integral_of_its_definition(raised: int, events: int, share: float) -> None:
    assert math.exp(log_e_value(raised, events, share)) == pytest.approx(by_quadrature(raised, events, share), rel=1e-6)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("events", [1, 40, 900])
def test_the_e_value_rises_with_the_bad_connections_of_the_raised_arm(events: int, share: float) -> None:
    log_e_values = [log_e_value(raised, events, share) for raised in range(events + 1)]
    assert log_e_values == sorted(set(log_e_values))


def stopped_at(raised: NDArray[np.int64], control: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Whether the rule stops at each number of bad connections in either arm: it does from a number in the raised arm
    on, which is found for each number in both.
    """

    @cache
    def least(events: int) -> int:
        return bisect_left(range(events + 1), math.log(20), key=lambda count: log_e_value(count, events, share))

    return np.asarray(raised >= np.vectorize(least)(raised + control))


@pytest.mark.parametrize("fewer", [False, True])
@pytest.mark.parametrize("events", [1, 40, 900, 20_000])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_e_value_is_that_of_scipys_incomplete_beta_function(share: float, events: int, fewer: bool) -> None:
    a, b, tail = 20 * share, 20 * (1 - share), betainc if fewer else betaincc
    # Further from the share, SciPy's tail becomes 0.
    reach = 8 * math.sqrt(share * (1 - share) / events)
    for raised in np.unique(np.linspace(max(share - reach, 0), min(share + reach, 1), 7) * events):
        mass = betaln(a + raised, b + events - raised) + math.log(tail(a + raised, b + events - raised, share))
        prior = betaln(a, b) + math.log(tail(a, b, share))
        expected = mass - prior - raised * math.log(share) - (events - raised) * math.log1p(-share)
        assert log_e_value(raised, events, share, fewer=fewer) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("ratio", [1.0, 1.5])
@pytest.mark.parametrize("fewer", [False, True])
def test_without_harm_the_e_value_is_one_on_average(share: float, ratio: float, fewer: bool) -> None:
    null = share * ratio / (share * ratio + 1 - share)
    raised = np.arange(61)
    e_values = np.exp([log_e_value(k, 60, share, ratio=ratio, fewer=fewer) for k in raised])
    assert (binom(60, null).pmf(raised) * e_values).sum() == pytest.approx(1)


def test_e_values_of_stages_multiply() -> None:
    process = EProcess(0.1)
    for raised in (True, True, False):
        process.count(raised=raised)
    process.split(0.5)
    process.count(raised=True)
    assert process.log_e == pytest.approx(log_e_value(2, 3, 0.1) + log_e_value(1, 1, 0.5))


# The table of connections with a loss in the first flight: share of the raised arm, rates of both, share of runs
# stopped (percent) and connections at the stop (median; not given for false stops).
PUBLISHED = [
    (0.5, 0.02, 0.02, 1.7, None),
    (0.5, 0.05, 0.05, 1.7, None),
    (0.5, 0.02, 0.022, 15, 17_500),
    (0.5, 0.02, 0.024, 54, 21_000),
    (0.5, 0.02, 0.03, 100, 7_000),
    (0.5, 0.02, 0.04, 100, 3_000),
    (0.5, 0.05, 0.06, 93, 15_000),
    (0.1, 0.02, 0.02, 1.7, None),
    (0.1, 0.02, 0.03, 88, 15_000),
    (0.1, 0.02, 0.04, 100, 6_000),
]
RUNS, LOOKS, PER_LOOK = 2000, 40, 1000


@pytest.mark.parametrize(("share", "control", "raised", "stopped_percent", "median"), PUBLISHED)
def test_error_rates_are_those_of_the_published_table(
    share: float, control: float, raised: float, stopped_percent: float, median: float | None
) -> None:
    random = np.random.default_rng(20261123)
    in_raised = int(PER_LOOK * share)
    bad_raised = random.binomial(in_raised, raised, (RUNS, LOOKS)).cumsum(axis=1)
    bad_control = random.binomial(PER_LOOK - in_raised, control, (RUNS, LOOKS)).cumsum(axis=1)
    stops = stopped_at(bad_raised, bad_control, share)
    stopped = stops.any(axis=1)
    # Both tables are simulated with 2,000 runs, so their difference has twice the variance; half a unit of rounding.
    rate = (stopped.mean() + stopped_percent / 100) / 2
    error = 3.5 * math.sqrt(2 * max(rate * (1 - rate), 1 / RUNS) / RUNS)
    assert abs(stopped.mean() - stopped_percent / 100) < error + 0.005
    if median is not None:
        times = PER_LOOK * (stops[stopped].argmax(axis=1) + 1)
        reach = 3.5 * math.sqrt(2 * 0.25 / stopped.sum())
        low, high = np.quantile(times, [0.5 - reach, 0.5 + reach])
        assert low - PER_LOOK <= median <= high + PER_LOOK


def test_at_the_rare_losses_of_a_median_path_twice_the_rate_is_found_within_the_published_number() -> None:
    random = np.random.default_rng(20261123)
    raised = random.binomial(500, 0.0128, (600, 60)).cumsum(axis=1)
    control = random.binomial(500, 0.0064, (600, 60)).cumsum(axis=1)
    stops = stopped_at(raised, control, 0.5)
    assert stops.any(axis=1).all()
    assert 6000 <= 1000 * (np.median(stops.argmax(axis=1)) + 1) <= 8000


def outcome(at: float, host: int, arm: str = "raised", lost: bool | None = True, timeouts: int = 0) -> Outcome:
    prefix = ip_network((0x0A000000 + host, 32))
    return Outcome(at, prefix, arm, 10, 20_000, 20, int(bool(lost)), lost, timeouts, 0.05, None, None)  # type: ignore[arg-type]


def test_a_client_counts_once_per_period() -> None:
    trial = Trial(StopRule(period_s=3600), share=0.5)
    for at in range(100):
        trial.count(outcome(at, host=1))
    assert (trial.losses.events, trial.connections) == (1, 100)
    trial.count(outcome(3600, host=1))
    assert trial.losses.events == 2


def test_many_clients_with_losses_only_when_raised_stop_the_window() -> None:
    trial = Trial(rule := StopRule(), share=0.5)
    for host in range(least_events(rule, 0.5) - 1):
        trial.count(outcome(0, host))
    assert trial.verdict().answer is StopAnswer.TOO_FEW
    trial.count(outcome(0, 1000))
    verdict = trial.verdict()
    assert verdict.answer is StopAnswer.STOP
    assert verdict.more_connections is None
    assert verdict.e_value >= 1 / rule.alpha


def test_before_anything_is_known_the_answer_is_how_many_connections_are_missing() -> None:
    trial = Trial(StopRule(), share=0.5)
    assert (trial.verdict().answer, trial.verdict().more_connections) == (StopAnswer.TOO_FEW, None)
    for host in range(1000):
        trial.count(outcome(0, host, lost=host < 20, arm="raised" if host % 2 else "control"))
    verdict = trial.verdict()
    assert verdict.answer is StopAnswer.CONTINUE
    # 189 events are needed with equal arms at a ratio of 1.5; there were 20 in 1,000 connections.
    assert verdict.more_connections == math.ceil((189 - 20) / (20.5 / 1001))


def test_equal_arms_are_enough_after_the_events_that_were_promised() -> None:
    trial = Trial(rule := StopRule(), share=0.5)
    for host in range(enough_events(rule, 0.5) + 1):
        trial.count(outcome(0, host, arm="raised" if host % 2 else "control"))
    assert trial.verdict().answer is StopAnswer.ENOUGH


def test_an_unknown_first_flight_is_neither_good_nor_bad() -> None:
    trial = Trial(StopRule(), share=0.5)
    for host in range(50):
        trial.count(outcome(0, host, lost=None))
    assert (trial.connections, trial.losses.events, trial.verdict().answer) == (0, 0, StopAnswer.TOO_FEW)


def test_timeouts_alone_stop_too() -> None:
    trial = Trial(StopRule(), share=0.5)
    for host in range(30):
        trial.count(outcome(0, host, lost=False, timeouts=1))
    assert trial.verdict().answer is StopAnswer.STOP


def test_a_period_of_no_time_is_refused() -> None:
    with pytest.raises(RequestError, match="the period is 0 s; give a time above 0"):
        StopRule(period_s=0)


@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_an_alpha_that_is_no_error_rate_is_refused(alpha: float) -> None:
    with pytest.raises(RequestError, match="alpha is"):
        StopRule(alpha=alpha)
