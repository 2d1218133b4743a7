"""Responses of both initial windows, paired; rounds and transmission times from the captured segments."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from firstflight.engines.simulate import run_cell
from firstflight.studies.cs244_2014.grid import LINE, ROUND_TRIP_S, TEN, bucket, cells, rates_kbps, settings

if TYPE_CHECKING:
    from firstflight.records import Run
    from firstflight.scenario import Cell

FEW, MANY = 3, 10
REQUEST = ["replicate", "client", "request"]
_SENT, _RECEIVED = 0, 1


class Tables(NamedTuple):
    """What the study reads of a run's records, `iw` in front of every row."""

    transfers: pl.DataFrame
    segments: pl.DataFrame


def of_run(run: Run, path: str = LINE) -> Tables:
    """The records of a run over one of its paths."""
    here = pl.col("path") == path
    return Tables(run.transfers.filter(here).collect(), run.segments.filter(here).collect())


def simulated(run: Run) -> Tables:
    """What the simulator makes of the run's seed and of as many replicates: the same users, requests and sizes.

    Takes a fraction of a second, so it is computed where it is needed.
    """
    replicates = run.transfers.select(pl.col("replicate").max()).collect().item()
    return of_cells([(cell, run_cell(cell, run.seed, 1 + (replicates or 0))) for cell in cells("emulate")])


def of_cells(computed: list[tuple[Cell, dict[str, pl.DataFrame]]]) -> Tables:
    """The same from what an engine made of each cell."""
    transfers, segments = (
        pl.concat([found[name].with_columns(pl.lit(cell.key["iw"], pl.Int64).alias("iw")) for cell, found in computed])
        for name in ("transfers", "segments")
    )
    return Tables(transfers, segments)


def responses(tables: Tables, users: int | None = None) -> pl.DataFrame:
    """One row a finished response: `iw, replicate, client, request, connection, rate_kbps, bucket, bytes, segments,
    time_ms, first_flight, timeouts, disturbed`.

    `request` counts the user's from 0, `segments` each once, `time_ms` is from the opening of the connection to the
    last byte. `disturbed` is true where the machine stalled meanwhile, never in virtual time. `users`: how many there
    were, if not as many as the study has.
    """
    rates = rates_kbps(users or settings()["users"])
    user = pl.DataFrame(
        {"client": range(len(rates)), "rate_kbps": rates, "bucket": [bucket(rate) for rate in rates]},
        schema={"client": pl.UInt32, "rate_kbps": pl.Float64, "bucket": pl.Int64},
    )
    return (
        tables.transfers.sort("iw", "replicate", "client", "start_s")
        .with_columns(pl.int_range(pl.len()).over("iw", "replicate", "client").alias("request"))
        .filter(pl.col("completed") == 1)
        .join(user, on="client", maintain_order="left")
        .select(
            "iw",
            *REQUEST,
            "connection",
            "rate_kbps",
            "bucket",
            "bytes",
            (pl.col("segments_sent") - pl.col("retransmissions")).alias("segments"),
            (1000 * pl.col("completion_time_s")).alias("time_ms"),
            pl.col("first_flight_segments").alias("first_flight"),
            "timeouts",
            (pl.col("disturbed") == 1).alias("disturbed"),
        )
    )


def pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """The same request of the same user with either window: `replicate, client, request, rate_kbps, bucket, bytes,
    few_ms, many_ms, gain_ms, gain_percent, disturbed`.

    Gains are IW 3's time minus IW 10's; percent of IW 3's time, as RFC 6928 counts. Disturbed: either of the two.
    """
    few, many = (
        rows.filter(pl.col("iw") == iw).select(
            *REQUEST, "rate_kbps", "bucket", "bytes", "disturbed", pl.col("time_ms").alias(name)
        )
        for iw, name in ((FEW, "few_ms"), (MANY, "many_ms"))
    )
    return (
        few.join(many.select(*REQUEST, "bytes", "many_ms", "disturbed"), on=[*REQUEST, "bytes"])
        .with_columns(
            (pl.col("few_ms") - pl.col("many_ms")).alias("gain_ms"),
            pl.col("disturbed") | pl.col("disturbed_right"),
        )
        .with_columns((100 * pl.col("gain_ms") / pl.col("few_ms")).alias("gain_percent"))
        .drop("disturbed_right")
        .sort(REQUEST)
    )


