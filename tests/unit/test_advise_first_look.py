"""Problems of the flows themselves are reported before any simulation, with a fix."""

from pathlib import Path
from typing import Any

import pytest

import advise_flows
from firstflight import observe
from firstflight.advise import advise
from firstflight.advise.first_look import doubts
from firstflight.advise.fit import fit
from firstflight.analysis.ab import least_units
from firstflight.errors import RequestError


def said(path: Path) -> str:
    seen = observe.read(path)
    return " ".join(doubts(seen, fit(seen, 10_000, 1)))


def near(path: Path, rtt_us: int, address: str = "10.0.{}.7") -> Path:
    rows = "\n".join(f"{rtt_us},9000,{address.format(i % 200)}" for i in range(500))
    path.write_text(f"rtt_us,bytes,remote_addr\n{rows}\n")
    return path


@pytest.fixture(autouse=True)
def _nothing_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulated(*_: Any, **__: Any) -> None:
        pytest.fail("something was simulated")

    monkeypatch.setattr("firstflight.studies.execute.prepare", simulated)


def test_too_few_flows_are_refused_with_how_many_it_takes(tmp_path: Path) -> None:
    flows = advise_flows.write(tmp_path / "flows.csv", 24)
    flows.write_text(flows.read_text() + "odd\n")
    few = f"flows.csv has 24 usable connections, too few .* takes {least_units('mean'):,}.* fields.*line 26"
    with pytest.raises(RequestError, match=few):
        advise(flows, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_few_that_were_sampled_from_more_name_the_option_that_limits_them(tmp_path: Path) -> None:
    flows = advise_flows.write(tmp_path / "flows.csv", 1000)
    with pytest.raises(RequestError, match=f"give --max-connections {least_units('mean'):,} or more"):
        advise(flows, max_connections=100, out=tmp_path / "out")


def test_round_trips_of_a_machine_room_ask_for_the_load_balancer(tmp_path: Path) -> None:
    assert "median RTT 0.017 ms: is this log from behind a load balancer?" in said(near(tmp_path / "f.csv", 17))


def test_connections_of_one_network_ask_for_the_proxy(tmp_path: Path) -> None:
    found = said(near(tmp_path / "f.csv", 20_000, "10.0.0.{}"))
    assert "all 500 connections come from one network" in found
    assert "Take the log of the proxy" in found


def test_flows_of_users_raise_no_doubts(tmp_path: Path) -> None:
    assert said(near(tmp_path / "f.csv", 20_000)) == ""


def test_a_doubt_is_told_before_the_simulation(tmp_path: Path) -> None:
    heard: list[str] = []
    with pytest.raises(pytest.fail.Exception, match="something was simulated"):
        advise(near(tmp_path / "f.csv", 17), out=tmp_path / "out", doubted=heard.append)
    assert "load balancer" in heard[0]
