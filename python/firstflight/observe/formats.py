"""The formats of access logs that are known, one a row, and the words for what a line has.

The words: `bytes` and `kib` (of the response), `address` of the client, its `port`, the `connection`, `at` (when it
was), `time_s`, `time_ms`, `time_us`, `time_ns` (how long the response took), `rtt_s`, `rtt_ms`, `rtt_us`, `tls_ms` (how
long the handshake of TLS took).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import polars as pl

from firstflight.observe import nginx_format

NGINX = "log_format firstflight '... tcpinfo_rtt=$tcpinfo_rtt ...' (the whole line: docs/observe.md#nginx)"
CAPTURE = "take a capture where users' connections end"
NUMBERS = {
    "bytes": 1.0,
    "kib": 1024.0,
    **{f"time_{unit}": value for unit, value in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))},
    **{f"rtt_{unit}": value for unit, value in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))},
    "tls_ms": 1e-3,
}
"""The value of one unit of each word that is a number."""
TEXTS = ("address", "port", "connection", "at")
Shape = Literal["line", "fields", "json"]


@dataclass(frozen=True)
class Format:
    """`title`; `add`: how to make it log RTTs. Of the shape "line", `pattern` has a group for each word; of "fields"
    (W3C) and "json", `names` gives the word of each field. A JSON field in an object has the names of both, with a
    point between, or of the last ones of them; without what is no letter and no digit, in small letters, the best
    first. `sure`: text of the head (fields), or names of which a line has one (json). `exact`: names are whole ones.
    `whole`: a line is a connection.
    """

    title: str
    add: str
    pattern: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    sure: tuple[str, ...] = ()
    shape: Shape = "line"
    exact: bool = False
    whole: bool = False


HEAD = r"^#[Ff]ields\b"
"""Begins the line that names the fields."""
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_IP = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]+(?:[0-9.]*))"
# Before the time of a common log: the client, what proxies say of it, a virtual host, names. Of syslog a word ends in
# a colon. LiteSpeed has the whole line in quotes.
_AHEAD = (
    r'"?(?P<address>(?:"[^"]*"|unix:|\[[0-9a-fA-F:.]+\]:\d+|[^\s\["<|]*[^\s\[":<|]) '
    r'(?:(?:[^\s\["|]*[^\s\[":|]|"[^"]*") )*)'
)
# An IPv6 address may have no brackets, so that its last part is the port.
_CLIENT_AND_PORT = r"\[?(?P<address>[0-9a-fA-F:.]+)\]?:(?P<port>\d+)"
# `bytes` has no prefix in the draft (WD-logfile-960323), whose names WebLogic has.
_FIELDS = {"bytes": "bytes", "sc-bytes": "bytes", "c-ip": "address", "c-port": "port", "date": "date", "time": "time"}


def _words(**names: str) -> dict[str, str]:
    """Names of JSON fields by word, the best first."""
    return {name: word for word, of_word in names.items() for name in of_word.split()}


_JSON = _words(
    bytes="bytessent bodybytessent respbodysize responsebodysize responsebodybytes totalbytes edgeresponsebytes "
    "downstreamcontentsize responsesize responsebytes respbytes responsebodylen scbytes sentbytes bytesout "
    "http.response.bytes http.response.body.bytes response.bytes response.size response.bodysize response.body.bytes "
    "res.bytes res.size response.contentlength res.contentlength res.headers.contentlength responselength writtenbytes "
    "destination.bytes server.bytes bytestoclient bytes size",
    address="remoteaddr clientip cliip remoteip clientaddr clientaddress callerip calleripaddress cip client.ip "
    "source.ip client.address source.address downstreamremoteaddress downstreamremoteaddresswithoutport "
    "client.addr id.origh srcip xforwardedfor ip remote",
    port="remoteport clientport clientsrcport cport client.port source.port id.origp srcport",
    time_s="requesttime timeelapseds",
    time_ms="transfertimemsec timeelapsedmsec durationms",
    rtt_s="rtts",
    rtt_us="tcpinfo.minrtt tcpiminrtt tcpinfortt tcpinfo.rtt tcpirtt sockettcpirtt "
    "clientsockettcpirtt tcprttus clientrttus rttus",
    rtt_ms="clienttcprttms rttms tcprttms",
    at="time timestamp timeiso8601 timelocal reqtimesec edgestarttimestamp ts startedat starttime timestart startutc "
    "starteddatetime msec datetime date",
    connection="connection connectionid",
    tls_ms="tlshandshaketimems tlshandshaketime tlsms",
)
_JSON_RTT = f'in nginx add "tcpinfo_rtt":"$tcpinfo_rtt"; in Fastly client.socket.tcpi_rtt as tcpi_rtt; or {NGINX}'


def _json(title: str, add: str, sure: str, **names: str) -> Format:
    """A JSON format whose own names come before the usual ones."""
    given = _words(**names)
    return Format(
        title,
        add,
        names=given | {name: _JSON[name] for name in _JSON if name not in given},
        sure=tuple(sure.split()),
        shape="json",
    )


FORMATS = (
    Format(
        "CloudFront standard log",
        "CloudFront logs no RTT that is read here; take a capture or the log of a server of your own",
        names=_FIELDS | {"time-taken": "time_s"},
        sure=("x-edge-location",),
        shape="fields",
    ),
    Format(
        "W3C extended log (IIS)",
        "IIS logs no RTT; take a capture (pktmon or tcpdump)",
        names=_FIELDS | {"time-taken": "time_ms"},
        sure=("#Fields:",),
        shape="fields",
    ),
    Format(
        "conn.log of Zeek",
        CAPTURE,
        names={"ts": "at", "id.orig_h": "address", "duration": "time_s", "resp_bytes": "bytes"},
        sure=("\tresp_bytes\t",),
        shape="fields",
        whole=True,
    ),
    _json(
        "HAR of a browser",
        CAPTURE,
        # Chrome has -1 for the sizes that it does not know, WebPagetest 0 for bodies. The size of the content is
        # unpacked: it shows the kind of file, and is no size of a response.
        "response.bodysize response.content.size",
        bytes="bytesin response.transfersize response.bodysize",
        connection="connectionid socket connection",
        unpacked="response.content.size",
        time_ms="time",
        at="starteddatetime",
    ),
    _json(
        "Traefik JSON log", CAPTURE, "downstreamcontentsize", time_ns="duration", at="startutc", address="clienthost"
    ),
    _json(
        "Caddy JSON log",
        CAPTURE,
        "request.remoteip",
        bytes="size",
        time_s="duration",
        address="request.remoteip request.clientip",
        port="request.remoteport",
    ),
    _json("Envoy or Istio JSON log", CAPTURE, "downstreamremoteaddress", time_ms="duration"),
    _json("Google Cloud load balancer log", CAPTURE, "httprequest.responsesize", time_s="httprequest.latency"),
    _json("Azure Front Door log", CAPTURE, "properties.responsebytes", time_s="properties.timetaken"),
    _json("Azure Application Gateway log", CAPTURE, "properties.sentbytes", time_s="properties.timetaken"),
    _json("Elastic Common Schema", CAPTURE, "http.response.bytes http.response.body.bytes", time_ns="event.duration"),
    _json(
        "JSON lines",
        _JSON_RTT,
        " ".join(name for name, word in _JSON.items() if word == "bytes" or word.startswith("rtt")),
    ),
    Format(
        "HAProxy HTTP log",
        'log-format \'{"client_ip":"%ci","bytes":%B,"duration_ms":%Ta,"tcpi_rtt":%[fc_rtt(us)]}\'',
        rf"{_CLIENT_AND_PORT} \[(?P<at>[^\]]+)\] \S+ \S+/\S+ -?\d+/-?\d+/-?\d+/-?\d+/\+?(?P<time_ms>\d+) "
        r"\d{3} \+?(?P<bytes>\d+) ",
    ),
    Format(
        "HAProxy TCP log",
        'log-format \'{"client_ip":"%ci","bytes":%B,"duration_ms":%Tt,"tcpi_rtt":%[fc_rtt(us)]}\'',
        rf"{_CLIENT_AND_PORT} \[(?P<at>[^\]]+)\] \S+ \S+/\S+ -?\d+/-?\d+/\+?(?P<time_ms>\d+) "
        r"\+?(?P<bytes>\d+) \S\S \d+/",
        whole=True,
    ),
    Format(
        "Envoy or Istio access log",
        CAPTURE,
        # After the flags Istio has three fields more, and after the host four, of which the last is the client.
        # Ambassador has a word before.
        rf"^(?:ACCESS )?\[(?P<at>[^\]]+)\] {_QUOTED} \d{{1,3}} \S+ (?:\S+ \S+ )?(?:{_QUOTED} )?\d+ (?P<bytes>\d+) "
        rf'(?P<time_ms>\d+) \S+ "(?P<forwarded>[^"]*)"(?: {_QUOTED}){{4}}'
        rf"(?: \S+ \S+ \S+ (?P<address>{_IP}:\d+|\[{_IP}\]:\d+))?",
    ),
    Format(
        "AWS Application or Classic Load Balancer log",
        "the load balancer logs no RTT; take a capture behind it",
        # The classic one has no protocol before the time.
        rf"^(?:(?:https?|h2|grpcs|wss?) )?(?P<at>\S+T\S+Z) \S+ {_CLIENT_AND_PORT} (?:\S+ ){{4}}(?:\d{{3}}|-) "
        rf"(?:\d{{3}}|-) \d+ (?P<bytes>\d+) {_QUOTED}",
    ),
    Format(
        "AWS Network Load Balancer log",
        "the load balancer logs no RTT; take a capture behind it",
        rf"^tls \d\.\d (?P<at>\S+) net/\S+ \S+ {_CLIENT_AND_PORT} \S+:\d+ (?P<time_ms>\d+) (?P<tls_ms>\d+|-) \d+ "
        r"(?P<bytes>\d+) ",
        whole=True,
    ),
    Format(
        "S3 server access log",
        "S3 logs no RTT; take the log of a server of your own",
        rf"^\S+ \S+ \[(?P<at>[^\]]+)\] (?P<address>\S+) \S+ \S+ \S+ \S+ (?:{_QUOTED}|-) (?:\d{{3}}|-) \S+ "
        r"(?P<bytes>\d+|-) (?:\d+|-) (?P<time_ms>\d+|-) ",
    ),
    Format(
        "Squid log",
        CAPTURE,
        r"^(?P<at>\d{9,11}\.\d+) +(?P<time_ms>\d+) (?P<address>\S+) [A-Z_]+/\d{3} (?P<bytes>\d+) \S+ ",
    ),
    Format(
        "Traefik log",
        CAPTURE,
        rf"^{_AHEAD}\[(?P<at>[^\]]+)\] {_QUOTED} (?:\d{{3}}|-) (?P<bytes>\d+|-) {_QUOTED} {_QUOTED} \d+ "
        rf"{_QUOTED} {_QUOTED} (?P<time_ms>\d+)ms$",
    ),
    Format(
        "common or combined log",
        NGINX,
        # APISIX has the host before the request, Gandi words in brackets. After it numbers of bytes, and a time: in
        # seconds with three or six decimals (nginx's ratio of compression has two), or morgan's in milliseconds.
        rf"^{_AHEAD}\[(?P<at>[^\]]+)\] (?:\([^)]*\) |[^\s\"]+ )?{_QUOTED} (?:\d{{3}}|-) (?P<bytes>\d+|-)"
        rf"(?:(?: {_QUOTED})*(?: \d+)?(?: -)? (?:rt=|request_time=)?\"?"
        r"(?:(?P<time_ms>\d+(?:\.\d+)?) ?ms|(?P<time_s>\d+\.(?:\d{3}|\d{6})))(?:[\s\"]|$))?",
    ),
    Format(
        "uWSGI log",
        CAPTURE,
        r"^\[pid: [^\]]*\] (?P<address>\S+) \([^)]*\) \{[^}]*\} \[(?P<at>[^\]]+)\] \S+ \S+ => generated "
        r"(?P<bytes>\d+) bytes in (?:(?P<time_ms>\d+) msecs|(?P<time_us>\d+) micros) ",
    ),
    Format(
        "tcplife (bcc or bpftrace)",
        "take a capture, or ss -tinH once a second (docs/observe.md#ss)",
        # LADDR LPORT RADDR RPORT TX_KB RX_KB MS, after the columns that options add; with -s commas between them.
        rf"[\s,]{_IP}(?:,|\s+)\d+(?:,|\s+)(?P<address>{_IP})(?:,|\s+)\d+(?:,|\s+)(?P<kib>\d+)"
        r"(?:,|\s+)\d+(?:,|\s+)(?P<time_ms>\d+(?:\.\d+)?)\s*$",
        whole=True,
    ),
)


def recognized(lines: Sequence[str]) -> tuple[Format | None, float]:
    """The format of which most of the first lines are, of two the first, and the share of them; None if fewer than a
    tenth are of one: programs write other lines when they start, and error logs may stand between.
    """
    shares = [share(form, lines) for form in FORMATS]
    most = max(shares)
    return (FORMATS[shares.index(most)], most) if most > 0.1 else (None, 0.0)


def share(form: Format | nginx_format.NginxFormat, lines: Sequence[str]) -> float:
    """The share of these lines that are of a format; of JSON objects all, if one has a field that is sure."""
    if isinstance(form, Format) and form.shape == "fields":
        return float(any(form.sure[0] in line for line in lines if re.match(HEAD, line)))
    full = [line for line in lines if line and not line.startswith("#")]
    if isinstance(form, Format) and form.shape == "json":
        objects = [row for line in full if (row := json_object(line)) is not None]
        always = JsonWords(replace(form, names=dict.fromkeys(form.sure, "bytes")))
        return len(objects) / len(full) if any(map(always, objects)) else 0.0
    return float(pl.Series(full, dtype=pl.String).str.contains(form.pattern).mean() or 0.0)  # type: ignore[arg-type]


def json_object(text: str) -> dict[str, object] | None:
    """The object in a line; None for another line."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# No log has objects so deep in each other.
