"""What several flights say together, and what a probe says to a server."""

import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from firstflight.cli.app import app
from firstflight.errors import RequestError
from firstflight.probe import Flight
from firstflight.probe.judge import judge
from firstflight.probe.speech import Speech, Target, client_context

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
    behind_handshake=False,
    status=200,
    redirection=None,
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
        "the object is too small: all of it (233 bytes) came without an ACK; name a larger one",
        "the server answered with status 404",
    )


def test_a_limited_flight_counts_before_a_larger_one_that_was_not():
    (window,) = judge([TEN, replace(_at(64, 12), limited=False)]).windows
    assert (window.segments, window.at_least, window.agreeing) == (10, False, 1)


def test_behind_a_handshake_a_count_is_a_lower_bound_and_names_no_rule():
    behind = replace(_at(536, 10), behind_handshake=True)
    verdict = judge([behind, behind])
    (window,) = verdict.windows
    assert (window.segments, window.at_least, window.confidence, verdict.rule) == (10, True, "doubtful", None)
    assert window.doubts == (
        "the TLS handshake left room in the window, and Linux may hold its last segments back: it may be larger",
    )
    filled = judge([replace(TEN, segments=11, bytes=704), behind])
    assert filled.rule == "11 segments"


def test_a_window_that_the_receiver_may_have_set_is_told():
    (window,) = judge([replace(_at(1460, 44), window_bytes=65_535)] * 2).windows
    assert window.doubts == ("our receive window may have held the server: it does not scale windows, so 65535 bytes",)


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
    assert request.startswith("GET /a HTTP/1.1\r\nHost: example.org\r\n")
    assert "User-Agent: firstflight/" in request
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


def test_a_server_that_speaks_only_http2_is_refused_clearly_or_doubted(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "certificate", "-subj", "/CN=test"]
    subprocess.run(["openssl", "req", "-x509", *key], cwd=tmp_path, check=True, capture_output=True)
    served = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-key", "key", "-cert", "certificate", "-alpn", "h2"]
    # Its standard input stays open: it ends with it.
    server = subprocess.Popen(served, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(next(line for line in server.stdout if line.startswith("ACCEPT")).rpartition(":")[2])
        speech = Speech(Target.parse("https://test/"), client_context())
        with socket.create_connection(("127.0.0.1", port), timeout=10) as there:
            there.sendall(speech.begin())
            answer = there.recv(1 << 16)
            with pytest.raises(RequestError, match=r"refuses HTTP/1\.1, the only protocol that is offered"):
                speech.hear(answer)
    finally:
        server.kill()
        server.communicate()


def test_an_answer_in_another_protocol_is_a_doubt() -> None:
    speech = Speech(Target.parse("http://test/"), client_context())
    speech.begin()
    assert not speech.is_other()
    # A frame of SETTINGS.
    speech.hear(bytes.fromhex("000006040000000000000300000064"))
    assert speech.is_other()
    assert speech.status() is None
    (window,) = judge([replace(TEN, status=None, other_protocol=True)] * 2).windows
    assert window.doubts == ("the server did not answer in HTTP/1.1 (HTTP/2?), so it was asked for no object",)
    assert window.confidence == "sure"
