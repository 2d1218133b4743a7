"""Traffic of others on a link during a short response, compared with the packets that passed the link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from firstflight.analysis.link_share import PACKET_BYTES, PAYLOAD_BYTES, others_share
from firstflight.engines.simulate import run_cell
from firstflight.scenario.cell import chosen
from firstflight.studies import find
from firstflight.studies.congestion_control import BOTTLENECK

ONE_WAY_S = 0.04


def link(packets: int, dropped: int) -> pl.DataFrame:
    """One interval of a second, during which the link carried and dropped this number of full packets."""
    sent, lost = [0, packets * PACKET_BYTES, 0], [0, dropped, 0]
    return pl.DataFrame(
        {"interval_start_s": [0.0, 1.0, 2.0], "interval_s": [1.0] * 3, "sent_bytes": sent, "dropped_packets": lost}
    )


def response(segments: int, retransmissions: int) -> pl.DataFrame:
    """A response that leaves the link while the middle interval lasts."""
    return pl.DataFrame(
        {
            "start_s": [1.0 - 3 * ONE_WAY_S],
            "handshake_time_s": [2 * ONE_WAY_S],
            "completion_time_s": [1.0 + 4 * ONE_WAY_S],
            "bytes": [segments * PAYLOAD_BYTES],
            "retransmissions": [retransmissions],
        }
    )


@pytest.mark.parametrize(("retransmissions", "dropped", "share"), [(0, 0, 90), (3, 0, 87), (3, 3, 90), (3, 8, 90)])
def test_a_needless_retransmission_is_the_responses_own(retransmissions: int, dropped: int, share: float) -> None:
    found = others_share(response(10, retransmissions), link(100, dropped), ONE_WAY_S)
    assert found == pytest.approx([share])


def test_the_share_is_what_a_capture_of_the_link_shows() -> None:
    place = {"experiment": "mice", "control": "westwood", "elephants": 1, "size_kb": 20}
    study = find("congestion-control")
    (cell,) = study.cells_at("simulate", chosen(study.keys("simulate"), place))
    tables = run_cell(replace(cell, capture=True), 1, 1)
    mice = tables["transfers"].filter((pl.col("application").cast(pl.String) == "mouse") & (pl.col("completed") == 1))
    assert mice["retransmissions"].sum() > 0
    carried = tables["links"].filter(BOTTLENECK)
    # Nothing is lost behind the link, so the client received all that the link carried.
    received = tables["segments"].filter((pl.col("event") == 1) & (pl.col("from_server") == 1) & (pl.col("length") > 0))
    own = received.group_by("connection").agg((pl.col("length") + PACKET_BYTES - PAYLOAD_BYTES).sum().alias("own"))
    ends = (carried["interval_start_s"] + carried["interval_s"]).to_numpy()
    sent = carried["sent_bytes"].cum_sum().to_numpy()
    rows = mice.join(own, on="connection", maintain_order="left")
    start = (rows["start_s"] + rows["handshake_time_s"]).to_numpy() + ONE_WAY_S
    end = (rows["start_s"] + rows["completion_time_s"]).to_numpy() - ONE_WAY_S
    expected = 100 * (1 - rows["own"].to_numpy() / (np.interp(end, ends, sent) - np.interp(start, ends, sent)))
    assert others_share(mice, carried, ONE_WAY_S) == pytest.approx(expected, abs=1e-9)
