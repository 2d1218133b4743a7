"""The simulator against the kernel that runs here: one transfer, many conditions, both engines side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.analysis.table import Table
from firstflight.counted import counted
from firstflight.engines.emulate.kernel import tick_ns
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.report.trace_plot import overlay
from firstflight.report.trace_plot.connection import RECEIVED
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

KEYS = ("queue", "control", "size_kb", "rtt_ms", "rate_mbit", "iw")
AMPLE = 1000
"""The queue, in packets, that never overflows."""
CLOSE_MS, CLOSE_PERCENT = 1.0, 1.0
LIMIT = "The limit is part of the sentence, so the tolerance is 0."
SOURCE = k.Source("firstflight's requirement on the simulator", needs="value", why=LIMIT)
# Cells that a note names.
_NAMED = 5
# Transfers of a condition, of 20, below which it is not judged.
_LEAST = 5
STARTS_S = 0.04
"""Real downloads count where the delays of their starts differ by at most this, a round trip. Set after the first run,
in which those of eight programs differed by 43 ms (median)."""
_GAPS = f"the drawn gaps to within {1e3 * STARTS_S:.0f} ms"
# Below this probability two distributions are told apart.
_RARE = 0.01


class Sides:
    """Medians over the undisturbed, completed transfers of either engine, of the cells that both measured."""

    def __init__(self, q: k.Quantities) -> None:
        self.q = q
        self.has_both = "emulated_time" in q
        self.emulated, self.simulated = self.medians("time")
        self.difference = self.emulated - self.simulated
        self.percent = 100 * self.difference / self.simulated
        # Whether both engines measured the cell, and whether its queue is ample.
        self.measured, self.clean = self.percent.notnull(), self.percent["queue"] == AMPLE
        # Whether the times differ by at most 1% or 1 ms, whichever is more.
        self.close = (abs(self.difference) <= CLOSE_MS) | (abs(self.percent) <= CLOSE_PERCENT)
        # Whether a shallow queue made either engine retransmit.
        again, again_too = self.medians("retransmissions")
        self.lossy = ~self.clean & (np.maximum(again, again_too) > 0)
        # Whether both lose as many segments of the first flight.
        lost, lost_too = self.medians("lost")
        self.alike = lost == lost_too

    def medians(self, name: str) -> list[xr.DataArray]:
        """Of the quantity `name`: emulated, which a simulated run lacks, then simulated."""
        simulated = getattr(self.q, f"simulated_{name}")
        emulated = getattr(self.q, f"emulated_{name}") if self.has_both else simulated.where(False)
        both = [of.median("replicate") for of in (emulated, simulated)]
        return [of.where(both[0].notnull() & both[1].notnull()) for of in both]

    @property
    def transfers(self) -> xr.DataArray:
        """Emulated transfers that were begun and, along `disturbed`, those that met a stall of the machine."""
        disturbed = self.q.emulated_disturbed
        counts = [disturbed.count("replicate"), disturbed.sum("replicate")]
        return xr.concat(counts, "disturbed").where(counts[0] > 0)


class Together:
    """Downloads that share a queue, in each condition that both engines measured often enough."""

    def __init__(self, q: k.Quantities) -> None:
        self.sides = {}
        for name in ("mean", "last"):
            simulated = getattr(q, f"simulated_{name}")
            emulated = getattr(q, f"emulated_{name}") if "emulated_time" in q else simulated.where(False)
            self.sides[name] = emulated, simulated.rename(replicate="simulation")
        self.counted = self.sides["mean"][0].notnull().sum("replicate")
        self.measured = self.counted >= _LEAST

    def means(self, name: str) -> tuple[xr.DataArray, xr.DataArray]:
        """Over transfers of the kernel, over those of the simulator."""
        emulated, simulated = self.sides[name]
        return emulated.mean("replicate").where(self.measured), simulated.mean("simulation").where(self.measured)

    def difference(self, name: str) -> xr.DataArray:
        """The kernel's mean against the simulator's, percent of it."""
        emulated, simulated = self.means(name)
        return 100 * (emulated / simulated - 1)

    def probability(self, name: str) -> xr.DataArray:
        """How often samples of one distribution would differ by as much: the test of Kolmogorov and Smirnov."""
        p_values: xr.DataArray = xr.apply_ufunc(
            _probability, *self.sides[name], input_core_dims=[["replicate"], ["simulation"]], vectorize=True
        )
        return p_values.where(self.measured)


def _probability(emulated: np.ndarray[Any, Any], simulated: np.ndarray[Any, Any]) -> float:
    from scipy.stats import ks_2samp  # late: the list of studies does not need it

    sides = [of[~np.isnan(of)] for of in (emulated, simulated)]
    return float(ks_2samp(*sides).pvalue) if all(map(len, sides)) else np.nan


def percent_of(holds: xr.DataArray, chosen: xr.DataArray, over: Sequence[str] = KEYS) -> xr.DataArray:
    """Share of the cells `chosen` for which it `holds`, percent; NaN without any."""
    return 100 * holds.where(chosen).mean(over)


def flat(array: xr.DataArray) -> np.ndarray[Any, Any]:
    """Of every cell, in the order of the grid."""
    values: np.ndarray[Any, Any] = array.transpose(*KEYS).values.ravel()
    return values


def at(place: int, array: xr.DataArray) -> str:
    """Words for the cell at a place of `flat`."""
    places = np.unravel_index(place, [array.sizes[key] for key in KEYS])
    return words(*(array[key].values[index] for key, index in zip(KEYS, places, strict=True)))


def words(queue: int, control: str, size: int, rtt: int, rate: int, iw: int) -> str:
    """A cell, for people."""
    return f"{size} kB, {rtt} ms, {rate} Mbit/s, IW {iw}, {control}, queue {queue}"


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Time without losses, time with losses, losses of the first flight, downloads that share a queue."""
    sides = Sides(q)
    clean, shallow = sides.measured & sides.clean, sides.measured & ~sides.clean
    lost, lost_too = sides.medians("lost")
    lossy, losing = sides.measured & sides.lossy, shallow & (np.maximum(lost, lost_too) > 0)
    distance, emulated, simulated = abs(sides.percent), flat(lost), flat(lost_too)
    ms, percent = flat(sides.difference), flat(sides.percent)

    def unlike(chosen: xr.DataArray) -> str:
        return _named(chosen & ~sides.alike, lambda of: f"{emulated[of]:g} emulated, {simulated[of]:g} simulated")

    def claim(
        name: str, text: str, statistic: xr.DataArray, expected: Expectation, chosen: xr.DataArray, note: str
    ) -> k.ClaimSpec:
        note = _about(sides, chosen, note) if bool(chosen.any()) else _NONE
        return SOURCE.says(name, text, statistic, expected, note=note)

    return [
        claim(
            "time-without-loss",
            "Without losses the median emulated time is within 1% or 1 ms of the simulated one, in every cell.",
            percent_of(sides.close, clean),
            k.near(100, "percent of cells"),
            clean,
            _named(clean & ~sides.close, lambda of: f"{ms[of]:+.1f} ms, {percent[of]:+.1f}%", distance),
        ),
        claim(
            "time-with-losses",
            "Where a shallow queue makes either engine retransmit, the times differ by at most 5% (median over cells).",
            distance.where(lossy).median(),
            k.at_most(5, "percent"),
            lossy,
            f"{percent_of(distance <= 5, lossy):.0f}% of these cells are within 5%. Farthest apart: "
            + _named(lossy, lambda of: f"{percent[of]:+.0f}%", distance),
        ),
        claim(
            "first-flight-losses",
            "With shallow queues both engines lose as many segments of the first flight (in nine of ten cells).",
            percent_of(sides.alike, shallow),
            k.at_least(90, "percent of cells"),
            shallow,
            unlike(shallow),
        ),
        claim(
            "first-flight-losses-where-any",
            "Both engines lose as many segments of the first flight among cells where either lost any.",
            percent_of(sides.alike, losing),
            k.at_least(90, "percent of cells"),
            losing,
            unlike(losing),
        ),
        *_sharing(Together(q)),
    ]


