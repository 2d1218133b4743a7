"""Combines several flights of one server: its window, the confidence, and the reasons for doubt."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from firstflight.counted import counted
from firstflight.probe.handshake import MSS_BYTES, Handshake
from firstflight.probe.measure import Flight, Shape
from firstflight.probe.speech import NO_HTTP
from firstflight.scenario.tcp import initial_window_bytes

Confidence = Literal["sure", "likely", "doubtful"]

# The published rules, by the policies' names in a scenario.
_RULES = {"rfc6928": "RFC 6928", "rfc3390": "RFC 3390", "rfc2581": "RFC 2581"}
_REFUSED = 400


@dataclass(frozen=True)
class Window:
    """The window at one MSS. `segments` and `bytes` were sent without an ACK; with `at_least` the server had no more
    data, or not the time to send all. `agreeing` of `flights` counted exactly this.
    """

    mss: int
    segment_bytes: int
    segments: int
    bytes: int
    at_least: bool
    agreeing: int
    flights: int
    protocol: str
    shape: Shape | None
    confidence: Confidence
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The windows by MSS, and the rule that fits all of them; None if none does or too little is known."""

    windows: tuple[Window, ...]
    rule: str | None


def judge(flights: Iterable[Flight]) -> Verdict:
    """The verdict on the flights of one server."""
    by_mss: dict[int, list[Flight]] = {}
    for flight in flights:
        by_mss.setdefault(flight.mss, []).append(flight)
    windows = tuple(_window(of) for _, of in sorted(by_mss.items()))
    return Verdict(windows, _rule([window for window in windows if not window.at_least]))


def handshake_lines(handshakes: Sequence[Handshake | None], verdict: Verdict | None) -> Iterator[str]:
    """Sentences on the handshakes of an answer, next to the initial window of its verdict."""
    if not handshakes or (usual := handshakes[0]) is None:
        return
    chain = counted(usual.intermediates, "intermediate")
    yield f"certificate flight {usual.flight_bytes:,} bytes ({chain}){_fits(usual, verdict)}"
    tickets = "no session tickets"
    if usual.tickets:
        tickets = f"{counted(len(usual.tickets), 'session ticket')} of {usual.tickets[0]} bytes"
    yield f"{tickets}; TLS records of up to {usual.record_bytes:,} bytes"
    hellos = [f"of {usual.hello_bytes:,} bytes answered"]
    other = handshakes[1]
    two = "one segment" if usual.hello_bytes > MSS_BYTES else "two segments"
    hellos.append(f"of {two} {'not answered' if other is None else f'({other.hello_bytes:,} bytes) answered'}")
    yield f"ClientHello {', '.join(hellos)}; QUIC is not probed"


def _fits(usual: Handshake, verdict: Verdict | None) -> str:
    new = f"with ML-DSA-44 and the same intermediates about {usual.post_quantum_bytes / 1e3:.1f} kB"
    if verdict is None:
        return f"; {new}"
    # That of the largest segments measured.
    window = verdict.windows[-1]
    iw = f"IW of {'at least ' if window.at_least else ''}{window.segments}"
    trips, then = (_round_trips(size, window.segments) for size in (usual.flight_bytes, usual.post_quantum_bytes))
    more = f"{counted(then - trips, 'round trip')} more" if then > trips else "no round trip more"
    if window.at_least and then > 1:
        more = "the round trips depend on its whole IW"
    most = "at most " if window.at_least else ""
    fit = f"fits into its {iw}" if trips == 1 else f"takes {most}{trips} round trips with its {iw}"
    return f", {fit}; {new}: {more}"


def _round_trips(size: int, window: int) -> int:
    """Round trips that `size` bytes take from an initial window of segments, in slow start without loss."""
    trips, sent = 0, 0
    while sent < size:
        sent += (window << trips) * MSS_BYTES
        trips += 1
    return trips


def _window(flights: Sequence[Flight]) -> Window:
    """A flight without an ACK is never larger than the window; a segment lost at its end makes it look smaller. So the
    largest of those after which more came is the window. It is a lower bound where the server had no time to send all.
    """
    limited = [flight for flight in flights if flight.limited]
    exact = [flight for flight in limited if flight.settled]
    best = max(exact or limited or flights, key=lambda flight: flight.segments)
    agreeing = [flight for flight in exact or limited or flights if flight.segments == best.segments]
    shapes = Counter(flight.shape for flight in agreeing if flight.shape is not None)
    confidence: Confidence = "doubtful"
    if exact and len(agreeing) > 1:
        is_clean = len(agreeing) == len(flights) and not any(flight.lost for flight in flights)
        confidence = "sure" if is_clean else "likely"
    return Window(
        mss=best.mss,
        segment_bytes=best.segment_bytes,
        segments=best.segments,
        bytes=best.bytes,
        at_least=not exact,
        agreeing=len(agreeing),
        flights=len(flights),
        protocol=best.protocol,
        shape=shapes.most_common(1)[0][0] if shapes else None,
        confidence=confidence,
        doubts=tuple(_doubts(best, flights)),
    )


def _doubts(best: Flight, flights: Sequence[Flight]) -> Iterable[str]:
    if best.ended == "flooded":
        yield "the server went on without any ACK: it has no congestion window, and the count was ended"
    elif not best.limited and best.ended == "silent":
        yield "the server sent less than a segment more when its data was acknowledged"
    elif not best.limited:
        yield f"the object is too small: less than a segment was left after {best.bytes} bytes; give a larger one"
    elif not best.settled:
        yield "the server repeated itself before it had the time to send all: it may be larger"
    if best.bytes + best.segment_bytes > best.window_bytes:
        yield f"the receive window may have limited the server: it does not scale windows, so {best.window_bytes} bytes"
    if best.segment_bytes != best.mss:
        yield f"the server sends segments of {best.segment_bytes} bytes, though {best.mss} were asked for"
    if lossy := [flight for flight in flights if flight.lost]:
        yield f"segments were lost in {len(lossy)} of {len(flights)} connections"
    if others := {flight.segments for flight in flights if flight.limited and flight.segments != best.segments}:
        yield f"other connections saw {', '.join(map(str, sorted(others)))}"
    if strays := sum(flight.strays for flight in flights):
        yield f"{counted(strays, 'segment')} far ahead of all others {'was' if strays == 1 else 'were'} left out"
    if len(flights) == 1:
        yield "there was one connection only"
    if any(flight.ended == "silent" for flight in flights):
        yield "the server stopped and repeated nothing"
    if any(flight.protocol.endswith(NO_HTTP) for flight in flights):
        yield "the server did not answer in HTTP"
    if best.status is not None and best.status >= _REFUSED:
        yield f"the server answered with status {best.status}"


def _rule(windows: Sequence[Window]) -> str | None:
    if not windows:
        return None
    segments = {window.segments for window in windows}
    for policy, name in _RULES.items():
        if all(window.segments == _allowed(policy, window.segment_bytes) for window in windows):
            return f"{segments.pop()} segments ({name})" if len(segments) == 1 else name
    if len(segments) == 1:
        return f"{segments.pop()} segments"
    most, least = max(window.bytes for window in windows), min(window.bytes for window in windows)
    if most - least < max(window.segment_bytes for window in windows):
        return f"{most} bytes"
    return None


def _allowed(policy: str, segment_bytes: int) -> int:
    """Segments that a rule allows, the last of which may be short."""
    return -(-initial_window_bytes({"policy": policy}, segment_bytes) // segment_bytes)
