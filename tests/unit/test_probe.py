"""The result of several flights together, and a probe's messages to a server."""

import itertools
import re
import signal
import socket
import time
from dataclasses import replace
from threading import Barrier, Event, Thread
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from firstflight.cli.app import app
from firstflight.errors import RequestError
from firstflight.probe import Flight, hosts
from firstflight.probe.handshake import Handshake
from firstflight.probe.judge import handshake_lines, judge
from firstflight.probe.measure import Scouted, _SilentConnection
from firstflight.probe.raw import RawPort, Segment, StoppedError
from firstflight.probe.speech import Http2, Speech, Target, client_context

SCOUTED = Scouted(0.0, 200, None, "HTTP/1.1")

TEN = Flight(
    mss=64,
    segment_bytes=64,
    segments=10,
    bytes=640,
    lost=0,
    rtt_s=0.04,
    limited=True,
    ended="repeated",
    shape="burst",
    spread_s=0.001,
    window_bytes=0xFFFF << 14,
    settled=True,
    status=200,
    protocol="HTTP/1.1",
)


def _at(mss: int, segments: int) -> Flight:
    return replace(TEN, mss=mss, segment_bytes=mss, segments=segments, bytes=mss * segments)


def test_flights_that_agree_are_sure_and_name_the_rule():
    verdict = judge([TEN, TEN, _at(1460, 10), _at(1460, 10)])
    assert verdict.rule == "10 segments (RFC 6928)"
    small, large = verdict.windows
    assert (small.mss, small.segments, small.bytes, small.at_least, small.agreeing, small.flights) == (
        64,
        10,
        640,
        False,
        2,
        2,
    )
    assert (small.confidence, small.doubts, small.shape) == ("sure", (), "burst")
    assert (large.mss, large.bytes) == (1460, 14_600)


def test_a_segment_lost_at_the_end_of_a_flight_does_not_make_the_window_smaller():
    (window,) = judge([TEN, _at(64, 8), TEN]).windows
    assert (window.segments, window.agreeing, window.flights, window.confidence) == (10, 2, 3, "likely")
    assert window.doubts == ("other connections saw 8",)


def test_one_that_nobody_else_saw_is_doubtful():
    (window,) = judge([TEN, _at(64, 8)]).windows
    assert (window.segments, window.confidence) == (10, "doubtful")


def test_a_loss_within_the_flight_is_counted_and_told():
    (window,) = judge([replace(TEN, lost=1), TEN]).windows
    assert (window.segments, window.confidence) == (10, "likely")
    assert window.doubts == ("segments were lost in 1 of 2 connections",)


def test_an_object_that_is_too_small_gives_a_lower_bound_and_no_rule():
    whole = replace(TEN, limited=False, ended="closed", segments=4, bytes=233, status=404)
    verdict = judge([whole, whole])
    assert verdict.rule is None
    (window,) = verdict.windows
    assert (window.at_least, window.segments, window.confidence) == (True, 4, "doubtful")
    assert window.doubts == (
        "the object is too small: less than a segment was left after 233 bytes; give a larger one",
        "the server answered with status 404",
    )


def test_a_limited_flight_counts_before_a_larger_one_that_was_not():
    (window,) = judge([TEN, replace(_at(64, 12), limited=False)]).windows
    assert (window.segments, window.at_least, window.agreeing) == (10, False, 1)


@pytest.mark.parametrize(
    ("lengths", "segments"),
    [
        ([1460, 2920, 14_600, 600], 14),
        ([1460, 16_406, 16_406], 25),
        # TLS records of Apache, a segment each.
        ([1257, 1329, 2658, 26_580], 24),
    ],
)
def test_segments_that_were_joined_are_counted(lengths: list[int], segments: int) -> None:
    connection = _SilentConnection(cast("RawPort", None), Speech(Target.parse("http://test/"), client_context()), 1460)
    connection._arrivals = [(0.0, length) for length in lengths]
    assert connection.flight("silent", SCOUTED).segments == segments


@pytest.mark.parametrize(
    ("changes", "late_s", "settled"),
    [
        ({}, 0.05, True),
        # It has 200 ms for the response, and may take 110 ms twice.
        ({}, 0.11, False),
        # The first update may have come before the last write.
        ({"_updates": [1.01, 1.1]}, 0.0, False),
        ({"_ended_s": 1.12}, 0.0, False),
        # The request was lost.
        ({"_asked_bytes": 1}, 0.0, False),
    ],
)
def test_a_count_is_exact_if_the_server_had_the_time_to_send_all(changes, late_s, settled) -> None:
    assert _held(0, changes).settled(late_s) is settled


