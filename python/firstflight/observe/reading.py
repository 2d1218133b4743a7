"""Reading a file of any kind: its kind and format, and its tables."""

import os
from dataclasses import dataclass
from pathlib import Path

from firstflight.errors import RequestError
from firstflight.input_files import check_is_file, or_packaged
from firstflight.observe import (
    access_log,
    capture,
    formats,
    given_format,
    ndt7,
    nginx,
    nginx_format,
    plain,
    ss,
    tables,
    wrappers,
)
from firstflight.observe.columns import PARQUET, ColumnFile
from firstflight.observe.lines import begins, packed_by, pieces
from firstflight.observe.observation import Observation, TrafficSource
from firstflight.observe.problem import Problems
from firstflight.observe.tables import MSS_BYTES, Parts
from firstflight.observe.wrappers import Wrapper
from firstflight.scenario.cell import whole

# Name of a kind, and its description.
KINDS = {
    "nginx": "access log of nginx with $tcpinfo_* variables",
    "ss": "output of ss -tinH, one snapshot or many",
    "capture": "pcap or pcapng capture",
    "ndt7": "M-Lab NDT7 rows: CSV, JSON lines or Parquet",
    "log": "access log of a web server, a proxy or a CDN, or JSON lines",
    "table": "CSV, JSON lines or Parquet with named columns",
}
# What every refusal ends with: this is always read.
WAY_OUT = (
    'Any log can be written as JSON lines, such as {"bytes": 48000, "client_ip": "192.0.2.7", "rtt_ms": 38, "time": '
    '"2026-05-01T10:00:00Z"}, or as CSV whose first line names the columns, such as bytes,rtt_ms,remote_addr; only '
    "bytes is required (docs/observe.md#tables)"
)


@dataclass(frozen=True)
class _FileKind:
    """The kind of a file; of a log, its format and the wrappers around its lines."""

    kind: str
    form: formats.Format | nginx_format.NginxFormat | None = None
    around: tuple[Wrapper, ...] = ()

    @property
    def title(self) -> str:
        title = self.form.title if isinstance(self.form, formats.Format) else KINDS[self.kind]
        return "".join((title, *(f", in {wrapper.title}" for wrapper in reversed(self.around))))


def read(
    path: str | os.PathLike[str], kind: str | None = None, *, log_format: str | None = None, mss_bytes: int = MSS_BYTES
) -> Observation:
    """The traffic in a file, as records.

    `kind`: one of `KINDS`; by default detected from the content. `log_format`: the format of a log as in nginx.conf
    (`log_format`) or httpd.conf (`LogFormat`), or the fields of JSON lines ("bytes=response.size time_ms=took").
    `mss_bytes`: payload of a full segment, for formats that count segments without their size.

    RequestError for a file that does not exist, has an unknown format or nothing readable, with a remedy in its last
    sentence. Damaged parts are in `problems`.
    """
    path = or_packaged(path)
    if kind is not None and kind not in KINDS:
        raise RequestError(f'there is no kind of file "{kind}"; the kinds are {", ".join(KINDS)}')
    if log_format is not None and kind not in (None, "nginx", "log"):
        raise RequestError(
            f'a log format is for the kinds "nginx" and "log", not for "{kind}"; leave one of the two out'
        )
    if (mss := whole(mss_bytes, 1, 65495)) is None:
        raise RequestError(f"mss_bytes is {mss_bytes!r}; write a whole number from 1 to 65495")
    form = None if log_format is None else given_format.parse(log_format)
    beginning = _beginning(path)
    try:
        return _read(path, kind, form, beginning, mss)
    except RequestError as error:
        if kind == "capture" or capture.recognizes(beginning):
            raise
        raise RequestError(f"{error}. {WAY_OUT}") from None


