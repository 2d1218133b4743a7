"""QUIC in the testbed: what is refused, and what the packets at a link show."""

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import firstflight
from firstflight.engines.emulate import campaign, quic
from firstflight.engines.emulate.inside import clients
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.emulate.prepared import Prepared
from firstflight.engines.emulate.quic import SeenDatagram, columns
from firstflight.errors import MachineError, RequestError
from firstflight.scenario import Cell, Scenario

SCENARIO = """
name = "first-flight"
duration = "2s"
[tcp]
profile = "linux"
[network]
topology = "chain"
links = { rate = "100Mbit", delay = "50ms", queue = "200p" }
[[application]]
name = "download"
kind = "file_transfer"
size = "20kB"
count = 1
transport = "quic"
tls = "ml-dsa-44"
"""


def scenario(**changed: Any) -> Scenario:
    """The one above with keys of its application changed."""
    return Scenario.from_toml(SCENARIO).replace_all(
        {f"application.download.{key.replace('__', '.')}": value for key, value in changed.items()}.items()
    )


def prepared(of: Scenario) -> Prepared:
    return Prepared(Cell({}, of), lay_out(of))


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "firstflight-quic"
    program.touch()
    monkeypatch.setattr(quic, "_QUINN", program)
    return program


@pytest.mark.parametrize(("engine", "who"), [("simulate", "the simulator"), ("model", "the model")])
def test_engines_without_quic_refuse_it_in_one_sentence(engine: str, who: str) -> None:
    with pytest.raises(RequestError) as refused:
        firstflight.run(scenario(), engine=engine)
    assert str(refused.value) == (
        f'application.download.transport: {who} has no QUIC; write "tcp", or run real stacks with --engine emulate'
    )


def test_quic_without_tls_and_a_stack_without_quic_are_refused() -> None:
    with pytest.raises(RequestError, match=r'transport is "quic", which always has TLS, but tls is "none"'):
        scenario(tls="none")
    with pytest.raises(RequestError, match=r'quic_stack is "aioquic", but transport is "tcp"'):
        scenario(transport="tcp", quic_stack="aioquic")


def test_without_the_program_the_command_that_builds_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "_QUINN", Path("/nowhere/firstflight-quic"))
    with pytest.raises(MachineError, match="not built") as refused:
        prepared(scenario())
    assert "make quic" in str(refused.value)


