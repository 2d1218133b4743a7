"""One connection: everything the server sends before the first ACK of it, in segments and bytes.

Linux holds the last segments of a window back while the oldest one's ACK is overdue (tcp_tso_should_defer), as it is
behind a TLS handshake that is not acknowledged. It sends them when anything arrives a millisecond after its last write.
So window updates are sent: they acknowledge nothing, and are no duplicate ACKs (RFC 5681 section 2).
"""

import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from threading import Event
from typing import Literal

from firstflight.conform.packet import ACK, FIN, PSH, RST, SYN, read_options
from firstflight.errors import FirstflightError, MachineError
from firstflight.probe.handshake import MSS_BYTES, Handshake, read
from firstflight.probe.raw import RawPort, Segment
from firstflight.probe.speech import HTTP2, Hello, Speech, Target, client_context

Shape = Literal["burst", "paced", "spread"]
Ended = Literal["repeated", "silent", "closed", "flooded"]

_SYN_TRIES = 3
_SYN_WAIT_S = 1.0
# The server's timer is 200 ms and a round trip at least (Linux), 1 s and a round trip without a sample (RFC 6298
# section 2.1). Who has not repeated anything for four times that will not.
_SILENCE_S = 4.0
_RETRY_S = 1.0
_TICK_S = 0.1
# Segments that overtake each other within a flight are not retransmissions.
_REORDERED_S = 0.05
# RFC 9293 section 3.7.1: for who names none.
_DEFAULT_MSS = 536
_ETHERNET_MSS = 1460
# No initial window is as large: who sends more has no congestion window.
_MOST_SEGMENTS = 10_000
# Segments of a flight that are lost one after another. A segment beyond as many, and beyond as many as came, is none of
# the flight.
_LARGEST_HOLE = 64
_ROUND_TRIPS = 4
_LONGEST_S = 30.0
_SHIFT = 14
# Window updates raise the window by one unit each: 2 ms after the last data, then twice as long after each other.
_FIRST_WINDOW, _LAST_WINDOW = 0xF000, 0xFFFF
_FIRST_UPDATE_S, _LAST_UPDATE_S = 0.002, 0.032
# Two that arrive a millisecond after the last write or later; the round trip may be shorter than measured.
_HELD_BACK_S = 0.001
_UPDATES = 2
# The amount read to learn how late the server writes: more than it may send without an ACK.
_SCOUTED_BYTES = 128 << 10
_SCOUTED_S = 4.0
# It has had twice the longest wait for each write.
_PATIENCE = 2
_MSS, _SCALE = 2, 3
# Linux paces slow start at twice the window a round trip, BBR at 2.9 times, and neither the first ten segments
# (tcp_update_pacing_rate, tcp_bbr.c, tcp_update_skb_after_send). A slow link spreads all of them alike.
_SPREAD_OF_RTT = 0.15
_UNPACED_SEGMENTS = 10
_PACED_TO_UNPACED = 1.5
_BURST_OF_RTT = 0.1
# The largest gaps do not count: a machine that was busy elsewhere makes some.
_STALLS = 2
# Below this a round trip says nothing about pacing.
_RTT_OF_PACING_S = 0.004
_SEGMENTS_OF_PACING = 5


@dataclass(frozen=True)
class Flight:
    """The observations of one connection. `segments` and `bytes`: up to the highest byte that arrived before the first
    retransmission; `lost` of these segments did not arrive. `limited`: data that had waited followed their ACK
    (see `release`). `settled`: the server had time to write and send everything. `ended`: why the count ended;
    "flooded": more segments than any window. `strays`: segments far ahead of all others, excluded. `shape` ("spread":
    paced, or by a slow link) is None for a short RTT or few segments. `spread_s`: from the first to the last segment
    after the request.
    """

    mss: int
    segment_bytes: int
    segments: int
    bytes: int
    lost: int
    rtt_s: float
    limited: bool
    ended: Ended
    shape: Shape | None
    spread_s: float
    window_bytes: int
    settled: bool
    status: int | None
    protocol: str
    strays: int = 0


@dataclass(frozen=True)
class Scouted:
    """The observations of a connection that acknowledged all data. `late_s`: the longest time that the server took to
    go on; `handshake`: of TLS, if there was one.
    """

    late_s: float
    status: int | None
    redirection: str | None
    protocol: str
    handshake: Handshake | None = None