_DEEPEST = 16


def leaves(value: object, above: str = "", *, lists: bool = False, depth: int = 0) -> Iterator[tuple[str, object]]:
    """The fields of an object that are no objects, by whole name: in objects of it with a point between; with `lists`
    also those of the last object in a list.
    """
    if lists and isinstance(value, list) and value and isinstance(value[-1], dict):
        value = value[-1]
    if isinstance(value, dict):
        for name, inner in value.items() if depth < _DEEPEST else ():
            yield from leaves(inner, f"{above}.{name}" if above else name, lists=lists, depth=depth + 1)
    elif not isinstance(value, list):
        yield above, value


# A size in these is not that of the response, and an address in the others is not the client's.
_NOT_THE_RESPONSE = {"request", "req", "clientrequest", "client", "source", "network", "upstream", "origin", "backend"}
# Of Suricata's events those of flows count; of two directions the one to the client.
_NOT_THE_RESPONSE |= {"stats", "fileinfo", "netflow", "in", "rx", "received", "inbound", "upload", "ingress", "input"}
_NOT_THE_RESPONSE |= {"c2s", "clienttoserver"}
_NOT_THE_CLIENT = {"server", "upstream", "destination", "host", "origin", "backend", "target", "observer", "proxy"}


class JsonWords:
    """The words that a JSON object has in a format, each from the best of its names; of two of one name, from the outer
    one, or the first.
    """

    def __init__(self, form: Format) -> None:
        self._exact = form.exact
        self._names = [(tuple(name.split(".")), word) for name, word in form.names.items()]
        # Fields are the same in each line, but a file may be anything.
        self._meaning = lru_cache(maxsize=1 << 12)(self._find)

    def __call__(self, row: object) -> dict[str, str]:
        """The words and their texts."""
        best: dict[str, tuple[tuple[int, int], str]] = {}
        for path, value in leaves(row):
            if value is None or value == -1 or (meaning := self._meaning(path)) is None:
                continue
            word, rank = meaning
            if word not in best or rank < best[word][0]:
                best[word] = rank, str(value)
        # Google writes "0.125s".
        return {word: text.removesuffix("s") if word == "time_s" else text for word, (_, text) in best.items()}

    def _find(self, path: str) -> tuple[str, tuple[int, int]] | None:
        """The word of a field and how good a name of it this is, 0 for the best, and how deep; None for others."""
        parts = tuple(re.sub(r"[^a-z0-9]", "", part) for part in path.lower().split("."))
        for rank, (name, word) in enumerate(self._names):
            if parts != name if self._exact else parts[-len(name) :] != name:
                continue
            others = {"bytes": _NOT_THE_RESPONSE, "address": _NOT_THE_CLIENT, "port": _NOT_THE_CLIENT}.get(word, set())
            if not self._exact and len(name) == 1 and not others.isdisjoint(parts[:-1]):
                return None
            return word, (rank, len(parts))
        return None
