from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight.engines.simulate import capture
from firstflight.errors import RequestError
from firstflight.report.trace_plot import chart, draw, overlay, queue, windows
from firstflight.report.trace_plot.connection import Connection
from firstflight.report.trace_plot.overlay import PlottedConnection
from firstflight.report.trace_plot.panel import Panel
from firstflight.scenario import Scenario
from firstflight.tracing import Trace

SLOW_AND_LOSSY = """
name = "lossy"
duration = "60s"

[tcp]
profile = "rfc"
initial_window = 10

[network]
topology = "chain"
links = { rate = "10Mbit", delay = "20ms", queue = "20p", loss = 0.01 }

[[application]]
kind = "file_transfer"
size = "2MB"
count = 1
"""


def segment(time_s: float, event: int, from_server: int, **fields) -> dict[str, float]:
    row = {
        "time_ns": round(time_s * 1e9),
        "replicate": 0,
        "connection": 0,
        "event": event,
        "from_server": from_server,
        "seq": 1,
        "length": 0,
        "ack": 1,
        "flags": 16,
        "window_bytes": 2920,
        "cwnd_segments": 3.0,
        "ssthresh_segments": 1e6,
        "recovery_state": 0,
        "retransmission": 0,
        "ecn": 0,
        "sack_count": 0,
    }
    ranges = {f"sack_{edge}_{index}": 0 for index in range(4) for edge in ("left", "right")}
    return row | ranges | fields


FIRST_LOST = pl.DataFrame(
    [
        segment(0.00, 0, 0, length=80),
        segment(0.05, 0, 1, seq=1, length=1460),
        segment(0.05, 0, 1, seq=1461, length=1460),
        segment(0.06, 2, 1, seq=1, length=1460),
        segment(0.08, 1, 1, seq=1461, length=1460, ecn=3),
        segment(0.09, 1, 0, ack=1),
        segment(0.10, 1, 0, ack=1, sack_count=1, sack_left_0=1461, sack_right_0=2921),
        segment(0.50, 0, 1, seq=1, length=1460, retransmission=1, cwnd_segments=1.0, ssthresh_segments=2.0),
        segment(0.60, 1, 0, ack=2921, cwnd_segments=2.0, ssthresh_segments=2.0),
        # A second connection that carries less is not drawn.
        segment(0.70, 0, 1, connection=1, length=100),
    ]
)


def drawn(picture) -> list[tuple[float, str, float]]:
    """Time, name and place of each mark of the time-sequence graph, without a bar's feet and letters."""
    marks = [
        (round(row["time_s"], 2), row["what"], round(row["low_kb"], 3))
        for layer in picture["vconcat"][0]["layer"]
        if layer["mark"].get("shape") != "stroke" and layer["mark"]["type"] not in ("rect", "text")
        for row in layer["data"]["values"]
    ]
    return sorted(marks)


def legend(panel) -> list[str]:
    return next(layer["encoding"]["color"]["scale"]["domain"] for layer in panel["layer"])


def test_every_kind_of_mark_stands_where_its_segment_was():
    assert drawn(chart(FIRST_LOST, "x")) == [
        (0.05, "data sent", 0.001),
        (0.05, "data sent", 1.461),
        (0.06, "dropped or lost", 0.731),
        (0.08, "marked (ECN CE)", 2.191),
        (0.09, "acknowledged", 0.001),
        (0.09, "receive window", 2.921),
        (0.1, "acknowledged", 0.001),
        (0.1, "duplicate ACK", 0.001),
        (0.1, "receive window", 2.921),
        (0.1, "selectively acknowledged", 1.461),
        (0.5, "R retransmission", 0.001),
        (0.6, "acknowledged", 2.921),
        (0.6, "receive window", 5.841),
    ]


def test_the_legend_lists_what_is_drawn_and_nothing_else():
    undisturbed = FIRST_LOST.filter(~pl.col("time_ns").is_in([60_000_000, 80_000_000, 90_000_000, 500_000_000]))
    panels = chart(undisturbed.with_columns(sack_count=0, window_bytes=10**9), "x")["vconcat"]
    assert legend(panels[0]) == ["data sent", "acknowledged"]
    # The last phase has but a moment, and no color to explain.
    assert legend(panels[1]) == ["slow start"]


def test_a_receive_window_far_above_the_data_does_not_flatten_it():
    def top(window_bytes: int) -> float:
        picture = chart(FIRST_LOST.with_columns(window_bytes=window_bytes), "x")
        return picture["vconcat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"][1]

    assert top(10**9) == pytest.approx(1.04 * 2.921)
    assert top(3000) == pytest.approx(1.04 * 3.001)


