"""Each congestion control with one download, with parallel connections and with concurrent short flows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.analysis.link_share import PAYLOAD_BYTES, median_share
from firstflight.analysis.table import Table
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.report.trace_plot.connection import DROPPED, RECEIVED, SENT, Connection
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

_FAST_RECOVERY = 3
# RFC 9438 sections 4.1 and 4.6.
C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)
# A stretch of congestion avoidance shorter than this number of round trips shows little of growth.
_FEWEST_ROUNDS = 5
PROBE_SEGMENTS = 4
"""BBR's window while it measures the round trip."""
MEASURES = {
    "kept_share": ("Ssthresh over cwnd at a reduction, median", "share"),
    "kept_segments": ("Ssthresh after a reduction, median", "segments"),
    "growth": ("Growth per RTT in congestion avoidance", "segments"),
    "cubic_deviation": ("Distance from RFC 9438's window, median", "percent"),
    "slow_start_drops": ("Packets dropped in slow start", "packets"),
    "smallest": ("Smallest cwnd after start-up", "segments"),
    "probe_interval": ("From one fall to four segments to the next", "s"),
}
"""Title and unit of each measure of a download's windows."""


@dataclass(frozen=True)
class Reduction:
    """A fast recovery: when it began, cwnd just before it and ssthresh just after its beginning, in segments."""

    time_s: float
    window: float
    ssthresh: float


@dataclass(frozen=True)
class Stretch:
    """Congestion avoidance between two reductions; `reduction` is the one before it.

    `rows`: `time_s`, `cwnd` and `rounds`, the windows acknowledged since its beginning, one row per ACK.
    """

    reduction: Reduction
    rows: pl.DataFrame


