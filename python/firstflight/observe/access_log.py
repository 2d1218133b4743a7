"""Common access logs: each line has a size, mostly a time, seldom an RTT. `formats` has the formats."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.observe import formats
from firstflight.observe.columns import ColumnFile, present
from firstflight.observe.formats import FORMATS, NUMBERS, TEXTS, Format
from firstflight.observe.lines import pieces
from firstflight.observe.merged import in_order
from firstflight.observe.plain import PATH, suggestions
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import HELD_BYTES, Parts, Subnets, mean_rate, since_first
from firstflight.observe.wrappers import Wrapper, peeled

MOST_ROWS = 1_000_000
"""Kept of a file at most: ten times the connections that `advise` simulates at most."""
_MOST_PIECES = 64
"""Frames that are held apart; each takes some kilobytes whatever is in it."""
_KEY = "__key"


class RowSample:
    """At most `MOST_ROWS` rows of a file, in their order; each has the same chance. The same file gives the same
    rows, whatever the pieces that it is read in.
    """

    def __init__(self) -> None:
        self.held: list[pl.DataFrame] = []
        """The rows kept now, in pieces."""
        self._below = 1 << 64
        self.read = 0
        """Rows that were offered."""

    @property
    def rows(self) -> pl.DataFrame | None:
        """All that is kept; None if nothing was offered."""
        return pl.concat(self.held).drop(_KEY) if self.held else None

    @property
    def note(self) -> str:
        """Notes on the sample; empty if every row is kept."""
        kept = sum(frame.height for frame in self.held)
        if kept == self.read:
            return ""
        return f"{counted(self.read, 'response', 'responses')} read, of which a random sample of {kept:,} is kept"

    def chosen(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of the next piece that `add` takes, by their `connection`, so that all of it is taken, or else by
        their `line`: the others need no more work.
        """
        self.read += frame.height
        of = frame.select(pl.coalesce(pl.col("connection"), pl.col("line").cast(pl.UInt64))).to_series()
        return self._thinned(frame.with_columns(pl.Series(_KEY, _keys(of.to_numpy()))))

    def add(self, chosen: pl.DataFrame) -> None:
        """Keep them, and fewer of all if they are too many."""
        self.held.append(chosen)
        while sum(frame.height for frame in self.held) > MOST_ROWS:
            self._below //= 2
            self.held = [self._thinned(frame) for frame in self.held]
        if len(self.held) > _MOST_PIECES:
            self.held = [pl.concat(self.held, rechunk=True)]

    def _thinned(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col(_KEY) < pl.lit(self._below, dtype=pl.UInt64)) if self._below < 1 << 64 else frame