def test_windows_are_the_data_senders_and_an_arbitrarily_high_ssthresh_is_no_line():
    rows = windows.windows(Connection.busiest(FIRST_LOST)).rows()
    assert [(round(time_s, 2), window, segments) for time_s, window, segments in rows] == [
        (0.0, "cwnd", 3.0),
        (0.05, "cwnd", 3.0),
        (0.05, "cwnd", 3.0),
        (0.09, "cwnd", 3.0),
        (0.1, "cwnd", 3.0),
        (0.5, "cwnd", 1.0),
        (0.6, "cwnd", 2.0),
        (0.5, "ssthresh", 2.0),
        (0.6, "ssthresh", 2.0),
    ][1:]


def test_phases_follow_one_another_without_a_gap():
    states = FIRST_LOST.with_columns(
        recovery_state=pl.when(pl.col("time_ns") == 500_000_000).then(4).otherwise(0).cast(pl.UInt8)
    )
    spans = windows.phases(Connection.busiest(states)).select("time_s", "until_s", "phase").rows()
    assert [(round(start, 2), round(end, 2), phase) for start, end, phase in spans] == [
        (0.05, 0.5, "slow start"),
        (0.5, 0.6, "after a timeout"),
        (0.6, 0.6, "congestion avoidance"),
    ]


def test_the_queue_counts_who_waits_at_the_link_where_the_data_waits_longest():
    columns = ("time_ns", "replicate", "link", "connection", "from_server", "event", "start_ns", "end_ns")
    crossings = pl.DataFrame(
        [
            (0, 0, "slow", 0, 1, 1, 0, 10),
            (0, 0, "slow", 0, 1, 1, 10, 20),
            (5, 0, "slow", 1, 1, 1, 20, 30),
            (6, 0, "slow", 0, 1, 2, 6, 6),
            (20, 0, "fast", 0, 1, 1, 20, 21),
            (30, 0, "back", 0, 0, 1, 90, 91),
        ],
        schema=list(columns),
        orient="row",
    )
    connection = Connection.busiest(FIRST_LOST)
    assert queue.bottleneck(connection, crossings) == "slow"
    steps = queue.waiting(crossings.filter(pl.col("link") == "slow"), Panel(700, -1.0, 1.0))
    assert [(round(time_s * 1e9), packets) for time_s, packets in steps.rows()] == [
        (-1_000_000_000, 0),
        (0, 1),
        (5, 2),
        (10, 1),
        (20, 0),
        (1_000_000_000, 0),
    ]


def test_a_long_line_is_thinned_to_what_can_be_told_apart_and_keeps_its_peaks():
    steps = pl.DataFrame({"time_s": [i / 1e5 for i in range(100_000)], "value": [i % 997 for i in range(100_000)]})
    thinned = Panel(700, 0.0, 1.0).thinned(steps, "value")
    assert thinned.height <= 4 * 1400
    assert (thinned["value"].max(), thinned["time_s"].is_sorted()) == (996, True)
    assert (thinned.row(0), thinned.row(-1)) == (steps.row(0), steps.row(-1))
    assert Panel(700, 0.0, 1.0).thinned(steps.head(100), "value").equals(steps.head(100))