class BusiestConnection:
    """The windows of the connection that carries most data."""

    def __init__(self, segments: pl.DataFrame) -> None:
        """`segments`: the records' table of that name."""
        self._connection = Connection.busiest(segments)
        sender_rows = self._connection.own
        self._own = sender_rows.with_columns(
            (pl.col("recovery_state") >= _FAST_RECOVERY).alias("repairing"),
            pl.col("cwnd_segments").shift(1).alias("before"),
        )

    @property
    def reductions(self) -> list[Reduction]:
        """Every fast recovery."""
        begins = (pl.col("recovery_state") == _FAST_RECOVERY) & ~pl.col("repairing").shift(1).fill_null(False)
        rows = self._own.filter(begins).select("time_s", "before", "ssthresh_segments")
        return [Reduction(*row) for row in rows.iter_rows()]

    @property
    def stretches(self) -> list[Stretch]:
        """Congestion avoidance after each reduction, until the next or the end."""
        reductions = self.reductions
        ends = [*(reduction.time_s for reduction in reductions[1:]), math.inf]
        acked = (pl.col("ack").diff().fill_null(0).clip(0) / PAYLOAD_BYTES).alias("acked")
        acks = self._own.filter(~pl.col("is_data_way") & (pl.col("event") == RECEIVED)).with_columns(acked)
        stretches = []
        for reduction, end in zip(reductions, ends, strict=True):
            rows = acks.filter(
                (pl.col("time_s") > reduction.time_s)
                & (pl.col("time_s") < end)
                & ~pl.col("repairing")
                & (pl.col("cwnd_segments") >= pl.col("ssthresh_segments"))
            ).select(
                "time_s",
                pl.col("cwnd_segments").alias("cwnd"),
                (pl.col("acked") / pl.col("cwnd_segments")).cum_sum().alias("rounds"),
            )
            if not rows.is_empty() and rows["rounds"][-1] >= _FEWEST_ROUNDS:
                stretches.append(Stretch(reduction, rows))
        return stretches

    def growth_a_round(self) -> float:
        """Segments by which cwnd grows in a round trip of congestion avoidance: mean over stretches."""
        ends = [(of.rows.row(0, named=True), of.rows.row(-1, named=True)) for of in self.stretches]
        grown = [(last["cwnd"] - first["cwnd"]) / (last["rounds"] - first["rounds"]) for first, last in ends]
        return sum(grown) / len(grown) if grown else math.nan

    def cubic_deviation(self) -> float:
        """Median distance of cwnd from RFC 9438's window, as a share of RFC 9438's, over acknowledgments.

        The RFC's window is the larger of W_cubic(t) (figure 1) and W_est (figure 4), with the W_max that fast
        convergence leaves (section 4.7); t runs from the end of the recovery.
        """
        last_max, distances, maxima = 0.0, [], {}
        for reduction in self.reductions:
            shrinking = reduction.window < last_max
            last_max = reduction.window * (1 + BETA) / 2 if shrinking else reduction.window
            maxima[reduction.time_s] = last_max
        for stretch in self.stretches:
            maximum, first = maxima[stretch.reduction.time_s], stretch.rows["cwnd"][0]
            k = max(0.0, (maximum - first) / C) ** (1 / 3)
            t = pl.col("time_s") - stretch.rows["time_s"][0]
            # Above W_max the curve begins at its plateau.
            cubic = C * (t - k).pow(3) + max(maximum, first)
            estimate = first + ALPHA * (pl.col("rounds") - stretch.rows["rounds"][0])
            expected = pl.max_horizontal(cubic, estimate)
            distances.append(stretch.rows.select(((pl.col("cwnd") - expected).abs() / expected).alias("distance")))
        return _median(pl.concat(distances)["distance"].to_list()) if distances else math.nan

    def dropped_in_slow_start(self) -> int:
        """Data packets that the queue dropped until the first slow start ended."""
        left = pl.col("repairing") | (pl.col("cwnd_segments") >= pl.col("ssthresh_segments"))
        end_s = self._own.filter(left)["time_s"].min()
        dropped = (pl.col("event") == DROPPED) & pl.col("is_data_way")
        until = pl.lit(True) if end_s is None else pl.col("time_s") < end_s
        return self._connection.rows.filter(dropped & until).height

    def measures(self, started_s: float) -> dict[str, float]:
        """All of `MEASURES`; start-up ends at `started_s`."""
        reductions, after = self.reductions, pl.col("time_s") >= started_s
        low = pl.col("cwnd_segments") <= PROBE_SEGMENTS
        probes = self._own.filter(low & ~low.shift(1).fill_null(True) & after)["time_s"].to_list()
        return {
            "kept_share": _median([reduction.ssthresh / reduction.window for reduction in reductions]),
            "kept_segments": _median([reduction.ssthresh for reduction in reductions]),
            "growth": self.growth_a_round(),
            "cubic_deviation": 100 * self.cubic_deviation(),
            "slow_start_drops": float(self.dropped_in_slow_start()),
            "smallest": float(self._own.filter(after)["cwnd_segments"].to_numpy().min()),
            "probe_interval": (probes[-1] - probes[0]) / (len(probes) - 1) if len(probes) > 1 else math.nan,
        }


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan


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
BBR = "Cardwell et al. 2016 (BBR)"


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The talk's claims, then those of RFC 5681, RFC 9438, HyStart, Westwood+, Vegas and BBR."""
    return [*_talk(q), *_algorithms(q)]


