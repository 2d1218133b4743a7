"""`ss -tin`: the kernel's data on its TCP sockets, once or repeatedly. The last row of a socket counts."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from firstflight.counted import counted
from firstflight.observe.lines import pieces
from firstflight.observe.merged import Merged, in_order
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import HEADER_BYTES, Parts, Subnets, seconds

# The kind of socket, which ss leaves out if it was asked for one only, as it does with the state; two queues, the two
# ends, and with -O the rest. Without -n ports have names.
_HEAD = (
    r"^(?:(?:mp)?tcp\s+)?(?:[A-Z][A-Z0-9-]*\s+)?\d+\s+\d+\s+(?P<own>\S+:[\w.-]+)\s+(?P<other>\S+:[\w.*-]+)"
    r"(?P<info>\s.*)?$"
)
# Titles without -H; sockets that are not TCP's; output of `date +%s.%N` or `date -Ins` between snapshots.
_PASSED = (
    r"^(?:(?:State|Netid|Recv-Q|udp|raw|nl|u_\w+|p_\w+|icmp6?|v_\w+)\s|\d{9,11}(?:\.\d+)?\s*$"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d)"
)
_NUMBERS = ("minrtt", "mss", "cwnd", "bytes_sent", "bytes_retrans", "bytes_acked", "data_segs_out", "busy")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}

# No number is as large; those that count segments have 32 bits.
_BEYOND = 1e15
_COUNTED = ("data_segs_out", "retrans")

# Of one socket.
_MOST_LINES = 100


def socket_tables(path: Path, problems: Problems) -> Iterator[pl.DataFrame]:
    """The data on sockets, one row per report, in the order of the file: `ends`, and the numbers, null where there is
    none: `rtt`, `minrtt`, `mss`, `cwnd`, `bytes_sent`, `bytes_retrans`, `bytes_acked`, `data_segs_out`, `retrans`,
    `busy` as ss has them, `delivery_bps` in bit/s.
    """
    # The last socket of a piece, which may have more lines in the next one.
    held = pl.Series("line", [], dtype=pl.String)
    end = 1
    for first, lines in pieces(path, problems):
        lines = pl.concat([held, lines], rechunk=True)
        end = first - held.len() + lines.len()
        begins = lines.to_frame().select(~_indented(pl.col("line"))).to_series().arg_true()
        last = int(begins[-1]) if begins.len() else lines.len()
        if lines.len() - last > _MOST_LINES:
            last = lines.len()
        held = lines.slice(last)
        yield _table(lines.head(last), end - lines.len(), problems)
    yield _table(held, end - held.len(), problems)


def _table(lines: pl.Series, place: int, problems: Problems) -> pl.DataFrame:
    """The sockets of these lines, the first of which has this number in the file."""
    numbered = pl.DataFrame({"place": pl.int_range(place, place + lines.len(), eager=True), "line": lines})
    begins, rtts = pl.when(~_indented(pl.col("line"))), pl.col("line").str.contains(r"\srtt:").cum_sum()
    of, before = (begins.then(value).forward_fill().fill_null(0) for value in ("place", rtts))
    numbered = numbered.with_columns(of=of.set_sorted(), again=rtts - before > 1)
    outer, inner = numbered.filter(pl.col("of") == pl.col("place")), numbered.filter(pl.col("of") != pl.col("place"))
    outer = outer.with_columns(pl.col("line").str.extract_groups(_HEAD).alias("ends")).unnest("ends")
    is_named = pl.col("own").is_not_null()
    heads = outer.filter(is_named)
    # What stands after a line that is no socket, or is there twice, is another socket's, whose first line is missing.
    inner = inner.with_columns(is_data=pl.col("of").is_in(heads["place"].implode()) & ~pl.col("again"))
    data = inner.filter("is_data").group_by("of").agg(pl.col("line").str.join(""))
    sockets = heads.select("place", "info", ends=pl.format("{} {}", "own", "other"))
    sockets = sockets.join(data, left_on="place", right_on="of", how="left", maintain_order="left")
    whole = pl.col("info").str.contains(" cwnd:", literal=True).fill_null(False)
    untold = sockets.filter(pl.col("line").is_null() & ~whole)["place"]
    sockets = sockets.filter(pl.col("line").is_not_null() | whole)
    sockets = sockets.with_columns(info=pl.col("info").fill_null("") + pl.col("line").fill_null(""))
    sockets = sockets.select("place", "ends", *_numbers(pl.col("info")))
    beyond = pl.max_horizontal(pl.exclude("place", "ends")) >= _BEYOND
    beyond |= pl.any_horizontal(pl.col(name) >= 2**32 for name in _COUNTED)
    beyond |= pl.col("bytes_retrans") > pl.col("bytes_sent")
    sockets = sockets.with_columns(beyond=beyond.fill_null(False))
    without = ~pl.col("beyond") & pl.col("rtt").is_null()
    others = outer.filter(~is_named, pl.col("line") != "", ~pl.col("line").str.contains(_PASSED))
    odd = pl.concat([others["place"], inner.filter(~pl.col("is_data"))["place"]]).sort()
    cannot, silent = sockets.filter("beyond"), sockets.filter(without)
    problems.add("a socket without data", untold)
    problems.add("neither a socket nor its data", odd)
    problems.add("a socket with a number that cannot be", cannot["place"])
    problems.add("a socket without a round trip", silent["place"])
    return sockets.filter(~pl.col("beyond") & ~without)


def _indented(line: pl.Expr) -> pl.Expr:
    return line.str.starts_with(" ") | line.str.starts_with("\t")


def _numbers(info: pl.Expr) -> list[pl.Expr]:
    named = {name: info.str.extract(rf"\s{name}:([\d.]+)") for name in _NUMBERS}
    named["rtt"] = info.str.extract(r"\srtt:([\d.]+)/")
    named["retrans"] = info.str.extract(r"\sretrans:\d+/(\d+)")
    delivery = info.str.extract_groups(r"\sdelivery_rate ([\d.]+)([KMG]?)bps").struct
    named["delivery_bps"] = delivery.field("1")
    numbers = {name: text.cast(pl.Float64, strict=False) for name, text in named.items()}
    numbers["rtt"] = pl.when(numbers["rtt"] > 0).then(numbers["rtt"])
    numbers["delivery_bps"] *= delivery.field("2").replace_strict(_PREFIXES, return_dtype=pl.Float64)
    return [number.alias(name) for name, number in numbers.items()]


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


def recognizes(lines: list[str]) -> bool:
    """Whether lines are output of ss."""
    return all(any(word in line for line in lines) for word in (" cwnd:", " mss:", " rtt:"))


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
    for batch in socket_tables(path, problems):
        sockets.add(_rows(batch))
    rows, _ = sockets.done()
    if rows.is_empty():
        return Parts()
    # A kernel before 4.19 reports no bytes_sent. Acknowledged bytes were sent, but for the SYN of the end that opened
    # the connection: the other end has the lower port, or one with a name.
    ports = [pl.col("ends").str.extract(rf":([\w.-]+){after}") for after in " $"]
    own, other = (port.cast(pl.Int64, strict=False).fill_null(0) for port in ports)
    acked = pl.col("bytes_acked") - (other < own).cast(pl.Int64)
    size = pl.coalesce(pl.col("bytes_sent") - pl.col("bytes_retrans").fill_null(0.0), acked)
    acknowledged = pl.col("bytes_acked").fill_null(0.0).cast(pl.Int64)
    frame = rows.with_columns(bytes=size.cast(pl.Int64)).filter(pl.col("bytes") != 0)
    address = frame["ends"].str.extract(r" (\S+):[\w.-]+$").str.strip_chars("[]").str.split("%").list.first()
    connections = frame.select(
        "down_bps",
        "min_down_bps",
        "bytes",
        client=pl.int_range(pl.len()),
        subnet=pl.lit(Subnets().numbers(address)),
        rtt_s=pl.lit(seconds(frame["minrtt"], 1e3)),
        max_rtt_s=pl.lit(seconds(frame["max_rtt_ms"], 1e3)),
        # The kernel counts the SYN of who opened the connection, and the FIN, as acknowledged bytes.
        delivered_bytes=pl.min_horizontal(acknowledged, "bytes"),
        segments_sent=pl.col("data_segs_out").cast(pl.Int64),
        # ss leaves out values of 0.
        retransmissions=pl.col("retrans").fill_null(0.0).cast(pl.Int64),
    )
    responses = connections.select("client", "bytes", "delivered_bytes", "segments_sent", "retransmissions")
    silent = rows.height - frame.height
    left_out = counted(silent, "socket had sent nothing and is", "sockets had sent nothing and are")
    notes = (f"{left_out} left out",) if silent else ()
    return Parts(responses, connections, notes=notes, bounds=connections.select("client", "min_down_bps"))


def _rows(sockets: pl.DataFrame) -> pl.DataFrame:
    """The data of each snapshot on a socket, as `Merged` takes it."""
    at_least = (pl.col("busy") > 0) & (pl.col("bytes_acked") > 0)
    return sockets.select(
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