def _sharing(downloads: Together) -> Iterator[k.ClaimSpec]:
    """Means and distributions of the times of downloads that share a queue."""
    note = f"{counted(int(downloads.measured.sum()), 'condition')} of {downloads.measured.size} with at least {_LEAST} "
    note += f"undisturbed transfers whose starts have {_GAPS}."
    yield SOURCE.says(
        "shared-queue-means",
        "Two to eight downloads in one queue take as long over the kernel (mean difference over conditions).",
        downloads.difference("mean").mean(),
        k.near(0, "percent", 2),
        f"Each mean is of at most 20 transfers, which scatter by this much. {note}",
    )
    same = xr.concat([downloads.probability(name) for name in ("mean", "last")], "of")
    yield SOURCE.says(
        "shared-queue-distributions",
        "Mean and greatest time of downloads in one queue have other distributions over the kernel "
        f"(p < {_RARE}) in at most one of ten conditions.",
        percent_of(same < _RARE, same.notnull(), [str(of) for of in same.dims]),
        k.at_most(10, "percent of conditions"),
        f"By the test of Kolmogorov and Smirnov; of equal distributions 1% would be told apart. {note}",
    )


_NONE = "This run lacks a cell that both engines have measured and to which this applies."


def _about(sides: Sides, chosen: xr.DataArray, note: str) -> str:
    # Those of the chosen cells' queues: all are ample, or none is.
    queues = sides.clean.where(sides.clean == bool((chosen & sides.clean).any()))
    out_of = int(queues.count()) * chosen.size // chosen.sizes["queue"]
    transfers, disturbed = sides.transfers
    parts = [f"{counted(int(chosen.sum()), 'cell')}, of {out_of:,} that the grid has with such queues.", note]
    if unmeasured := int((transfers.notnull() & sides.q.emulated_time.isnull().all("replicate")).sum()):
        parts.append(f"Left out, because every transfer was disturbed: {counted(unmeasured, 'cell')}.")
    if mostly := int((chosen & (2 * disturbed > transfers)).sum()):
        parts.append(f"In {counted(mostly, 'cell')} more than half of the transfers were disturbed.")
    return " ".join(part for part in parts if part)


