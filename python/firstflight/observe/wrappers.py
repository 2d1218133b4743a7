"""What programs put around each line of a log: syslog, the journal, containers, collectors. It is peeled off before a
line is read. A new wrapper is one row here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from firstflight.observe.formats import json_object

_MOST = 4
"""Wrappers around each other: a line of syslog that a container's log has, from a collector."""


@dataclass(frozen=True)
class Wrapper:
    """`pattern`: of a whole line, whose group is the line inside, or `fields`: names of JSON fields of which one is the
    line, those of objects in it after a point. `others_pass`: lines that are not wrapped belong to the wrapper.
    """

    title: str
    pattern: str = ""
    fields: tuple[str, ...] = ()
    others_pass: bool = False


_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
# Times of RFC 3164 and of journalctl -o short, short-iso, short-full, short-unix, short-monotonic and short-delta.
_TIMES = "|".join(
    (
        r"[A-Z][a-z]{2} [ \d]\d(?: \d{4})? \d\d:\d\d:\d\d(?:\.\d+)?",
        rf"(?:[A-Z][a-z]{{2}} )?{_TIME}(?: [A-Z]{{3,4}})?",
        r"\d{9,11}\.\d+",
        r"\[ *\d+\.\d+(?: <[^>]*>)?\]",
    )
)
_COLOR = r"\x1b\[[\d;]*[mK]"
_PRIORITY = r"(?:\d+ )?<\d{1,3}>"
WRAPPERS = (
    Wrapper("RFC 5424 syslog", rf"^{_PRIORITY}1 \S+ \S+ \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\\]|\\.)*\])+) ?\x{{FEFF}}?(.*)$"),
    Wrapper("syslog or journalctl", rf"^(?:{_PRIORITY})?(?:(?:{_TIMES}) )?(?:\S+ )?[\w./@()-]+(?:\[\d+\])?: (.*)$"),
    Wrapper("journalctl -o export or verbose", r"^ *MESSAGE=(.*)$", others_pass=True),
    Wrapper("CRI container log", rf"^{_TIME} std(?:out|err) [FP] (.*)$"),
    Wrapper("docker compose logs", rf"^(?: |{_COLOR})*[\w.@-]+ +\|(?: |{_COLOR})*(.*?)(?:{_COLOR})*$"),
    Wrapper("kubectl logs --prefix", r"^\[pod/[^\]]+\] (.*)$"),
    # logcli writes the labels after the time.
    Wrapper("log with a time before each line", rf"^{_TIME} (?:\{{\w+=\"[^}}]*\}} )?(.*)$"),
    # Of zap's console, as Caddy's, and of syslog without a tag.
    Wrapper("words before each JSON object", r"^[^{}]*\s(\{.*\})$"),
    Wrapper(
        "JSON around each line",
        fields=(
            "log",
            "message",
            "MESSAGE",
            "textPayload",
            "line",
            "msg",
            "_raw",
            "result._raw",
            "event.original",
            "event",
            "body",
            "content.message",
            "jsonPayload.message",
            "short_message",
            "@message",
            "LogMessage",
            "LogEntry",
            "MSG",
        ),
    ),
)


def around(lines: Sequence[str]) -> Wrapper | None:
    """The wrapper of most of these lines; None for none."""
    for wrapper in WRAPPERS:
        if wrapper.fields:
            wrapped = [_field(line, wrapper.fields) is not None for line in lines]
        else:
            wrapped = pl.Series(lines, dtype=pl.String).str.contains(wrapper.pattern).to_list()
        if any(wrapped) if wrapper.others_pass else 2 * sum(wrapped) > len(wrapped):
            return wrapper
    return None


def layers(lines: Sequence[str]) -> Iterator[tuple[tuple[Wrapper, ...], list[str]]]:
    """The wrappers around these lines, the outer ones first, and the lines within: none of them, one more each time."""
    wrappers: tuple[Wrapper, ...] = ()
    yield wrappers, list(lines)
    while len(wrappers) < _MOST and (wrapper := around(lines)) is not None:
        wrappers = (*wrappers, wrapper)
        lines = [line for line in peeled(pl.Series(lines, dtype=pl.String), (wrapper,)) if line]
        yield wrappers, lines


def peeled(lines: pl.Series, wrappers: Sequence[Wrapper]) -> pl.Series:
    """The lines within; a line that is not wrapped as the others is left as it is."""
    for wrapper in wrappers:
        if wrapper.fields:
            inner = pl.Series([_field(line, wrapper.fields) for line in lines], dtype=pl.String)
        else:
            inner = lines.str.extract(wrapper.pattern, 1)
        lines = pl.select(pl.coalesce(inner, pl.lit("") if wrapper.others_pass else lines)).to_series()
    return lines


def _field(line: str, names: Sequence[str]) -> str | None:
    whole = json_object(line)
    for name in names:
        value: object = whole
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value.rstrip("\r\n")
    return None