def _keys(numbers: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Random numbers of 64 bits, each a function of its number alone: the finalizer of SplitMix64 (Steele 2014)."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


_HELD_AT_MOST_BYTES = 4 << 20
"""The most that Linux holds of a response that the program has written (tcp_wmem); how much it does takes cwnd."""
_NOT_TCP = r'[\s"]HTTP/3(?:\.0)?(?:["\s]|$)|["\t](?:http/3|h3(?:-\d+)?|udp|UDP|icmp|ICMP)["\t]'
"""HTTP/3 in a request, and protocols in fields of their own: of JSON, W3C or Zeek."""
_KEPT_S = 300.0
"""A client's port that was silent for longer names another connection: servers close idle ones earlier."""
# The first address in what a log has of a client: alone, with its port, in a list of proxies, in brackets.
_CLIENT = r"(?:^|[\s,\[(=\"])(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*)(?:$|[\s,:\])%/\"])"
# Before another address: that of a server without a name, with its port, as Apache's %v:%p writes it.
_VIRTUAL_HOST = r"^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\]):(?:\d{1,3}|8080|8443) ([0-9a-fA-F]*[.:])"
_CLIENT_PORT = r"^(\d{1,3}(?:\.\d{1,3}){3}:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5})(?:\s|$)"


def read(path: Path, problems: Problems, form: Format | None, wrappers: Sequence[Wrapper] = ()) -> Parts:
    """The parts of an access log. RequestError if it is of no format that is known."""
    if form is None:
        titles = ", ".join(entry.title for entry in FORMATS)
        raise RequestError(f"{path} is no access log of a known format ({titles}); give its own with --format")
    room, subnets, sample = Room(path), Subnets(), RowSample()
    has_rtt = "(?P<rtt" in form.pattern or any(word.startswith("rtt") for word in form.names.values())
    for frame in _rows(path, problems, form, wrappers):
        known = frame.columns
        if "address" in known:
            frame = frame.with_columns(pl.col("address").cast(pl.String).str.replace(_VIRTUAL_HOST, "$1"))
        for name in (name for name in known if name.startswith("rtt")):
            # Where it is not known, some write 0.
            is_known = present(pl.col(name)).cast(pl.Float64, strict=False).ne_missing(0.0)
            cannot = present(pl.col(name)).is_not_null() & is_known & _number(name).is_null()
            problems.add("an RTT that cannot be", frame.filter(cannot)["line"])
        made = frame.select(
            "line",
            _client(known).alias("address"),
            _connection(known).alias("connection"),
            (pl.col("at") if "at" in known else pl.lit(None)).cast(pl.String).alias("at"),
            _seconds("bytes", ("bytes", "kib"), known),
            _seconds("time_s", [name for name in NUMBERS if name.startswith("time")], known),
            _seconds("rtt_s", [name for name in NUMBERS if name.startswith("rtt")], known),
            _seconds("tls_s", ["tls_ms"], known),
        )
        useful = pl.col("bytes").is_not_null() | pl.col("rtt_s").is_not_null()
        problems.add("without a size" + (" or an RTT" if has_rtt else ""), made.filter(~useful)["line"])
        named = pl.when(pl.col("connection").is_not_null()).then(pl.col("connection").hash())
        made = sample.chosen(made.filter(useful).with_columns(named.alias("connection")))
        places = subnets.numbers(made["address"]).alias("subnet"), _moments(made["at"]).alias("start_s")
        sample.add(made.with_columns(*places).drop("line", "address", "at"))
        room.keep_only(*sample.held)
    rows = sample.rows
    if rows is None:
        return Parts()
    return replace(_parts(path, rows, form, sample), networks=subnets.networks())


def _parts(path: Path, sampled: pl.DataFrame, form: Format, sample: RowSample) -> Parts:
    if form.whole:
        sampled = sampled.with_columns(connection=pl.int_range(pl.len(), dtype=pl.UInt64))
    apart = sampled["connection"].null_count()
    rows = sampled.with_columns(client=_clients(sampled))
    connections = rows.group_by("client").agg(pl.col("rtt_s").min(), pl.col("subnet").first()).sort("client")
    handshakes = rows.group_by("client").agg(pl.col("tls_s").max().alias("time_s")).sort("client")
    handshakes = handshakes.filter(pl.col("time_s") > 0)
    sized = rows.filter(pl.col("bytes").is_not_null()).sort("client", maintain_order=True)
    sized = sized.with_columns(object=pl.int_range(pl.len()).over("client"))
    rate = mean_rate(pl.col("bytes") - _HELD_AT_MOST_BYTES, pl.col("time_s"))
    long = (pl.col("bytes") > HELD_BYTES) & (pl.col("object") == 0)
    bounds = (
        sized.with_columns(
            pl.when(pl.col("bytes") > _HELD_AT_MOST_BYTES).then(rate).alias("min_down_bps"),
            pl.when(long).then("time_s").alias("min_completion_time_s"),
        )
        .group_by("client")
        .agg(pl.col("min_down_bps").max(), pl.col("min_completion_time_s").max())
    )
    content = "sizes" if sized.height else "RTTs"
    content += " and times" if rows["time_s"].count() else ""
    if form.whole:
        known = "each line is a connection"
    elif apart == rows.height:
        known = (
            "lines of kept connections cannot be distinguished: each line counts as the first response of a connection"
        )
    else:
        known = "the client's port or a number identifies the connection of a line"
        known += f", but of {counted(apart, 'line')}" if apart else ""
    notes = [f"it has {content}; {known}"]
    if sample.note:
        notes.append(sample.note)
    if rows["rtt_s"].null_count() == rows.height:
        names = ColumnFile(path).names if form.shape == "json" else []
        meant = [one for one in suggestions(names).split("; ") if " as rtt_" in one]
        notes.append("; ".join(("no RTT in it", *meant, f"to log it: {form.add}")))
    responses, began_s = sized.select("client", pl.col("object").cast(pl.UInt32), pl.col("bytes").cast(pl.Int64)), None
    if form.whole or apart == rows.height:
        # Which response of its connection a line is, is not known, or it is all of them.
        responses = responses.drop("object")
    if sized["start_s"].count():
        responses, began_s = since_first(responses.with_columns(sized["start_s"]))
    lines_apart = apart == rows.height and sized.height > 0
    return Parts(
        responses,
        connections,
        began_s,
        notes=tuple(notes),
        bounds=bounds,
        handshakes=handshakes,
        lines_apart=lines_apart,
    )


def _clients(rows: pl.DataFrame) -> pl.Series:
    """The number of each line's connection, from 0 in order of appearance."""
    if rows["connection"].null_count() == rows.height:
        return pl.Series(range(rows.height), dtype=pl.UInt32)
    ordered = rows.select("connection", "start_s").with_row_index("order").sort("connection", "order")
    other = pl.col("connection").ne_missing(pl.col("connection").shift()) | pl.col("connection").is_null()
    other |= ((pl.col("start_s") - pl.col("start_s").shift()).abs() > _KEPT_S).fill_null(False)
    group = ordered.select(other.fill_null(True).cum_sum()).to_series()
    return in_order(group, ordered["order"]).cast(pl.UInt32)


def _client(known: Sequence[str]) -> pl.Expr:
    """The address of the client: where a proxy passes it on, the one that it names first."""
    texts = [pl.col(name).str.extract(_CLIENT, 1) for name in ("address", "forwarded") if name in known]
    return pl.coalesce(*texts, pl.lit(None, dtype=pl.String))


def _connection(known: Sequence[str]) -> pl.Expr:
    """What is the same for all lines of a connection alone; null where a line has nothing of the kind."""
    texts = []
    address = pl.col("address") if "address" in known else pl.lit("")
    if "connection" in known:
        number, of = pl.col("connection").cast(pl.String), address.fill_null("")
        # In a HAR, which has no addresses of clients, it may be the server's port.
        number = pl.when((of != "") | ~number.is_in(["80", "443", "8080", "8443"])).then(number)
        texts.append(pl.format("{} {}", of, number))
    if "port" in known:
        texts.append(pl.format("{} {}", address, pl.col("port").cast(pl.String)))
    if "address" in known:
        texts.append(address.str.extract(_CLIENT_PORT, 1))
    return pl.coalesce(*texts, pl.lit(None, dtype=pl.String))


def _moments(text: pl.Series) -> pl.Series:
    """Unix times, of the common log's words, of RFC 3339, HAProxy's and uWSGI's (taken as UTC) or as a number of
    seconds, milliseconds, microseconds or nanoseconds; null for others. Most logs write the second in which the program
    was done with the response, so they are late by its time.
    """
    text = text.str.strip_chars("[]")
    zoned = ("%d/%b/%Y:%H:%M:%S%.f %z", "%Y-%m-%dT%H:%M:%S%.f%#z")
    moments = [text.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False) for form in zoned]
    for form in ("%d/%b/%Y:%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%a %b %e %H:%M:%S %Y"):
        moments.append(text.str.to_datetime(form, time_unit="us", strict=False).dt.replace_time_zone("UTC"))
    number = text.cast(pl.Float64, strict=False)
    units = [
        pl.when(number.is_between(least, 1e3 * least, closed="left")).then(number / unit)
        for least, unit in ((1e11, 1e3), (1e14, 1e6), (1e17, 1e9))
    ]
    since_1970 = pl.coalesce(pl.when(number < 1e11).then(number), *units)
    return pl.select(pl.coalesce(*(moment.dt.epoch("us") / 1e6 for moment in moments), since_1970)).to_series()