def scout(target: Target, address: tuple[socket.AddressFamily, str], stop: Event) -> Scouted:
    """Ask as any client does, and read the response's beginning. Errors as of `measure`."""
    scouted = _scout(target, address, client_context(), stop)
    # The address of a redirection is read over HTTP/1.1 alone.
    is_unread = scouted.protocol.endswith(HTTP2) and (scouted.status or 0) // 100 == 3
    return _scout(target, address, client_context(["http/1.1"]), stop) if is_unread else scouted


def other_hello(
    target: Target, address: tuple[socket.AddressFamily, str], usual: Handshake, stop: Event
) -> Handshake | None:
    """The handshake with a ClientHello of two segments if the usual one takes one, else of one; None if it fails."""
    hello: Hello = "long" if usual.hello_bytes <= MSS_BYTES else "short"
    try:
        return _scout(target, address, client_context(["http/1.1"], hello), stop).handshake
    except FirstflightError:
        return None


def _scout(target: Target, address: tuple[socket.AddressFamily, str], tls: ssl.SSLContext, stop: Event) -> Scouted:
    with _opened(target, address, _ETHERNET_MSS, tls, stop) as (connection, speech):
        late_s = connection.read()
        if (without := connection.without_data()) is not None:
            raise MachineError(f"the server took the connection and {without}")
        return Scouted(late_s, speech.status(), speech.redirection(), speech.protocol(), connection.handshake())


def measure(
    target: Target, address: tuple[socket.AddressFamily, str], mss: int, scouted: Scouted, stop: Event
) -> Flight:
    """Open one connection to `address` and count. MachineError where nothing answers, RequestError where TLS fails."""
    with _opened(target, address, mss, client_context(), stop) as (connection, _):
        ended = connection.hold()
        flight = connection.flight(ended, scouted)
        limited = ended not in ("closed", "flooded") and connection.release()
        return replace(flight, limited=limited, strays=connection.strays)


@contextmanager
def _opened(
    target: Target, address: tuple[socket.AddressFamily, str], mss: int, tls: ssl.SSLContext, stop: Event
) -> Iterator[tuple["_SilentConnection", Speech]]:
    family, host = address
    with RawPort(family, (host, target.port), stop) as port:
        speech = Speech(target, tls)
        connection = _SilentConnection(port, speech, mss)
        connection.open()
        try:
            yield connection, speech
        finally:
            connection.close()


class _Stream:
    """The server's bytes: which came, and which of them in order were handed on."""

    def __init__(self, first_seq: int) -> None:
        self._first = first_seq
        self._data = bytearray()
        self._handed_on = 0
        self.spans: list[tuple[int, int]] = []

    @property
    def highest(self) -> int:
        """Bytes up to the highest that came."""
        return len(self._data)

    @property
    def in_order(self) -> int:
        """Bytes before the first hole."""
        return self.spans[0][1] if self.spans and self.spans[0][0] == 0 else 0

    def offset(self, seq: int) -> int:
        """Offset of a sequence number from the server's first byte; negative before it."""
        return (seq - self._first + (1 << 31)) % (1 << 32) - (1 << 31)

    @property
    def data(self) -> bytes:
        """The bytes before the first hole."""
        return bytes(self._data[: self.in_order])

    def is_far(self, start: int, size: int) -> bool:
        """Whether a segment lies further ahead than one of a flight of segments of this size can."""
        came = sum(right - left for left, right in self.spans)
        return start - self.highest > max(_LARGEST_HOLE * size, came)

    def has(self, start: int, end: int) -> bool:
        """Whether all these bytes came."""
        return any(left <= start and end <= right for left, right in self.spans)

    def take(self, start: int, payload: bytes) -> bytes:
        """Note these bytes; returns the bytes that are newly in order."""
        end = start + len(payload)
        self._data.extend(bytes(max(0, end - len(self._data))))
        self._data[start:end] = payload
        self.spans = _joined([*self.spans, (start, end)])
        ready = bytes(self._data[self._handed_on : self.in_order])
        self._handed_on += len(ready)
        return ready


