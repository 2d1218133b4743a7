"""What the algorithms' own publications say of one download."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from firstflight.analysis.claim import Claim, Needs, Sentence, at_most, between, near
from firstflight.analysis.intervals import Estimate, Means

from ..grid import PACKET_BYTES, RATE_BPS, Point, drawn
from ..measure import Place, Values
from ..windows import Windows
from .missing import missing

RULE = "A rule without exceptions, so the tolerance is 0."
STARTED_S = 5.0
"""Start-up is over by then: 60 round trips of 80 ms."""


def claims(values: Values, windows: Mapping[str, Windows], queues: pl.DataFrame) -> list[Claim]:
    """One by one, in the order of the algorithms."""
    return [statement.check(values, windows, queues) for statement in _STATEMENTS]


Found = Callable[[Values, Mapping[str, Windows], pl.DataFrame], float]


@dataclass(frozen=True)
class _Statement(Sentence):
    """A sentence about one download, which has nothing random: `found` raises KeyError if the run lacks it."""

    needs: Needs = field(default="value", kw_only=True)
    found: Found

    def check(self, values: Values, windows: Mapping[str, Windows], queues: pl.DataFrame) -> Claim:
        try:
            found = self.found(values, windows, queues)
        except KeyError as error:
            return self.unchecked(missing(error))
        if math.isnan(found):
            return self.unchecked("The download has no such event.")
        return self.judge(Estimate(found))


def _mean_queue(queues: pl.DataFrame, control: str) -> float:
    """Packets, after start-up."""
    own = queues.filter((pl.col("control") == control) & (pl.col("time_s") >= STARTED_S))
    if own.is_empty():
        raise KeyError(control)
    return float(own["packets"].mean())  # type: ignore[arg-type]


def _pipe_segments() -> float:
    """Segments that the path holds without a queue: rate times the shortest round trip, that of a packet alone."""
    point: Point = drawn("")
    shortest_s = point.rtt_ms / 1000 + 8 * PACKET_BYTES / RATE_BPS
    return RATE_BPS * shortest_s / 8 / PACKET_BYTES


def _single(values: Values, metric: str, control: str) -> float:
    return Means(values)(Place(metric, drawn(control)))


def _probe_interval(windows: Windows) -> float:
    begins = windows.begins_at(_PROBE_SEGMENTS, STARTED_S)
    if len(begins) < 2:
        return math.nan
    return (begins[-1] - begins[0]) / (len(begins) - 1)


_PROBE_SEGMENTS = 4
BRAKMO = "Brakmo and Peterson 1995 (Vegas), with Linux's values"
BBR = "Cardwell et al. 2016 (BBR)"

_STATEMENTS = (
    _Statement(
        "rfc5681-s3.1-half",
        "RFC 5681 section 3.1",
        "On a loss Reno sets ssthresh to half of what is in flight (median over reductions, as a share of cwnd "
        "before).",
        near(0.5),
        0.02,
        "share",
        "Whole segments of windows around 130, and what of the window was not in flight.",
        lambda values, windows, queues: windows["reno"].kept_share(),
    ),
    _Statement(
        "rfc5681-s3.1-one-segment-a-round",
        "RFC 5681 section 3.1",
        "In congestion avoidance Reno's cwnd grows by one segment a round trip (mean over stretches between losses).",
        near(1),
        0.05,
        "segments",
        "cwnd is read in whole segments over stretches of tens of round trips.",
        lambda values, windows, queues: windows["reno"].growth_a_round(),
    ),
    _Statement(
        "rfc9438-s4.6-beta",
        "RFC 9438 section 4.6",
        "On a loss CUBIC keeps 0.7 of its window (median over reductions).",
        near(0.7),
        0.02,
        "share",
        "Whole segments of windows around 130, and what of the window was not in flight.",
        lambda values, windows, queues: windows["cubic"].kept_share(),
    ),
    _Statement(
        "rfc9438-s4.2-curve",
        "RFC 9438 sections 4.2, 4.3 and 4.7",
        "Between losses CUBIC's cwnd is C (t - K)^3 + W_max, or Reno's estimate where that is more (median distance).",
        near(0),
        5,
        "percent",
        "cwnd goes in whole segments towards where the curve will be a round trip later.",
        lambda values, windows, queues: 100 * windows["cubic"].cubic_deviation(),
    ),
    _Statement(
        "hystart-no-overshoot",
        "Ha and Rhee 2011 (HyStart)",
        "HyStart leaves slow start before the queue overflows (packets of CUBIC's download dropped in slow start).",
        at_most(0),
        0,
        "packets",
        RULE,
        lambda values, windows, queues: float(windows["cubic"].dropped_in_slow_start()),
    ),
    _Statement(
        "westwood-bandwidth-delay-product",
        "Grieco and Mascolo 2004 (Westwood+)",
        "On a loss Westwood+ sets ssthresh to the bandwidth that it measured times the shortest round trip "
        "(median ssthresh as a share of what the path holds).",
        near(1),
        0.1,
        "share",
        "The measure is a filtered rate, sampled once a round trip.",
        lambda values, windows, queues: windows["westwood"].kept_segments() / _pipe_segments(),
    ),
    _Statement(
        "vegas-queue",
        BRAKMO,
        "Vegas keeps between two and four segments of its own in the queue (mean queue after start-up).",
        between(2, 4),
        0,
        "packets",
        "The range is Vegas's own, so the tolerance is 0. Linux rounds the number of queued segments down, so up to "
        "4.99 count as four, and measures it on the segment of a delayed ACK's pair that waits less. With an ACK for "
        "each segment the mean is 4.3.",
        lambda values, windows, queues: _mean_queue(queues, "vegas"),
    ),
    _Statement(
        "vegas-losses",
        "Brakmo and Peterson 1995 (Vegas)",
        "Vegas retransmits at most half as much as Reno (the abstract: one-fifth to one-half of the losses).",
        at_most(0.5),
        0,
        "share",
        "The upper end of the abstract's range; below its lower end is better still.",
        lambda values, windows, queues: (
            _single(values, "retransmissions", "vegas") / max(1.0, _single(values, "retransmissions", "reno"))
        ),
    ),
    _Statement(
        "bbr-probe-rtt-window",
        BBR,
        "To measure the round trip BBR lowers its window to four segments (smallest cwnd after start-up).",
        near(_PROBE_SEGMENTS),
        0,
        "segments",
        RULE,
        lambda values, windows, queues: windows["bbr"].smallest_after(STARTED_S),
    ),
    _Statement(
        "bbr-probe-rtt-interval",
        BBR,
        "It does so when it has seen no shorter round trip for ten seconds (mean time from one probe to the next).",
        near(10),
        0.5,
        "s",
        "The probe itself takes 200 ms and a round trip, and the ten seconds begin with its end.",
        lambda values, windows, queues: _probe_interval(windows["bbr"]),
    ),
    _Statement(
        "bbr-queue",
        BBR,
        "BBR keeps the pipe full without filling the queue: probing for bandwidth makes a queue of at most a quarter "
        "of the bandwidth-delay product (mean queue after start-up, as a share of it).",
        at_most(0.25),
        0,
        "share",
        "The gain of 1.25 lasts one round trip of eight, so the mean must lie below its peak.",
        lambda values, windows, queues: _mean_queue(queues, "bbr") / _pipe_segments(),
    ),
)