def _seconds(column: str, names: Iterable[str], known: Sequence[str]) -> pl.Expr:
    """A number in its own unit, from the first of the words that a line has."""
    times = [_number(name) for name in names if name in known]
    return pl.coalesce(*times, pl.lit(None, dtype=pl.Float64)).alias(column)


def _number(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64, strict=False)
    # tcplife writes 0 for sizes below 1 KiB, and no round trip is 0.
    least, most = (1.0 if name == "kib" else 0.0), 1e15
    if name.startswith("rtt"):
        least, most = 1e-9, PATH["rtt"].below / NUMBERS[name]
    return pl.when(value.is_between(least, most)).then(value * NUMBERS[name])


def _rows(path: Path, problems: Problems, form: Format, wrappers: Sequence[Wrapper]) -> Iterator[pl.DataFrame]:
    """Lines as text columns with the format's words, and `line`; lines of another format are reported."""
    names: list[str] = []
    columns = {"line": pl.Int64} | dict.fromkeys((*NUMBERS, *TEXTS), pl.String)
    words = formats.JsonWords(form)
    for first, lines in pieces(path, problems):
        frame = pl.DataFrame({"line": pl.int_range(first, first + lines.len(), eager=True), "text": lines})
        frame = frame.with_columns(peeled(frame["text"], wrappers).alias("text")).filter(pl.col("text") != "")
        not_tcp = frame["text"].str.contains(_NOT_TCP)
        problems.add("not over TCP", frame.filter(not_tcp)["line"])
        frame = frame.filter(~not_tcp)
        if form.shape == "line":
            groups = frame["text"].str.extract_groups(form.pattern).struct.unnest()
            # A line that fits has this group, be it empty.
            fits = groups.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
            problems.add("not of the log format", frame.filter(~fits)["line"])
            yield pl.concat([frame.select("line"), groups], how="horizontal").filter(fits)
            continue
        if form.shape == "json":
            objects = [formats.json_object(text) for text in frame["text"]]
            none = pl.Series([row is None for row in objects], dtype=pl.Boolean)
            problems.add("not a JSON object", frame.filter(none)["line"])
            kept = [{"line": line} | words(row) for line, row in zip(frame["line"], objects, strict=True) if row]
            yield pl.DataFrame(kept, schema=columns)
            continue
        # The fields may change in the middle, as when the server was set up anew.
        heads = frame.filter(pl.col("text").str.contains(formats.HEAD)).with_row_index("part")
        parts = frame.join_asof(heads.select("part", "line"), on="line", strategy="backward")
        for (part,), of_part in parts.group_by("part", maintain_order=True):
            if part is not None:
                names = re.split(r"[\t ]+", heads["text"][part].strip())[1:]
            yield _fields(of_part.filter(~pl.col("text").str.starts_with("#")), names, problems, form)


