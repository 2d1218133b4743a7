"""The values of docs/post-quantum.md are those of the simulator."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.scenario import Scenario
from firstflight.tracing import Trace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "post-quantum.md").read_text(encoding="utf-8")
EXAMPLE = Scenario.load(ROOT / "examples" / "handshake.toml")


def traced(tls: dict[str, Any], window: int = 10, **link: str) -> Trace:
    scenario = EXAMPLE.replace("application.file_transfer.tls", tls).replace("tcp.initial_window", window)
    for key, value in link.items():
        scenario = scenario.replace(f"network.links[0].{key}", value)
    return Trace(scenario)


def ms(trace: Trace, mark: str) -> str:
    return f"{1e3 * trace.marks[mark]:.1f}"


def flight(trace: Trace) -> str:
    sent = trace.events.filter("is_tls", pl.col("event") == 0, pl.col("from_server") == 1)
    return f"{sent['length'].sum():,}"


@pytest.mark.parametrize("chain", ["ecdsa", "ml-dsa-44", "ml-dsa-65", "ml-dsa-87"])
def test_a_row_of_the_table_of_chains(chain: str) -> None:
    ten, twenty = (traced({"chain": chain, "intermediates": 1}, window) for window in (10, 20))
    values = [flight(ten), *(ms(of, mark) for mark in ("TLS handshake", "last byte") for of in (ten, twenty))]
    assert f"| `{chain}` | {' | '.join(values)} |\n" in PAGE


def test_the_values_in_sentences() -> None:
    ecdsa, ml_dsa = (traced({"chain": chain, "intermediates": 1}) for chain in ("ecdsa", "ml-dsa-44"))
    later = 1e3 * (ecdsa.marks["last byte"] - ml_dsa.marks["last byte"])
    assert f"20 kB complete {later:.1f} ms later than after ML-DSA-44" in " ".join(PAGE.split())
    for trace, cwnd in ((ml_dsa, 18), (ecdsa, 10)):
        # At the first segment of the response, behind the tickets.
        response = trace.events.filter(
            ~pl.col("is_tls"), pl.col("event") == 0, pl.col("from_server") == 1, pl.col("length") > 600
        )
        assert response["cwnd_segments"][0] == cwnd
        assert f"cwnd {'becomes' if cwnd == 18 else 'stays'} {cwnd}" in PAGE
    assert f"a flight of {flight(traced({'chain': 'ml-dsa-65', 'intermediates': 0}))} bytes" in PAGE
    assert f"| {flight(traced({'chain': 'merkle-tree'}))} bytes |" in PAGE
    records = traced({"chain": "ecdsa", "intermediates": 1, "record_size": "4KiB"})
    assert f"4 kB, {ms(records, 'first usable byte')} instead of {ms(ecdsa, 'first usable byte')} ms" in PAGE


def test_the_harm_of_a_larger_window() -> None:
    tls = {"chain": "ml-dsa-65", "intermediates": 2}
    ten, twenty = (traced(tls, window, rate="2Mbit", delay="30ms", queue="12p") for window in (10, 20))
    said = f"takes {ms(ten, 'TLS handshake')} ms with IW 10 and {ms(twenty, 'TLS handshake')} ms with IW 20"
    assert said in " ".join(PAGE.split())


def test_it_is_short() -> None:
    assert len(PAGE.split()) <= 500
