"""The talk's statements, and those of each algorithm's own publication about its window.

The sentences are paraphrased. Limits and tolerances were fixed before the first run; the measure for HyStart was
corrected after it (docs/evidence/congestion-control.md says why).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.studies.congestion_control.windows import PROBE_SEGMENTS
from firstflight.studies.kernel import ClaimSpec, Quantities, Source, above, at_most, between, each, near

DRAWN = {"rtt_ms": 80, "buffer_bdp": 1.0}
"""The path of the download of which every segment is kept."""
RATE_BPS = 10_000_000
PACKET_BYTES = 1500
STARTED_S = 5.0
"""Start-up is over by then: 60 round trips of 80 ms."""
# The bandwidth-delay product: rate times the minimum RTT, that of a packet alone.
PIPE_SEGMENTS = RATE_BPS * (DRAWN["rtt_ms"] / 1000 + 8 * PACKET_BYTES / RATE_BPS) / 8 / PACKET_BYTES
TALK = ["reno", "cubic", "westwood", "vegas"]
"""The algorithms that the talk shows."""
RULE = "A rule without exceptions, so the tolerance is 0."
COMPARISON = "The sentence compares and gives no number, so any difference in its direction will do."
BBR = "Cardwell et al. 2016 (BBR)"


def claims(q: Quantities) -> Sequence[ClaimSpec]:
    """The talk's claims, then those of RFC 5681, RFC 9438, HyStart, Westwood+, Vegas and BBR."""
    return [*_talk(q), *_algorithms(q)]


def _talk(q: Quantities) -> Iterator[ClaimSpec]:
    """Parallel connections, then elephants."""

    def least(name: str, text: str, found: xr.DataArray, expected: Expectation, why: str) -> ClaimSpec:
        titles = found["control"].attrs["titles"]
        by_title = found.sel(control=list(titles)).assign_coords(control=list(titles.values()))
        note = each(by_title, "{label} {value:.3g}") + "."
        return Source("J. Thalheim's talk").says(
            name, text, found.sel(control=TALK).min("control"), expected, why, note
        )

    many = int(q.first_flights["flows"].max())
    flights, times = (of.sel(flows=many) / of.sel(flows=1) for of in (q.first_flights, q.object_time))
    yield least(
        "talk-parallel-slow-starts",
        f"Parallel connections add up their slow starts: {many} that open together send {many} times as much before "
        "the first ACK as one does (least over the talk's algorithms).",
        flights,
        near(many, "times"),
        "A count of segments, so the tolerance is 0.",
    )
    yield least(
        "talk-parallel-compete",
        f"Parallel connections compete: an object of 100 kB takes longer next to {many - 1} others than alone (least "
        "over the talk's algorithms).",
        100 * (times - 1),
        above(0, "percent"),
        COMPARISON,
    )
    for size in q.elephant_share["size_kb"].values:
        yield least(
            f"talk-elephants-{size}kb",
            "A long flow takes an unfair share against a short flow: more than half of the link while a response of "
            f"{size} kB is sent (least over the talk's algorithms).",
            q.elephant_share.sel(size_kb=size, elephants=1),
            above(50, "percent"),
            "Half is the fair share of two flows.",
        )


