"""Advice on connections whose first flight is a handshake of TLS."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight import observe
from firstflight.advise import advise, experiment
from firstflight.advise.certificates import parse
from firstflight.advise.experiment import Experiment, complete
from firstflight.advise.first_look import doubts
from firstflight.advise.fit import FittedPopulation, fit
from firstflight.advise.sensitivity import SensitivityCase, assumptions, cases
from firstflight.errors import RequestError

FLOWS = 400
HEAD = "rtt_ms,down_mbps,bytes,segments_sent,retransmissions"


def some(population: FittedPopulation) -> list[SensitivityCase]:
    """Cases enough to see the handshake in all of them."""
    return [case for case in cases(population) if case.name in ("reference", "cross traffic")]


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "WORK", FLOWS)
    monkeypatch.setattr("firstflight.advise.run.cases", some)


def written(path: Path, columns: str, values: list[str]) -> Path:
    """Connections of 8 to 14 kB, each with the next of the `values` of the `columns`."""
    draws = random.Random(1)
    with path.open("w") as file:
        print(f"{HEAD},{columns}", file=file)
        for number in range(FLOWS):
            size = draws.choice([8000, 12_000, 14_000])
            rtt, rate = draws.uniform(20, 80), draws.uniform(10, 60)
            known = values[number % len(values)]
            print(f"{rtt:.1f},{rate:.1f},{size},{size // 1448 + 1},0,{known}", file=file)
    return path


def advised(path: Path, **asked: Any) -> dict[str, Any]:
    advise(path, iw="10,20", harm="retransmissions=+0.5,mean=+5%", out=path.parent / "out", jobs=1, **asked)
    found: dict[str, Any] = json.loads((path.parent / "out" / "advice.json").read_text())
    return found


def population(path: Path) -> FittedPopulation:
    return fit(observe.read(path), 10_000, 1)


def test_a_handshake_that_overflows_the_window_is_a_reason_to_raise_it(tmp_path: Path) -> None:
    found = advised(written(tmp_path / "flows.csv", "tls_bytes,tls_exchanges", ["20000,1"]))
    assert found["decision"]["initial_window"] == 20
    answer = " ".join(found["answer"])
    assert answer.startswith("Raise the initial window from 10 to 20 segments.")
    assert "The first flight is the TLS handshake: that of 100% of the users (median 20 kB)" in answer
    (mean,) = (gain for gain in found["gains"] if (gain["case"], gain["statistic"]) == ("reference", "mean"))
    # Of some four round trips of 50 ms in the mean one.
    assert mean["change_percent"]["value"] < -15


def test_a_handshake_that_fits_is_none(tmp_path: Path) -> None:
    found = advised(written(tmp_path / "flows.csv", "tls_bytes,tls_exchanges", ["4000,1"]))
    assert found["decision"]["initial_window"] == 10
    assert "The first flight" not in " ".join(found["answer"])


def test_each_user_has_their_own_handshake_or_none(tmp_path: Path) -> None:
    found = population(written(tmp_path / "flows.csv", "tls_bytes,tls_exchanges", ["20000,1", ",", "1400,1", "5000,2"]))
    users = complete(found, cases(found)[0], 1)
    assert users.columns["tls_bytes"][:4] == [20_000, 0, 1400, 5000]
    assert users.columns["tls_exchanges"][:4] == [1, 1, 1, 2]
    for case in cases(found):
        (cell, *_) = Experiment(found, [case], [10], 1).cells("simulate")
        response = next(each for each in cell.scenario.application if str(each.name).startswith("response"))
        assert response.model_dump()["tls"]["flights"] == "row"
        star = cell.scenario.star_of_users(1, users=4).to_dict()["application"]
        flights = [one["tls"]["flights"] if one.get("tls") else None for one in star if "response" in one["name"]][:4]
        assert [flight and [size for _, size in flight] for flight in flights] == [
            ["1506B", "20kB", "80B"],
            None,
            ["1506B", "1400B", "80B"],
            ["1506B", "5kB", "80B", "80B", "80B"],
        ]


def test_bytes_of_a_handshake_that_a_log_does_not_show_are_assumed(tmp_path: Path) -> None:
    found = population(
        written(tmp_path / "flows.csv", "tls_time_ms,tls_resumed", ["22,0", "22,1", ",0", ","]),
    )
    assert found.rows["tls_bytes"][:4].to_list() == [5440, 1370, 5440, None]
    assert found.assumed_percent("tls_bytes") == 75
    assert "the TLS handshake size of 75% of the users" in found.assumed
    (assumed,) = (each for each in assumptions(found) if each.what == "bytes of the TLS handshake")
    assert assumed.known_percent == 25


def test_the_time_of_a_handshake_shows_its_exchanges(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes,tls_time_ms\n" + "20,9000,21\n20,9000,44\n20,9000,5\n" * 200)
    assert population(path).rows["tls_exchanges"][:3].to_list() == [1, 2, 1]


def test_a_handshake_longer_than_the_first_flight_shows_the_window(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(
        "rtt_ms,bytes,segments_sent,first_flight_segments,tls_flight_bytes,tls_exchanges\n"
        + "20,9000,7,16,30000,1\n" * 30
    )
    current = population(path).current
    assert (current.window, current.flows) == (16, 30)


@pytest.mark.parametrize(("size", "overflows"), [(13_000, False), (14_480, True)])
def test_a_handshake_overflows_the_window_by_segments_as_they_are_written(
    tmp_path: Path, size: int, overflows: bool
) -> None:
    """14,480 bytes are ten full segments, but of writes of 4096 bytes the last one of each is short: 3 + 3 + 3 + 2."""
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes,tls_bytes,tls_exchanges\n" + f"20,9000,{size},1\n" * 300)
    assert bool(population(path).first_flight) == overflows


def test_other_certificates_cost_a_round_trip_that_a_larger_window_wins_back(tmp_path: Path) -> None:
    path = written(tmp_path / "flows.csv", "tls_bytes,tls_exchanges,tls_resumed", ["4000,1,0", "4000,1,0", "1400,1,1"])
    found = advised(path, certificates="ml-dsa-44,intermediates=2")["certificates"]
    # Two of three connections make a full handshake: 15,736 bytes do not fit into 14,480.
    assert found["flight_bytes"] == 15_736
    assert found["changed_percent"] == pytest.approx(100 * 267 / FLOWS)
    cells = {(one["certificates"], one["initial_window"], one["record_size"]): one for one in found["options"]}
    today, new = cells["as seen", 10, "16KiB"], cells["ml-dsa-44, intermediates=2", 10, "16KiB"]
    mean_rtt = 0.05
    assert new["handshake_s"] - today["handshake_s"] == pytest.approx(2 / 3 * mean_rtt, rel=0.15)
    assert (today["overflowing_percent"], round(new["overflowing_percent"])) == (0, 67)
    larger = cells["ml-dsa-44, intermediates=2", 20, "16KiB"]
    assert larger["handshake_s"] - today["handshake_s"] < 0.2 * mean_rtt
    assert cells["ml-dsa-44, leaf only", 10, "16KiB"]["overflowing_percent"] == 0
    small = cells["ml-dsa-44, intermediates=2", 10, "4KiB"]
    assert small["first_usable_byte_s"] <= new["first_usable_byte_s"]
    assert any("A window of 20" in sentence for sentence in found["answer"])


def test_without_handshakes_in_the_data_each_connection_is_assumed_to_make_one(tmp_path: Path) -> None:
    found = advised(written(tmp_path / "flows.csv", "tls_bytes", [""]), certificates="merkle-tree")["certificates"]
    assert (found["assumed"], found["changed_percent"]) == (True, 100)
    assert "assumed: the data shows no handshakes" in found["answer"][0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mldsa44", 'unknown chain "mldsa44"; did you mean "ml-dsa-44"?'),
        ("ml-dsa-44,leaf", '"leaf" is not intermediates=N with N from 0 to 10'),
        ("ml-dsa-44,intermediates=11", "with N from 0 to 10"),
    ],
)
def test_certificates_that_cannot_be_are_refused(text: str, said: str) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        parse(text)


def test_handshakes_that_take_two_round_trips_in_a_log_without_their_bytes_are_a_doubt(tmp_path: Path) -> None:
    head = "rtt_ms,bytes,tls_time_ms,tls_resumed\n"
    for lines, doubted in (("20,9000,44,0\n20,9000,21,0\n", True), ("20,9000,21,0\n", False)):
        path = tmp_path / "flows.csv"
        path.write_text(head + lines * 200)
        observed = observe.read(path)
        found = list(doubts(observed, fit(observed, 10_000, 1)))
        assert any("take two RTTs or more" in sentence for sentence in found) == doubted


@pytest.mark.parametrize("note", ["3 connections asked before the handshake was over (0-RTT)", "443: if it is TLS"])
def test_a_handshake_that_may_be_in_the_first_response_is_a_doubt(tmp_path: Path, note: str) -> None:
    path = written(tmp_path / "flows.csv", "tls_bytes,tls_exchanges", ["4000,1"])
    observed = observe.read(path)
    noted = replace(observed, source=replace(observed.source, notes=(note,)))
    assert not list(doubts(observed, fit(observed, 10_000, 1)))
    assert any(sentence.startswith(note) for sentence in doubts(noted, fit(noted, 10_000, 1)))
