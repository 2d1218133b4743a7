"""nginx's access log with the kernel's data on the connection (`$tcpinfo_*`) when it had taken each answer."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from firstflight.counted import counted
from firstflight.observe import nginx_format
from firstflight.observe.lines import pieces
from firstflight.observe.merged import OF, Merged, in_order
from firstflight.observe.nginx_format import NUMBERS, NginxFormat
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import HEADER_BYTES, HELD_BYTES, Parts, Subnets, mean_rate, seconds, since_first
from firstflight.observe.wrappers import Wrapper, peeled

# Lines of one connection agree on its start to within twice the resolution of the log's clock; connection numbers
# begin again with nginx, and no earlier than this.
_SAME_BEGIN_S = 0.5
# Round trips for which nginx must have waited: slow start from ten segments to a thousand takes seven, and after it
# comes the recovery of the excess.
_ROUNDS = 10
# An RTT of this number of times the minimum includes a wait in a queue.
_QUEUED = 1.3

# The data of a response that the kernel may hold in its buffer: it lets the buffer grow to twice cwnd
# (tcp_sndbuf_expand), and cwnd may have been twice as large before a loss. At its start a buffer holds HELD_BYTES.
_HELD_WINDOWS = 4
# Without cwnd: the most that Linux lets the buffer grow to (tcp_wmem).
_HELD_AT_MOST_BYTES = 4 << 20

# Columns of a connection's handshake of TLS, and their variables.
_TLS = {"tls_version": "ssl_protocol", "tls_resumed": "ssl_session_reused", "tls_curve": "ssl_curve"}
# No number of a log is as large: bytes, microseconds and seconds since 1970 are far below.
_BEYOND = 1e15


def recognizes(line: str) -> bool:
    """Whether a line is of the format to configure."""
    return line.startswith("msec=") and " tcpinfo_rtt=" in line


def read(
    path: Path, problems: Problems, form: NginxFormat | None, mss_bytes: int, wrappers: Sequence[Wrapper] = ()
) -> Parts:
    """The parts of an access log of a format that has an RTT and a size; by default the one to configure."""
    form = form or nginx_format.to_configure()
    connections = Merged(lambda rows: _connection(rows, form), _kept(form), Room(path))
    subnet = Subnets()
    for first, lines in pieces(path, problems):
        frame = _paths(_lines(first, peeled(lines, wrappers), form, problems), form, mss_bytes)
        if not frame.is_empty():
            connections.add(
                _rows(frame, form, subnet),
                responses=_responses(frame, form),
                full=_full(frame),
                logged=_logged(frame, form),
            )
    return replace(_parts(*connections.done(), form, mss_bytes), networks=subnet.networks())


def _lines(first: int, lines: pl.Series, form: NginxFormat, problems: Problems) -> pl.DataFrame:
    """One row per line that is whole: `line` and the variables, numbers as numbers."""
    frame = pl.DataFrame({"line": pl.int_range(first, first + lines.len(), eager=True), "text": lines})
    frame = frame.filter(pl.col("text") != "")
    frame = frame.with_columns(pl.col("text").str.extract_groups(form.pattern).alias("text"))
    # A line that fits has all of them.
    frame = frame.with_columns(pl.col("text").struct.field(name) for name in form.variables).drop("text")
    problems.add("not of the log format", frame.filter(pl.col(form.variables[0]).is_null())["line"])
    frame = frame.filter(pl.col(form.variables[0]).is_not_null())
    texts = [pl.col(name) for name in form.variables if name not in NUMBERS]
    read = [pl.col(name).cast(pl.Float64, strict=False) for name in form.variables if name in NUMBERS]
    frame = frame.select("line", *read, *texts)
    # "-": nginx had no TCP connection to ask, as with HTTP/3.
    known = pl.col("tcpinfo_rtt") > 0
    problems.add("without a round trip in $tcpinfo_rtt", frame.filter(~known.fill_null(False))["line"])
    frame = frame.filter(known)
    size = pl.col(_size(form))
    problems.add("without a size", frame.filter(size.is_null())["line"])
    frame = frame.filter(size.is_not_null())
    # Digits that a damaged line has run together.
    beyond = pl.any_horizontal(pl.col(name) >= _BEYOND for name in form.variables if name in NUMBERS)
    if "connection_requests" in form.variables:
        beyond = beyond | ~pl.col("connection_requests").is_between(1, 2**32)
    beyond = beyond.fill_null(False)
    problems.add("with a number that cannot be", frame.filter(beyond)["line"])
    return frame.filter(~beyond)


def _rows(frame: pl.DataFrame, form: NginxFormat, subnet: Subnets) -> pl.DataFrame:
    """The data of each line on its connection, as `Merged` takes it: its key and its path."""
    begin = pl.lit(None, dtype=pl.Float64)
    if {"msec", "connection_time"} <= set(form.variables):
        begin = pl.col("msec") - pl.col("connection_time")
    anew = pl.col("connection_requests") == 1 if "connection_requests" in form.variables else pl.lit(False)
    columns = {
        "begin_s": begin,
        "last_begin_s": begin,
        "anew": anew.fill_null(False),
        "rtt_s": pl.col("rtt_s"),
        "max_rtt_us": pl.col("tcpinfo_rtt"),
        "min_down_bps": pl.col("min_down_bps"),
    }
    if "remote_addr" in form.variables:
        columns["subnet"] = pl.lit(subnet.numbers(frame["remote_addr"]))
    if "ssl_protocol" in form.variables:
        protocol = pl.col("ssl_protocol")
        is_old = protocol.str.starts_with("TLSv1") | protocol.str.starts_with("SSL")
        columns["tls_version"] = pl.when(protocol == "TLSv1.3").then(13).when(is_old).then(12)
    if "ssl_session_reused" in form.variables:
        reused = pl.col("ssl_session_reused")
        columns["tls_resumed"] = pl.when(reused == "r").then(1).when(reused == ".").then(0)
    if "ssl_curve" in form.variables:
        columns["tls_curve"] = pl.col("ssl_curve").replace("-", None)
    return frame.select(*_identity(form), **columns)


def _kept(form: NginxFormat) -> dict[str, pl.Expr]:
    first = [*_identity(form), "anew", *(["subnet"] if "remote_addr" in form.variables else [])]
    return (
        {name: pl.col(name).first() for name in first}
        | {
            "begin_s": pl.col("begin_s").min(),
            "last_begin_s": pl.col("last_begin_s").max(),
            "rtt_s": pl.col("rtt_s").min(),
            "max_rtt_us": pl.col("max_rtt_us").max(),
            "min_down_bps": pl.col("min_down_bps").max(),
        }
        | {
            column: pl.col(column).drop_nulls().first()
            for column, variable in _TLS.items()
            if variable in form.variables
        }
    )


def _handshakes(connections: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The handshakes of connections over TLS, whose bytes no variable has, and a note on them."""
    if "tls_version" not in connections.columns:
        return pl.DataFrame({"client": []}), []
    over = connections.filter(pl.col("tls_version").is_not_null())
    columns = {"version": "tls_version"} | ({"resumed": "tls_resumed"} if "tls_resumed" in over.columns else {})
    handshakes = over.select("client", **columns)
    note = f"{counted(over.height, 'connection')} over TLS, {int((over['tls_version'] == 13).sum()):,} of them TLS 1.3"
    if "tls_curve" in over.columns:
        hybrid = int(over["tls_curve"].str.contains("(?i)mlkem|0x11ec").sum())
        note += f", {hybrid:,} with a post-quantum key exchange"
    return handshakes, [note] if over.height else []


