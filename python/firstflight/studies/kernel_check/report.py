"""Tables, figures and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.report.figure import Figure
from firstflight.report.trace_plot import overlay
from firstflight.report.trace_plot.connection import RECEIVED
from firstflight.studies.kernel import Quantities, along, named, panels, scatter, table
from firstflight.studies.kernel_check.claims import AMPLE, CLOSE_PERCENT, KEYS, Sides, at, flat, percent_of, words

# Rows of the table of the cells farthest apart.
_FARTHEST = 20
_OVER = ("size_kb", "rtt_ms", "iw")
_QUARTILES = "Median and quartiles of the emulated times over undisturbed transfers; difference: emulated - simulated."


def tables(q: Quantities) -> Sequence[Table]:
    """A summary, the cells farthest apart, and every cell, one table per queue; none without both engines."""
    sides = Sides(q)
    if not sides.measured.any():
        return []
    both = _both(sides)
    order = np.argsort(-abs(np.nan_to_num(flat(sides.percent))), kind="stable")
    order = order[flat(sides.measured)[order]][:_FARTHEST]
    condition = {"condition": [at(place, sides.percent) for place in order]}
    far = [xr.DataArray(flat(of)[order], condition, ["condition"], of.name, of.attrs) for of in both]
    found = [_summary(sides), table("farthest", f"The {len(order)} cells that differ most", _QUARTILES, far)]
    for queue in sides.percent["queue"].values:
        title = f"A queue of {queue} packets: {'no losses' if queue == AMPLE else 'a shallow queue'}"
        found.append(table(f"queue-{queue}", title, _QUARTILES, [of.sel(queue=queue, drop=True) for of in both]))
    return found


def _both(sides: Sides) -> list[xr.DataArray]:
    times = sides.q.emulated_time.where(sides.measured, 0)
    low, high = times.quantile([0.25, 0.75], "replicate")
    (lost, lost_too), (again, again_too) = sides.medians("lost"), sides.medians("retransmissions")
    transfers, disturbed = sides.transfers
    return [
        named(of.where(sides.measured), name, title, unit, digits)
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
        named(of.where(count > 0).transpose("queue", "rate_mbit", "control"), name, title, unit, digits)
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
    return table("summary", "Where the engines agree", caption, shown)


def figures(q: Quantities) -> Iterator[Figure | None]:
    """Differences at a glance, connections segment by segment, times by initial window."""
    sides = Sides(q)
    if not sides.measured.any():
        return
    yield scatter(
        named(sides.percent, "differences", "Difference", "%"),
        named(sides.simulated, "simulated", "Simulated time", "ms"),
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
        yield panels(
            named(along("engine", cubic).sel(queue=queue, drop=True), f"windows_queue_{queue}", "Time", "ms"),
            f"Time by initial window, CUBIC, queue of {queue}{': no losses' if queue == AMPLE else ''}",
            "Median time, ms, on a logarithmic axis.",
            "iw",
            "size_kb",
            "rtt_ms",
            None,
            "engine",
            log=True,
        )


def _connections(q: Quantities) -> Iterator[Figure]:
    """The captured connections that the run has of both engines: the first replicate, as seen at the server."""
    sides = {
        grid: q.run.table("segments", experiment=grid).filter(pl.col("replicate") == 0).drop("experiment").collect()
        for grid in ("simulated", "emulated")
    }
    keys = list(KEYS)
    both = sides["emulated"].select(keys).unique(maintain_order=True).join(sides["simulated"], on=keys, how="semi")
    for place in both.iter_rows(named=True):
        own = [overlay.Drawn(name, at_server(of.filter(**place).drop(keys))) for name, of in sides.items()]
        yield Figure(
            f"connection_{'clean' if place['queue'] == AMPLE else 'losses'}",
            f"One connection segment by segment: {words(*place.values())}",
            "Data as the server sent it, from the arrival of the SYN on: simulated broad, emulated narrow upon it. A "
            "packet capture does not show the kernel's cwnd.",
            overlay.chart(own, 680, "Segments at the server"),
            overlay.chart(own, 290, "Segments at the server"),
        )


def at_server(segments: pl.DataFrame) -> pl.DataFrame:
    """The records' `segments` of one connection, in time since the SYN reached the server."""
    arrived = (pl.col("from_server") == 0) & (pl.col("event") == RECEIVED)
    time_ns = pl.col("time_ns").cast(pl.Int64)
    return segments.with_columns(time_ns - time_ns.filter(arrived).min())


def answer(q: Quantities) -> Sequence[str]:
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