def test_a_hole_in_the_tls_handshake_leaves_a_server_without_a_request() -> None:
    assert not _held(1460, {}).settled(0.0)


def test_a_server_that_answers_no_message_of_the_tls_handshake_was_not_stopped_by_its_window() -> None:
    changes = {"_arrivals": [(0.99, 1188)], "_updates": [1.05, 1.1]}
    connection = _held(0, changes)
    assert not connection.settled(0.0)
    connection._speech.has_asked = True
    assert connection.settled(0.0)


def test_a_lower_bound_of_the_window_says_nothing_about_round_trips() -> None:
    usual = Handshake(517, 1430, (789,), (), 16384, 7871)
    for window, told in (
        (_at(1460, 1), "fits into its IW of 1; .* about 7.9 kB: 2 round trips more$"),
        (
            replace(_at(1460, 1), settled=False),
            "fits into its IW of at least 1; .* the round trips depend on its whole IW$",
        ),
        (replace(_at(1460, 10), settled=False), "fits into its IW of at least 10; .*: no round trip more$"),
    ):
        first, *_ = handshake_lines([usual, None], judge([window]))
        assert re.search(told, first)


def _held(start: int, changes: dict[str, Any]) -> _SilentConnection:
    """A connection of 40 ms that asked at 1 s, and saw a segment 40 ms later and its retransmission at 1.24 s."""
    connection = _SilentConnection(cast("RawPort", None), Speech(Target.parse("https://test/"), client_context()), 1460)
    connection._stream.take(start, bytes(1460))
    held = {"_arrivals": [(1.04, 1460)], "_rtt_s": 0.04, "_asked_s": 1.0, "_ended_s": 1.24, "_updates": [1.03, 1.1]}
    vars(connection).update(held | changes)
    return connection


def test_a_server_without_the_time_to_send_all_gives_a_lower_bound_and_no_rule():
    hasty = replace(_at(536, 10), settled=False)
    verdict = judge([hasty, hasty])
    (window,) = verdict.windows
    assert (window.segments, window.at_least, window.confidence, verdict.rule) == (10, True, "doubtful", None)
    assert window.doubts == ("the server repeated itself before it had the time to send all: it may be larger",)
    (window,) = judge([hasty, _at(536, 12), _at(536, 12)]).windows
    assert (window.segments, window.at_least, window.confidence) == (12, False, "likely")


def test_a_window_that_the_receiver_may_have_set_is_told():
    (window,) = judge([replace(_at(1460, 44), window_bytes=65_535)] * 2).windows
    assert window.doubts == (
        "the receive window may have limited the server: it does not scale windows, so 65535 bytes",
    )


@pytest.mark.parametrize(
    ("flights", "rule"),
    [
        ([_at(64, 4), _at(536, 4), _at(1460, 3)], "RFC 3390"),
        ([_at(64, 2), _at(1460, 2)], "2 segments (RFC 2581)"),
        ([_at(64, 32), _at(1460, 32)], "32 segments"),
        ([_at(64, 229), _at(1460, 10)], "14656 bytes"),
        ([_at(64, 20), _at(1460, 10)], None),
    ],
)
def test_the_rule_fits_all_segment_sizes(flights, rule):
    assert judge(flights).rule == rule


def test_segments_larger_than_asked_for_are_told():
    (window,) = judge([replace(TEN, segment_bytes=536, bytes=5360)] * 2).windows
    assert window.doubts == ("the server sends segments of 536 bytes, though 64 were asked for",)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "path"),
    [
        ("example.org", "https", "example.org", 443, "/"),
        ("http://example.org/a?b=c", "http", "example.org", 80, "/a?b=c"),
        ("https://[fd00::1]:8443/x", "https", "fd00::1", 8443, "/x"),
    ],
)
def test_urls_are_read(url, scheme, host, port, path):
    target = Target.parse(url)
    assert (target.scheme, target.host, target.port, target.path) == (scheme, host, port, path)


@pytest.mark.parametrize("url", ["ftp://example.org", "https://", "https://example.org:port/", "http://a/b c"])
def test_what_is_no_address_of_a_web_server_is_refused(url):
    with pytest.raises(RequestError):
        Target.parse(url)