def _read(
    path: Path,
    kind: str | None,
    form: formats.Format | nginx_format.NginxFormat | None,
    beginning: bytes,
    mss_bytes: int,
) -> Observation:
    if form is not None:
        file = _given(path, form)
    elif kind in ("log", "nginx"):
        file = next((entry for entry in _logs(_lines(path)) if entry.kind == kind), _FileKind(kind))
    else:
        file = _FileKind(kind) if kind else _recognized(path, beginning)
    problems = Problems()
    if file.kind == "capture" and (packer := packed_by(path)):
        unpack = {"gzip": "gunzip", "bzip2": "bunzip2", "xz": "unxz"}[packer]
        raise RequestError(
            f"{path} is packed by {packer}, and captures are read as they are; unpack it first ({unpack})"
        )
    parts = _parts(path, file, mss_bytes, problems)
    problems_found = problems.found()
    if parts.connections.is_empty():
        reason = "".join(f": {said}" for said in (*problems_found, *parts.notes)[:1])
        raise RequestError(f"{path} holds no connection that can be read as {file.title}{reason}")
    source = TrafficSource(
        path, file.kind, parts.began_s, parts.ignored, parts.notes, file.title, parts.lines_apart, parts.networks
    )
    return Observation(
        tables.transfers(parts.responses),
        tables.users(parts.connections),
        tables.bounds(parts.bounds),
        tables.handshakes(parts.handshakes),
        problems_found,
        source,
    )


def _parts(path: Path, file: _FileKind, mss_bytes: int, problems: Problems) -> Parts:
    form = file.form
    match file.kind:
        case "nginx":
            given = None if isinstance(form, formats.Format) else form
            return nginx.read(path, problems, given, mss_bytes, file.around)
        case "log":
            return access_log.read(path, problems, form if isinstance(form, formats.Format) else None, file.around)
        case "ss":
            return ss.read(path, problems)
        case "capture":
            return capture.read(path, problems)
        case "ndt7":
            return ndt7.read(path, problems)
        case _:
            return plain.read(path, problems)


def _beginning(path: Path) -> bytes:
    try:
        check_is_file(path)
        beginning = begins(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror or error}") from None
    if not beginning:
        raise RequestError(f"{path} is empty; there is nothing to read")
    return beginning


def _lines(path: Path) -> list[str]:
    """The first lines. The very first one may be cut off, by whatever rotates a log, and so is the last one here."""
    _, first = next(pieces(path, Problems(), 1 << 16), (1, []))
    return [line for line in first if line][:200]


def _given(path: Path, form: formats.Format | nginx_format.NginxFormat) -> _FileKind:
    """A format that was given, and the wrappers around its lines."""
    kind = "log" if isinstance(form, formats.Format) else "nginx"
    around, _ = max(wrappers.layers(_lines(path)), key=lambda layer: formats.share(form, layer[1]))
    return _FileKind(kind, form, around)


def _logs(lines: list[str]) -> list[_FileKind]:
    """The kinds of log that these may be, by what is around their lines: those first of which most lines are."""
    logs = []
    for around, inner in wrappers.layers(lines):
        if any(nginx.recognizes(line) for line in inner):
            logs.append((2.0, _FileKind("nginx", None, around)))
        form, share = formats.recognized(inner)
        if form is not None:
            logs.append((share, _FileKind("log", form, around)))
    return [kind for _, kind in sorted(logs, key=lambda log: -log[0])]


def _recognized(path: Path, beginning: bytes) -> _FileKind:
    """The kind of the file, by its content."""
    if capture.recognizes(beginning):
        return _FileKind("capture")
    lines = [] if beginning.startswith(PARQUET) else _lines(path)
    if ss.recognizes(lines):
        return _FileKind("ss")
    if (wrong := ss.lacks(lines)) is not None:
        raise RequestError(f"{path} {wrong}")
    is_table = b"\0" not in beginning[:256] or beginning.startswith(PARQUET)
    names = ColumnFile(path).names if is_table else []
    if ndt7.recognizes(names):
        return _FileKind("ndt7")
    if logs := _logs(lines):
        is_json = isinstance(logs[0].form, formats.Format) and logs[0].form.shape == "json" and not logs[0].around
        # Of JSON lines, those with columns that only a table has.
        if not (is_json and plain.recognizes(names) and plain.has_more(names)):
            return logs[0]
    # Its own message reports an error in its names.
    if plain.recognizes(names) or plain.suggestions(names):
        return _FileKind("table")
    kinds = "; ".join(f"{name}: {what}" for name, what in KINDS.items())
    raise RequestError(
        f"{path} is of no kind that is recognized; say which with --kind ({kinds}), or for a log of another format "
        "--format, with nginx's log_format, Apache's LogFormat or the fields of JSON lines"
    )
