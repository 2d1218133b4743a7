"""Streams of datagrams over a testbed: the settings of its programs, and the account of their packets."""

import json
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from firstflight import Cell, Scenario, _native
from firstflight.engines.emulate.inside import exchange
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.emulate.prepared import Prepared
from firstflight.errors import RequestError
from firstflight.records.schema import from_native

SCENARIO = """
name = "streams"
duration = "2s"

[tcp]
profile = "linux"

[network]
topology = "dumbbell"
bottleneck = { rate = "1Mbit", delay = "20ms", queue = "10p" }
left = { count = 1, rate = "50Mbit", delay = "1ms", queue = "1000p" }
right = { count = 1, rate = "50Mbit", delay = "1ms", queue = "1000p" }

[[application]]
"""
CALL = 'name = "call"\nkind = "voice"\nplayout = "60ms"\n'


def scenario(application: str) -> Scenario:
    return Scenario.from_toml(SCENARIO + application)


def prepared(application: str) -> Prepared:
    wanted = scenario(application)
    return Prepared(Cell({}, wanted), lay_out(wanted))


def seen(**more: Any) -> dict[str, Any]:
    return {"replicate": 3, "application": 0, "arm": 0, "client": 0, "from_server": True, "lost": 0} | more


def report(application: str, *streams: dict[str, Any]) -> list[dict[str, Any]]:
    wanted = scenario(application)
    columns = _native.stream_reports(json.dumps(wanted.to_plan()), json.dumps(streams))
    return from_native("streams", columns, {"application": wanted.recorded_names()}).to_dicts()


def test_both_ends_of_a_call_are_told_when_and_what_to_send() -> None:
    told = prepared(CALL)
    (application,) = told.applications
    assert [(flow["from_server"], flow["interval_ns"], flow["header_bytes"]) for flow in application["flows"]] == [
        (False, 20_000_000, 40),
        (True, 20_000_000, 40),
    ]
    # 64 kbit/s for 20 ms.
    assert all(flow["payload"] == {"distribution": "constant", "value": 160.0} for flow in application["flows"])
    assert (told.hosts, told.servers) == ({}, {})


def test_a_client_may_send_alone() -> None:
    (application,) = prepared(CALL + 'direction = "upload"\n').applications
    assert [flow["from_server"] for flow in application["flows"]] == [False]


def test_a_datagram_that_misses_its_time_is_late_and_one_that_never_came_is_lost() -> None:
    ms = 1_000_000
    sent = [[20 * ms * number, 160] for number in range(10)]
    # Delays of 30 ms; the third takes 91 ms, a millisecond beyond its time; the fifth is lost, the last is in flight.
    delays = {number: 30 for number in range(9) if number != 4} | {2: 91}
    arrived = sorted(([number, (20 * number + delay) * ms] for number, delay in delays.items()), key=lambda one: one[1])
    (row,) = report(CALL, seen(sent=sent, arrived=arrived, lost=1))
    assert (row["replicate"], row["application"], row["from_server"]) == (3, "call", 1)
    assert (row["packets_sent"], row["bytes_sent"]) == (10, 2000)
    assert (row["packets_received"], row["packets_lost"], row["packets_late"]) == (8, 1, 1)
    # It came behind the four that were sent after it and arrived.
    assert row["packets_reordered"] == 1
    assert row["delay_min_s"] == pytest.approx(0.030)
    assert row["delay_max_s"] == pytest.approx(0.091)
    assert row["delay_mean_s"] == pytest.approx((7 * 0.030 + 0.091) / 8)
    # A frame, the first one's delay, and the play-out.
    assert row["mouth_to_ear_s"] == pytest.approx(0.020 + 0.030 + 0.060)


def test_a_stream_that_nobody_sends_is_refused() -> None:
    upload = CALL + 'direction = "upload"\n'
    for stream in (
        seen(sent=[[0, 160]], arrived=[]),
        seen(from_server=False, sent=[[0, 160]], arrived=[[1, 5]]),
        seen(from_server=False, application=1, sent=[], arrived=[]),
    ):
        with pytest.raises(ValueError, match="no client 0 of application"):
            report(upload, stream)


@pytest.mark.parametrize(
    ("application", "problem"),
    [
        ('kind = "dns"\nname = "names"\nthink_time = "1s"\n', "application.names.kind: the emulator looks no names up"),
        (CALL + 'header_size = "20B"\n', "application.call.header_size: real datagrams have 28 B of IP and UDP"),
    ],
)
def test_what_no_program_sends_is_refused_by_its_key(application: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        prepared(application)


def test_a_datagram_that_another_overtakes_is_waited_for() -> None:
    source, path, target = ends = [exchange.opened(socket.AF_INET) for _ in range(3)]
    for end in ends:
        end.bind(("127.0.0.1", 0))
    stream = {"from": source.fileno(), "to": target.fileno(), "address": path.getsockname(), "interval_ns": 1}
    told = {"streams": [stream | {"start_ns": time.monotonic_ns(), "sizes": [50, 50]}], "patience_s": 20.0}
    command = [sys.executable, "-I", exchange.__file__]
    keeps = [source.fileno(), target.fileno()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=keeps) as program:
        assert program.stdin is not None
        program.stdin.write(json.dumps(told) + "\n")
        program.stdin.flush()
        first, second = path.recv(100), path.recv(100)
        path.sendto(second, target.getsockname())
        # Longer than the program needs to end if it waits for the last one only.
        time.sleep(0.3)
        path.sendto(first, target.getsockname())
        output, _ = program.communicate()
    for end in ends:
        end.close()
    found = json.loads(output)
    assert [number for number, _ in found["arrived"][0]] == [1, 0]
    assert len(found["sent"][0]) == 2