def _fields(frame: pl.DataFrame, names: list[str], problems: Problems, form: Format) -> pl.DataFrame:
    """Lines whose fields have these names, in the words of the format."""
    # Fields with spaces are in quotes (draft WD-logfile-960323); CloudFront and WebLogic have tabs between fields.
    text = pl.col("text")
    spaced = text.str.extract_all(r'"[^"]*"|[^ ]+')
    split = pl.when(text.str.contains("\t")).then(text.str.split("\t")).otherwise(spaced)
    whole = frame.with_columns(split).filter(pl.col("text").list.len() == len(names))
    problems.add(f"not {len(names)} fields, as #Fields says", frame.join(whole, on="line", how="anti")["line"])
    used = {word: names.index(name) for name, word in form.names.items() if name in names}
    if "bytes" not in used:
        problems.add("#Fields lacks sc-bytes, the size of a response; log it", whole["line"])
        return pl.DataFrame(schema={"line": pl.Int64})
    words = whole.select("line", *(text.list.get(at).str.strip_chars('"').alias(word) for word, at in used.items()))
    if "time_ms" in used:
        # A fraction is one of a second (draft WD-logfile-960323): IIS has whole milliseconds.
        in_seconds = pl.col("time_ms").str.contains(".", literal=True)
        either = pl.when(in_seconds).then("time_ms"), pl.when(~in_seconds).then("time_ms")
        words = words.with_columns(time_s=either[0], time_ms=either[1])
    if {"date", "time"} <= used.keys():
        words = words.with_columns(at=pl.format("{}T{}Z", "date", "time"))
    return words
