"""The figures that compare congestion controls, explain a transfer and show where a loss hurts."""

import polars as pl
import pytest

from firstflight.engines.simulate import capture
from firstflight.report.controllers import throughput, window_and_throughput
from firstflight.report.figure import Figure, png, svg
from firstflight.report.loss_matrix import REPAIRS, loss_matrix
from firstflight.report.phases import explained, notes
from firstflight.report.trace_plot.connection import Connection
from firstflight.scenario import Scenario

DOWNLOAD = """
name = "download"
duration = "60s"

[tcp]
profile = "rfc"
initial_window = 10
recovery = "RECOVERY"

[network]
topology = "chain"
links = { rate = "10Mbit", delay = "25ms", queue = "40p" }

[[application]]
kind = "file_transfer"
size = "1MB"
count = 1
"""


@pytest.fixture(scope="module")
def traces() -> dict[str, pl.DataFrame]:
    scenarios = {name: Scenario.from_toml(DOWNLOAD.replace("RECOVERY", name)) for name in ("reno", "tahoe")}
    return {name: capture(scenario, 1)["segments"] for name, scenario in scenarios.items()}


def both_can_be_drawn(figure: Figure) -> bool:
    assert figure.narrow is not None
    return svg(figure.chart).startswith("<svg") and png(figure.narrow).startswith(b"\x89PNG")


def test_window_and_throughput_have_a_line_a_control_and_deliver_every_byte(traces):
    figure = window_and_throughput(traces, "controls", "Windows", "A caption.", interval_s=0.1)
    above, below = figure.chart.to_dict()["vconcat"]
    for panel in (above, below):
        assert panel["encoding"]["color"]["scale"]["domain"] == ["reno", "tahoe"]
    for name, segments in traces.items():
        arrived = segments.filter((pl.col("event") == 1) & (pl.col("from_server") == 1))["length"].sum()
        rates = throughput(Connection.busiest(segments), 0.1)["mbps"]
        assert rates.sum() * 0.1 * 1e6 / 8 == pytest.approx(arrived), name
        # 1460 of 1500 bytes are payload; one packet may fall into the neighboring interval.
        assert 0 <= rates.min() <= rates.max() <= 10 * 1460 / 1500 + 0.12
    assert both_can_be_drawn(figure)


@pytest.mark.parametrize("count", [0, 9])
def test_no_figure_is_made_of_no_control_or_of_more_than_there_are_colours(traces, count):
    with pytest.raises(ValueError, match=f"{count} congestion controls do not make a figure: give 1 to 8"):
        window_and_throughput({str(n): traces["reno"] for n in range(count)}, "controls", "", "")


def test_the_explained_transfer_tells_slow_start_fast_retransmit_and_avoidance_with_its_own_numbers(traces):
    told = notes(Connection.busiest(traces["reno"]))
    assert [note["number"] for note in told] == list(range(1, len(told) + 1))
    assert told[0]["text"].startswith("Slow start from 10 segments")
    second = next(note for note in told if note["text"].startswith("Fast retransmit"))
    own = Connection.busiest(traces["reno"]).own
    threshold = own.filter(pl.col("recovery_state") == 3)["ssthresh_segments"][0]
    assert f"ssthresh becomes {threshold:.0f} segments" in second["text"]
    assert second["time_s"] == own.filter(pl.col("recovery_state") == 3)["time_s"][0]
    assert any(note["text"].startswith("Congestion avoidance") for note in told)
    figure = explained(traces["reno"], "phases", "A transfer", "A caption.")
    assert figure.caption.startswith("A caption. (1) Slow start")
    assert both_can_be_drawn(figure)


def test_a_tahoe_transfer_falls_back_to_one_segment(traces):
    assert any("to 1 segment;" in note["text"] for note in notes(Connection.busiest(traces["tahoe"])))


def cases(**columns: list) -> pl.DataFrame:
    triangle = [(window, position) for window in range(1, 5) for position in range(1, window + 1)]
    rows = {
        "initial_window": [window for window, _ in triangle],
        "position": [position for _, position in triangle],
        "repair": [REPAIRS[0] if window - position >= 3 else REPAIRS[3] for window, position in triangle],
        "cost_ms": [100.4 * position for _, position in triangle],
    }
    return pl.DataFrame(rows | columns)


def test_the_matrix_has_a_cell_a_case_and_a_legend_of_what_happened():
    figure = loss_matrix(cases(), "matrix", "Losses", "A caption.")
    picture = figure.chart.to_dict()
    cells, numbers = picture["hconcat"][0]["layer"]
    assert cells["encoding"]["color"]["scale"]["domain"] == ["fast retransmit", "timeout"]
    assert numbers["mark"]["type"] == "text"
    assert [row["cost"] for row in picture["data"]["values"]][:3] == [100, 100, 201]
    assert both_can_be_drawn(figure)


def test_matrices_stand_beside_each_other_in_the_order_in_which_they_came():
    two = pl.concat([cases().with_columns(panel=pl.lit(name)) for name in ("with SACK", "without SACK")])
    panels = loss_matrix(two, "matrix", "", "").chart.to_dict()["hconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["with SACK", "without SACK"]


def test_what_cannot_be_a_matrix_is_refused():
    with pytest.raises(
        ValueError, match='"luck" is not a recovery mechanism; known: fast retransmit, early retransmit, tail'
    ):
        loss_matrix(cases(repair=["luck"] * 10), "matrix", "", "")
    with pytest.raises(ValueError, match="no cases"):
        loss_matrix(cases().clear(), "matrix", "", "")
    with pytest.raises(ValueError, match="two cases with the same initial_window, position"):
        loss_matrix(pl.concat([cases(), cases()]), "matrix", "", "")
