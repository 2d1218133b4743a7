"""nginx's `log_format`: which variables stand where in a line, as a regular expression that takes a line apart."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firstflight.errors import RequestError

# The one to configure: every line names each number, so the format is recognized without an option.
LOG_FORMAT = (
    "msec=$msec remote_addr=$remote_addr connection=$connection connection_requests=$connection_requests "
    "connection_time=$connection_time request_time=$request_time request_completion=$request_completion "
    "status=$status server_protocol=$server_protocol request_length=$request_length bytes_sent=$bytes_sent "
    "body_bytes_sent=$body_bytes_sent tcpinfo_rtt=$tcpinfo_rtt tcpinfo_rttvar=$tcpinfo_rttvar "
    "tcpinfo_snd_cwnd=$tcpinfo_snd_cwnd tcpinfo_rcv_space=$tcpinfo_rcv_space"
)

# Those that the importer uses, each a number.
NUMBERS = (
    "msec",
    "connection",
    "connection_requests",
    "connection_time",
    "request_time",
    "bytes_sent",
    "body_bytes_sent",
    "tcpinfo_rtt",
    "tcpinfo_rttvar",
    "tcpinfo_snd_cwnd",
    "tcpinfo_rcv_space",
)
TEXTS = ("remote_addr", "request_completion", "ssl_protocol", "ssl_session_reused", "ssl_curve")
# To append, behind a space, for connections over TLS.
TLS_FORMAT = "ssl_protocol=$ssl_protocol ssl_session_reused=$ssl_session_reused ssl_curve=$ssl_curve"

_DIRECTIVE = re.compile(r"^\s*log_format\s+\S+\s+(?:escape=\w+\s+)?(?P<rest>.*?);?\s*$", re.DOTALL)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class NginxFormat:
    """A log format. `pattern`: of a whole line, a named group for each of its variables that is used; `variables`:
    the names of these; `ignored`: of those that are not.
    """

    pattern: str
    variables: tuple[str, ...]
    ignored: tuple[str, ...]


def parse(text: str) -> NginxFormat:
    """The format of a `log_format` directive as it stands in nginx.conf, or of its string alone.

    RequestError for two variables that nothing separates.
    """
    pieces = parts(text)
    groups = {name: f"(?P<{name}>{'-|[0-9.]*' if name in NUMBERS else '.*?'})" for name in (*NUMBERS, *TEXTS)}
    names = dict.fromkeys(name for _, name in pieces if name)
    used = tuple(name for name in names if name in groups)
    return NginxFormat(line_pattern(pieces, groups, "$"), used, tuple(name for name in names if name not in groups))


def line_pattern(pieces: Sequence[tuple[str, str]], groups: Mapping[str, str], sign: str) -> str:
    """The regular expression of a line of these texts and variables, in turns. `groups`: by variable, what stands for
    the first of this name; `sign`: the character before the name of each in the format. RequestError for two variables
    that nothing separates.
    """
    left, pattern = dict(groups), ""
    for at, (between, name) in enumerate(pieces):
        if at and name and not between:
            raise RequestError(
                f"the log format has nothing before {sign}{name}, so a line cannot be split; put a space there"
            )
        pattern += re.escape(between) + (left.pop(name, ".*?") if name else "")
    return f"^{pattern}$"


def to_configure() -> NginxFormat:
    """`LOG_FORMAT`, with or without `TLS_FORMAT` behind it."""
    plain, secure = parse(LOG_FORMAT), parse(TLS_FORMAT)
    pattern = f"{plain.pattern[:-1]}(?: {secure.pattern[1:-1]})?$"
    return NginxFormat(pattern, plain.variables + secure.variables, plain.ignored)


def parts(text: str) -> list[tuple[str, str]]:
    """The text before each variable, and its name; the last one empty."""
    written = _string(text)
    pairs, at = [], 0
    for variable in _VARIABLE.finditer(written):
        pairs.append((written[at : variable.start()], variable[1] or variable[2]))
        at = variable.end()
    return [*pairs, (written[at:], "")]


def _string(text: str) -> str:
    """The directive as nginx reads it: its quoted strings joined."""
    directive = _DIRECTIVE.match(text)
    rest = (directive["rest"] if directive else text).strip()
    pieces = list(_QUOTED.finditer(rest))
    if not pieces or _QUOTED.sub("", rest).strip():
        # Not only quoted strings: it is the string itself.
        return rest
    return "".join(re.sub(r"\\(.)", r"\1", piece[1] if piece[1] is not None else piece[2]) for piece in pieces)