def _named(chosen: xr.DataArray, shown: Callable[[int], str], by: xr.DataArray | None = None) -> str:
    """The first cells, or those with the most `by`."""
    places = np.flatnonzero(flat(chosen))
    if by is not None:
        places = places[np.argsort(-flat(by)[places], kind="stable")]
    if not places.size:
        return ""
    listing = "; ".join(f"{at(place, chosen)}: {shown(place)}" for place in places[:_NAMED])
    more = places.size - _NAMED
    return f"{listing}; and {more} more." if more > 0 else f"{listing}."


# Rows of the table of the cells farthest apart.
_FARTHEST = 20
_OVER = ("size_kb", "rtt_ms", "iw")
_QUARTILES = "Median and quartiles of the emulated times over undisturbed transfers; difference: emulated - simulated."


def tables(q: k.Quantities) -> Sequence[Table]:
    """A summary, the cells farthest apart, and every cell, one table per queue; none without both engines."""
    sides = Sides(q)
    together = _together(Together(q))
    if not sides.measured.any():
        return together
    both = _both(sides)
    order = np.argsort(-abs(np.nan_to_num(flat(sides.percent))), kind="stable")
    order = order[flat(sides.measured)[order]][:_FARTHEST]
    condition = {"condition": [at(place, sides.percent) for place in order]}
    far = [xr.DataArray(flat(of)[order], condition, ["condition"], of.name, of.attrs) for of in both]
    results = [_summary(sides), k.table("farthest", f"The {len(order)} cells that differ most", _QUARTILES, far)]
    for queue in sides.percent["queue"].values:
        title = f"A queue of {queue} packets: {'no losses' if queue == AMPLE else 'a shallow queue'}"
        results.append(k.table(f"queue-{queue}", title, _QUARTILES, [of.sel(queue=queue, drop=True) for of in both]))
    return [*results, *together]


def _together(downloads: Together) -> list[Table]:
    if not downloads.measured.any():
        return []
    shown = [k.named(downloads.counted.where(downloads.measured), "transfers", "Transfers", "count", 0)]
    for name, title in (("mean", "Mean time"), ("last", "Slowest")):
        emulated, simulated = downloads.means(name)
        shown += [
            k.named(emulated, f"{name}_emulated", f"{title}, emulated", "ms", 0),
            k.named(simulated, f"{name}_simulated", f"{title}, simulated", "ms", 0),
            k.named(downloads.difference(name), f"{name}_difference", "Difference", "percent", 1),
            k.named(downloads.probability(name), f"{name}_p", "p", "", 3),
        ]
    caption = f"Means over transfers whose starts have {_GAPS}; p: Kolmogorov-Smirnov test."
    return [k.table("shared-queue", "Downloads of 200 kB that share a queue", caption, shown)]


