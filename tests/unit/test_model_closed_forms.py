"""Throughput by window, doubling rounds, bandwidth-limited slow start, and the limits of the loss
equations."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from firstflight.engines.model import loss
from firstflight.engines.model.delayed_acks import round_trips
from firstflight.engines.model.slow_start import (
    SlowStart,
    doubling_rounds,
    limited_throughput_bps,
    transfer_time_s,
    window_throughput_bps,
)
from firstflight.errors import RequestError


def test_throughput_is_a_window_each_round_trip_until_the_link_is_full() -> None:
    assert window_throughput_bps(10, 1460, 0.1) == pytest.approx(1.168e6)
    assert limited_throughput_bps(10, 1460, 0.1, 10e6) == pytest.approx(1.168e6)
    assert limited_throughput_bps(1000, 1460, 0.1, 10e6) == pytest.approx(10e6 * 1460 / 1500)
    with pytest.raises(RequestError, match="round_trip_s must be positive"):
        window_throughput_bps(10, 1460, 0)


@given(segments=some.integers(1, 10**6), iw=some.integers(1, 1000))
def test_doubling_rounds_are_the_recursion_with_an_ack_a_segment(segments: int, iw: int) -> None:
    assert doubling_rounds(segments, iw) == round_trips(segments, iw, segments_per_ack=1)


def test_doubling_rounds_do_not_round_a_full_round_up() -> None:
    # ceil(log2(7/1 + 1)) is 3; the logarithm of a large number of this kind may come out above its whole
    # value.
    assert doubling_rounds(7, 1) == 3
    assert doubling_rounds(2**59 - 1, 1) == 59


def test_the_talks_transfer_time_counts_the_handshake() -> None:
    assert transfer_time_s(20 * 1460, 1460, 10, 0.1) == pytest.approx(0.3)
    assert transfer_time_s(20 * 1460, 1460, 10, 0.1, handshake=False) == pytest.approx(0.2)


def test_slow_start_by_hand() -> None:
    # 15 segments from IW 1 with tau = R: windows 1, 2, 4, 8. The first fits the pipe of 2 segments, so does
    # the second, just; the stalls are R + tau - tau and R + tau - 2 tau.
    case = SlowStart(15 * 1460, 1460, 1, round_trip_s=0.012, rate_bps=1e6)
    assert (case.serialization_s, case.pipe_segments) == pytest.approx((0.012, 2))
    assert (case.windows, case.stalls_of_endless_transfer, case.stalls) == (4, 2, 2)
    assert case.stalled_s == pytest.approx(0.012)
    assert case.completion_time_s == pytest.approx(2 * 0.012 + 15 * 0.012 + 0.012)


@given(
    segments=some.integers(1, 5000),
    iw=some.integers(1, 64),
    round_trip=some.floats(1e-3, 1.0),
    rate=some.floats(1e4, 1e9),
)
def test_slow_start_is_the_sum_of_its_stalls(segments: int, iw: int, round_trip: float, rate: float) -> None:
    case = SlowStart(segments * 1460, 1460, iw, round_trip, rate)
    stalls, delivered, window = [], iw, iw
    while delivered < segments:
        stalls.append(max(0.0, round_trip + case.serialization_s - window * case.serialization_s))
        window *= 2
        delivered += window
    assert case.stalled_s == pytest.approx(sum(stalls), abs=1e-9)


@given(
    segments=some.integers(1, 500),
    iw=some.integers(1, 20),
    more=some.integers(1, 60),
    rate=some.floats(1e5, 1e9),
)
def test_a_larger_window_never_loses_and_gains_at_most_the_stalls(
    segments: int, iw: int, more: int, rate: float
) -> None:
    case = SlowStart(segments * 1460, 1460, iw, 0.1, rate)
    assert -1e-12 <= case.gain_s(iw + more) <= case.stalled_s + 1e-12


def test_a_window_that_fills_the_pipe_leaves_nothing_to_gain() -> None:
    case = SlowStart(100 * 1460, 1460, 10, 0.07, 1.2e6)
    assert case.pipe_segments == pytest.approx(8)
    assert case.stalls == 0
    assert case.gain_s(32) == 0


def test_slow_start_refuses_what_it_cannot_mean() -> None:
    with pytest.raises(RequestError, match="rate_bps must be positive"):
        SlowStart(1460, 1460, 3, 0.1, 0)
    with pytest.raises(RequestError, match="header_bytes"):
        SlowStart(1460, 1460, 3, 0.1, 1e6, header_bytes=-1)


def test_loss_equations_order_as_they_must() -> None:
    rare, common = loss.mathis_bps(1460, 0.1, 0.001), loss.mathis_bps(1460, 0.1, 0.01)
    assert rare / common == pytest.approx(math.sqrt(10))
    assert loss.mathis_bps(1460, 0.1, 0.01, 1) > common
    # PFTK knows timeouts, so it stays below Mathis and comes near where loss is rare.
    assert loss.pftk_segments_per_s(0.1, 1.0, 0.05, 1e9) < loss.mathis_bps(1460, 0.1, 0.05) / 8 / 1460
    near = loss.pftk_segments_per_s(0.1, 1.0, 1e-6, 1e9) / (loss.mathis_bps(1460, 0.1, 1e-6) / 8 / 1460)
    assert near == pytest.approx(1, abs=0.05)
    assert loss.pftk_segments_per_s(0.1, 1.0, 1e-9, 10) == pytest.approx(100)


def test_a_short_transfer_without_loss_takes_the_handshake_and_slow_start() -> None:
    case = loss.ShortTransfer(segments=30, initial_window=10, round_trip_s=0.1, loss=0.0, segments_per_ack=1)
    assert case.slow_start_segments == 30
    assert case.completion_time_s == pytest.approx(0.1 + 0.1 * 2)
    nearly = replace(case, loss=1e-9)
    assert nearly.completion_time_s == pytest.approx(case.completion_time_s, rel=1e-5)
    waiting = replace(case, initial_window=1, segments_per_ack=2)
    assert waiting.completion_time_s - replace(waiting, delayed_ack_s=0.0).completion_time_s == pytest.approx(0.1)


def test_a_short_transfer_gets_slower_with_loss_and_with_smaller_windows() -> None:
    times = [loss.ShortTransfer(50, 10, 0.1, p).completion_time_s for p in (0.0, 0.005, 0.02, 0.1)]
    assert times == sorted(times)
    assert loss.ShortTransfer(50, 3, 0.1, 0.01).slow_start_s > loss.ShortTransfer(50, 10, 0.1, 0.01).slow_start_s
    bounded = loss.ShortTransfer(500, 10, 0.1, 0.0, window_segments=20)
    assert bounded.slow_start_s > loss.ShortTransfer(500, 10, 0.1, 0.0).slow_start_s


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1])
def test_a_loss_that_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(RequestError, match="probability"):
        loss.mathis_bps(1460, 0.1, wrong)
    with pytest.raises(RequestError, match="probability"):
        loss.pftk_segments_per_s(0.1, 1.0, wrong, 10)


def test_a_handshake_that_never_succeeds_is_refused() -> None:
    with pytest.raises(RequestError, match=r"below 0\.5"):
        loss.ShortTransfer(10, 3, 0.1, 0.5)
