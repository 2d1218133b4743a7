"""Recorded connections of a kernel: drawn, written as scripts, judged, shrunk; and a few of this machine's kernel."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from firstflight.cli.app import app
from firstflight.conform.oracle import JudgedConnection, judge, shrink
from firstflight.conform.packet import ACK, CE, ECE, SYN, Packet, ack_options, build, parse, syn_options
from firstflight.conform.parameters import FAMILIES, Parameters, draw, from_table, simpler
from firstflight.conform.peer import MS, ReceivingPeer
from firstflight.conform.writer import write_script
from testbeds import has_tun, refusal

KERNEL = (b"\xc0\xa8\x00\x01", 8080)
PEER = (b"\x0a\x00\x00\x01", 40_000)
ISN = 5_000


def _out(at_us: int, seq: int, length: int = 0, flags: int = ACK, options: bytes = b"") -> list[Any]:
    return ["out", at_us * 1_000, build(Packet(KERNEL, PEER, ISN + seq, 1, flags, 502, options, length))]


def _in(at_us: int, ack: int, flags: int = ACK, options: bytes = b"") -> list[Any]:
    seq, number = (0, 0) if flags & SYN else (1, ISN + ack)
    return ["in", at_us * 1_000, build(Packet(PEER, KERNEL, seq, number, flags, 65_535, options))]


def _recording(segments: int) -> dict[str, Any]:
    """A handshake with MSS 1000, and an application that writes 3000 bytes, of which this number of segments is
    sent.
    """
    events = [
        _in(0, 0, SYN, syn_options(1000, True, None, 7)),
        _out(20, 0, flags=SYN | ACK, options=syn_options(1460, True, None, 7)),
        _in(100_000, 1),
        ["accept", 100_050_000, None],
        ["write", 100_060_000, 3000],
        *(_out(100_070 + 10 * n, 1 + 1000 * n, 1000) for n in range(segments)),
        _in(200_100, 1 + 1000 * segments),
    ]
    return {"events": events, "tick_ns": 4_000_000, "clock_ns": 8_000_000, "stall_ns": 0}


def test_a_packet_is_read_as_it_was_made() -> None:
    packet = Packet(PEER, KERNEL, 7, 9, ACK | ECE, 100, ack_options((1, 2), [(5, 6)]), 33, CE)
    data = build(packet)
    assert parse(data) == packet
    assert parse(data[:128]) == packet, "the payload may be cut off"
    assert packet.written_options(4) == "nop,nop,TS val 1 ecr 2,nop,nop,sack 1:2"
    assert (packet.mark(), packet.letters()) == ("[ce] ", "E.")
    assert parse(b"\x60" + bytes(60)) is None
    assert build(Packet(PEER, KERNEL, 0, 0, SYN, 0, syn_options(1000, False, None, -1)))[40:] == b"\x02\x04\x03\xe8"


def test_draws_are_the_same_for_a_seed_and_number_and_survive_json() -> None:
    for number in range(100):
        drawn = [draw(Random(f"1 {number}"), number, ["cubic", "reno"]) for _ in range(2)]
        assert drawn[0] == drawn[1]
        assert from_table(asdict(drawn[0])) == drawn[0]
    assert {draw(Random(1), number, ["reno"]).family for number in range(100)} == set(FAMILIES)


def test_each_simpler_connection_is_another_and_simplifying_ends() -> None:
    for number in range(60):
        parameters = draw(Random(f"2 {number}"), number, ["cubic", "reno"])
        for _ in range(1000):
            less = list(simpler(parameters))
            assert parameters not in less
            if not less:
                break
            parameters = less[-1]
        else:
            pytest.fail(f"{parameters} is never simple")


def test_a_recording_becomes_a_script_whose_clock_is_the_kernels() -> None:
    script = write_script(Parameters("plain", iw=2, writes=((0, 3000),)), _recording(2), "a kernel")
    assert "--clock_usecs=7000\n" in script, "1 ms before the SYN, 8 ms on"
    assert "initcwnd 2`" in script
    assert "0.001000 < S 0:0(0) win 65535 <mss 1000,nop,nop,sackOK,nop,wscale 7>\n" in script
    assert "0.101060 write(4, ..., 3000) = 3000\n" in script
    assert "0.101080 > . 1001:2001(1000) ack 1\n" in script


def test_a_recording_that_the_profile_repeats_matches_and_another_is_cut_after_the_difference() -> None:
    same = judge(Parameters("plain", iw=2, writes=((0, 3000),)), _recording(2), "a kernel")
    assert (same.verdict, same.reason) == ("pass", "")
    other = judge(Parameters("plain", iw=2, writes=((0, 3000),)), _recording(3), "a kernel")
    assert other.verdict == "differs"
    assert other.script.splitlines()[-1].startswith("0.101090 > . 2001:3001(1000)")
    assert other.part == "nothing was sent by n"
    nothing = judge(Parameters("plain"), _recording(2) | {"events": _recording(2)["events"][:1]}, "a kernel")
    assert not nothing.matches


def test_what_parts_is_named_without_its_numbers() -> None:
    reason = "line 9: assert tcpi_snd_cwnd == 20 and tcpi_lost == 0: tcpi_snd_cwnd is 16, tcpi_lost is 0"
    assert JudgedConnection(Parameters("plain"), "", "differs", reason).part == "tcpi_snd_cwnd"


def test_a_mismatch_shrinks_to_what_it_needs() -> None:
    drawn = Parameters(
        "random losses", cc="reno", iw=20, mss=536, losses=((3, 1), (5, 1), (7, 1)), writes=((0, 21_440),)
    )

    def record(connections: Sequence[Parameters]) -> list[JudgedConnection]:
        differs = [(5, 1) in one.losses and one.cc == "reno" for one in connections]
        script = ["\n" * (len(one.losses) + one.iw + sum(n for _, n in one.writes)) for one in connections]
        verdicts = ["differs" if bad else "pass" for bad in differs]
        return [JudgedConnection(*one) for one in zip(connections, script, verdicts, strict=True)]

    (found,) = shrink(record([drawn]), record)
    assert found.parameters.losses == ((5, 1),)
    assert (found.parameters.cc, found.parameters.iw) == ("reno", 1)


class _Wire:
    """Records a peer's actions, in order of time."""

    def __init__(self) -> None:
        self.agenda: list[tuple[int, Any]] = []
        self.sent: list[tuple[int, list[tuple[int, int]]]] = []
        self.flags: list[int] = []
        self.asked = 0

    def at(self, time: int, action: Any) -> None:
        self.agenda.append((time, action))

    def send(
        self, seq: int, ack: int, length: int, blocks: list[tuple[int, int]], echo: int, flags: int = 0, ecn: int = 0
    ) -> None:
        self.sent.append((ack, blocks))
        self.flags.append(flags)
        self.asked += length

    def run(self) -> None:
        while self.agenda:
            self.agenda.sort(key=lambda entry: entry[0])
            self.agenda.pop(0)[1]()


