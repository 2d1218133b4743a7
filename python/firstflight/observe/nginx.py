"""nginx's access log with what the kernel knew of the connection (`$tcpinfo_*`) when it had taken each answer."""

from pathlib import Path

import polars as pl

from . import nginx_format
from .lines import pieces
from .nginx_format import LOG_FORMAT, NUMBERS, Format
from .problem import Problems
from .tables import HEADER_BYTES, Parts, since_first, subnets

# Lines of one connection agree on when it began to within what the clock of a log resolves, twice; connection numbers
# begin anew with nginx, and no sooner than this.
_SAME_BEGIN_S = 0.5
# Round trips for which nginx must have waited: slow start from ten segments to a thousand takes seven, and after it
# comes the repair of what was too much.
_ROUNDS = 10
# A round trip of so many times the least one has waited in a queue.
_QUEUED = 1.3

# No number of a log is as large: bytes, microseconds and seconds since 1970 are far below.
_BEYOND = 1e15


def recognises(line: str) -> bool:
    """Whether a line is of the format to configure."""
    return line.startswith("msec=") and " tcpinfo_rtt=" in line


def read(path: Path, problems: Problems, log_format: str | None, mss_bytes: int) -> Parts:
    """The parts of an access log in `log_format` (as in nginx.conf; by default the one to configure).

    RequestError for a format that cannot be read or lacks what is needed.
    """
    form = nginx_format.parse(log_format or LOG_FORMAT)
    found = [_lines(first, lines, form, problems) for first, lines in pieces(path, problems)]
    frame = pl.concat(found) if found else pl.DataFrame()
    if frame.is_empty():
        return Parts(pl.DataFrame({"client": []}), pl.DataFrame({"client": []}))
    return _parts(frame, form, mss_bytes)


def _lines(first: int, lines: pl.Series, form: Format, problems: Problems) -> pl.DataFrame:
    """A row a line that is whole: `line` and the variables, numbers as numbers."""
    frame = pl.DataFrame({"line": range(first, first + lines.len()), "text": lines})
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


def _parts(frame: pl.DataFrame, form: Format, mss_bytes: int) -> Parts:
    frame = frame.with_columns(_connection(frame, form).alias("client"))
    columns = {"bytes": pl.col(_size(form)).cast(pl.Int64)}
    if "connection_requests" in form.variables:
        columns["object"] = pl.col("connection_requests").cast(pl.Int64) - 1
    if {"msec", "request_time"} <= set(form.variables):
        columns["start_s"] = pl.col("msec") - pl.col("request_time")
    if "request_completion" in form.variables:
        columns["completed"] = (pl.col("request_completion") == "OK").cast(pl.UInt8)
    order = ["client", *(["object"] if "object" in columns else [])]
    responses, began_s = since_first(frame.select("client", **columns).sort(order, maintain_order=True))
    frame = _paths(frame, form, mss_bytes)
    known = {
        "rtt_s": pl.col("rtt_s").min(),
        "most_rtt_s": pl.col("tcpinfo_rtt").max() / 1e6,
        "down_bps": pl.col("down_bps").max(),
    }
    if "remote_addr" in form.variables:
        frame = frame.with_columns(subnets(frame["remote_addr"]).alias("subnet"))
        known["subnet"] = pl.col("subnet").first()
    connections = frame.group_by("client", maintain_order=True).agg(**known)
    notes = [f"a segment is taken to hold {mss_bytes} bytes"]
    if connections["down_bps"].count():
        notes.append("rates are rough, up to a quarter off: each is one look at a window and a round trip that move")
    if unsure := connections["rtt_s"].null_count():
        notes.append(f"{unsure:,} connections tell no round trip but that of a queue which they had filled themselves")
    return Parts(responses, connections, began_s, tuple(f"${name}" for name in form.ignored), tuple(notes))


def _size(form: Format) -> str:
    return "bytes_sent" if "bytes_sent" in form.variables else "body_bytes_sent"


def _paths(frame: pl.DataFrame, form: Format, mss_bytes: int) -> pl.DataFrame:
    """What each line says of its path, with `rtt_s` and `down_bps` null where it says nothing.

    nginx writes the line when the kernel has taken the last byte. Of an answer that the kernel took at once, or that
    fits into the window, that is before its first acknowledgment: the round trip is free of the queue that it will
    make. A longer answer waited for acknowledgments: then a window is under way in each round trip, and if that is
    well above the least one, a queue stands before the slowest link, which has no time to rest: window / round trip is
    its rate.
    """
    rtt_s = pl.col("tcpinfo_rtt") / 1e6
    if not {"tcpinfo_snd_cwnd", "request_time"} <= set(form.variables):
        return frame.with_columns(rtt_s=rtt_s, down_bps=pl.lit(None, dtype=pl.Float64))
    size, window_bytes = pl.col(_size(form)), pl.col("tcpinfo_snd_cwnd") * mss_bytes
    early = (pl.col("request_time") <= rtt_s) | (size <= window_bytes)
    least_s = pl.when(early).then(rtt_s).min().over("client")
    held_up = (pl.col("request_time") >= _ROUNDS * rtt_s) & (rtt_s >= _QUEUED * least_s)
    rate = pl.min_horizontal(window_bytes / rtt_s, size / pl.col("request_time")) * 8
    down_bps = pl.when(held_up).then(rate * (mss_bytes + HEADER_BYTES) / mss_bytes)
    return frame.with_columns(pl.when(early).then(rtt_s).alias("rtt_s"), down_bps.alias("down_bps"))


def _connection(frame: pl.DataFrame, form: Format) -> pl.Series:
    """The number of each line's connection, from 0 in order of appearance.

    nginx counts connections from 1 again when it is started again. Then the beginning of the connection differs, as
    far as the format tells it ($msec and $connection_time); else its first request is there twice.
    """
    if "connection" not in form.variables:
        return pl.Series("client", range(frame.height))
    same = ["connection", *(["remote_addr"] if "remote_addr" in form.variables else [])]
    begin = pl.lit(0.0)
    again = pl.lit(False)
    if {"msec", "connection_time"} <= set(form.variables):
        begin = pl.col("msec") - pl.col("connection_time")
        again = pl.col("begin").diff() > _SAME_BEGIN_S
    elif "connection_requests" in form.variables:
        again = pl.col("connection_requests") == 1
    # Lines of a number one after the other: windows over hundreds of thousands of groups take minutes.
    numbered = frame.with_row_index("order").with_columns(begin=begin).sort(*same, "begin", "order")
    other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in same)
    life = (other | again.fill_null(False)).cum_sum()
    lives = numbered.select("order", life=life).with_columns(first=pl.col("order").min().over("life"))
    return lives.sort("order").select(client=pl.col("first").rank("dense").cast(pl.Int64) - 1)["client"]