def _talk(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Parallel connections, then elephants."""

    def least(name: str, text: str, values: xr.DataArray, expected: Expectation, why: str = "") -> k.ClaimSpec:
        titles = values["control"].attrs["titles"]
        by_title = values.sel(control=list(titles)).assign_coords(control=list(titles.values()))
        note = k.each(by_title, "{label} {value:.3g}") + "."
        return k.Source("J. Thalheim's talk").says(
            name, text, values.sel(control=TALK).min("control"), expected, why, note
        )

    many = int(q.first_flights["flows"].max())
    flights, times = (of.sel(flows=many) / of.sel(flows=1) for of in (q.first_flights, q.object_time))
    yield least(
        "talk-parallel-slow-starts",
        f"Parallel connections add up their slow starts: {many} that open together send {many} times as much before "
        "the first ACK as one does (least over the talk's algorithms).",
        flights,
        k.near(many, "times"),
        "A count of segments, so the tolerance is 0.",
    )
    yield least(
        "talk-parallel-compete",
        f"Parallel connections compete: an object of 100 kB takes longer next to {many - 1} others than alone (least "
        "over the talk's algorithms).",
        100 * (times - 1),
        k.above(0, "percent"),
    )
    for size in q.elephant_share["size_kb"].values:
        yield least(
            f"talk-elephants-{size}kb",
            "A long flow takes an unfair share against a short flow: more than half of the link while a response of "
            f"{size} kB is sent (least over the talk's algorithms).",
            q.elephant_share.sel(size_kb=size, elephants=1),
            k.above(50, "percent"),
            "Half is the fair share of two flows.",
        )


def _algorithms(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """One by one, of the download that is drawn, in which nothing is random."""
    controls = ("reno", "cubic", "westwood", "vegas", "bbr")
    reno, cubic, westwood, vegas, bbr = (q.at(control=control, **DRAWN) for control in controls)
    yield k.Source("RFC 5681 section 3.1", needs="value").says(
        "rfc5681-s3.1-half",
        "On a loss Reno sets ssthresh to half of the data in flight (median over reductions, as a share of cwnd "
        "before).",
        reno.kept_share,
        k.near(0.5, "share", 0.02),
        "Windows of about 130 are in whole segments, and a part of the window was not in flight.",
    )
    yield k.Source("RFC 5681 section 3.1", needs="value").says(
        "rfc5681-s3.1-one-segment-a-round",
        "In congestion avoidance Reno's cwnd grows by one segment per RTT (mean over periods between losses).",
        reno.growth,
        k.near(1, "segments", 0.05),
        "cwnd is read in whole segments over periods of tens of RTTs.",
    )
    yield k.Source("RFC 9438 section 4.6", needs="value").says(
        "rfc9438-s4.6-beta",
        "On a loss CUBIC reduces its window to 0.7 (median over reductions).",
        cubic.kept_share,
        k.near(0.7, "share", 0.02),
        "Windows of about 130 are in whole segments, and a part of the window was not in flight.",
    )
    yield k.Source("RFC 9438 sections 4.2, 4.3 and 4.7", needs="value").says(
        "rfc9438-s4.2-curve",
        "Between losses CUBIC's cwnd is C (t - K)^3 + W_max, or Reno's estimate where that is more (median distance).",
        cubic.cubic_deviation,
        k.near(0, "percent", 5),
        "cwnd moves in whole segments towards the value of the curve one RTT later.",
    )
    yield k.Source("Ha and Rhee 2011 (HyStart)", needs="value").says(
        "hystart-no-overshoot",
        "HyStart leaves slow start before the queue overflows (packets of CUBIC's download dropped in slow start).",
        cubic.slow_start_drops,
        k.at_most(0, "packets"),
        RULE,
    )
    yield k.Source("Grieco and Mascolo 2004 (Westwood+)", needs="value").says(
        "westwood-bandwidth-delay-product",
        "On a loss Westwood+ sets ssthresh to the bandwidth that it measured times the minimum RTT (median ssthresh as "
        "a share of the BDP).",
        westwood.kept_segments / PIPE_SEGMENTS,
        k.near(1, "share", 0.1),
        "The measure is a filtered rate, sampled once per RTT.",
    )
    yield k.Source("Brakmo and Peterson 1995 (Vegas), with Linux's values", needs="value").says(
        "vegas-queue",
        "Vegas keeps between two and four of its segments in the queue (mean queue after start-up).",
        vegas.later_queue,
        k.between(2, 4, "packets"),
        "The range is Vegas's own, so the tolerance is 0. Linux rounds the number of queued segments down, so up "
        "to 4.99 count as four. It measures the RTT on the last segment that an ACK covers, here the second of a "
        "train of two, which waits longer. With an ACK for each segment the mean is 4.3.",
    )
    yield k.Source("Brakmo and Peterson 1995 (Vegas)", needs="value").says(
        "vegas-losses",
        "Vegas retransmits at most half as much as Reno (the abstract: one-fifth to one-half of the losses).",
        vegas.retransmissions / reno.retransmissions.clip(1),
        k.at_most(0.5, "share"),
        "The upper end of the abstract's range; below its lower end is better still.",
    )
    yield k.Source(BBR, needs="value").says(
        "bbr-probe-rtt-window",
        "To measure the RTT BBR lowers its window to four segments (smallest cwnd after start-up).",
        bbr.smallest,
        k.near(PROBE_SEGMENTS, "segments"),
        RULE,
    )
    yield k.Source(BBR, needs="value").says(
        "bbr-probe-rtt-interval",
        "BBR measures the RTT when it has seen no shorter one for ten seconds (mean time from one probe to the next).",
        bbr.probe_interval,
        k.near(10, "s", 0.5),
        "The probe itself takes 200 ms and an RTT, and the ten seconds begin with its end.",
    )
    yield k.Source(BBR, needs="value").says(
        "bbr-queue",
        "BBR keeps the link busy without filling the queue: probing for bandwidth makes a queue of at most a quarter "
        "of the bandwidth-delay product (mean queue after start-up, as a share of it).",
        bbr.later_queue / PIPE_SEGMENTS,
        k.at_most(0.25, "share"),
        "The gain of 1.25 lasts one round trip of eight, so the mean must lie below its peak.",
    )


# Of Reno's download, the part that is drawn closely: slow start, its overshoot and the first tooth.
_CLOSE_S = 11
# Longer than a queue-swollen round trip, shorter than a tooth.
_STEP_S = 0.5


def tables(q: k.Quantities) -> Sequence[Table]:
    """Downloads, the grid around them, parallel connections, short flows."""
    downloads = [q.completion_time, q.goodput, q.retransmissions, q.timeouts, q.mean_queue, q.max_queue]
    return [
        k.table(
            "downloads",
            "One download of 50 MB",
            "10 Mbit/s, RTT 80 ms, a queue of 67 packets (1 x the bandwidth-delay product), alone on its path.",
            [of.sel(DRAWN, drop=True) for of in downloads],
        ),
        k.table(
            "paths",
            "The same download over other paths",
            "Round trip in ms; queue in bandwidth-delay products.",
            [of.transpose("rtt_ms", "buffer_bdp", ...) for of in (q.goodput, q.retransmissions, q.mean_queue)],
            across="control",
        ),
        k.table(
            "parallel",
            "Objects of 100 kB over connections that open together",
            "`flows` connections with an object each. First flights: segments sent before an ACK of data.",
            [q.object_time, q.first_flights, q.retransmitted],
        ),
        k.table(
            "mice",
            "Short flows next to a long one",
            "`elephants`: number of long flows of the same algorithm, started ten seconds before. Share: of the bytes "
            "that the bottleneck transmitted while the server sent the short response.",
            [q.mouse_time, q.elephant_share.reindex_like(q.mouse_time["elephants"])],
        ),
    ]


def figures(q: k.Quantities) -> Iterator[Figure | None]:
    """Window, throughput and queue over time, and the beginning of Reno's download."""
    segments = q.run.table("segments", **DRAWN).filter(pl.col("replicate") == 0).collect()
    segments = segments.with_columns(time_s=pl.col("time_ns") / 1e9)
    if segments.is_empty():
        return
    titles = q.completion_time["control"].attrs["titles"]
    of_server = (pl.col("event") == SENT) & k.DOWN
    of_server |= (pl.col("event") == RECEIVED) & (pl.col("from_server") == 0)
    server_rows, arrived = (segments.filter(of) for of in (of_server, (pl.col("event") == RECEIVED) & k.DOWN))
    mbps = 8 * pl.col("length").sum() / _STEP_S / 1e6
    queues = waiting(q.run).filter(pl.col(key) == label for key, label in DRAWN.items()).collect()
    queues = queues.rename({"interval_start_s": "time_s"})
    for rows, value, name, title, unit, caption in (
        (server_rows, pl.col("cwnd_segments").last(), "window", "Congestion window", "segments", "At the server."),
        (arrived, mbps, "delivered", "Delivered", "Mbit/s", "Payload that reached the client."),
        (
            queues,
            k.MEAN_QUEUE,
            "queues",
            "The queue at the bottleneck",
            "packets",
            "The queue that a packet finds is its delay, and that of every other flow.",
        ),
    ):
        drawn = k.named(_over_time(rows, value, "control", _STEP_S, titles), name, title, unit)
        columns = "control" if name == "queues" else None
        caption = f"One download at 10 Mbit/s, in steps of half a second. {caption}"
        yield k.lines(drawn, title, caption, "time_s", "control", columns)
    close = server_rows.filter(pl.col("control") == "reno", pl.col("time_s") < _CLOSE_S)
    if close.is_empty():
        return
    both = close.unpivot(["cwnd_segments", "ssthresh_segments"], index="time_s", variable_name="window")
    # An initial ssthresh far above the window would flatten everything else.
    both = both.filter(pl.col("value") <= 2 * close["cwnd_segments"].to_numpy().max())
    kinds = {"cwnd_segments": "cwnd", "ssthresh_segments": "ssthresh"}
    yield k.lines(
        k.named(
            _over_time(both, pl.col("value").last(), "window", _STEP_S / 10, kinds), "explained", "Window", "segments"
        ),
        "Slow start, fast retransmit, congestion avoidance",
        f"The first {_CLOSE_S} seconds of Reno's download: cwnd doubles in each round trip until the queue overflows, "
        "falls to ssthresh, half of the data in flight, and then grows by a segment per round trip.",
        "time_s",
        "window",
    )


def _over_time(rows: pl.DataFrame, value: pl.Expr, key: str, step_s: float, titles: Mapping[str, str]) -> xr.DataArray:
    """`value` of the rows in each step of `time_s`, for each label of the column `key` in the order of `titles`."""
    at = (pl.col("time_s") / step_s).floor() * step_s
    series = rows.group_by(at, key).agg(value.alias("value")).sort("time_s").pivot(key, index="time_s", values="value")
    labels = [label for label in titles if label in series.columns]
    array = xr.DataArray(series.select(labels).to_numpy(), {"time_s": series["time_s"], key: labels}, ["time_s", key])
    array[key].attrs["titles"] = dict(titles)
    return k.headed(array, time_s="time, s")


def answer(q: k.Quantities) -> Sequence[str]:
    """The queue of each algorithm, parallel connections, and the effect of a long flow on short ones."""
    goodput, queue = (of.sel(DRAWN).sel(draw=0) for of in (q.goodput, q.mean_queue))
    many = int(q.object_time["flows"].max())
    slower = (q.object_time.sel(flows=many) / q.object_time.sel(flows=1)).sel(draw=0, control=TALK)
    again = q.retransmitted.sel(flows=many, draw=0, control=TALK)
    shares = [q.elephant_share.sel(size_kb=size, elephants=1, draw=0) for size in q.elephant_share["size_kb"]]
    parts = [f"{_ends(share, '%')} of the link during transfers of {int(share['size_kb'])} kB" for share in shares]
    return [
        f"Alone on the link, all reach {_span(goodput, 2)} Mbit/s; their mean queue is {_ends(queue, ' packets')}.",
        f"{many} connections that open together begin with {many} first flights; each object of 100 kB takes "
        f"{_span(slower, 1)} times as long as alone, and {_span(again, 0)}% of the segments are retransmitted.",
        f"A long flow keeps {', '.join(parts)}.",
    ]


def _span(values: xr.DataArray, digits: int) -> str:
    """From the least to the greatest, as one figure where they print alike."""
    least, most = f"{float(values.min()):.{digits}f}", f"{float(values.max()):.{digits}f}"
    return least if least == most else f"{least} to {most}"


def _ends(values: xr.DataArray, unit: str) -> str:
    """The least and the greatest, with whose they are."""
    titles = values["control"].attrs["titles"]
    least, most = (titles[str(at.values)] for at in (values.idxmin("control"), values.idxmax("control")))
    return f"{float(values.min()):.0f}{unit} ({least}) to {float(values.max()):.0f}{unit} ({most})"


MOUSE = k.DONE & k.of("mouse")
BOTTLENECK = pl.col("link").cast(pl.String) == "links[0]"
RTT_S = DRAWN["rtt_ms"] / 1000
PLACE = ["control", "rtt_ms", "buffer_bdp", "replicate"]


def waiting(run: Run) -> pl.LazyFrame:
    """The bottleneck's intervals while a download lasts: nothing waits after it."""
    ends = run.table("transfers", experiment="download").select(*PLACE, pl.col("completion_time_s").alias("end_s"))
    links = run.table("links", experiment="download").filter(BOTTLENECK)
    return links.join(ends, on=PLACE, maintain_order="left").filter(pl.col("interval_start_s") < pl.col("end_s"))


def windows(run: Run) -> pl.LazyFrame:
    """Each sender's cwnd in the download that is drawn, one row per algorithm."""
    segments = run.table("segments", **DRAWN).filter(pl.col("replicate") == 0).collect()
    rows = []
    for (control,), download in segments.partition_by("control", as_dict=True, maintain_order=True).items():
        rows.append({"control": control, **DRAWN, "replicate": 0, **BusiestConnection(download).measures(STARTED_S)})
    return pl.LazyFrame(rows, schema={**segments.select(PLACE).schema, **dict.fromkeys(MEASURES, pl.Float64)})


def mice(run: Run) -> pl.LazyFrame:
    """The link's share of the long flow while each short response was sent, percent, in medians by replicate."""
    place = ["control", "size_kb", "elephants", "replicate"]
    transfers, links = (run.table(name, experiment="mice", elephants=1) for name in ("transfers", "links"))
    return median_share(transfers.filter(MOUSE), links.filter(BOTTLENECK), place, RTT_S / 2)


SECONDS = pl.col("completion_time_s")
QUEUE = pl.col("queue_mean_packets") * pl.col("interval_s")
AFTER = pl.col("interval_start_s") >= STARTED_S
# The download, its bottleneck, and the parallel connections.
of_download = partial(k.Quantity, where=k.DONE, digits=0, grid="download")
of_queue = partial(k.Quantity, records=waiting, grid="download")
of_objects = partial(k.Quantity, where=k.DONE, grid="parallel")
WINDOW_AT = {key: [label] for key, label in DRAWN.items()}
QUANTITIES = (
    of_download("completion_time", "Completion time", "s", SECONDS.max(), digits=2),
    of_download("goodput", "Goodput", "Mbit/s", (8 * pl.col("bytes") / SECONDS / 1e6).max(), digits=2),
    of_download("retransmissions", "Retransmitted segments", "segments", pl.col("retransmissions").max()),
    of_download("timeouts", "Timeouts", "count", pl.col("timeouts").max()),
    of_queue("mean_queue", "Mean queue", "packets", QUEUE.sum() / pl.col("end_s").max()),
    of_queue("max_queue", "Longest queue", "packets", pl.col("queue_max_packets").max(), digits=0),
    of_queue("later_queue", "Mean queue after start-up", "packets", k.MEAN_QUEUE, AFTER),
    *(
        k.Quantity(name, title, unit, pl.col(name).max(), None, windows, grid="download", at=WINDOW_AT)
        for name, (title, unit) in MEASURES.items()
    ),
    of_objects("object_time", "Mean completion time", "s", SECONDS.mean(), digits=3),
    of_objects("first_flights", "First flights together", "segments", pl.col("first_flight_segments").sum(), digits=0),
    of_objects("retransmitted", "Retransmitted segments", "percent", k.RETRANSMITTED),
    k.Quantity("mouse_time", "Median completion time", "s", SECONDS.median(), MOUSE, digits=3, grid="mice"),
    k.Quantity(
        "elephant_share",
        "The long flow's share of the link meanwhile",
        "percent",
        pl.col("share").max(),
        records=mice,
        grid="mice",
        at={"elephants": [1]},
    ),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The queue of a download in whole full packets; no application for a long flow that is not there."""
    if grid == "download":
        product = RATE_BPS * labels["rtt_ms"] / 1000 / 8 / PACKET_BYTES
        return scenario.replace("network.links[0].queue", f"{max(1, round(labels['buffer_bdp'] * product))}p")
    if grid == "mice" and not labels["elephants"]:
        return scenario.replace("application", scenario.to_dict()["application"][:1])
    return scenario


STUDY = k.DeclaredStudy(__file__, QUANTITIES, claims, tables, figures, answer, build)
