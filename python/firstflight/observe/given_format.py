"""A log format that the user gives: nginx's log_format, Apache's LogFormat, or the fields of JSON lines."""

import re

from firstflight.errors import RequestError
from firstflight.observe import nginx_format
from firstflight.observe.formats import CAPTURE, NGINX, NUMBERS, TEXTS, Format

_NUMBER = r"-|[0-9.]*"
# Variables and directives, and the word for each; of several for a word, the first of these.
_NGINX = {
    "bytes_sent": "bytes",
    "body_bytes_sent": "bytes",
    "remote_addr": "address",
    "realip_remote_addr": "address",
    "proxy_protocol_addr": "address",
    "http_x_forwarded_for": "address",
    "remote_port": "port",
    "connection": "connection",
    "msec": "at",
    "time_iso8601": "at",
    "time_local": "at",
    "request_time": "time_s",
    "session_time": "time_s",
    "tcpinfo_rtt": "rtt_us",
}
_APACHE = {
    "O": "bytes",
    "B": "bytes",
    "b": "bytes",
    "{c}a": "address",
    "a": "address",
    "h": "address",
    "{x-forwarded-for}i": "address",
    "{remote}p": "port",
    "{usec}t": "at",
    "{msec}t": "at",
    "{sec}t": "at",
    "t": "at",
    "D": "time_us",
    "{us}T": "time_us",
    "{ms}T": "time_ms",
    "{s}T": "time_s",
    "T": "time_s",
}
_DIRECTIVE = re.compile(r"%(?:[!<>,\d]*)(\{[^}]*\})?(\^?[a-zA-Z%]\w?(?<=\^..)|[a-zA-Z%])")
_LOG_FORMAT = re.compile(r"^\s*(?:LogFormat|CustomLog\s+\S+)\s+", re.IGNORECASE)
_PATHS = re.compile(r"^\s*\w+\s*=\s*[^\s,=$%\"']+(?:[\s,]+\w+\s*=\s*[^\s,=$%\"']+)*\s*$")


def parse(text: str) -> Format | nginx_format.NginxFormat:
    """The format; nginx's own kind if it has an RTT and a size, which `nginx` reads with more of the kernel's data.

    RequestError for a format that cannot be taken apart, or has neither a size nor an RTT.
    """
    if _PATHS.match(text):
        return _json(text)
    if _LOG_FORMAT.match(text) or ("$" not in text and "%" in text):
        return _lines("Apache log of the format given", "Apache logs no RTT; " + CAPTURE, _apache(text), _APACHE)
    form = nginx_format.parse(text)
    if "tcpinfo_rtt" in form.variables and {"bytes_sent", "body_bytes_sent"} & set(form.variables):
        return form
    return _lines("nginx log of the format given", NGINX, nginx_format.parts(text), _NGINX)


def _lines(title: str, add: str, parts: list[tuple[str, str]], words: dict[str, str]) -> Format:
    """A format of lines from its text and its variables, in turns."""
    best: dict[str, str] = {}
    for name, word in words.items():
        if word not in best and any(name == variable for _, variable in parts):
            best[word] = name
    groups = {}
    for word, name in best.items():
        group = f"(?P<{word}>{_NUMBER if word in NUMBERS else '.*?'})"
        groups[name] = rf"\[?{group}\]?" if name == "t" else group
    _check(set(best))
    return Format(title, add, nginx_format.line_pattern(parts, groups, "%"))


def _apache(text: str) -> list[tuple[str, str]]:
    """The text before each directive, and the directive; the last one empty."""
    written = _LOG_FORMAT.sub("", text).strip()
    if written[:1] in ("'", '"') and (quoted := re.match(r"(['\"])((?:\\.|(?!\1).)*)\1", written)):
        written = quoted[2]
    written = re.sub(r"\\(.)", lambda match: {"t": "\t", "n": "\n"}.get(match[1], match[1]), written)
    parts, before, at = [], "", 0
    for match in _DIRECTIVE.finditer(written):
        before += written[at : match.start()]
        at = match.end()
        if match[2] == "%":
            before += "%"
            continue
        parts.append((before, (match[1] or "").lower() + match[2]))
        before = ""
    return [*parts, (before + written[at:], "")]


def _json(text: str) -> Format:
    known = (*NUMBERS, *TEXTS)
    names = {}
    for pair in re.split(r"[\s,]+(?=\w+\s*=)", text.strip()):
        word, _, path = pair.partition("=")
        word = word.strip()
        if word not in known:
            raise RequestError(f'--format: there is no quantity "{word}"; the quantities are {", ".join(known)}')
        parts = path.strip().removeprefix("$").strip(".").lower().split(".")
        names[".".join(re.sub(r"[^a-z0-9]", "", part) for part in parts)] = word
    _check(set(names.values()))
    return Format("JSON lines with the fields given", CAPTURE, names=names, sure=(*names,), shape="json", exact=True)


def _check(words: set[str]) -> None:
    if not any(word in ("bytes", "kib") or word.startswith("rtt") for word in words):
        raise RequestError(
            "the log format has neither the size of a response ($bytes_sent, %O or bytes=...) nor an RTT ($tcpinfo_rtt "
            "or rtt_us=...), so a line says nothing of the network; log one of them"
        )