def test_the_scripted_receiver_loses_what_it_is_told_and_reports_what_it_has() -> None:
    wire = _Wire()
    peer = ReceivingPeer(Parameters("plain", losses=((2, 1),)), wire)
    segment = Packet(KERNEL, PEER, 0, 1, ACK, 502, length=1000)
    for number in range(4):
        peer.on_packet(0, 1 + 1000 * number, 1, segment)
    wire.run()
    peer.on_packet(500 * MS, 1001, 1, segment)
    peer.on_packet(500 * MS, 1001, 1, segment)
    wire.run()
    assert wire.sent == [
        (1001, []),
        (1001, [(2001, 3001)]),
        (1001, [(2001, 4001)]),
        (4001, []),
        (4001, [(1001, 2001)]),
    ]
    assert peer.has_all(4000)


def test_the_scripted_client_asks_again_once_the_answer_is_complete() -> None:
    wire = _Wire()
    peer = ReceivingPeer(Parameters("TLS", requests=(1750, 64, 200), writes=((0, 2000), (0, 0), (0, 1000))), wire)
    peer.start(0)
    wire.run()
    assert wire.asked == 1750
    segment = Packet(KERNEL, PEER, 0, 1, ACK, 502, length=1000)
    peer.on_packet(0, 1, 1751, segment)
    wire.run()
    assert wire.asked == 1750
    peer.on_packet(0, 1001, 1751, segment)
    wire.run()
    assert wire.asked == 1750 + 64 + 200, "no answer is to come between the two"


def test_the_scripted_receiver_changes_its_window_answers_probes_and_echoes_marks() -> None:
    wire = _Wire()
    peer = ReceivingPeer(Parameters("windows", windows=((0, 8000), (50, 0)), marks=(2,)), wire)
    assert [peer.window(shift) for shift in (0, 7)] == [8000, 62]
    peer.start(0)
    wire.run()
    assert (peer.window(0), wire.sent) == (0, [(1, [])])
    peer.on_packet(60 * MS, 0, 1, Packet(KERNEL, PEER, 0, 1, ACK, 502))
    for seq in (1, 1001):
        peer.on_packet(60 * MS, seq, 1, Packet(KERNEL, PEER, 0, 1, ACK, 502, length=1000))
    wire.run()
    assert wire.sent == [(1, []), (1, []), (1001, []), (2001, [])]
    assert wire.flags == [0, 0, 0, ECE]


def test_a_few_connections_of_this_kernel_are_recorded_judged_and_kept(tmp_path: Path) -> None:
    if refusal() or not has_tun():
        pytest.skip(refusal() or "this machine has no TUN device")
    kept = tmp_path / "scripts"
    result = CliRunner().invoke(app, ["conform", "--count", "3", "--seed", "5", "--cc", "reno", "--record", str(kept)])
    assert result.exit_code in (0, 1), result.output
    assert "of    3 match" in result.output
    scripts = sorted(kept.glob("[0-9]*.pkt"))
    assert len([script for script in scripts if "shrunk" not in script.name]) == 3
    for script in scripts:
        assert " accept(3, ..., ...) = 4" in script.read_text(encoding="utf-8"), script.name
    again = CliRunner().invoke(app, ["conform", "--record", str(kept)])
    assert "no empty directory" in str(again.exception)


def test_a_congestion_control_that_the_kernel_lacks_is_named() -> None:
    if refusal() or not has_tun():
        pytest.skip(refusal() or "this machine has no TUN device")
    result = CliRunner().invoke(app, ["conform", "--count", "1", "--cc", "nosuch"])
    assert 'no congestion control "nosuch"' in str(result.exception) + result.output