def test_a_request_says_who_asks_and_a_redirection_is_read():
    speech = Speech(Target.parse("http://example.org/a"), client_context())
    request = speech.begin().decode()
    assert request.startswith("GET /a HTTP/1.1\r\nhost: example.org\r\n")
    assert "user-agent: firstflight/" in request
    assert speech.hear(b"HTTP/1.1 301 Moved\r\nLocation: /b\r\n\r\n") == b""
    assert (speech.status(), speech.redirection()) == (301, "http://example.org/b")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one URL"),
        (["example.org", "--mss", "64;1460"], "give sizes in bytes with commas between"),
        (["example.org", "--mss", "20"], "an MSS of 20 is out of range; give 48 to 65495 bytes"),
        (["ftp://example.org"], "is no address of a web server"),
    ],
)
def test_a_wrong_request_is_told_before_anything_is_sent(arguments, said):
    result = CliRunner().invoke(app, ["probe", *arguments])
    assert isinstance(result.exception, RequestError)
    assert said in str(result.exception)


def test_names_with_one_address_are_probed_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"a.example": "192.0.2.1", "b.example": "192.0.2.2", "c.example": "192.0.2.1"}
    busy: set[str] = set()
    two_servers = Barrier(2, timeout=60)

    def probed(asked: str, target: Target, *_: object) -> hosts.Answer:
        address = addresses[target.host]
        assert address not in busy
        busy.add(address)
        if target.host != "c.example":
            two_servers.wait()
        busy.remove(address)
        return hosts.Answer(asked, target.url, address, (), None, None)

    monkeypatch.setattr(hosts, "open_raw", lambda _: socket.socket())
    monkeypatch.setattr(hosts, "_resolve", lambda target: (socket.AF_INET, addresses[target.host]))
    monkeypatch.setattr(hosts, "_probe_one", probed)
    answers = hosts.probe([f"https://{name}/" for name in addresses])
    assert [answer.address for answer in answers] == list(addresses.values())


@pytest.mark.parametrize(
    ("block", "status"),
    [
        ("88", 200),
        # A change of the table's size comes first, as from nginx.
        ("208d", 404),
        ("3fe11f8e", 500),
        ("4803333037", 307),
        # In Huffman's code: RFC 7541 appendix C.6.1, and one of three bytes.
        ("48826402", 302),
        ("0883640eff", 307),
        ("4883ffffff", None),
        ("6196", None),
    ],
)
def test_a_status_of_http2_is_read(block: str, status: int | None) -> None:
    http2 = Http2()
    http2.hear(_frame(1, 4, bytes.fromhex(block)))
    assert (http2.status, http2.is_over) == (status, False)


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags, 0, 0, 0, 1]) + payload


def test_a_response_over_http2_comes_in_pieces_and_its_end_is_seen() -> None:
    http2 = Http2()
    assert http2.ask("test", "/" + "x" * 200, {}).startswith(b"PRI * HTTP/2.0")
    # RFC 9113 section 6.5.3: settings are acknowledged, an acknowledgment is not.
    assert http2.hear(_frame(4, 0, bytes(6)) + _frame(4, 1, b"")) == bytes([0, 0, 0, 4, 1, 0, 0, 0, 0])
    # Padded by two bytes, with a priority.
    response = _frame(1, 0x2C, b"\2" + bytes(5) + b"\x88" + bytes(2)) + _frame(0, 0, b"a") + _frame(0, 1, b"b")
    for byte in response[:-1]:
        http2.hear(bytes([byte]))
    assert (http2.status, http2.is_over) == (200, False)
    http2.hear(response[-1:])
    assert http2.is_over


def test_an_answer_in_another_protocol_is_a_doubt() -> None:
    speech = Speech(Target.parse("http://test/"), client_context())
    speech.begin()
    assert speech.protocol() == "HTTP/1.1"
    # A frame of SETTINGS.
    speech.hear(bytes.fromhex("000006040000000000000300000064"))
    assert (speech.protocol(), speech.status()) == ("no HTTP", None)
    (window,) = judge([replace(TEN, status=None, protocol="no HTTP")] * 2).windows
    assert window.doubts == ("the server did not answer in HTTP",)