def _algorithms(q: Quantities) -> Iterator[ClaimSpec]:
    """One by one, of the download that is drawn, in which nothing is random."""

    def one(quantity: str, control: str) -> xr.DataArray:
        array: xr.DataArray = getattr(q, quantity)
        return array.sel({"control": control, **DRAWN})

    yield Source("RFC 5681 section 3.1", needs="value").says(
        "rfc5681-s3.1-half",
        "On a loss Reno sets ssthresh to half of the data in flight (median over reductions, as a share of cwnd "
        "before).",
        one("kept_share", "reno"),
        near(0.5, "share", 0.02),
        "Windows of about 130 are in whole segments, and a part of the window was not in flight.",
    )
    yield Source("RFC 5681 section 3.1", needs="value").says(
        "rfc5681-s3.1-one-segment-a-round",
        "In congestion avoidance Reno's cwnd grows by one segment per RTT (mean over periods between losses).",
        one("growth", "reno"),
        near(1, "segments", 0.05),
        "cwnd is read in whole segments over periods of tens of RTTs.",
    )
    yield Source("RFC 9438 section 4.6", needs="value").says(
        "rfc9438-s4.6-beta",
        "On a loss CUBIC reduces its window to 0.7 (median over reductions).",
        one("kept_share", "cubic"),
        near(0.7, "share", 0.02),
        "Windows of about 130 are in whole segments, and a part of the window was not in flight.",
    )
    yield Source("RFC 9438 sections 4.2, 4.3 and 4.7", needs="value").says(
        "rfc9438-s4.2-curve",
        "Between losses CUBIC's cwnd is C (t - K)^3 + W_max, or Reno's estimate where that is more (median distance).",
        one("cubic_deviation", "cubic"),
        near(0, "percent", 5),
        "cwnd moves in whole segments towards the value of the curve one RTT later.",
    )
    yield Source("Ha and Rhee 2011 (HyStart)", needs="value").says(
        "hystart-no-overshoot",
        "HyStart leaves slow start before the queue overflows (packets of CUBIC's download dropped in slow start).",
        one("slow_start_drops", "cubic"),
        at_most(0, "packets"),
        RULE,
    )
    yield Source("Grieco and Mascolo 2004 (Westwood+)", needs="value").says(
        "westwood-bandwidth-delay-product",
        "On a loss Westwood+ sets ssthresh to the bandwidth that it measured times the minimum RTT (median ssthresh as "
        "a share of the BDP).",
        one("kept_segments", "westwood") / PIPE_SEGMENTS,
        near(1, "share", 0.1),
        "The measure is a filtered rate, sampled once per RTT.",
    )
    yield Source("Brakmo and Peterson 1995 (Vegas), with Linux's values", needs="value").says(
        "vegas-queue",
        "Vegas keeps between two and four of its segments in the queue (mean queue after start-up).",
        one("later_queue", "vegas"),
        between(2, 4, "packets"),
        "The range is Vegas's own, so the tolerance is 0. Linux rounds the number of queued segments down, so up "
        "to 4.99 count as four. It measures the RTT on the last segment that an ACK covers, here the second of a "
        "train of two, which waits longer. With an ACK for each segment the mean is 4.3.",
    )
    yield Source("Brakmo and Peterson 1995 (Vegas)", needs="value").says(
        "vegas-losses",
        "Vegas retransmits at most half as much as Reno (the abstract: one-fifth to one-half of the losses).",
        one("retransmissions", "vegas") / one("retransmissions", "reno").clip(1),
        at_most(0.5, "share"),
        "The upper end of the abstract's range; below its lower end is better still.",
    )
    yield Source(BBR, needs="value").says(
        "bbr-probe-rtt-window",
        "To measure the RTT BBR lowers its window to four segments (smallest cwnd after start-up).",
        one("smallest", "bbr"),
        near(PROBE_SEGMENTS, "segments"),
        RULE,
    )
    yield Source(BBR, needs="value").says(
        "bbr-probe-rtt-interval",
        "BBR measures the RTT when it has seen no shorter one for ten seconds (mean time from one probe to the next).",
        one("probe_interval", "bbr"),
        near(10, "s", 0.5),
        "The probe itself takes 200 ms and an RTT, and the ten seconds begin with its end.",
    )
    yield Source(BBR, needs="value").says(
        "bbr-queue",
        "BBR keeps the link busy without filling the queue: probing for bandwidth makes a queue of at most a quarter "
        "of the bandwidth-delay product (mean queue after start-up, as a share of it).",
        one("later_queue", "bbr") / PIPE_SEGMENTS,
        at_most(0.25, "share"),
        "The gain of 1.25 lasts one round trip of eight, so the mean must lie below its peak.",
    )
