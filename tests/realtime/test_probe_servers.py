"""Initial windows of real web servers, over a real kernel and a link of 20 ms each way."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from probe_counts import MSS, PATH, WINDOWS, probed
from testbeds import has_tun, refusal

PROGRAMS = {"nginx": "nginx-light", "apache2": "apache2-bin"}
pytestmark = [
    pytest.mark.skipif(refusal() is not None, reason=f"no testbed here: {refusal()}"),
    pytest.mark.skipif(not has_tun(), reason="no TUN devices here"),
]


def _probed(server: str, windows: list[int], **case: Any) -> list[list[dict[str, Any]]]:
    for program, package in {server: PROGRAMS[server], "openssl": "openssl", "curl": "curl"}.items():
        if shutil.which(program, path=PATH) is None:
            pytest.skip(f"there is no {program}; apt-get install {package}")
    case = {"mss": [64], "repeats": 1, "urls": ["https://{server}/large"]} | case
    return probed(case | {"server": server, "windows": windows})


def _windows(answers: list[list[dict[str, Any]]]) -> list[int | None]:
    """The window in each answer, where it has one."""
    told = []
    for answer in (answer for of_window in answers for answer in of_window):
        assert answer["error"] is None
        told += [None if window["at_least"] else window["segments"] for window in answer["verdict"]["windows"]]
    return told


def _control(name: str) -> str:
    allowed = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    if name not in allowed:
        pytest.skip(f"this kernel has no {name}; modprobe tcp_{name}")
    return name


@pytest.mark.parametrize("server", sorted(PROGRAMS))
def test_every_window_is_found_without_tls(server: str) -> None:
    asked = [1, 2, 4, 7, 10, 23, 64]
    found = _probed(server, asked, urls=["http://{server}/large"], mss=[64, 536], repeats=2)
    assert _windows(found) == [window for window in asked for _ in range(2)]


@pytest.mark.parametrize(("server", "control", "http2"), [("nginx", "bbr", False), ("apache2", "cubic", True)])
def test_every_window_is_found_over_tls(server: str, control: str, http2: bool) -> None:
    case = {"control": _control(control), "http2": http2, "tls": "1.3", "mss": MSS, "repeats": 2}
    found = _probed(server, list(WINDOWS), **case)
    assert _windows(found) == [window for window in WINDOWS for _ in MSS]
    spoken = {flight["protocol"] for (answer,) in found for flight in answer["flights"]}
    assert spoken == {f"TLS 1.3, HTTP/{2 if http2 else 1.1}"}


@pytest.mark.parametrize(("padding", "intermediates"), [(0, 0), (0, 1), (0, 2), (3000, 1), (11_000, 1)])
def test_the_certificate_flight_is_measured_and_its_post_quantum_size_estimated(
    padding: int, intermediates: int
) -> None:
    case = {"chain": [padding, intermediates], "tls": "1.3", "mss": [1460]}
    ((answer, openssl),) = _probed("nginx", [10], **case)
    assert answer["error"] is None
    usual, long = answer["handshakes"]
    # A signature of ECDSA has 70 to 72 bytes.
    assert abs(usual["flight_bytes"] - openssl["read"]) <= 4
    assert len(usual["certificate_bytes"]) == intermediates + 1
    assert usual["hello_bytes"] < 1448 < long["hello_bytes"] < 2 * 1448
    assert abs(long["flight_bytes"] - usual["flight_bytes"]) <= 4
    assert usual["record_bytes"] == 16_384
    assert len(usual["tickets"]) == 2
    # Key and signature of FIPS 204 for those of P-256 in each certificate, a signature, and the share of ML-KEM-768.
    more = (intermediates + 1) * (1312 + 2420 - 91 - 72) + 2420 - 72 + 1088
    assert abs(usual["post_quantum_bytes"] - usual["flight_bytes"] - more) <= 40 * (intermediates + 1)
    (flight, _, hellos) = answer["lines"]
    # On a busy machine nginx writes late, which makes a window "at least" 10; other tests ask for exact ones.
    at_least = answer["verdict"]["windows"][-1]["at_least"]
    longer = "the round trips depend on its whole IW" if at_least else "1 round trip more"
    trips = longer if usual["flight_bytes"] + more > 10 * 1448 else "no round trip more"
    assert flight.startswith(f"certificate flight {usual['flight_bytes']:,} bytes")
    assert f"fits into its IW of {'at least ' * at_least}10" in flight
    assert flight.endswith(trips)
    assert hellos.endswith("QUIC is not probed")


def test_what_linux_holds_back_is_found() -> None:
    # Each write would leave more than a window's last segments to the next ACK, if it waited for it.
    case = {"control": _control("bbr"), "link": {"delay_ns": 1_000_000}, "sysctl": {"tcp_tso_win_divisor": 1}}
    asked = [16, 32, 64]
    assert _windows(_probed("nginx", asked, mss=[1460], repeats=3, **case)) == asked


SESSIONS = {
    "TLS 1.3, no tickets": {"tls": "1.3", "more": "ssl_session_tickets off;"},
    "TLS 1.2, tickets": {"tls": "1.2", "more": "ssl_session_tickets on;"},
    "TLS 1.2, session cache": {
        "tls": "1.2",
        "more": "ssl_session_tickets off; ssl_session_cache shared:sessions:1m;",
    },
}


@pytest.mark.parametrize("session", sorted(SESSIONS))
def test_sessions_that_the_server_keeps_change_no_count(session: str) -> None:
    asked = [4, 10, 32]
    # Of three connections the server could resume the second and third.
    found = _probed("nginx", asked, mss=[536], repeats=3, **SESSIONS[session])
    assert _windows(found) == asked
    assert {flight["status"] for (answer,) in found for flight in answer["flights"]} == {200}


def test_a_server_that_had_not_the_time_to_send_all_is_never_called_sure() -> None:
    # It writes 5 kB, and the rest a second later.
    slow = {"urls": ["http://{server}/large", "https://{server}/large"], "more": "limit_rate 5k;"}
    assert _windows(_probed("nginx", [64], mss=[536], repeats=2, **slow)) == [None, None]


def test_a_redirection_is_followed_also_over_http2_and_a_small_object_gives_a_lower_bound() -> None:
    urls = ["https://{server}/moved", "http://{server}/small"]
    (moved, small) = _probed("nginx", [32], urls=urls, mss=[1460], repeats=2, http2=True, tls="1.3")[0]
    assert moved["url"] == "https://10.77.0.2/large"
    assert moved["verdict"]["windows"][0]["segments"] == 32
    assert {flight["protocol"] for flight in moved["flights"]} == {"TLS 1.3, HTTP/2"}
    (window,) = small["verdict"]["windows"]
    assert window["at_least"]
    assert "the object is too small" in window["doubts"][0]


def test_a_paced_flight_is_counted_and_called_so() -> None:
    far = {"rate_bps": None, "delay_ns": 100_000_000}
    urls = ["http://{server}/large"]
    (answer,) = _probed("nginx", [40], control=_control("bbr"), link=far, urls=urls, mss=[1460], repeats=3)[0]
    (window,) = answer["verdict"]["windows"]
    assert (window["segments"], window["shape"]) == (40, "paced")


def test_losses_are_seen_and_the_window_is_still_found() -> None:
    lossy = {"loss": 0.03}
    (answer,) = _probed("nginx", [20], link=lossy, mss=[536], repeats=12)[0]
    (window,) = answer["verdict"]["windows"]
    assert window["segments"] == 20
    assert window["agreeing"] >= 2
    assert any(flight["lost"] for flight in answer["flights"])