def undisturbed(rows: pl.DataFrame) -> pl.DataFrame:
    """What medians are taken over; nothing else is left out."""
    return rows.filter(~pl.col("disturbed"))


def timed_out_percent(rows: pl.DataFrame) -> float:
    """Share of the responses during which the retransmission timer expired; NaN where no engine counted that."""
    known = rows.filter(pl.col("timeouts").is_not_null())
    return 100 * known.filter(pl.col("timeouts") > 0).height / known.height if known.height else math.nan


def present(paired: pl.DataFrame) -> list[int]:
    """The buckets that have rows."""
    return sorted(paired["bucket"].unique().to_list())


def median_segments(rows: pl.DataFrame) -> int:
    """Segments of the median response."""
    return int(rows["segments"].median() or 0)  # type: ignore[arg-type]


def rounds(tables: Tables, chosen: pl.DataFrame) -> list[int]:
    """Rounds of each of the chosen responses, from the captured segments at the server.

    The first round is what leaves before data is acknowledged. The next begins with the first new segment after an
    acknowledgement that covers the first segment of the round before.
    """
    return [_rounds(seen) for seen in _at_server(tables, chosen)]


def ten_segments_ms(tables: Tables, rows: pl.DataFrame) -> dict[float, float]:
    """Bandwidth (kbit/s) -> the time that the link takes for ten full segments of a first flight: median over a user's
    undisturbed responses whose first flight is ten segments or more.

    Measured where they are acknowledged: ten ninths of the time from the first segment's acknowledgement to the
    tenth's.
    """
    chosen = undisturbed(rows).filter(
        (pl.col("iw") == MANY) & (pl.col("first_flight") >= TEN) & (pl.col("segments") > TEN)
    )
    times: dict[float, list[float]] = {}
    for rate, seen in zip(chosen["rate_kbps"], _at_server(tables, chosen), strict=True):
        spread = _acknowledged_apart_ns(seen)
        if spread is not None:
            times.setdefault(rate, []).append(spread * TEN / (TEN - 1) / 1e6)
    return {rate: float(pl.Series(found).median()) for rate, found in sorted(times.items())}  # type: ignore[arg-type]


def crossing_kbps(times: dict[float, float]) -> float | None:
    """The rate at which ten segments take one round trip, between the two users around it (both axes logarithmic);
    None where no two users lie around it.
    """
    limit = 1000 * ROUND_TRIP_S
    rates = list(times)
    for slow, fast in pairwise(rates):
        if times[slow] > limit >= times[fast]:
            share = pl.Series([times[slow], limit, times[fast]]).log().to_list()
            return float(slow * (fast / slow) ** ((share[0] - share[1]) / (share[0] - share[2])))
    return None


_Seen = list[tuple[int, int, int, int, int]]
"""Of a connection at the server, in order of time: time_ns, event, seq, length, ack."""


def _at_server(tables: Tables, chosen: pl.DataFrame) -> list[_Seen]:
    """What passed the server, a list for each of the chosen responses."""
    key = ["iw", "replicate", "connection"]
    seen = (
        tables.segments.filter(
            ((pl.col("event") == _SENT) & (pl.col("from_server") == 1) & (pl.col("retransmission") == 0))
            | ((pl.col("event") == _RECEIVED) & (pl.col("from_server") == 0))
        )
        .join(chosen.select(key), on=key, how="semi")
        .sort("time_ns", maintain_order=True)
        .partition_by(key, as_dict=True)
    )
    columns = ("time_ns", "event", "seq", "length", "ack")
    return [
        list(seen[place].select(columns).iter_rows()) if place in seen else [] for place in chosen.select(key).rows()
    ]


def _rounds(seen: _Seen) -> int:
    count, start, covered = 0, -1, True
    for _, event, seq, length, ack in seen:
        if event == _SENT and length and covered:
            count, start, covered = count + 1, seq, False
        elif event == _RECEIVED and count and ack > start:
            covered = True
    return count


def _acknowledged_apart_ns(seen: _Seen) -> int | None:
    """From the acknowledgement of the first data segment to that of the tenth; None if ten were not sent so."""
    ends = [seq + length for _, event, seq, length, _ in seen if event == _SENT and length][:TEN]
    acks = [(at, ack) for at, event, _, _, ack in seen if event == _RECEIVED]
    if len(ends) < TEN:
        return None
    first = next((at for at, ack in acks if ack >= ends[0]), None)
    last = next((at for at, ack in acks if ack >= ends[-1]), None)
    return None if first is None or last is None else last - first
