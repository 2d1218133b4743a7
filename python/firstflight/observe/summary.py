"""A summary of the data that was read, in lines for a person."""

import polars as pl

from firstflight.counted import counted, with_unit
from firstflight.observe.observation import Observation

# Of the users, then of the transfers: column, title, factor, unit.
_MEDIANS = (
    ("users", "rtt_s", "RTT", 1e3, "ms"),
    ("users", "max_rtt_s", "largest RTT", 1e3, "ms"),
    ("users", "down_bps", "rate down", 1e-6, "Mbit/s"),
    ("users", "up_bps", "rate up", 1e-6, "Mbit/s"),
    ("users", "buffer_bytes", "buffer", 1e-3, "kB"),
    ("users", "loss", "loss", 1e2, "%"),
    ("handshakes", "flight_bytes", "TLS: server's flight", 1e-3, "kB"),
    ("handshakes", "rounds", "TLS: round trips", 1.0, ""),
    ("handshakes", "time_s", "TLS: time", 1e3, "ms"),
    ("handshakes", "client_hello_bytes", "TLS: ClientHello", 1.0, "bytes"),
    ("handshakes", "key_share_bytes", "TLS: client's key shares", 1.0, "bytes"),
    ("transfers", "bytes", "size", 1e-3, "kB"),
    ("transfers", "completion_time_s", "completion time", 1e3, "ms"),
    ("transfers", "first_flight_segments", "first flight", 1.0, "segments"),
)
_OF = {"users": "connection", "handshakes": "connection", "transfers": "response"}
# What advice takes from the data.
_WANTED = {
    "users": ("rtt_s", "max_rtt_s", "down_bps", "up_bps", "buffer_bytes", "loss", "subnet"),
    "transfers": (
        "bytes",
        "start_s",
        "completion_time_s",
        "segments_sent",
        "retransmissions",
        "timeouts",
        "first_flight_segments",
        "first_flight_lost_segments",
        "initial_window_segments",
    ),
}


# Name of a value, the value, and of how many it is known.
_Row = tuple[str, str, str]


def lines(seen: Observation, width: int | None = None) -> list[str]:
    """The data that was read: its format and amount, its time range, medians with the tenth and ninetieth percentile of
    what is known; what is not; rows that were left out. The medians are a table where it fits into `width` characters.
    """
    source = seen.source
    text = [f"{source.path}: {source.form}"]
    if source.lines_apart:
        text.append("  connections  not in this log: each response counts as a connection")
    else:
        text.append(f"  connections  {seen.users.height:,}")
    text.append(f"  responses    {seen.transfers.height:,}")
    text.extend(f"  note         {note}" for note in source.notes)
    start = seen.transfers["start_s"].drop_nulls()
    if start.len():
        text.append(f"  time span    {_number(float(start.max()) - float(start.min()))} s")  # type: ignore[arg-type]
    known = [row for of in _MEDIANS if (row := _median(seen, *of))]
    known += _resumed(seen)
    known += _share(seen, "retransmissions", "retransmissions", "segments_sent")
    known += _share(seen, "first flight retransmitted", "first_flight_lost_segments", "first_flight_segments")
    marks = seen.transfers["ecn_cwnd_reductions"].drop_nulls()
    if marks.len():
        known.append(("congestion marks (ECN)", f"{marks.sum():,}", counted(marks.len(), "response")))
    if known:
        rows = [("median (10%, 90%)", "", "known of"), *known]
        table = [f"  {name:28} {shown:>30}  {of}" for name, shown, of in rows]
        if width is not None and max(map(len, table)) > width:
            table = ["  median (10%, 90%), known of", *(f"  {name}: {shown}, {of}" for name, shown, of in known)]
        text += table
    unknown = seen.unknown()
    missing = [column for table, columns in _WANTED.items() for column in columns if column in unknown[table]]
    text.append(f"  missing in this format: {', '.join(missing) or 'nothing that advise uses'}")
    if source.ignored:
        text.append(f"  ignored columns: {', '.join(source.ignored)}")
    text.extend(f"  left out or incomplete: {problem}" for problem in seen.problems)
    return text


def _median(seen: Observation, table: str, column: str, name: str, factor: float, unit: str) -> _Row | None:
    frame: pl.DataFrame = getattr(seen, table)
    if column == "rounds":
        frame = frame.join(seen.users.select("client", "rtt_s"), on="client")
        frame = frame.select((pl.col("time_s") / pl.col("rtt_s")).alias("rounds"))
    values = frame[column].drop_nulls()
    if column == "first_flight_segments":
        # Later answers on a connection have none.
        values = values.filter(values > 0)
    if values.is_empty():
        return None
    quantiles = [float(values.quantile(share, "linear") or 0.0) * factor for share in (0.5, 0.1, 0.9)]
    middle, low, high = map(_number, quantiles)
    return name, f"{with_unit(middle, unit)} ({low}, {high})", counted(values.len(), _OF[table])


def _resumed(seen: Observation) -> list[_Row]:
    known = seen.handshakes["resumed"].drop_nulls()
    if known.is_empty():
        return []
    share = f"{100 * int(known.sum()) / known.len():.3g}%"
    return [("TLS: resumed", share, counted(known.len(), "connection"))]


def _share(seen: Observation, name: str, part: str, of: str) -> list[_Row]:
    known = seen.transfers.filter(pl.col(part).is_not_null() & pl.col(of).is_not_null())
    total = int(known[of].sum())
    if not total:
        return []
    counts = int(known[part].sum())
    return [(name, f"{100 * counts / total:.3g}%", f"{counts:,} of {counted(total, 'segment')}")]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