def _both(sides: Sides) -> list[xr.DataArray]:
    times = sides.q.emulated_time.where(sides.measured, 0)
    low, high = times.quantile([0.25, 0.75], "replicate")
    (lost, lost_too), (again, again_too) = sides.medians("lost"), sides.medians("retransmissions")
    transfers, disturbed = sides.transfers
    return [
        k.named(of.where(sides.measured), name, title, unit, digits)
        for of, name, title, unit, digits in (
            (sides.emulated, "emulated", "Emulated", "ms", 1),
            (low, "lower_quartile", "Its lower quartile", "ms", 1),
            (high, "upper_quartile", "Its upper quartile", "ms", 1),
            (sides.simulated, "simulated", "Simulated", "ms", 1),
            (sides.difference, "difference", "Difference", "ms", 2),
            (sides.percent, "relative_difference", "Difference", "percent", 2),
            (transfers, "transfers", "Transfers", "count", 0),
            (disturbed, "disturbed", "Disturbed", "count", 0),
            (lost, "emulated_first_flight_lost", "First flight lost, emulated", "segments", 1),
            (lost_too, "simulated_first_flight_lost", "First flight lost, simulated", "segments", 0),
            (again, "emulated_retransmissions", "Retransmitted, emulated", "segments", 1),
            (again_too, "simulated_retransmissions", "Retransmitted, simulated", "segments", 0),
        )
    ]


def _summary(sides: Sides) -> Table:
    distance, count = abs(sides.percent), sides.measured.sum(_OVER)
    transfers, disturbed = (of.where(sides.measured).sum(_OVER) for of in sides.transfers)
    alike = percent_of(sides.alike, sides.measured, _OVER)
    shown = [
        k.named(of.where(count > 0).transpose("queue", "rate_mbit", "control"), name, title, unit, digits)
        for of, name, title, unit, digits in (
            (count, "cells", "Cells", "count", 0),
            (percent_of(sides.close, sides.measured, _OVER), "close", "Within 1% or 1 ms", "percent", 1),
            (sides.percent.median(_OVER), "median_difference", "Median of differences", "percent", 2),
            (distance.median(_OVER), "median_distance", "Median of their absolute values", "percent", 2),
            (distance.max(_OVER), "greatest_distance", "Greatest", "percent", 1),
            (alike, "same_first_flight_losses", "Same losses of the first flight", "percent", 1),
            (100 * disturbed / transfers, "disturbed", "Disturbed transfers", "percent", 1),
        )
    ]
    caption = "Emulated next to simulated, over the cells of a queue (packets), a rate (Mbit/s) and an algorithm."
    return k.table("summary", "Where the engines agree", caption, shown)


def figures(q: k.Quantities) -> Iterator[Figure | None]:
    """Differences at a glance, connections segment by segment, times by initial window."""
    sides = Sides(q)
    if not sides.measured.any():
        return
    yield k.scatter(
        k.named(sides.percent, "differences", "Difference", "%"),
        k.named(sides.simulated, "simulated", "Simulated time", "ms"),
        "Difference between the engines",
        "One point per cell: emulated minus simulated time in percent of the simulated. The axis is linear within 1% "
        "and logarithmic beyond.",
        "rate_mbit",
        "queue",
        0,
        CLOSE_PERCENT,
    )
    yield from _connections(q)
    cubic = {
        f"{engine}, {rate} Mbit/s": of.sel(rate_mbit=rate, control="cubic", drop=True)
        for rate in sides.percent["rate_mbit"].values
        for engine, of in (("simulated", sides.simulated), ("emulated", sides.emulated))
    }
    for queue in sides.percent["queue"].values:
        yield k.panels(
            k.named(k.along("engine", cubic).sel(queue=queue, drop=True), f"windows_queue_{queue}", "Time", "ms"),
            f"Time by initial window, CUBIC, queue of {queue}{': no losses' if queue == AMPLE else ''}",
            "Median time, ms, on a logarithmic axis.",
            "iw",
            "size_kb",
            "rtt_ms",
            None,
            "engine",
            log=True,
        )