def test_the_stack_gets_the_scenario_s_window_datagrams_and_flights(built: Path) -> None:
    of = scenario(server_tcp__initial_window=32, server_tcp__congestion_control="reno")
    (told,) = prepared(of).servers.values()
    assert told["quic"] == {
        "command": [str(built)],
        "server": {
            "datagram_bytes": 1448,
            "congestion_control": "reno",
            "flight_bytes": 11_774,
            "initial_window_bytes": 32 * 1448,
        },
        "client": {"datagram_bytes": 1448, "hello_bytes": 1506, "request_bytes": 80},
    }


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"direction": "upload"}, r"direction: the emulator does downloads only"),
        ({"tcp__mss": "536B"}, r"mss: its segments have 524B, but datagrams of QUIC have 1200B at least"),
        ({"tls": "tranco-2026-ml-dsa-44"}, r"tls: over QUIC all handshakes have the same bytes"),
        ({"tls": {"resumption": 0.5}}, r"tls: over QUIC all handshakes are full ones of one chain"),
        ({"tls": "tranco-2026"}, r"tls: over QUIC all handshakes have the same bytes"),
        ({"tls": {"flights": [["server", "200B"]]}}, r"tls.flights: a handshake of QUIC has a flight of the client"),
    ],
)
@pytest.mark.usefixtures("built")
def test_what_the_stack_cannot_do_is_refused_by_its_key(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        prepared(scenario(**changed))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("first", ["tcp", "quic"])
def test_a_host_serves_tcp_or_quic(first: str) -> None:
    second = {"tcp": "quic", "quic": "tcp"}[first]
    table = SCENARIO[SCENARIO.index("[[application]]") :].replace('"download"', '"other"')
    both = SCENARIO.replace('"quic"', f'"{first}"') + table.replace('"quic"', f'"{second}"')
    both = both.replace('"tcp"\ntls = "ml-dsa-44"', '"tcp"').replace('"linux"', '"linux"\nnagle = "off"')
    of = Scenario.from_toml(both)
    with pytest.raises(RequestError, match="a server over QUIC shares host node"):
        prepared(of)


def header(kind: int, length: int = 0) -> bytes:
    """A long header of a packet type, with connection IDs of 8 bytes, of a packet that goes on for `length` bytes."""
    token = b"\0" if kind == 0 else b""
    return (
        bytes([0xC0 | kind << 4, 0, 0, 0, 1, 8, *bytes(8), 8, *bytes(8)]) + token + (0x4000 | length).to_bytes(2, "big")
    )


MS = 1_000_000
ALONE = header(0, 1200 - 26)
SHORT = b"\x40" + bytes(20)


def test_validation_ends_with_the_client_s_first_handshake_packet_and_the_ratio_is_the_largest_before() -> None:
    seen = [
        # Padded behind its packet.
        SeenDatagram(0, False, 1200, header(0, 300)),
        SeenDatagram(1 * MS, True, 1200, header(0, 100)),
        SeenDatagram(2 * MS, True, 1448, header(2, 1400)),
        SeenDatagram(3 * MS, True, 1448, header(2, 1400)),
        # An acknowledgment alone does not validate, and allows three times its bytes.
        SeenDatagram(100 * MS, False, 1200, ALONE),
        SeenDatagram(101 * MS, True, 1448, header(2, 1400)),
        # An Initial packet that leaves room for a Handshake packet.
        SeenDatagram(200 * MS, False, 1300, header(0, 100)),
        SeenDatagram(201 * MS, True, 1448, header(2, 1400)),
    ]
    found = columns(seen, 0.1, 100e6)
    assert (found["client_bytes"], found["server_bytes"], found["validation_s"]) == (2400, 5544, 0.2)
    assert found["amplification"] == pytest.approx(4096 / 1200)
    assert found["min_initial_bytes"] == 1200


def test_a_client_that_never_validates_has_no_time_of_it() -> None:
    found = columns([SeenDatagram(0, False, 1200, ALONE), SeenDatagram(MS, True, 1200, header(0, 1100))], 0.1, None)
    assert (found["validation_s"], found["amplification"], found["flight_bytes"]) == (None, 1.0, 0)


def test_the_first_flight_is_that_of_an_rtt_and_its_burst_what_left_the_link_no_time_to_idle() -> None:
    # At 10 Mbit/s a datagram of 1250 bytes takes 1 ms.
    back_to_back = [SeenDatagram(100 * MS + at * MS, True, 1250, SHORT) for at in range(4)]
    seen = [
        SeenDatagram(0, False, 1200, ALONE),
        SeenDatagram(1 * MS, False, 60, header(2, 30)),
        SeenDatagram(2 * MS, True, 130, SHORT),
        *back_to_back,
        SeenDatagram(120 * MS, True, 1250, SHORT),
        SeenDatagram(195 * MS, True, 1250, SHORT),
    ]
    found = columns(seen, 0.1, 10e6)
    assert (found["flight_bytes"], found["flight_s"], found["burst_bytes"]) == (5 * 1250, 0.02, 4 * 1250)


def test_datagrams_of_a_capture_file_are_sorted_by_connection(tmp_path: Path) -> None:
    def packet(source: int, target: int, ports: tuple[int, int], payload: bytes, protocol: int = 17) -> bytes:
        addresses = bytes([10, 77, 0, source, 10, 77, 0, target])
        udp = b"".join(port.to_bytes(2, "big") for port in (*ports, 8 + 1200, 0))
        return bytes([0x45, 0, *bytes(7), protocol, 0, 0]) + addresses + udp + payload

    def block(kind: int, body: bytes) -> bytes:
        length = (12 + len(body)).to_bytes(4, "little")
        return kind.to_bytes(4, "little") + length + body + length

    def captured(time_ns: int, data: bytes) -> bytes:
        words = (0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), 2000)
        return block(6, b"".join(word.to_bytes(4, "little") for word in words) + data + bytes(-len(data) % 4))

    file = (
        block(0x0A0D0D0A, bytes(16))
        + captured(5 << 32, packet(2, 1, (5000, 443), ALONE))
        + captured((5 << 32) + 1, packet(1, 2, (443, 5000), SHORT))
        + captured((5 << 32) + 2, packet(2, 1, (5001, 443), ALONE, protocol=6))
    )
    found = quic.seen_by_links(file, {"10.77.0.1"})
    assert list(found) == [("10.77.0.1", "10.77.0.2", 5000)]
    first, second = found["10.77.0.1", "10.77.0.2", 5000]
    assert (first, second) == (
        SeenDatagram(5 << 32, False, 1200, ALONE),
        SeenDatagram((5 << 32) + 1, True, 1200, SHORT),
    )
    assert columns([first, second], 0.1, None)["server_bytes"] == 1200


def test_a_missing_stack_ends_a_run_before_its_first_group_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "_QUINN", Path("/nowhere/firstflight-quic"))
    with pytest.raises(MachineError, match="not built"):
        campaign.together([Cell({}, scenario(transport="tcp")), Cell({}, scenario())])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MachineError, match="aioquic is not installed"):
        campaign.together([Cell({}, scenario(quic_stack="aioquic"))])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"server_tcp__initial_window": 32}, r"initial_window: that of aioquic is a constant, 10 datagrams"),
        ({"tls": {"chain": "ml-dsa-65", "intermediates": 2}}, r"tls: the server's flight has 21234B, and aioquic's at"),
    ],
)
def test_settings_that_aioquic_lacks_are_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        prepared(scenario(quic_stack="aioquic", **changed))


def test_a_client_that_has_reported_and_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_PATIENCE_S", 0.2)
    begun: list[subprocess.Popen[bytes]] = []

    def spawn(command: list[str], **pipes: Any) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen(["sh", "-c", "echo {}; exec sleep 20"], **pipes))
        return begun[-1]

    fetcher = clients.QuicClient(SimpleNamespace(name="client", spawn=spawn))  # type: ignore[arg-type]
    plan = {"quic": {"command": ["fetch"], "client": {}}}
    with pytest.raises(MachineError, match="the QUIC client on host client reported its transfer and did not end"):
        list(fetcher.fetch(plan, [("10.77.0.1", "1000")], 5.0))
    assert begun[0].returncode == -signal.SIGKILL
