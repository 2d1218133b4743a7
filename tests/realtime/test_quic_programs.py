"""A real QUIC stack in the testbed: its handshake follows the 3x rule, and its flights have the bytes asked for."""

import importlib.util
import json
import subprocess

import polars as pl
import pytest

import firstflight
from firstflight.engines.emulate import campaign, quic
from firstflight.scenario import Cell, Scenario
from firstflight.studies import find
from firstflight.studies.kernel import DeclaredStudy

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
size = "60kB"
count = 3
transport = "quic"
tls = "ecdsa"
"""
needs_quinn = pytest.mark.skipif(not quic._QUINN.exists(), reason="the programs over QUIC are not built: make quic")


needs_aioquic = pytest.mark.skipif(
    importlib.util.find_spec("aioquic") is None, reason='aioquic is not installed: pip install "firstflight[quic]"'
)


def run(**changed: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    keys = {key.replace("__", "."): value for key, value in changed.items()}
    scenario = Scenario.from_toml(SCENARIO).replace_all(keys.items())
    tables = campaign.run_cell(Cell({}, scenario, capture=True), 1, 1)
    return tables["transfers"], tables["quic"]


@needs_quinn
def test_a_flight_above_three_times_what_the_client_sent_costs_a_round_trip() -> None:
    short, _ = run()
    long, seen = run(application__download__tls="ml-dsa-65")
    assert short["completed"].min() == long["completed"].min() == 1
    # One RTT of 100 ms, and two; medians, as the machine may be late, but not by an RTT.
    assert 0.1 < short["tls_handshake_time_s"].median() < 0.2 < long["tls_handshake_time_s"].median() < 0.3
    assert long["handshake_time_s"].to_list() == long["tls_handshake_time_s"].to_list()
    # Of a ClientHello of two datagrams a server may send three times as much, and quinn one datagram more.
    sent, received = seen["server_bytes"].median(), seen["client_bytes"].median()
    assert 3 * received - 1448 < sent < 3 * received + 1448
    assert seen["min_initial_bytes"].min() >= 1200
    # What only the stack's own frames would show is not known.
    assert long["retransmissions"].null_count() == long["first_flight_segments"].null_count() == 3


@needs_quinn
def test_the_initial_window_of_the_scenario_is_the_stack_s() -> None:
    flights = {}
    for iw in (4, 10, 32):
        _, seen = run(tcp__initial_window=iw)
        flights[iw] = seen["flight_bytes"].median()
        assert flights[iw] <= (iw + 1) * 1448, iw
    # Of what IW leaves, new connection IDs take a part, and only whole datagrams are sent.
    assert flights[4] >= 3 * 1448
    assert flights[10] > 8 * 1448
    assert flights[32] > 28 * 1448


@needs_quinn
@pytest.mark.parametrize("wanted", [2235, 11_774, 28_426])
def test_certificates_are_padded_to_the_flight(wanted: int) -> None:
    settings = {"datagram_bytes": 1200, "initial_window_bytes": 12_000, "congestion_control": "cubic"}
    command = [quic._QUINN, "serve", "127.0.0.1:0", json.dumps(settings | {"flight_bytes": wanted})]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=20)
    assert abs(json.loads(done.stdout)["flight_bytes"] - wanted) <= 4


@needs_quinn
def test_a_flight_below_that_of_a_bare_certificate_is_refused_in_one_sentence() -> None:
    settings = {"datagram_bytes": 1200, "initial_window_bytes": 12_000, "congestion_control": "cubic"}
    command = [quic._QUINN, "serve", "127.0.0.1:0", json.dumps(settings | {"flight_bytes": 100})]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert done.stderr.startswith("firstflight-quic: the server's flight has")
    assert done.stderr.endswith("bytes without padding, not 100\n")


@needs_quinn
def test_the_study_has_quic_and_tcp_next_to_each_other() -> None:
    study = find("quic-first-flight")
    assert isinstance(study, DeclaredStudy)
    run = firstflight.run(study, replicates=1, only={"chain": "ml-dsa-65", "size_kb": 20, "iw": 10})
    q = study.quantities(run)
    quinn, tcp = (
        float(q.handshake.sel(stack=stack, chain="ml-dsa-65", size_kb=20, iw=10).isel(draw=0))
        for stack in ("quinn", "tcp")
    )
    # Two round trips of 100 ms and three, either late by less than another one.
    assert 200 < quinn < 300 < tcp < 400
    assert {claim.id for claim in study.claims(run)} >= {"three-times-before-validation", "quic-saves-a-round-trip"}
    assert {table.name for table in study.tables(run)} == {"times", "first-flight"}


@needs_aioquic
def test_aioquic_takes_the_same_scenario() -> None:
    # Its client takes its time to close, so that only one fits into the run.
    of = {"quic_stack": "aioquic", "tls": "ml-dsa-44", "count": 1}
    transfers, seen = run(**{f"application__download__{key}": value for key, value in of.items()})
    assert transfers["completed"].min() == 1
    assert transfers["tls_handshake_time_s"].median() > 0.2
    assert seen["min_initial_bytes"].min() >= 1200
    assert 0 < seen["amplification"].max() <= 3