BAD = [
    "http://[::1",
    "http://[x]y/",
    "http://a..b/",
    f"http://{'a' * 70}.example/",
    "http://a\0b/",
    "http://\x1b]0;pwn\x07/",
    "http://a\u2100b/",
    "http://a b/",
    "http://a:99999/",
    "http://a:0/",
    "http://a:-1/",
    "http://a/\u202e",
    "http://a/\x7f",
    "http:///x",
    "http://@/",
    "http://[::1]x/",
    "http://[fe80::1%\x1b]/",
    "file:///etc/passwd",
    "mailto:a@b",
    "http://[v1.a]/",
]


@pytest.mark.parametrize("url", BAD)
def test_a_malformed_url_is_refused_wherever_it_comes_from(url: str) -> None:
    with pytest.raises(RequestError, match=r"is no URL|is no address of a web server|must write as %XX"):
        Target.parse(url)


def _without_network(monkeypatch: pytest.MonkeyPatch, addresses: dict[str, str], scout: Any) -> None:
    monkeypatch.setattr(hosts, "open_raw", lambda _: socket.socket())
    monkeypatch.setattr(hosts, "_resolve", lambda target: (socket.AF_INET, addresses[target.host]))
    monkeypatch.setattr(hosts, "scout", scout)
    monkeypatch.setattr(hosts, "measure", lambda *_: TEN)


TWO = {"bad.example": "8.8.8.8", "good.example": "9.9.9.9"}