class _SilentConnection:
    """A connection that acknowledges nothing until it is asked to."""

    def __init__(self, port: RawPort, speech: Speech, mss: int) -> None:
        self._port = port
        self._speech = speech
        self._mss = mss
        self._their_mss = _DEFAULT_MSS
        self._stream = _Stream(0)
        self._sent = b""
        self._sent_at = 0.0
        self._they_have = 0
        self._acknowledged = 0
        self._fin_at: int | None = None
        self.strays = 0
        self._was_reset = False
        self._arrivals: list[tuple[float, int]] = []
        self._before_asking = 0
        self._hello_bytes = self._flight_bytes = 0
        self._rtt_s = 0.0
        self._window = _FIRST_WINDOW
        self._window_bytes = 0
        self._asked_s, self._asked_bytes = 0.0, 0
        self._ended_s = 0.0
        self._updates: list[float] = []
        self._update_at = self._update_after_s = 0.0

    def open(self) -> None:
        """The handshake. MachineError where nothing answers or the server refuses."""
        offered = struct.pack("!BBHBBBB", _MSS, 4, self._mss, 1, _SCALE, 3, _SHIFT)
        for _ in range(_SYN_TRIES):
            began = time.time()
            self._port.send(self._port.first_seq, 0, SYN, self._window, options=offered)
            for segment in self._port.receive(time.monotonic() + _SYN_WAIT_S):
                if segment.ack != (self._port.first_seq + 1) & 0xFFFFFFFF:
                    continue
                if segment.flags & RST:
                    raise MachineError("the server refuses connections at this port")
                if segment.flags & SYN:
                    self._greet(segment, segment.time_s - began)
                    return
        raise MachineError(f"nothing answered {_SYN_TRIES} SYNs within {_SYN_TRIES * _SYN_WAIT_S:.0f} s")

    def handshake(self) -> Handshake | None:
        """That of TLS, if it was completed."""
        version, chain = self._speech.certificates()
        if not self._flight_bytes or not version:
            return None
        return read(self._hello_bytes, self._flight_bytes, self._stream.data, chain, version)

    def without_data(self) -> str | None:
        """How a connection without data ended; None for one with data."""
        if self._stream.highest > 0:
            return None
        closed = self._was_reset or self._fin_at is not None
        return "closed it without data" if closed else f"sent no data within {_SCOUTED_S:.0f} s"

    def read(self) -> float:
        """Ask, and acknowledge arriving data until it is enough. The longest wait for more, less a round trip."""
        self._say(self._speech.begin())
        late_s, last, began = 0.0, time.time(), time.monotonic()
        while (now := time.monotonic()) < began + _SCOUTED_S:
            for segment in self._port.receive(now + _TICK_S):
                self._note(segment)
                if self._take(segment):
                    late_s = max(late_s, segment.time_s - last - self._rtt_s)
                    self._acknowledge()
                    last = time.time()
                if segment.flags & RST or self._is_over() or self._stream.in_order > _SCOUTED_BYTES:
                    return late_s
            self._retry()
        return max(late_s, time.time() - last - self._rtt_s)

    def hold(self) -> Ended:
        """Ask, and receive data without acknowledging it until the server repeats itself, ends or is silent."""
        self._say(self._speech.begin())
        began = last_new = time.monotonic()
        while (now := time.monotonic()) < min(last_new + _SILENCE_S, began + _LONGEST_S):
            for segment in self._port.receive(min(now + _TICK_S, max(now, self._update_at))):
                self._note(segment)
                if segment.flags & RST:
                    return "closed"
                if self._is_repeated(segment):
                    return "repeated"
                if self._take(segment):
                    last_new = time.monotonic()
                    self._arrivals.append((segment.time_s, len(segment.payload)))
                    self._update_soon()
                if self._is_over():
                    return "closed"
                if max(len(self._arrivals), self._stream.highest // _ETHERNET_MSS) > _MOST_SEGMENTS:
                    return "flooded"
            self._retry()
            self._update()
        self._ended_s = time.time()
        return "silent"

    def settled(self, late_s: float) -> bool:
        """Whether the server could write and send all that its window let it before it repeated itself (or we gave up):
        it had the request for as long as it ever takes, was as long silent, and got updates of the window meanwhile.
        Behind a hole in the TLS handshake nothing is asked for, so the server may have nothing to send; nor may it if
        it sent all of its part and did not answer ours, as with Nagle's algorithm (RFC 896).
        """
        if not self._arrivals or self._they_have < self._asked_bytes:
            return False
        had_s, last = self._ended_s - self._rtt_s, self._arrivals[-1][0]
        has_hole = self._stream.in_order < self._stream.highest
        if not self._speech.has_asked and (has_hole or self._asked_s > last):
            return False
        since = max(self._asked_s, last - self._rtt_s / 2 + _HELD_BACK_S)
        updates = sum(since <= at <= had_s for at in self._updates)
        return updates >= _UPDATES and min(had_s - self._asked_s, self._ended_s - last) > _PATIENCE * late_s

    def flight(self, ended: Ended, scouted: Scouted) -> Flight:
        """What has come. Its `limited` is False until the caller knows from `release` whether more would."""
        size = self._segment_bytes() if self._arrivals else self._mss
        holes = sum(right[0] - left[1] for left, right in pairwise([(0, 0), *self._stream.spans]))
        lost = -(-holes // size)
        lengths = Counter(length for _, length in self._arrivals)
        came = sum(count * self._segments_in(length, size, lengths) for length, count in lengths.items())
        shape, spread_s = self._shape()
        return Flight(
            mss=self._mss,
            segment_bytes=size,
            segments=came + lost,
            bytes=self._stream.highest,
            lost=lost,
            rtt_s=self._rtt_s,
            limited=False,
            ended=ended,
            shape=shape,
            spread_s=spread_s,
            window_bytes=self._window_bytes,
            settled=self.settled(scouted.late_s),
            status=scouted.status,
            protocol=scouted.protocol,
            strays=self.strays,
        )

    def release(self) -> bool:
        """Acknowledge the received data, and return whether the server had waited for that because of its window: it
        sends beyond the highest byte. Behind a short segment less than a full one shows nothing: Nagle's algorithm (RFC
        896; of Linux in Minshall's variant) holds it until the ACK.
        """
        highest, full = self._stream.highest, min(self._mss, self._their_mss)
        enough = full if any(length % full for _, length in self._arrivals) else 1
        had_asked = self._speech.has_asked
        self._acknowledge()
        for segment in self._port.receive(time.monotonic() + max(_SILENCE_S, _ROUND_TRIPS * self._rtt_s)):
            if segment.flags & RST:
                break
            if self._take(segment) and self._stream.highest - highest >= enough:
                return True
            self._acknowledge()
            if self._is_over() or self._speech.has_asked != had_asked:
                break
        return False

    def close(self) -> None:
        """Reset the connection, so that the server stops retransmitting."""
        self._send(len(self._sent), RST | ACK)

    def _greet(self, segment: Segment, rtt_s: float) -> None:
        said = dict(read_options(segment.options))
        self._rtt_s = rtt_s
        self._window_bytes = self._window << (_SHIFT if _SCALE in said else 0)
        if _MSS in said:
            self._their_mss = max(1, int.from_bytes(said[_MSS]))
        self._stream = _Stream(segment.seq + 1)
        self._their_seq = segment.seq
        self._send(0, ACK)

    def _send(self, at: int, flags: int, payload: bytes = b"") -> None:
        ack = self._their_seq + 1 + self._acknowledged
        self._port.send(self._port.first_seq + 1 + at, ack, flags, self._window, payload)

    def _say(self, data: bytes) -> None:
        at = len(self._sent)
        self._sent += data
        self._hello_bytes = self._hello_bytes or len(data)
        if not self._before_asking:
            self._asked_s, self._asked_bytes = time.time(), len(self._sent)
        self._send_from(at)
        self._update_soon()

    def _send_from(self, at: int) -> None:
        self._sent_at = time.monotonic()
        for start in range(at, len(self._sent), self._their_mss):
            self._send(start, PSH | ACK, self._sent[start : start + self._their_mss])

    def _retry(self) -> None:
        """Retransmit data that the server has not acknowledged for a second (RFC 6298 section 2.1)."""
        if self._they_have < len(self._sent) and time.monotonic() - self._sent_at > _RETRY_S:
            self._send_from(self._they_have)

    def _update_soon(self) -> None:
        self._update_after_s = _FIRST_UPDATE_S
        self._update_at = time.monotonic() + self._update_after_s

    def _update(self) -> None:
        """Send a window update if one is due."""
        if (now := time.monotonic()) < self._update_at:
            return
        if self._window < _LAST_WINDOW:
            self._window += 1
            self._send(len(self._sent), ACK)
            self._updates.append(time.time())
        self._update_after_s = min(2 * self._update_after_s, _LAST_UPDATE_S)
        self._update_at = now + self._update_after_s

    def _is_over(self) -> bool:
        return self._fin_at == self._stream.in_order or self._speech.is_over

    def _acknowledge(self) -> None:
        self._acknowledged = self._stream.in_order + (self._fin_at == self._stream.in_order)
        self._send(len(self._sent), ACK)

    def _note(self, segment: Segment) -> None:
        self._was_reset |= bool(segment.flags & RST)
        self._ended_s = segment.time_s
        self._they_have = max(self._they_have, (segment.ack - self._port.first_seq - 1) & 0xFFFFFFFF)

    def _is_repeated(self, segment: Segment) -> bool:
        """Whether the segment has nothing new: it came before, or fills a hole long after it arose."""
        start = self._stream.offset(segment.seq)
        if not segment.payload or start < 0:
            # A SYN-ACK, which the server repeats if our ACK was lost, or a keep-alive.
            return False
        is_late = bool(self._arrivals) and segment.time_s - self._arrivals[-1][0] > self._rtt_s / 2 + _REORDERED_S
        return self._stream.has(start, start + len(segment.payload)) or (start < self._stream.highest and is_late)

    def _take(self, segment: Segment) -> bool:
        """Take the segment's data, and answer as the server's words demand. Whether there were any."""
        start = self._stream.offset(segment.seq)
        if segment.flags & FIN:
            self._fin_at = start + len(segment.payload)
        if start < 0 or not segment.payload:
            return False
        if self._stream.is_far(start, max(self._mss, len(segment.payload))):
            self.strays += 1
            return False
        had_asked = self._speech.has_asked
        if reply := self._speech.hear(self._stream.take(start, segment.payload)):
            self._say(reply)
        if self._speech.has_asked and not had_asked:
            self._before_asking = len(self._arrivals) + 1
            self._flight_bytes = self._stream.in_order
        return True

    @staticmethod
    def _segments_in(length: int, size: int, lengths: Iterable[int]) -> int:
        """Segments that the card or the kernel has joined are of one length, but for the last. It may be below the MSS:
        Apache writes TLS records of 1300 bytes over HTTP/2.
        """
        shorter = {other for other in lengths if size < 2 * other < 2 * size and length % other == 0}
        return -(-length // max(shorter, default=size))

    def _segment_bytes(self) -> int:
        """Bytes of a full segment: the MSS asked for, unless most are of one larger size that fits into an Ethernet
        frame. Segments that the card or the kernel has joined are of many sizes, or larger.
        """
        length, count = Counter(length for _, length in self._arrivals).most_common(1)[0]
        is_larger = self._mss < length <= _ETHERNET_MSS and length % self._mss
        return length if is_larger and 2 * count > len(self._arrivals) > 2 else self._mss

    def _shape(self) -> tuple[Shape | None, float]:
        """The arrival of the segments after the request, and its duration; all segments if there was no request."""
        times = [at for at, _ in self._arrivals[self._before_asking if self._speech.has_asked else 0 :]]
        spread_s = times[-1] - times[0] if times else 0.0
        if len(times) < _SEGMENTS_OF_PACING or self._rtt_s < _RTT_OF_PACING_S:
            return None, spread_s
        gaps = [later - earlier for earlier, later in pairwise(times)]
        if sum(_without_stalls(gaps)) < _SPREAD_OF_RTT * self._rtt_s:
            return ("burst" if spread_s <= _BURST_OF_RTT * self._rtt_s else None), spread_s
        first = _without_stalls(gaps[: _UNPACED_SEGMENTS - 1])
        later = _without_stalls(gaps[_UNPACED_SEGMENTS - 1 :])
        if not first or not later:
            return "spread", spread_s
        return "paced" if fmean(later) >= _PACED_TO_UNPACED * fmean(first) else "spread", spread_s


def _without_stalls(gaps: list[float]) -> list[float]:
    return sorted(gaps)[:-_STALLS]


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few spans as they take, in order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
