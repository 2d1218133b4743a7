"""Reading a file of any kind: its kind, and its tables."""

import os
from collections.abc import Callable
from pathlib import Path

from firstflight.errors import RequestError
from firstflight.input_files import check_is_file
from firstflight.observe import access_log, capture, ndt7, nginx, plain, ss, tables
from firstflight.observe.columns import ColumnFile
from firstflight.observe.lines import begins, is_packed
from firstflight.observe.observation import Observation, Source
from firstflight.observe.problem import Problems
from firstflight.observe.tables import MSS_BYTES, Parts

# Name of a kind, and its description.
KINDS = {
    "nginx": "access log of nginx with $tcpinfo_* variables",
    "ss": "output of ss -tinH, one snapshot or many",
    "capture": "pcap or pcapng capture",
    "ndt7": "M-Lab NDT7 rows, CSV or Parquet",
    "log": "access log: common, combined, HAProxy, Envoy, W3C (IIS, CloudFront), JSON lines, tcplife",
    "table": "CSV or Parquet with named columns",
}


def read(
    path: str | os.PathLike[str], kind: str | None = None, *, log_format: str | None = None, mss_bytes: int = MSS_BYTES
) -> Observation:
    """The traffic in a file, as records.

    `kind`: one of `KINDS`; by default recognized by the content. `log_format`: of an nginx log that is not of the
    format in docs/observe.md, as it stands in nginx.conf. `mss_bytes`: payload of a full segment, where a format
    counts segments and does not say how large they are.

    RequestError, one sentence, for a file that is not there, is of no kind known, or in which nothing can be read;
    damage to a part is reported in `problems`.
    """
    path = Path(path)
    if kind is not None and kind not in KINDS:
        raise RequestError(f'there is no kind of file "{kind}"; the kinds are {", ".join(KINDS)}')
    if log_format is not None and kind not in (None, "nginx"):
        raise RequestError(f'a log format is for the kind "nginx", not for "{kind}"; leave one of the two out')
    beginning = _beginning(path)
    kind = kind or ("nginx" if log_format is not None else _kind(path, beginning))
    problems = Problems()
    if kind == "capture" and is_packed(path):
        raise RequestError(f"{path} is packed by gzip, and captures are read as they are; unpack it first (gunzip)")
    form = access_log.recognised(_lines(beginning)) if kind == "log" else None
    parts = _importer(kind, log_format, mss_bytes, form)(path, problems)
    found = problems.found()
    if parts.connections.is_empty():
        reason = "".join(f": {said}" for said in (*found, *parts.notes)[:1])
        raise RequestError(f"{path} holds no connection that can be read as {KINDS[kind]}{reason}")
    source = Source(path, kind, parts.began_s, parts.ignored, parts.notes, parts.networks)
    return Observation(
        tables.transfers(parts.responses),
        tables.users(parts.connections),
        tables.bounds(parts.bounds),
        tables.handshakes(parts.handshakes),
        found,
        source,
    )


def _importer(
    kind: str, log_format: str | None, mss_bytes: int, form: access_log.Format | None
) -> Callable[[Path, Problems], Parts]:
    importers: dict[str, Callable[[Path, Problems], Parts]] = {
        "nginx": lambda path, problems: nginx.read(path, problems, log_format, mss_bytes),
        "ss": ss.read,
        "capture": capture.read,
        "ndt7": ndt7.read,
        "log": lambda path, problems: access_log.read(path, problems, form),
        "table": plain.read,
    }
    return importers[kind]


def _beginning(path: Path) -> bytes:
    try:
        check_is_file(path)
        beginning = begins(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror or error}") from None
    if not beginning:
        raise RequestError(f"{path} is empty; there is nothing to read")
    return beginning


def _lines(beginning: bytes) -> list[str]:
    return beginning.decode("utf-8", errors="replace").splitlines()


def _kind(path: Path, beginning: bytes) -> str:
    """The kind of the file, by its content."""
    if capture.recognises(beginning):
        return "capture"
    lines = _lines(beginning)
    # The first line of a log may be cut off, by whatever rotates it.
    if any(nginx.recognises(line) for line in lines[:20]):
        return "nginx"
    if ss.recognises(lines[:200]):
        return "ss"
    if (wrong := ss.lacks(lines[:200])) is not None:
        raise RequestError(f"{path} {wrong}")
    if access_log.recognised(lines[:20]) is not None:
        return "log"
    if b"\0" not in beginning[:256] or beginning.startswith(b"PAR1"):
        names = ColumnFile(path).names
        if ndt7.recognises(names):
            return "ndt7"
        # Its own message reports an error in its names.
        if plain.recognises(names) or plain.suggestions(names):
            return "table"
    kinds = "; ".join(f"{name}: {what}" for name, what in KINDS.items())
    raise RequestError(
        f"{path} is of no kind that is recognized; say which with --kind ({kinds}), and for an nginx log of another "
        "format --log-format"
    )
