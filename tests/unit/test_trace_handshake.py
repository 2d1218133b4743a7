"""The TLS handshake in traces, pictures and rounds."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.errors import RequestError
from firstflight.explain.ladder import sheet
from firstflight.explain.page import comparison, first_flight, line, page
from firstflight.explain.rounds import Transfer
from firstflight.explain.rounds import transfer as of_trace
from firstflight.report.trace_plot import chart
from firstflight.scenario import Scenario
from firstflight.tracing import Trace

# 20 kB behind ML-DSA-65 with two intermediates, 100 Mbit/s, RTT 100 ms.
EXAMPLE = Scenario.load(Path(__file__).resolve().parents[2] / "examples" / "handshake.toml")
PLAIN = EXAMPLE.replace("application.file_transfer.tls", "none")


def traced(tls: Any, window: int = 10, size: str = "20kB") -> Trace:
    scenario = EXAMPLE.replace("application.file_transfer.tls", tls).replace("application.file_transfer.size", size)
    return Trace(scenario.replace("tcp.initial_window", window))


def rounds(transfer: Transfer) -> list[str]:
    return [line(one, transfer).split(", from")[0] for one in transfer.rounds]


def test_segments_of_the_handshake_are_labeled_in_both_directions() -> None:
    segments = traced("ml-dsa-44").segments
    sent = segments.filter((pl.col("event") == "sent") & (pl.col("handshake") == "tls"))
    assert sent.filter(pl.col("direction") == "to_client")["length"].sum() == 11_774
    # A ClientHello with a hybrid key share, and Finished.
    assert sent.filter(pl.col("direction") == "to_server")["length"].to_list() == [1448, 58, 80]
    syn = segments.filter(pl.col("handshake") == "tcp")
    assert syn["flags"].to_list() == ["SYN", "SYN", "SYN+ACK", "SYN+ACK"]
    assert Trace(PLAIN).segments.filter(pl.col("handshake") == "tls").is_empty()


def test_marks_stand_on_the_rows_that_end_each_part() -> None:
    trace = traced("ml-dsa-44")
    marked = trace.segments.filter(pl.col("mark").is_not_null())
    assert marked["mark"].to_list() == [
        "TCP handshake",
        "TLS handshake",
        "first byte",
        "first usable byte",
        "last byte",
    ]
    # The TLS handshake ends when the client, which has verified the flight, sends its Finished.
    assert marked["event"].to_list() == ["received", "sent", *["received"] * 3]
    assert marked["direction"].to_list() == ["to_client", "to_server", *["to_client"] * 3]
    assert marked["time_s"].cast(pl.Float64).to_list() == pytest.approx(list(trace.marks.values()))
    # A record of 16 kB and 22 B, behind 510 B of tickets: its end is byte 11,774 + 510 + 16,406.
    usable = marked.row(3, named=True)
    assert usable["seq"] < 11_774 + 510 + 16_406 <= usable["seq"] + usable["length"]


def test_a_trace_without_tls_has_no_marks_of_it() -> None:
    assert list(Trace(PLAIN).marks) == ["TCP handshake", "first byte", "last byte"]


def test_a_record_that_ends_with_the_response_makes_one_row_with_two_marks() -> None:
    marks = traced("ecdsa", size="10kB").segments["mark"].drop_nulls().to_list()
    assert marks[-1] == "first usable byte, last byte"


@pytest.mark.parametrize("engine", ["simulat", "model", None])
def test_a_trace_by_an_engine_that_has_none_is_refused_and_does_not_run_on_the_kernel(engine: Any) -> None:
    with pytest.raises(RequestError, match=f"no trace by the engine {engine!r}; write simulate or emulate"):
        Trace(EXAMPLE, engine=engine)


def test_marks_are_in_the_order_of_their_times_where_early_data_have_an_answer_before_the_handshake_ends() -> None:
    marks = traced({"chain": "ecdsa", "resumption": 1.0, "early_data": 1.0}).marks
    assert list(marks) == ["TCP handshake", "first byte", "TLS handshake", "first usable byte", "last byte"]


def test_of_early_data_the_client_hello_is_labeled_and_the_request_is_not() -> None:
    tls = {"chain": "ecdsa", "resumption": 1.0, "early_data": 1.0}
    sent = traced(tls).segments.filter((pl.col("event") == "sent") & (pl.col("direction") == "to_server"))
    assert sent.filter(pl.col("handshake") == "tls")["length"].to_list() == [1448, 328]


def test_the_picture_has_the_handshake_in_a_color_of_its_own_its_span_and_all_marks() -> None:
    trace = traced("ml-dsa-44")
    layers = chart(trace.events, "x", None, trace.marks)["vconcat"][0]["layer"]
    values = [row for layer in layers for row in layer["data"]["values"]]
    flight = {
        (row["low_kb"], row["high_kb"]) for row in values if row.get("what") == "TLS handshake" and "low_kb" in row
    }
    assert max(high for _, high in flight) == pytest.approx(11.775)
    spans = [row["what"] for row in values if "until_s" in row]
    assert spans[:3] == ["handshake", "TLS handshake", "request"]
    names = {row["name"].rsplit(" ", 2)[0] for row in values if "name" in row}
    assert names == set(trace.marks)


def test_each_flight_of_the_handshake_is_a_round() -> None:
    assert rounds(of_trace(traced("ecdsa"))) == [
        "client (TLS handshake): 2 segments",
        "round 1 (TLS handshake): 2 segments",
        "client (TLS handshake): 1 segment",
        "round 2: 10 segments",
        "round 3: 5 segments",
    ]
    assert rounds(of_trace(Trace(EXAMPLE.replace("tcp.initial_window", 10)))) == [
        "client (TLS handshake): 2 segments",
        "round 1 (TLS handshake): 10 segments",
        "round 2 (TLS handshake): 6 segments",
        "client (TLS handshake): 1 segment",
        "round 3: 15 segments",
    ]


def test_a_client_certificate_that_exceeds_the_window_of_the_client_is_a_round_more() -> None:
    tls = {"chain": "ml-dsa-65", "intermediates": 2, "client_certificate": "ml-dsa-65"}
    ten, twenty = (of_trace(traced(tls, window)) for window in (10, 20))
    assert rounds(ten)[2:5] == [
        "round 2 (TLS handshake): 6 segments",
        "round 3 of the client (TLS handshake): 10 segments",
        "client (TLS handshake): 1 segment",
    ]
    assert first_flight([ten, twenty]) == (
        "The first flight is the TLS handshake: with IW 10 the server's 16 segments take 2 round trips, and the "
        "client's adds 1 round trip; with IW 20 the server's 16 segments take 1 round trip."
    )
    assert "saves 2 round trips" in comparison([ten, twenty])


def test_the_client_is_not_taken_for_the_sender_because_its_certificate_is_larger_than_the_response() -> None:
    assert of_trace(traced({"chain": "ecdsa", "client_certificate": "ml-dsa-65"}, size="1kB")).sender_is_server


def test_a_resumed_handshake_has_one_segment_and_early_data_share_its_round() -> None:
    resumed = of_trace(traced({"chain": "ml-dsa-65", "resumption": 1.0}))
    assert rounds(resumed)[1] == "round 1 (TLS handshake): 1 segment"
    assert "the server's 1 segment takes 1 round trip." in first_flight([resumed])
    early = of_trace(traced({"chain": "ml-dsa-65", "resumption": 1.0, "early_data": 1.0}, 20))
    assert rounds(early) == ["client (TLS handshake): 2 segments", "round 1 (TLS handshake and data): 16 segments"]


def test_flights_in_bytes_are_rounds_whoever_begins() -> None:
    flights = [["server", "80B"], ["client", "1500B"], ["server", "15000B"], ["client", "80B"]]
    assert rounds(of_trace(traced({"flights": flights}))) == [
        "round 1 (TLS handshake): 1 segment",
        "client (TLS handshake): 2 segments",
        "round 2 (TLS handshake): 10 segments",
        "round 3 (TLS handshake): 1 segment",
        "client (TLS handshake): 1 segment",
        "round 4: 14 segments",
    ]


def test_ladder_and_page_say_when_the_first_flight_is_the_handshake() -> None:
    transfers = [of_trace(Trace(EXAMPLE.replace("tcp.initial_window", window))) for window in (3, 10)]
    html, drawn = page("A", transfers), sheet("A", transfers)
    words = re.sub(r"<[^>]+>", "", html.split('class="lead">')[1].split("</p>")[0])
    assert words.startswith(
        "The first flight is the TLS handshake: with IW 3 the server&#39;s 15 segments take 3 round trips; "
        "with IW 10 the server&#39;s 16 segments take 2 round trips. IW 10 instead of IW 3 saves 1 round trip"
    )
    for text in (html, drawn):
        assert text.count('class="tls"') == 2 * 3 + 15 + 16
        for name, time_s in transfers[1].marks.items():
            assert f">{name} {1e3 * time_s:.1f} ms</text>" in text
    plain = sheet("A", [of_trace(Trace(PLAIN))])
    assert "TLS" not in plain
