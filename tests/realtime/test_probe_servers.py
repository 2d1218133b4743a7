"""Initial windows of real web servers, over a real kernel and a link of 20 ms each way."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import testbeds
from testbeds import has_tun, refusal

CHILD = Path(testbeds.__file__).parent / "probe_child.py"
PROGRAMS = {"nginx": "nginx-light", "apache2": "apache2-bin"}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
pytestmark = [
    pytest.mark.skipif(refusal() is not None, reason=f"no testbed here: {refusal()}"),
    pytest.mark.skipif(not has_tun(), reason="no TUN devices here"),
]


def _probed(server: str, windows: list[int], **case: Any) -> list[list[dict[str, Any]]]:
    for program, package in {server: PROGRAMS[server], "openssl": "openssl", "curl": "curl"}.items():
        if shutil.which(program, path=_PATH) is None:
            pytest.skip(f"there is no {program}; apt-get install {package}")
    case = {"mss": [64], "repeats": 1, "urls": ["https://{server}/large"]} | case
    # All of it ends with the first process of the namespace.
    own = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    command = [*own, sys.executable, str(CHILD)]
    asked = json.dumps(case | {"server": server, "windows": windows})
    child = subprocess.run(
        [*command, asked], capture_output=True, text=True, timeout=300, check=False, env={"PATH": _PATH}
    )
    assert child.returncode == 0, child.stderr
    found: list[list[dict[str, Any]]] = json.loads(child.stdout)
    return found


def _windows(answers: list[list[dict[str, Any]]]) -> list[int | None]:
    """The window that each answer tells, where it tells one."""
    told = []
    for answer in (answer for of_window in answers for answer in of_window):
        assert answer["error"] is None
        told += [None if window["at_least"] else window["segments"] for window in answer["verdict"]["windows"]]
    return told


@pytest.mark.parametrize("server", sorted(PROGRAMS))
def test_every_window_is_found_without_tls(server: str) -> None:
    asked = [1, 2, 3, 4, 7, 10, 11, 16, 23, 32, 46, 64]
    found = _probed(server, asked, urls=["http://{server}/large"], mss=[64, 536])
    assert _windows(found) == [window for window in asked for _ in range(2)]


@pytest.mark.parametrize("server", sorted(PROGRAMS))
def test_a_window_that_the_handshake_fills_is_found_over_tls(server: str) -> None:
    asked = [1, 2, 3, 4, 7, 10]
    assert _windows(_probed(server, asked)) == asked


def test_behind_a_handshake_that_leaves_room_the_count_is_a_lower_bound() -> None:
    asked = [16, 32, 64]
    for window, (answer,) in zip(asked, _probed("nginx", asked, mss=[536]), strict=True):
        (found,) = answer["verdict"]["windows"]
        assert found["at_least"]
        assert 10 <= found["segments"] <= window


SESSIONS = {
    "TLS 1.3, tickets": {"tls": "ssl_protocols TLSv1.3; ssl_session_tickets on;"},
    "TLS 1.3, no tickets": {"tls": "ssl_protocols TLSv1.3; ssl_session_tickets off;"},
    "TLS 1.2, tickets": {"tls": "ssl_protocols TLSv1.2; ssl_session_tickets on;"},
    "TLS 1.2, session cache": {
        "tls": "ssl_protocols TLSv1.2; ssl_session_tickets off; ssl_session_cache shared:sessions:1m;"
    },
    "TLS 1.3, HTTP/2": {"http2": True, "tls": "ssl_protocols TLSv1.3;"},
}


@pytest.mark.parametrize("session", sorted(SESSIONS))
def test_a_server_that_keeps_sessions_or_speaks_http2_changes_no_count(session: str) -> None:
    asked = [4, 10]
    # Of three connections the server could resume the second and third.
    for window, (answer,) in zip(asked, _probed("nginx", asked, repeats=3, **SESSIONS[session]), strict=True):
        (found,) = answer["verdict"]["windows"]
        assert (found["segments"], found["at_least"], found["agreeing"], found["confidence"]) == (
            window,
            False,
            3,
            "sure",
        )
    # Tickets that come before the response are part of the flight.
    (answer,) = _probed("nginx", [32], mss=[536], repeats=3, **SESSIONS[session])[0]
    (found,) = answer["verdict"]["windows"]
    assert found["at_least"]
    assert 10 <= found["segments"] <= 32
    assert any("TLS handshake left room" in doubt for doubt in found["doubts"])
    assert {flight["status"] for flight in answer["flights"]} == {200}


def test_a_redirection_is_followed_and_a_small_object_gives_a_lower_bound() -> None:
    (moved, small) = _probed("nginx", [32], urls=["http://{server}/moved", "http://{server}/small"], mss=[1460])[0]
    assert moved["url"] == "http://10.77.0.2/large"
    assert moved["verdict"]["windows"][0]["segments"] == 32
    (window,) = small["verdict"]["windows"]
    assert window["at_least"]
    assert "the object is too small" in window["doubts"][0]


def test_a_paced_flight_is_counted_and_called_so() -> None:
    allowed = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    if "bbr" not in allowed:
        pytest.skip("this kernel has no BBR, which paces; modprobe tcp_bbr")
    far = {"rate_bps": None, "delay_ns": 100_000_000}
    urls = ["http://{server}/large"]
    (answer,) = _probed("nginx", [40], control="bbr", link=far, urls=urls, mss=[1460], repeats=3)[0]
    (window,) = answer["verdict"]["windows"]
    assert (window["segments"], window["shape"]) == (40, "paced")


def test_losses_are_seen_and_the_window_is_still_found() -> None:
    lossy = {"loss": 0.03}
    (answer,) = _probed("nginx", [20], link=lossy, mss=[536], repeats=12)[0]
    (window,) = answer["verdict"]["windows"]
    assert window["segments"] == 20
    assert window["agreeing"] >= 2
    assert any(flight["lost"] for flight in answer["flights"])
