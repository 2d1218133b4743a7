"""TLS 1.3 of nginx and OpenSSL over the kernel: the flights, rounds and draws of virtual time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import emulations
from firstflight import Cell, RequestError, Scenario
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign, prepared
from firstflight.records.schema import conforms

EXAMPLE = Scenario.load(Path(__file__).resolve().parents[2] / "examples" / "handshake.toml")
FILES = "application.file_transfer"


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    emulations.skip_unless_possible()


def changed(tls: Any, **keys: object) -> Scenario:
    scenario = EXAMPLE.replace(f"{FILES}.tls", "none").replace(f"{FILES}.tls", tls)
    for key, value in keys.items():
        scenario = scenario.replace(f"{FILES}.{key}", value)
    return scenario


def both(scenario: Scenario, replicates: int = 1) -> list[dict[str, pl.DataFrame]]:
    """The tables of the kernel and of virtual time."""
    cell = Cell({"c": 1}, scenario, capture=True)
    return [engine.run_cell(cell, 1, replicates) for engine in (campaign, simulate)]


def rounds(tables: dict[str, pl.DataFrame], column: str) -> float:
    """How many rounds the server had begun by the time in this column: the median, as a client may be told late."""
    ends = tables["transfers"].with_columns(end_ns=1e9 * (pl.col.start_s + pl.col(column)))
    sent = emulations.rounds(tables["segments"]).join(ends, on=["replicate", "connection"], validate="m:1")
    begun = sent.filter(pl.col.time_ns < pl.col.end_ns).group_by("replicate", "connection")
    median = begun.agg(pl.col.round.n_unique())["round"].median()
    assert isinstance(median, float)
    return median


def assert_rounds_of_virtual_time(chains: Sequence[tuple[str, int]], most: Mapping[str, int]) -> None:
    """Of chains with IW 10 and 20. `most`: by how much numbers of their handshakes may differ."""
    cells = [
        Cell(
            {"at": at},
            changed({"chain": chain, "intermediates": more}).replace("tcp.initial_window", window),
            capture=True,
        )
        for at, (window, (chain, more)) in enumerate((window, chain) for window in (10, 20) for chain in chains)
    ]
    groups = campaign.together(cells)
    assert len(groups) == len(chains)
    for group in groups:
        tables = campaign.run_together(group, 1, [3] * len(group), lambda cell, replicates: None)
        for cell, real in zip(group, tables, strict=True):
            virtual = simulate.run_cell(cell, 1, 1)
            for name in ("transfers", "handshakes"):
                conforms(name, real[name])
            for column in ("tls_handshake_time_s", "first_usable_byte_time_s", "completion_time_s"):
                assert rounds(real, column) == rounds(virtual, column), (cell.scenario.to_dict(), column)
            for column, off in most.items():
                expected = virtual["handshakes"][column].item()
                assert all(abs(value - expected) <= off for value in real["handshakes"][column]), column
            assert real["handshakes"]["completed"].to_list() == [1] * 3


def test_padded_certificates_take_the_rounds_of_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "has_ml_dsa", lambda: False)
    chains = (("ecdsa", 1), ("ml-dsa-44", 1), ("ml-dsa-44", 2), ("ml-dsa-65", 1), ("ml-dsa-87", 2))
    assert_rounds_of_virtual_time(chains, {"server_bytes": 4, "client_bytes": 0, "server_segments": 1})


@pytest.mark.skipif(not prepared.has_ml_dsa(), reason="ML-DSA is not here: pip install firstflight[pq]")
def test_real_chains_of_ml_dsa_take_the_rounds_of_virtual_time() -> None:
    chains = (("ml-dsa-44", 1), ("ml-dsa-44", 2), ("ml-dsa-65", 1), ("ml-dsa-87", 2))
    # OpenSSL 4 offers two shares: 1564 B of ClientHello.
    assert_rounds_of_virtual_time(chains, {"server_bytes": 0, "client_bytes": 58, "server_segments": 1})
    tables = campaign.run_cell(Cell({"c": 1}, changed("ml-dsa-44")), 1, 1)
    said = dict(tables["environment"].rows())["tls"]
    assert said == "chains of ML-DSA by pyOpenSSL's OpenSSL"


def test_a_small_record_is_usable_a_round_trip_before_a_large_one() -> None:
    for record, usable in (("16KiB", 3), ("4kB", 2)):
        real, virtual = both(changed({"chain": "ecdsa", "record_size": record}), 3)
        assert rounds(real, "first_usable_byte_time_s") == rounds(virtual, "first_usable_byte_time_s") == usable


def test_connections_are_resumed_as_virtual_time_draws_it() -> None:
    real, virtual = both(changed({"key_share": "x25519", "resumption": 0.5}, count=8, size="2kB"))
    drawn = virtual["handshakes"]["resumption"].to_list()
    assert set(drawn) == {0, 1}
    assert real["handshakes"]["resumption"].to_list() == drawn
    assert real["transfers"]["completed"].to_list() == [1] * 8
    # Without a certificate the flight is OpenSSL's own.
    resumed = real["handshakes"].filter(pl.col.resumption == 1)
    assert all(size < 300 for size in resumed["server_bytes"])


def test_chains_drawn_from_a_law_are_those_of_virtual_time() -> None:
    real, virtual = both(changed("tranco-2026", count=4, size="2kB"))
    drawn = virtual["handshakes"]["server_bytes"].to_list()
    assert len(set(drawn)) > 1
    assert all(abs(had - want) <= 4 for had, want in zip(real["handshakes"]["server_bytes"], drawn, strict=True))


@pytest.mark.parametrize(
    "application",
    [
        {"kind": "web_page", "http_version": "1.0", "primary": "10kB", "inline": "8kB", "inline_count": 3, "count": 1},
        {"kind": "request_response", "request": "400B", "response": "10kB", "count": 3},
    ],
)
def test_pages_and_exchanges_are_fetched_over_tls(application: dict[str, Any]) -> None:
    shared = {"name": "web", "think_time": "100ms", "tls": "ml-dsa-44"}
    for ip in ("ipv4", "ipv6"):
        scenario = Scenario.from_dict(EXAMPLE.to_dict() | {"ip": ip, "application": [application | shared]})
        real, virtual = both(scenario)
        transfers, expected = (tables["transfers"].sort("connection", "object") for tables in (real, virtual))
        assert real["handshakes"].height == virtual["handshakes"].height
        # Objects that are fetched at once come in any order.
        for column in ("completed", "bytes", "delivered_bytes", "object"):
            assert sorted(transfers[column]) == sorted(expected[column]), column
        has_tls = [tables["tls_handshake_time_s"].is_not_nan().to_list() for tables in (transfers, expected)]
        assert has_tls[0] == has_tls[1]


@pytest.mark.parametrize("chain", ["100B", "200kB"])
def test_a_flight_that_no_certificate_makes_is_refused(chain: str) -> None:
    with pytest.raises(RequestError, match=r"tls: the server's flight should have \d+ bytes, but nginx sends \d+ with"):
        campaign.run_cell(Cell({"c": 1}, changed({"chain": chain, "key_share": "x25519"})), 1, 1)
