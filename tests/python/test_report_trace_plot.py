from pathlib import Path

import polars as pl
import pytest

from firstflight.report.trace_plot import chart, draw


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
        "cwnd_segments": 3.0,
        "ssthresh_segments": 1e6,
        "retransmission": 0,
    }
    return row | fields


TRANSFER = pl.DataFrame(
    [
        segment(0.00, 0, 0, length=80),
        segment(0.05, 0, 1, seq=1, length=1460),
        segment(0.05, 0, 1, seq=1461, length=1460),
        segment(0.06, 2, 1, seq=1461, length=1460),
        segment(0.10, 1, 0, ack=1461, cwnd_segments=4.0),
        segment(0.50, 0, 1, seq=1461, length=1460, retransmission=1, cwnd_segments=1.0, ssthresh_segments=2.0),
        segment(0.60, 1, 0, ack=2921, cwnd_segments=2.0, ssthresh_segments=2.0),
        # A second connection that carries less is not drawn.
        segment(0.70, 0, 1, connection=1, length=100),
    ]
)


def test_data_acknowledgements_retransmissions_and_drops_are_told_apart():
    marks = [
        (round(row["time_s"], 2), row["what"], round(row["low_kb"], 6))
        for layer in chart(TRANSFER, "x").to_dict()["vconcat"][0]["layer"]
        for row in layer["data"]["values"]
    ]
    assert sorted(marks) == [
        (0.05, "data sent", 0.001),
        (0.05, "data sent", 1.461),
        (0.06, "dropped or lost", 1.461),
        (0.1, "acknowledged", 1.461),
        (0.5, "sent again", 1.461),
        (0.6, "acknowledged", 2.921),
    ]


def test_windows_are_the_data_senders_and_an_arbitrarily_high_ssthresh_is_no_line():
    rows = chart(TRANSFER, "x").to_dict()["vconcat"][1]["data"]["values"]
    windows = [(row["window"], round(row["time_s"], 2), row["segments"]) for row in rows]
    assert windows == [
        ("cwnd", 0.05, 3.0),
        ("cwnd", 0.05, 3.0),
        ("cwnd", 0.1, 4.0),
        ("cwnd", 0.5, 1.0),
        ("cwnd", 0.6, 2.0),
        ("ssthresh", 0.5, 2.0),
        ("ssthresh", 0.6, 2.0),
    ]


def test_suffix_chooses_the_format(tmp_path: Path):
    draw(TRANSFER, tmp_path / "plot.svg", "A transfer")
    draw(TRANSFER, tmp_path / "plot.png", "A transfer")
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<svg")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match=r'written as .svg or .png, and "plot.pdf" is neither'):
        draw(TRANSFER, tmp_path / "plot.pdf", "A transfer")


def test_trace_without_data_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="no data segment was sent"):
        draw(TRANSFER.filter(pl.col("length") == 0), tmp_path / "plot.svg", "Nothing")
