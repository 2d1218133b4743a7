"""`ss -tin`: the kernel's data on its TCP sockets, once or repeatedly. The last row of a socket counts."""

from pathlib import Path

import polars as pl

from firstflight.counted import counted
from firstflight.observe import ss_lines
from firstflight.observe.merged import Merged, in_order
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import HEADER_BYTES, Parts, Subnets, seconds

# An RTT of this number of times the minimum includes a wait in a queue.
_QUEUED = 1.3
# Share of window / RTT that the delivery rate must reach for the window to be full and the limit.
_AGREED = 0.15
# Fewer segments delivered are too few for a rate.
_FEWEST_SEGMENTS = 20

# The part of a snapshot that counts if no other follows.
_LAST = ("minrtt", "bytes_sent", "bytes_retrans", "bytes_acked", "data_segs_out", "retrans")
_TOLD = {
    "ends": pl.col("ends").first(),
    "first_sent": pl.col("first_sent").first(),
    "first_segments": pl.col("first_segments").first(),
    **{name: pl.col(name).last() for name in _LAST},
    "max_rtt_ms": pl.col("max_rtt_ms").max(),
    "down_bps": pl.col("down_bps").max(),
    "min_down_bps": pl.col("min_down_bps").drop_nulls().last(),
}


def recognises(lines: list[str]) -> bool:
    """Whether lines are such an output."""
    return any(" cwnd:" in line and " mss:" in line and " rtt:" in line for line in lines)


def lacks(lines: list[str]) -> str | None:
    """The problem of an output of ss that lacks data: written without -i, or a head alone; None for others."""
    states = ("ESTAB", "TIME-WAIT", "CLOSE-WAIT")
    sockets = [line for line in lines if any(word in states for word in line.removeprefix("tcp").split()[:1])]
    if not sockets:
        heads = [line for line in lines if line.removeprefix("Netid").split()[:2] == ["State", "Recv-Q"]]
        return "is output of ss without a connection; write it while some are open, with ss -tinH" if heads else None
    return "is output of ss without -i, which has no RTTs; write it with ss -tinH"


def read(path: Path, problems: Problems) -> Parts:
    """The parts of one snapshot or many. A socket that has sent nothing is not among them."""
    sockets = Merged(_socket, _TOLD, Room(path))
    for told in ss_lines.told(path, problems):
        sockets.add(_rows(told))
    found, _ = sockets.done()
    if found.is_empty():
        return Parts(pl.DataFrame({"client": []}), pl.DataFrame({"client": []}))
    # A kernel before 4.19 reports no bytes_sent; acknowledged bytes were sent.
    size = pl.coalesce(pl.col("bytes_sent") - pl.col("bytes_retrans").fill_null(0.0), pl.col("bytes_acked"))
    acknowledged = pl.col("bytes_acked").fill_null(0.0).cast(pl.Int64)
    frame = found.with_columns(bytes=size.cast(pl.Int64)).filter(pl.col("bytes") != 0)
    address = frame["ends"].str.extract(r" (\S+):[\w.-]+$").str.strip_chars("[]").str.split("%").list.first()
    connections = frame.select(
        "down_bps",
        "min_down_bps",
        "bytes",
        client=pl.int_range(pl.len()),
        subnet=pl.lit(Subnets().numbers(address)),
        rtt_s=pl.lit(seconds(frame["minrtt"], 1e3)),
        max_rtt_s=pl.lit(seconds(frame["max_rtt_ms"], 1e3)),
        # The kernel counts the SYN and the FIN as acknowledged bytes.
        delivered_bytes=pl.min_horizontal(acknowledged, "bytes"),
        segments_sent=pl.col("data_segs_out").cast(pl.Int64),
        # ss leaves out values of 0.
        retransmissions=pl.col("retrans").fill_null(0.0).cast(pl.Int64),
    )
    responses = connections.select("client", "bytes", "delivered_bytes", "segments_sent", "retransmissions")
    silent = found.height - frame.height
    left_out = counted(silent, "socket had sent nothing and is", "sockets had sent nothing and are")
    notes = (f"{left_out} left out",) if silent else ()
    return Parts(responses, connections, notes=notes, bounds=connections.select("client", "min_down_bps"))


def _rows(told: pl.DataFrame) -> pl.DataFrame:
    """The data of each snapshot on a socket, as `Merged` takes it."""
    at_least = (pl.col("busy") > 0) & (pl.col("bytes_acked") > 0)
    return told.select(
        "ends",
        *_LAST,
        first_sent=pl.col("bytes_sent"),
        first_segments=pl.col("data_segs_out"),
        max_rtt_ms=pl.col("rtt"),
        down_bps=_full_rate_bps(),
        min_down_bps=pl.when(at_least).then(pl.col("bytes_acked") * 8000 / pl.col("busy")),
    )


def _socket(rows: pl.DataFrame) -> pl.Series:
    """The number of each row's connection, from 0 in order of appearance. Two ends that have sent less than before are
    those of another connection.
    """
    ordered = rows.with_row_index("order").sort("ends", "order")
    other = pl.col("ends") != pl.col("ends").shift()
    for first, last in (("first_sent", "bytes_sent"), ("first_segments", "data_segs_out")):
        other |= pl.col(first).fill_null(0.0) < pl.col(last).fill_null(0.0).shift()
    return in_order(ordered.select(other.fill_null(True).cum_sum()).to_series(), ordered["order"])


def _full_rate_bps() -> pl.Expr:
    """The rate of the path's slowest link, headers included, if a snapshot shows that it was never idle.

    The RTT is well above the minimum, so there is a queue somewhere; and the delivered data is a window per round
    trip, so the queue is before the slowest link, and from this connection. Else the delivery rate is that of the
    sender.
    """
    mss, delivery_bps = pl.col("mss"), pl.col("delivery_bps")
    window_bps = pl.col("cwnd") * mss * 8000 / pl.col("rtt")
    queued = pl.col("rtt") >= _QUEUED * pl.col("minrtt")
    agreed = (delivery_bps - window_bps).abs() <= _AGREED * window_bps
    enough = pl.col("bytes_acked") >= _FEWEST_SEGMENTS * mss
    full = (mss > 0) & queued & agreed & enough
    return pl.when(full).then(delivery_bps * (mss + HEADER_BYTES) / mss)
