"""What the sender reports of itself in traces, pictures and ladders: above all why slow start ended."""

from pathlib import Path

import polars as pl
import pytest

from firstflight.explain.ladder import sheet
from firstflight.explain.rounds import transfer
from firstflight.report.trace_plot import chart
from firstflight.scenario import Scenario
from firstflight.tracing import Trace

# 10 Mbit/s, RTT 40 ms, Linux's TCP.
EXAMPLE = Scenario.load(Path(__file__).resolve().parents[2] / "examples" / "download.toml")
LONG = EXAMPLE.replace("application.download.size", "2MB")


def events(trace: Trace) -> list[str]:
    return trace.sender_events["event"].to_list()


def test_slow_start_that_hystart_ends_names_the_detector() -> None:
    assert events(Trace(LONG))[0] == "slow start ends (ack train)"
    delay = LONG.replace("tcp.congestion_control", {"algorithm": "cubic", "hystart": "delay"})
    assert events(Trace(delay))[0] == "slow start ends (delay)"
    vegas = LONG.replace("tcp.congestion_control", "vegas")
    assert events(Trace(vegas))[0] == "slow start ends (queue)"


def test_the_row_that_ends_slow_start_is_the_retransmission_for_which_racks_timer_asks() -> None:
    trace = Trace(LONG.replace("network.links[0].loss_list", [8]))
    row = trace.segments.filter(pl.col("sender_event") == "slow start ends (loss)").row(0, named=True)
    assert (row["event"], row["direction"], row["seq"]) == ("sent", "to_client", 7 * 1448 + 1)
    assert events(trace)[:2] == ["slow start ends (loss)", "recovered"]
    assert trace.slow_start_end == {"slow start ends (loss)": pytest.approx(row["time_s"])}


def test_a_short_transfer_has_no_end_of_slow_start() -> None:
    trace = Trace(EXAMPLE.replace("application.download.size", "20kB"))
    assert (trace.slow_start_end, events(trace)) == ({}, [])
    assert trace.segments["sender_event"].null_count() == trace.segments.height


def test_pictures_and_ladders_show_why_slow_start_ended() -> None:
    trace = Trace(LONG)
    (name,) = trace.slow_start_end
    layers = chart(trace.events, "x", None, trace.marks | trace.slow_start_end)["vconcat"][0]["layer"]
    values = [row for layer in layers for row in layer["data"]["values"]]
    assert any(str(row.get("name", "")).startswith(name) for row in values)
    assert f">{name} " in sheet("x", [transfer(trace)])


def test_in_an_upload_the_client_is_the_sender() -> None:
    assert events(Trace(LONG.replace("application.download.direction", "upload")))[0] == "slow start ends (ack train)"


def test_a_rate_based_controller_says_when_the_pipe_was_full() -> None:
    bbr = LONG.replace("tcp.congestion_control", "bbr")
    assert events(Trace(bbr))[0] == "slow start ends (full pipe)"