def test_many_bars_are_merged_where_they_touch_and_stay_apart_where_they_do_not():
    # In each of 800 moments nine bars stand one on the other, and a tenth apart.
    low = [float(i % 10 + (5 if i % 10 == 9 else 0)) for i in range(8000)]
    bars = pl.DataFrame({"time_s": [(i // 10 + 0.5) / 800 for i in range(8000)], "low_kb": low})
    merged = Panel(400, 0.0, 1.0).merged(bars.with_columns((pl.col("low_kb") + 1).alias("high_kb")))
    assert merged.select("low_kb", "high_kb").unique().sort("low_kb").rows() == [(0.0, 9.0), (14.0, 15.0)]
    assert merged.height == 2 * 800


def test_several_connections_are_drawn_upon_each_other_in_their_order() -> None:
    crossings = capture(Scenario.from_toml(SLOW_AND_LOSSY), seed=1)["crossings"]
    none = crossings.clear()
    picture = overlay.chart(
        [PlottedConnection("b", FIRST_LOST, none), PlottedConnection("a", FIRST_LOST, none)], 700, "Two"
    )
    panels = picture["vconcat"]
    assert legend(panels[0]) == ["b", "a"]
    colors = [layer["encoding"]["color"] for layer in panels[0]["layer"] if "color" in layer.get("encoding", {})]
    abreast = {color["legend"]["columns"] for color in colors if color.get("legend")}
    assert abreast == {700 // (7 + 40)}, "a longer row would make the picture smaller"
    assert panels[0]["title"]["text"] == ["Two"]
    letters = [layer for layer in panels[0]["layer"] if layer["mark"].get("text") == "R"]
    assert [[row["name"] for row in layer["data"]["values"]] for layer in letters] == [["b"], ["a"]]
    cwnd = {row["name"]: row["segments"] for row in panels[1]["data"]["values"]}
    assert cwnd == {"b": 2.0, "a": 2.0}


def test_suffix_chooses_the_format(tmp_path: Path):
    draw(FIRST_LOST, tmp_path / "plot.svg", "A transfer")
    draw(FIRST_LOST, tmp_path / "plot.png", "A transfer")
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<svg")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    draw(FIRST_LOST, tmp_path / "plot.pdf", "A transfer")
    draw(FIRST_LOST, tmp_path / "plot.pdf", "A transfer")
    assert (tmp_path / "plot.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(RequestError, match=r'plot.gif": a picture is written as .svg, .png or .pdf'):
        draw(FIRST_LOST, tmp_path / "plot.gif", "A transfer")


def test_trace_without_data_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="no data segment was sent"):
        draw(FIRST_LOST.filter(pl.col("length") == 0), tmp_path / "plot.svg", "Nothing")


@pytest.mark.slow
def test_a_simulated_transfer_shows_each_loss_and_retransmission_and_the_full_queue():
    tables = capture(Scenario.from_toml(SLOW_AND_LOSSY), seed=1)
    picture = chart(tables["segments"], "x", tables["crossings"])
    marks = drawn(chart(tables["segments"], "x"))
    data = tables["segments"].filter((pl.col("from_server") == 1) & (pl.col("length") > 0))
    gone = data.filter(pl.col("event") >= 2).height
    again = data.filter((pl.col("event") == 0) & (pl.col("retransmission") == 1)).height
    names = [name for _, name, _ in marks]
    assert (names.count("dropped or lost"), names.count("R retransmission")) == (gone, again)
    assert gone > 10
    assert picture["vconcat"][2]["title"]["text"] == "Queue at links[0], where the data waits longest"
    assert max(row["packets"] for row in picture["vconcat"][2]["data"]["values"]) == 20


def test_the_time_before_the_first_data_is_handshake_and_request() -> None:
    syn, syn_ack = segment(0.0, 0, 0, flags=2), segment(0.1, 1, 1, flags=18)
    rows = pl.DataFrame([syn, syn_ack, segment(0.1, 0, 0, length=80), segment(0.15, 0, 1, length=1460)])
    opening = Connection.busiest(rows).opening
    assert opening["what"].to_list() == ["handshake", "request"]
    assert opening["time_s"].to_list() == pytest.approx([0.0, 0.1])
    assert opening["until_s"].to_list() == pytest.approx([0.1, 0.15])
    assert Connection.busiest(FIRST_LOST).opening.is_empty()


def test_a_handshake_that_began_before_the_time_axis_is_drawn_from_its_start() -> None:
    syn, syn_ack = segment(-0.05, 0, 0, flags=2), segment(0.05, 1, 1, flags=18)
    rows = pl.DataFrame([syn, syn_ack, segment(0.05, 0, 0, length=80), segment(0.1, 0, 1, length=1460)])
    bands = next(drawn for drawn in chart(rows, "")["vconcat"][0]["layer"] if drawn["mark"]["type"] == "rect")
    spans = [(row["time_s"], row["until_s"]) for row in bands["data"]["values"]]
    assert spans == [(0.0, 0.05), (0.05, 0.1)]


def test_no_peak_touches_the_frame() -> None:
    tables = capture(Scenario.from_toml(SLOW_AND_LOSSY), seed=1)
    drawn = chart(tables["segments"], "", tables["crossings"])
    peaks = 0
    for panel in drawn["vconcat"][1:]:
        for layer in panel.get("layer", [panel]):
            axis = layer["encoding"].get("y")
            if axis is not None:
                peak = max(row[axis["field"]] for row in layer["data"]["values"])
                assert axis["scale"]["domain"][1] > peak
                peaks += 1
    # Windows and queues.
    assert peaks >= 2


def test_beside_a_simulation_the_median_of_several_kernel_runs_is_drawn_and_their_spread_is_told(
    monkeypatch: pytest.MonkeyPatch, small: Scenario
) -> None:
    from firstflight.cli import trace

    times = iter([0.333, 0.220, 0.212, 0.211, 0.240])

    class Run(Trace):
        @cached_property
        def outcome(self) -> dict[str, Any]:  # type: ignore[override]
            return {"completed": True, "completion_time_s": next(times)}

    monkeypatch.setattr(trace, "Trace", Run)
    drawn = trace._transfer(small, 1, "kernel", "emulate", True)
    assert drawn.label == "kernel, median of 5 runs (211.0 to 333.0 ms)"
    assert drawn.outcome["completion_time_s"] == 0.220
    assert trace._transfer(small, 1, "simulated", "simulate", True).label == "simulated"