def _connections(q: k.Quantities) -> Iterator[Figure]:
    """The captured connections that the run has of both engines: the first replicate, as seen at the server."""
    sides = {
        grid: q.run.table("segments", experiment=grid).filter(pl.col("replicate") == 0).drop("experiment").collect()
        for grid in ("simulated", "emulated")
    }
    keys = list(KEYS)
    both = sides["emulated"].select(keys).unique(maintain_order=True).join(sides["simulated"], on=keys, how="semi")
    for place in both.iter_rows(named=True):
        pair = [overlay.PlottedConnection(name, at_server(of.filter(**place).drop(keys))) for name, of in sides.items()]
        yield Figure(
            f"connection_{'clean' if place['queue'] == AMPLE else 'losses'}",
            f"One connection segment by segment: {words(*place.values())}",
            "Data as the server sent it, from the arrival of the SYN on: simulated broad, emulated narrow upon it. A "
            "packet capture does not show the kernel's cwnd.",
            overlay.chart(pair, 680, "Segments at the server"),
            overlay.chart(pair, 290, "Segments at the server"),
        )


def at_server(segments: pl.DataFrame) -> pl.DataFrame:
    """The records' `segments` of one connection, in time since the SYN reached the server."""
    arrived = (pl.col("from_server") == 0) & (pl.col("event") == RECEIVED)
    time_ns = pl.col("time_ns").cast(pl.Int64)
    return segments.with_columns(time_ns - time_ns.filter(arrived).min())


def answer(q: k.Quantities) -> Sequence[str]:
    """The agreement of both engines without and with losses, and missing parts of the run."""
    sides = Sides(q)
    if not sides.has_both:
        return ['This run has the simulated half only; "--engine emulate" runs both.']
    clean, lossy = sides.measured & sides.clean, sides.measured & sides.lossy
    apart = float(abs(sides.percent).where(lossy).median())
    count, lacking = int(lossy.sum()), int((~sides.measured).sum())
    return [
        f"Without losses both engines' times agree within 1% or 1 ms in {int((clean & sides.close).sum())} of "
        f"{int(clean.sum())} cells."
        if clean.any()
        else "",
        f"Where a shallow queue makes either engine retransmit, they differ by {apart:.1f}% (median, {count} cells)."
        if count
        else "",
        f"This run lacks {lacking} of the grid's {sides.percent.size} conditions." if lacking else "",
    ]


CALM = (pl.col("disturbed") == 0) & k.DONE


# Of the transfers of either engine; a slice of the grid is compared as the whole is.
QUANTITIES = tuple(
    k.Observations(f"{grid}_{name}", title, unit, value.max(), where, grid=grid, partial=True)
    for name, title, unit, value, where in (
        ("time", "Time", "ms", 1e3 * pl.col("completion_time_s"), CALM),
        ("lost", "First flight lost", "segments", pl.col("first_flight_lost_segments"), CALM),
        ("retransmissions", "Retransmitted", "segments", pl.col("retransmissions"), CALM),
        ("disturbed", "Disturbed", "count", pl.col("disturbed"), None),
    )
    for grid in ("emulated", "simulated")
)
PARALLEL = ("queue", "iw", "flows")


def parallel(engine: str) -> Callable[[Run], pl.LazyFrame]:
    """Downloads that share a queue, one row each. Real ones begin later than drawn, since a program has to start; which
    of them meets a full queue is another question where some begin later than others.
    """

    def rows(run: Run) -> pl.LazyFrame:
        keys = [*PARALLEL, "replicate"]
        transfers, drawn = (run.table("transfers", experiment=f"parallel_{of}") for of in (engine, "simulated"))
        downloads = transfers.join(drawn.select(*keys, "client", drawn_s="start_s"), on=[*keys, "client"])
        late = pl.col("start_s") - pl.col("drawn_s")
        apart = (late.max() - late.min()).over(keys)
        return downloads.filter(CALM.all().over(keys) & (apart <= STARTS_S))

    return rows


QUANTITIES += tuple(
    k.Observations(
        f"{engine}_{name}", title, "ms", value, None, parallel(engine), (), 0, f"parallel_{engine}", partial=True
    )
    for engine in ("emulated", "simulated")
    for name, title, value in (
        ("mean", "Mean time of the downloads", k.MEAN_MS),
        ("last", "Time of the slowest download", 1e3 * pl.col("completion_time_s").max()),
    )
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The kernel that runs here, so that simulated timers wait for its ticks, too."""
    return scenario.replace("tcp.timer_tick", {"period": f"{tick_ns()}ns", "wheel": True})


STUDY = k.DeclaredStudy(__file__, QUANTITIES, claims, tables, figures, answer, build)