@pytest.mark.parametrize(
    "url", [*(url for url in BAD if url != "http:///x"), "//[x]y/", "//a..b/", "//[", "http://[::ffff:1.2.3.4.5]/"]
)
def test_a_redirection_to_a_malformed_url_is_an_error_of_that_server_alone(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    speech = Speech(Target.parse("http://bad.example/"), client_context())
    speech.begin()
    speech.hear(b"HTTP/1.1 302 Found\r\nLocation: " + url.encode() + b"\r\n\r\n")

    def scout(target: Target, *_: object) -> Scouted:
        told = speech.redirection() if target.host == "bad.example" else None
        return Scouted(0.0, 200, told, "HTTP/1.1")

    _without_network(monkeypatch, TWO, scout)
    bad, good = hosts.probe([f"http://{name}/" for name in TWO], (64,), 2, 0.0)
    assert (bad.verdict, good.error) == (None, None)
    assert bad.error is not None
    assert "\n" not in bad.error
    assert good.verdict is not None


@pytest.mark.parametrize("problem", [ValueError("odd"), UnicodeError("odd"), OSError(5, "odd"), RuntimeError("odd")])
def test_whatever_one_server_does_the_rest_of_the_list_is_probed(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def scout(target: Target, *_: object) -> Scouted:
        if target.host == "bad.example":
            raise problem
        return SCOUTED

    _without_network(monkeypatch, TWO, scout)
    bad, good = hosts.probe([f"http://{name}/" for name in TWO], (64,), 2, 0.0)
    assert "odd" in str(bad.error)
    assert (good.error, good.verdict is not None) == (None, True)


@pytest.mark.parametrize(
    ("given", "found", "followed"),
    [
        ("8.8.8.8", "9.9.9.9", True),
        ("8.8.8.8", "127.0.0.1", False),
        ("8.8.8.8", "169.254.169.254", False),
        ("8.8.8.8", "10.1.2.3", False),
        ("8.8.8.8", "100.64.0.1", False),
        ("8.8.8.8", "0.0.0.0", False),
        ("8.8.8.8", "::1", False),
        ("8.8.8.8", "fe80::1%eth0", False),
        ("8.8.8.8", "fd00::1", False),
        ("8.8.8.8", "::ffff:10.0.0.1", False),
        ("8.8.8.8", "64:ff9b::a00:1", False),
        ("8.8.8.8", "2002:a00:1::1", False),
        ("127.0.0.1", "127.0.0.2", True),
        ("127.0.0.1", "169.254.169.254", False),
        ("192.168.1.1", "10.0.0.1", True),
        ("192.168.1.1", "127.0.0.1", False),
    ],
)
def test_a_redirection_leads_to_no_address_that_is_nearer_than_the_one_given(
    monkeypatch: pytest.MonkeyPatch, given: str, found: str, followed: bool
) -> None:
    probed = []

    def scout(target: Target, address: tuple[Any, str], *_: object) -> Scouted:
        probed.append(address[1])
        return Scouted(0.0, 200, "http://b.example/" if target.host == "a.example" else None, "HTTP/1.1")

    _without_network(monkeypatch, {"a.example": given, "b.example": found}, scout)
    (answer,) = hosts.probe(["http://a.example/"], (64,), 1, 0.0)
    assert (found in probed) is followed
    assert (answer.error is None) is followed
    assert followed or "is not followed; give that URL if you want it" in str(answer.error)


def test_a_server_without_data_is_no_small_object(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_network(monkeypatch, {"a.example": "8.8.8.8"}, lambda *_: SCOUTED)
    empty = replace(TEN, segments=0, bytes=0, limited=False, ended="silent")
    monkeypatch.setattr(hosts, "measure", lambda *_: empty)
    (answer,) = hosts.probe(["http://a.example/"], (64,), 2, 0.0)
    assert (answer.verdict, answer.error) == (None, "the server sent no data before the first ACK")


class Port:
    """Of a server that sends these segments at once, by offset and length, and then is silent."""

    first_seq = 0

    def __init__(self, segments: list[tuple[int, int]]) -> None:
        self._left = iter(segments)

    def receive(self, until_s: float) -> Any:
        for at, length in self._left:
            yield Segment(time.time(), (1 + at) % 2**32, 1, 16, b"", bytes(length))

    def send(self, *_: object, **__: object) -> None:
        pass


def _connected(segments: list[tuple[int, int]], mss: int) -> _SilentConnection:
    speech = Speech(Target.parse("http://test/"), client_context())
    connection = _SilentConnection(cast("RawPort", Port(segments)), speech, mss)
    connection._greet(Segment(time.time(), 0, 1, 18, b"", b""), 0.001)
    return connection


@pytest.mark.parametrize(
    ("flight", "more", "is_limited"),
    [
        ([757], [535], False),
        ([757], [536], True),
        ([1300, 1300], [300, 300], True),
        ([536, 536], [100], True),
        ([1072], [100], True),
    ],
)
def test_less_than_a_segment_behind_a_short_one_may_have_waited_for_nagle(
    flight: list[int], more: list[int], is_limited: bool
) -> None:
    ends = [0, *itertools.accumulate([*flight, *more])]
    segments = list(zip(ends, [*flight, *more], strict=False))
    connection = _connected(segments[len(flight) :], 536)
    for at, length in segments[: len(flight)]:
        connection._take(Segment(time.time(), 1 + at, 1, 16, b"", bytes(length)))
        connection._arrivals.append((time.time(), length))
    assert connection.release() is is_limited


def test_a_server_that_goes_on_without_any_ack_is_ended_early_and_named() -> None:
    connection = _connected([(64 * place, 64) for place in range(200_000)], 64)
    began = time.process_time()
    assert connection.hold() == "flooded"
    assert connection.flight("silent", SCOUTED).segments == 10_001
    assert time.process_time() - began < 10
    (window,) = judge([replace(TEN, limited=False, ended="flooded")]).windows
    assert window.at_least
    assert "it has no congestion window" in window.doubts[0]


@pytest.mark.parametrize("ahead", [64 << 20, 1 << 30, 65 * 1460 + 14_600])
def test_a_packet_far_ahead_counts_nothing_and_is_named(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.probe.measure._SILENCE_S", 0.2)
    flight = [(1460 * place, 1460) for place in range(10)]
    connection = _connected([*flight[:5], (ahead, 1460), *flight[5:]], 1460)
    assert connection.hold() == "silent"
    counted = connection.flight("silent", SCOUTED)
    assert (counted.segments, counted.bytes, counted.lost) == (10, 14_600, 0)
    (window,) = judge([replace(TEN, strays=1), TEN]).windows
    assert "1 segment far ahead of all others was left out" in window.doubts


def test_ctrl_c_is_answered_at_once_while_servers_and_names_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Event()

    def scout(target: Target, address: object, stop: Event) -> Scouted:
        if target.host == "bad.example":
            # As a name server that does not answer: nothing ends it.
            Event().wait(60)
        waiting.set()
        stop.wait(60)
        raise StoppedError

    _without_network(monkeypatch, TWO, scout)
    Thread(target=lambda: (waiting.wait(30), signal.raise_signal(signal.SIGINT)), daemon=True).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        hosts.probe([f"http://{name}/" for name in TWO], (64,), 2, 0.0)
    assert waiting.is_set()
    assert time.monotonic() - began < 20


def test_a_frame_of_http2_larger_than_allowed_ends_the_conversation() -> None:
    http2 = Http2()
    assert http2.hear(bytes.fromhex("ffffff") + bytes(1 << 20)) == b""
    assert (http2.is_over, http2._buffer) == (True, b"")
