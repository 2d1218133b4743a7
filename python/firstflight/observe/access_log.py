"""Common access logs: each line has a size, mostly a time, seldom an RTT.

One table has the formats. A pattern names the groups that are used; formats with named fields (W3C, JSON) have a table
of names. A new format is one row here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from firstflight.errors import RequestError
from firstflight.observe.lines import pieces
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.sample import Sample
from firstflight.observe.tables import HELD_BYTES, Parts, Subnets, mean_rate, since_first

NGINX = "log_format firstflight '... tcpinfo_rtt=$tcpinfo_rtt ...' (the whole line: docs/observe.md#nginx)"
_HELD_AT_MOST_BYTES = 4 << 20
"""The most that Linux holds of a response that the program has written (tcp_wmem); how much it does takes cwnd."""
_QUOTED = r'"(?:[^"\\]|\\.)*"'


@dataclass(frozen=True)
class Format:
    """A format of access logs. `title`; `add`: how to make it log RTTs. Either a `pattern` of a line, with groups
    `address`, `bytes` or `kib`, and a time (`time_s`, `time_ms`), or `names` of fields: the meaning of each, in the
    same words and `rtt_us`, `rtt_ms`; `at`: when it was. `sure`: text that a beginning of the file must hold.
    """

    title: str
    add: str
    pattern: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    sure: str = ""


_TIME = r"(?: (?P<time_s>\d+\.\d+))?"
# Of syslog; and Apache's virtual host (vhost_combined).
_AHEAD = r"(?:[^\"\[]+(?:\[\d+\])?: )?(?:\S+:\d+ )?"
_FIELDS = {
    "sc-bytes": "bytes",
    "c-ip": "address",
    "date": "date",
    "time": "time",
}
_JSON = {
    **dict.fromkeys(("bytes_sent", "bytes", "size", "resp_body_size", "response_body_size"), "bytes"),
    **dict.fromkeys(("body_bytes_sent", "response_body_bytes", "totalbytes", "edgeresponsebytes"), "bytes"),
    **dict.fromkeys(("remote_addr", "client_ip", "clientip", "cliip", "remote_ip", "ip", "c_ip"), "address"),
    **dict.fromkeys(("request_time", "time_elapsed_s"), "time_s"),
    **dict.fromkeys(("transfertimemsec", "time_elapsed_msec", "duration_ms"), "time_ms"),
    **dict.fromkeys(("tcpinfo_rtt", "tcpi_rtt", "tcp_rtt_us", "client_rtt_us"), "rtt_us"),
    **dict.fromkeys(("time", "timestamp", "@timestamp", "time_iso8601", "time_local"), "at"),
    **dict.fromkeys(("reqtimesec", "edgestarttimestamp", "ts"), "at"),
    **dict.fromkeys(("clienttcprttms", "rtt_ms", "tcp_rtt_ms"), "rtt_ms"),
}
FORMATS = (
    Format(
        "CloudFront standard log",
        "CloudFront logs no RTT that is read here; take a capture or the log of a server of your own",
        names=_FIELDS | {"time-taken": "time_s"},
        sure="x-edge-location",
    ),
    Format(
        "W3C extended log (IIS)",
        "IIS logs no RTT; take a capture (pktmon or tcpdump)",
        names=_FIELDS | {"time-taken": "time_ms"},
        sure="#Fields:",
    ),
    Format(
        "JSON lines",
        f'in nginx add "tcpinfo_rtt":"$tcpinfo_rtt"; in Fastly client.socket.tcpi_rtt as tcpi_rtt; or {NGINX}',
        names=_JSON,
        sure="{",
    ),
    Format(
        "HAProxy HTTP log",
        'log-format \'{"client_ip":"%ci","bytes":%B,"duration_ms":%Ta,"tcpi_rtt":%[fc_rtt(us)]}\'',
        r"(?P<address>[0-9a-fA-F:.]+):\d+ \[(?P<at>[^\]]+)\] \S+ \S+/\S+ -?\d+/-?\d+/-?\d+/-?\d+/\+?(?P<time_ms>\d+) "
        r"\d{3} \+?(?P<bytes>\d+) ",
    ),
    Format(
        "Envoy access log",
        "take a capture where users' connections end",
        rf"^\[(?P<at>[^\]]+)\] {_QUOTED} \d{{3}} \S+ (?:\S+ {_QUOTED} )?(?:{_QUOTED} )?\d+ "
        r"(?P<bytes>\d+) (?P<time_ms>\d+) ",
    ),
    Format(
        "common or combined log",
        NGINX,
        rf"^{_AHEAD}(?P<address>\S+) \S+ \S+ \[(?P<at>[^\]]+)\] {_QUOTED} \d{{3}} (?P<bytes>\d+|-)"
        rf"(?: {_QUOTED} {_QUOTED})?{_TIME}",
    ),
    Format(
        "tcplife (bcc)",
        "take a capture, or ss -tinH once a second (docs/observe.md#ss)",
        # LADDR LPORT RADDR RPORT TX_KB RX_KB MS, after the columns that options add; with -s commas between them.
        r"[\s,][0-9a-fA-F:.]+(?:,|\s+)\d+(?:,|\s+)(?P<address>[0-9a-fA-F:.]+)(?:,|\s+)\d+(?:,|\s+)(?P<kib>\d+)"
        r"(?:,|\s+)\d+(?:,|\s+)(?P<time_ms>\d+\.\d+)\s*$",
    ),
)
_NUMBERS = {"bytes": 1.0, "kib": 1024.0, "time_s": 1.0, "time_ms": 1e-3, "rtt_us": 1e-6, "rtt_ms": 1e-3}


def recognised(lines: list[str]) -> Format | None:
    """The format of which most of the first lines are; None for none."""
    head = "\n".join(lines)
    full = [line for line in lines if line and not line.startswith("#")]
    for form in FORMATS:
        if form.names:
            if form.sure in head and _begins(form, full):
                return form
        elif full and pl.Series(full).str.contains(form.pattern).mean() > 0.5:  # type: ignore[operator]
            return form
    return None


def _begins(form: Format, lines: list[str]) -> bool:
    if form.sure != "{":
        return True
    found = [_flat(line) for line in lines[:20]]
    return any("bytes" in {form.names.get(name) for name in row} for row in found if row)


def read(path: Path, problems: Problems, form: Format | None) -> Parts:
    """The parts of an access log. RequestError if it is of no format that is known."""
    if form is None:
        titles = ", ".join(each.title for each in FORMATS)
        raise RequestError(f"{path} is no access log of a known format ({titles}); give nginx's with --log-format")
    room, subnets, sample = Room(path), Subnets(), Sample()
    for frame in _rows(path, problems, form):
        known = {name: frame[name] for name in frame.columns}
        words = [pl.col(name).cast(pl.String) for name in ("address", "at") if name in known]
        made = frame.select("line", *words, *(_number(name).alias(name) for name in _NUMBERS if name in known))
        made = made.with_columns(
            pl.coalesce(pl.col("^(bytes|kib)$")).alias("bytes"),
            pl.coalesce(pl.col("^time_(s|ms)$"), pl.lit(None, dtype=pl.Float64)).alias("time_s"),
            pl.coalesce(pl.col("^rtt_(us|ms)$"), pl.lit(None, dtype=pl.Float64)).alias("rtt_s"),
        )
        problems.add("without a size", made.filter(pl.col("bytes").is_null())["line"])
        made = sample.chosen(made.filter(pl.col("bytes").is_not_null()))
        subnet = subnets.numbers(made["address"]) if "address" in known else pl.lit(None, dtype=pl.UInt32)
        start = _moments(made["at"]) if "at" in known else pl.lit(None, dtype=pl.Float64)
        made = made.with_columns(subnet.alias("subnet"), start.alias("start_s"))
        sample.add(made.drop("line", "^(address|at|kib|time_ms|rtt_(us|ms))$"))
        room.keep_only(*sample.held)
    found = sample.rows
    if found is None:
        return Parts(pl.DataFrame({"client": []}), pl.DataFrame({"client": []}))
    rows = found.with_row_index("client")
    rate = mean_rate(pl.col("bytes") - _HELD_AT_MOST_BYTES, pl.col("time_s"))
    bounds = rows.select(
        "client",
        pl.when(pl.col("bytes") > _HELD_AT_MOST_BYTES).then(rate).alias("min_down_bps"),
        pl.when(pl.col("bytes") > HELD_BYTES).then("time_s").alias("min_completion_time_s"),
    )
    told = "sizes" if rows["time_s"].null_count() == rows.height else "sizes and times"
    notes = [
        f"{form.title}: it has {told}; each line counts as the first response of a connection, since lines of kept "
        "connections cannot be distinguished"
    ]
    if sample.note:
        notes.append(sample.note)
    if rows["rtt_s"].null_count() == rows.height:
        notes.append(f"no RTT in it; to log it: {form.add}")
    connections = rows.select("client", "rtt_s", "subnet")
    responses, began_s = rows.select("client", pl.col("bytes").cast(pl.Int64)), None
    if rows["start_s"].count():
        responses, began_s = since_first(responses.with_columns(rows["start_s"]))
    networks = subnets.networks()
    return Parts(responses, connections, began_s, notes=tuple(notes), bounds=bounds, networks=networks)


def _moments(text: pl.Series) -> pl.Series:
    """Unix times, of the common log's words, of RFC 3339, HAProxy's (taken as UTC) or as a number of seconds or
    nanoseconds; null for others. Most logs write the second in which the program was done with the response, so they
    are late by its time.
    """
    zoned = ("%d/%b/%Y:%H:%M:%S %z", "%Y-%m-%dT%H:%M:%S%.f%#z")
    each = [text.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False) for form in zoned]
    each.append(text.str.to_datetime("%d/%b/%Y:%H:%M:%S%.f", time_unit="us", strict=False).dt.replace_time_zone("UTC"))
    number = text.cast(pl.Float64, strict=False)
    since_1970 = pl.when(number < 1e11).then(number).when(number.is_between(1e17, 1e19)).then(number / 1e9)
    return pl.select(pl.coalesce(*(moment.dt.epoch("us") / 1e6 for moment in each), since_1970)).to_series()


def _number(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64, strict=False)
    # tcplife writes 0 for sizes below 1 KiB.
    return pl.when(value.is_between(1 if name == "kib" else 0, 1e15)).then(value * _NUMBERS[name])


def _rows(path: Path, problems: Problems, form: Format) -> Iterator[pl.DataFrame]:
    """Lines as text columns with the format's words, and `line`; lines of another format are reported."""
    names: list[str] = []
    for first, lines in pieces(path, problems):
        frame = pl.DataFrame({"line": pl.int_range(first, first + lines.len(), eager=True), "text": lines})
        if form.pattern:
            frame = frame.filter(pl.col("text") != "")
            groups = frame["text"].str.extract_groups(form.pattern).struct.unnest()
            fits = groups["bytes" if "bytes" in groups.columns else "kib"].is_not_null()
            problems.add("not of the log format", frame.filter(~fits)["line"])
            yield pl.concat([frame.select("line"), groups], how="horizontal").filter(fits)
            continue
        if form.sure == "{":
            frame = frame.filter(pl.col("text") != "")
            found = [_named(_flat(text), form) for text in frame["text"]]
            problems.add(
                "not a JSON object", frame.filter(pl.Series([row is None for row in found], dtype=pl.Boolean))["line"]
            )
            kept = [
                {"line": line} | row
                for line, row in zip(frame["line"].to_list(), found, strict=True)
                if row is not None
            ]
            columns = {"line": pl.Int64} | dict.fromkeys((*_NUMBERS, "address", "at"), pl.String)
            yield pl.DataFrame(kept, schema=columns)
            continue
        for line in frame["text"].filter(frame["text"].str.starts_with("#Fields:")):
            names = line.split()[1:]
        frame = frame.filter(pl.col("text") != "", ~pl.col("text").str.starts_with("#"))
        split = pl.col("text").str.split("\t" if form.sure == "x-edge-location" else " ")
        whole = frame.with_columns(split).filter(pl.col("text").list.len() == len(names))
        problems.add(f"not {len(names)} fields, as #Fields says", frame.join(whole, on="line", how="anti")["line"])
        used = {word: names.index(name) for name, word in form.names.items() if name in names}
        if "bytes" not in used:
            raise RequestError(f"{path}: #Fields lacks sc-bytes, the size of a response; log it")
        words = whole.select("line", *(pl.col("text").list.get(at).alias(word) for word, at in used.items()))
        if {"date", "time"} <= used.keys():
            words = words.with_columns(at=pl.format("{}T{}Z", "date", "time"))
        yield words


def _flat(text: str) -> dict[str, object] | None:
    """The fields of a JSON object by lower-case name, those of objects in it, too."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    inner = {name: value for each in found.values() if isinstance(each, dict) for name, value in each.items()}
    return {str(name).lower(): value for name, value in (inner | found).items()}


def _named(row: dict[str, object] | None, form: Format) -> dict[str, str] | None:
    if row is None:
        return None
    return {word: str(row[name]) for name, word in reversed(list(form.names.items())) if row.get(name) is not None}
