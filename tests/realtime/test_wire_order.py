"""The same scenario in virtual time and over real devices, both ends ours: the same segments in the same order.

Each endpoint is compared separately: its segments sent and received, in the order there. Real time is
late by microseconds where virtual time is exact, so the scenarios keep events apart that could change places; and a
machine that stalls for milliseconds gets another chance.
"""

import numpy as np
import polars as pl
import pytest

import testbeds
from firstflight.engines.emulate.layout import lay_out
from firstflight.engines.simulate import capture
from firstflight.scenario import Scenario

SENT, RECEIVED = 0, 1
ENDS = {"client": 0, "server": 1}
CHANCES = 4
COLUMNS = ("event", "from_server", "seq", "length", "flags", "ack")
SCENARIO = """
name = "order"
duration = "20s"

[tcp]
stack = "firstflight"
{tcp}

[network]
topology = "chain"
links = {{ rate = "10Mbit", delay = "20ms", queue = "100p"{link} }}

[[application]]
kind = "file_transfer"
size = "100kB"
count = 1
request = "200B"
response_header = "200B"
"""
CASES = {
    "rfc": ('profile = "rfc"', ""),
    "ns-2 of 1998": ('profile = "ns2-full-1998"\nack = "every_segment"\nrto = { samples = "round_trip" }', ""),
    # Without CUBIC, whose slow start ends by microseconds (HyStart).
    "linux": ('profile = "linux"\nack = "every_segment"\ncongestion_control = "reno"', ""),
    "rfc with losses": ('profile = "rfc"\nack = "every_segment"', ", loss_list = [12, 30, 31]"),
    "linux with losses": ('profile = "linux"\nack = "every_segment"', ", loss_list = [12, 30, 31]"),
    "jump start": ('profile = "rfc"\nack = "every_segment"\nstartup = "jump_start"', ""),
    "paced": ('profile = "linux"\nack = "every_segment"\ninitial_window = 40\nstartup = "paced"', ""),
}


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


def on_the_wire(scenario: Scenario) -> dict[str, pl.DataFrame]:
    """The segments of the scenario's only transfer as both ends see them, on a testbed."""
    application = scenario.to_plan()["applications"][0]
    with testbeds.Lab(lay_out(scenario)) as lab:
        placement = lab.layout.placements[0]
        hosts = {"client": placement.clients[0], "server": placement.servers[0]}
        for host in hosts.values():
            lab.call("wire", host=host, do="take", plan={"segments": True})
        header_bytes = application["response_header_bytes"]
        profile = application["server_tcp"]
        lab.call("wire", host=hosts["server"], do="listen", port=80, profile=profile, header_bytes=header_bytes)
        what = {
            "fetch": 1,
            "server": f"{lab.layout.host(hosts['server']).address}:80",
            "paths": [f"/{int(application['size']['value'])}"],
            "close": True,
            "request_bytes": application["request_bytes"],
        }
        lab.call("wire", host=hosts["client"], do="fetch", profile=application["client_tcp"], what=what)
        for host, reports in ((hosts["client"], 2), (hosts["server"], 1)):
            for report in lab.call("wire_reports", host=host, count=reports, within_s=15.0):
                assert report.get("error") is None
                assert report.get("end", "closed") == "closed"
        taken = {end: lab.call("wire", host=host, do="take")["tables"]["segments"] for end, host in hosts.items()}
    return {
        end: pl.DataFrame({name: np.frombuffer(values, dtype=dtype) for name, (dtype, values) in columns.items()})
        for end, columns in taken.items()
    }


def in_virtual_time(scenario: Scenario) -> dict[str, pl.DataFrame]:
    """As `on_the_wire`, simulated."""
    segments = capture(scenario, 1)["segments"]
    mine, event = pl.col("from_server"), pl.col("event")
    return {
        end: segments.filter(((event == SENT) & (mine == side)) | ((event == RECEIVED) & (mine != side)))
        for end, side in ENDS.items()
    }


def first_difference(simulated: pl.DataFrame, real: pl.DataFrame) -> str | None:
    """The first difference of two sequences of segments, with the segment before it; None if they are equal."""
    rows = [list(frame.select(COLUMNS).iter_rows()) for frame in (simulated, real)]
    for index in range(max(map(len, rows))):
        found = [dict(zip(COLUMNS, row[index], strict=True)) if index < len(row) else None for row in rows]
        if found[0] != found[1]:
            before = rows[0][index - 1] if index else None
            return f"segment {index} (after {before}): simulated {found[0]}, on the wire {found[1]}"
    return None


def differences(scenario: Scenario, which: pl.Expr | None = None) -> list[str]:
    """Of one run after the other, the first difference at either end, until there is none."""
    simulated = in_virtual_time(scenario)
    told: list[str] = []
    for _ in range(CHANCES):
        real = on_the_wire(scenario)
        assert min(frame.height for frame in real.values()) > 70
        found = {}
        for end in ENDS:
            frames = [frames[end] if which is None else frames[end].filter(which) for frames in (simulated, real)]
            found[end] = first_difference(*frames)
        if not any(found.values()):
            return []
        told.append(str(found))
    return told


@pytest.mark.parametrize("case", CASES)
def test_segments_come_in_the_same_order_in_real_time(case: str) -> None:
    tcp, link = CASES[case]
    assert differences(Scenario.from_toml(SCENARIO.format(tcp=tcp, link=link))) == []


def test_linux_sends_the_same_data_in_the_same_order() -> None:
    # When Linux stops acknowledging each segment depends on round trips in whole milliseconds of a clock that stands
    # anywhere, so acknowledgments are not compared.
    scenario = Scenario.from_toml(SCENARIO.format(tcp='profile = "linux"', link=""))
    assert differences(scenario, (pl.col("event") == SENT) & (pl.col("length") > 0)) == []