def _responses(frame: pl.DataFrame, form: NginxFormat) -> pl.DataFrame:
    columns = {OF: pl.int_range(pl.len()), "bytes": pl.col(_size(form)).cast(pl.Int64)}
    if "connection_requests" in form.variables:
        columns["object"] = (pl.col("connection_requests").cast(pl.Int64) - 1).cast(pl.UInt32)
    if {"msec", "request_time"} <= set(form.variables):
        columns["start_s"] = pl.col("msec") - pl.col("request_time")
    if "request_completion" in form.variables:
        columns["completed"] = (pl.col("request_completion") == "OK").cast(pl.UInt8)
    return frame.select(**columns)


def _full(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines that give a rate if there was a standing queue. Only the whole connection shows whether there was one."""
    rated = frame.select(pl.int_range(pl.len()).alias(OF), "waiting_rtt_s", "down_bps")
    return rated.filter(pl.col("down_bps").is_not_null())


def _logged(frame: pl.DataFrame, form: NginxFormat) -> pl.DataFrame:
    """The time until the kernel had taken the last byte of a connection's first response, if that is long."""
    time_s = pl.col("request_time") if "request_time" in form.variables else pl.lit(None, dtype=pl.Float64)
    rows = frame.with_row_index(OF).filter(pl.col(_size(form)) > HELD_BYTES, time_s.is_not_null())
    if "connection_requests" in form.variables:
        rows = rows.filter(pl.col("connection_requests") == 1)
    return rows.select(OF, time_s.alias("min_completion_time_s"))


def _parts(connections: pl.DataFrame, beside: dict[str, pl.DataFrame], form: NginxFormat, mss_bytes: int) -> Parts:
    if connections.is_empty():
        return Parts()
    responses = beside["responses"]
    order = ["client", *(["object"] if "object" in responses.columns else [])]
    responses, began_s = since_first(responses.sort(order, maintain_order=True))
    max_rtt_s = seconds(connections["max_rtt_us"], 1e6).alias("max_rtt_s")
    connections = connections.with_row_index("client").with_columns(max_rtt_s)
    full = beside["full"].with_columns(least_s=connections["rtt_s"].gather(beside["full"][OF]))
    rates = full.filter(pl.col("waiting_rtt_s") >= _QUEUED * pl.col("least_s")).group_by("client")
    connections = connections.join(rates.agg(pl.col("down_bps").max()), on="client", how="left", maintain_order="left")
    logged = beside["logged"].unique(OF, keep="first", maintain_order=True)
    bounds = connections.select("client", "min_down_bps").join(logged, on="client", how="left", maintain_order="left")
    notes = [f"a segment is taken to hold {mss_bytes} bytes"]
    if connections["down_bps"].count():
        notes.append("rates are rough: each is one sample of cwnd / RTT, up to 25% off")
    if unsure := connections["rtt_s"].null_count():
        notes.append(
            f"{counted(unsure, 'connection')} without an RTT: their samples include the response's own queueing delay"
        )
    handshakes, note = _handshakes(connections)
    connections = connections.drop(column for column in _TLS if column in connections.columns)
    ignored = tuple(f"${name}" for name in form.ignored)
    return Parts(responses, connections, began_s, ignored, (*notes, *note), bounds, handshakes)


def _size(form: NginxFormat) -> str:
    return "bytes_sent" if "bytes_sent" in form.variables else "body_bytes_sent"


def _paths(frame: pl.DataFrame, form: NginxFormat, mss_bytes: int) -> pl.DataFrame:
    """The data of each line on its path: `rtt_s`, or, if it filled a queue itself, `waiting_rtt_s`
    and `down_bps`; null where there is none.

    nginx writes the line when the kernel has taken the last byte. Of an answer that the kernel took at once, or that
    fits into the window, that is before its first acknowledgment: the round trip is free of the queue that it will
    make. A longer answer waited for acknowledgments: then a window is in flight in each round trip, and if that is
    well above the least one, a queue stands before the slowest link, which has no time to rest: window / round trip is
    its rate.
    """
    frame = frame.with_columns(
        seconds(frame["tcpinfo_rtt"], 1e6).alias("rtt_s"), min_down_bps=_least_rate(form, mss_bytes)
    )
    rtt_s = pl.col("rtt_s")
    if not {"tcpinfo_snd_cwnd", "request_time"} <= set(form.variables):
        unknown = pl.lit(None, dtype=pl.Float64)
        return frame.with_columns(waiting_rtt_s=unknown, down_bps=unknown)
    size, window_bytes = pl.col(_size(form)), pl.col("tcpinfo_snd_cwnd") * mss_bytes
    early = (pl.col("request_time") <= rtt_s) | (size <= window_bytes)
    waited = pl.col("request_time") >= _ROUNDS * rtt_s
    rate = pl.min_horizontal(window_bytes / rtt_s, size / pl.col("request_time")) * 8
    return frame.with_columns(
        pl.when(early).then(rtt_s).alias("rtt_s"),
        waiting_rtt_s=rtt_s,
        down_bps=pl.when(waited).then(rate * ((mss_bytes + HEADER_BYTES) / mss_bytes)),
    )


def _least_rate(form: NginxFormat, mss_bytes: int) -> pl.Expr:
    """The average delivery rate until nginx wrote the line; null where most data may still be in the kernel."""
    if "request_time" not in form.variables:
        return pl.lit(None, dtype=pl.Float64)
    held = pl.lit(_HELD_AT_MOST_BYTES)
    if "tcpinfo_snd_cwnd" in form.variables:
        held = pl.max_horizontal(_HELD_WINDOWS * pl.col("tcpinfo_snd_cwnd") * mss_bytes, pl.lit(HELD_BYTES))
    gone = pl.col(_size(form)) - held
    whole = gone > 0
    if "request_completion" in form.variables:
        whole = whole & (pl.col("request_completion") == "OK")
    return pl.when(whole).then(mean_rate(gone, pl.col("request_time")))


def _identity(form: NginxFormat) -> list[str]:
    """The columns by which lines of one connection are known."""
    if "connection" not in form.variables:
        return []
    return ["connection", *(["remote_addr"] if "remote_addr" in form.variables else [])]


def _connection(rows: pl.DataFrame, form: NginxFormat) -> pl.Series:
    """The number of each row's connection, from 0 in order of appearance.

    nginx counts connections from 1 again when it is started again. Then the beginning of the connection differs, as
    far as the format has it ($msec and $connection_time); else its first request is there twice.
    """
    same = _identity(form)
    if not same:
        return pl.Series("client", range(rows.height))
    begins = {"msec", "connection_time"} <= set(form.variables)
    # Rows of a number one after the other: windows over hundreds of thousands of groups take minutes.
    numbered = rows.with_row_index("order").sort(*same, *(["begin_s"] if begins else []), "order")
    other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in same)
    if begins:
        # A row may stand for lines that began apart from one another.
        before_s = _most_so_far(numbered.select(other).to_series().cum_sum(), numbered["last_begin_s"]).shift()
        again = pl.col("begin_s") - before_s > _SAME_BEGIN_S
    else:
        again = pl.col("anew")
    life = numbered.select((other | again.fill_null(False)).cum_sum()).to_series()
    return in_order(life, numbered["order"])


def _most_so_far(group: pl.Series, values: pl.Series) -> pl.Series:
    """The largest value up to each row within its group, whose number grows from row to row; null before any."""
    distinct = values.drop_nulls().unique().sort()
    place = distinct.search_sorted(values.fill_null(math.inf), "left")
    place = pl.select(pl.when(values.is_not_null()).then(place + 1).otherwise(0)).to_series().cast(pl.Int64)
    many = distinct.len() + 1
    most = (group.cast(pl.Int64) * many + place).cum_max() % many
    return pl.concat([pl.Series([None], dtype=pl.Float64), distinct]).gather(most)
