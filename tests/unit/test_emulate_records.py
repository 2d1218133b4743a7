"""The values in real programs' records, and those that are missing."""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from firstflight.engines.emulate.disturbance import beyond_calibration
from firstflight.engines.emulate.records import Replicate, by_ends


def transfer(page: int | None, retransmissions: int, timeouts: int | None) -> dict[str, Any]:
    place = {"application": "web", "client": 0, "page": page}
    return place | {"retransmissions": retransmissions, "timeouts": timeouts}


def test_connections_that_did_not_come_up_are_told_apart_and_a_request_on_an_open_one_is_not() -> None:
    joined = Replicate.__new__(Replicate)
    joined._layout = SimpleNamespace(host=lambda name: SimpleNamespace(address=f"10.77.0.{name}"))  # type: ignore[assignment]
    told = [{"server": "9", "host": "1", "port": port} for port in (0, 40_000, -1, 40_000, 0)]
    ends = [joined._end(row, place) for place, row in enumerate(told)]
    assert ends[1] == ends[3] == ("10.77.0.9", "10.77.0.1", 40_000)
    assert len(set(ends)) == 4


def test_a_page_has_the_sums_of_its_own_transfers_and_none_where_a_part_is_not_known() -> None:
    joined = Replicate.__new__(Replicate)
    joined.replicate = 3
    joined._facts = {"pages": [{"application": "web", "client": 0, "page": page} for page in (0, 1, 2)]}
    rows = joined.pages([transfer(0, 2, 1), transfer(0, 1, 0), transfer(1, 1, 0), transfer(1, 4, None)])
    found = [(row["replicate"], row["page"], row["retransmissions"], row["timeouts"]) for row in rows]
    assert found == [(3, 0, 3, 1), (3, 1, 5, None), (3, 2, 0, 0)]


@pytest.mark.parametrize(
    ("info", "fast_retransmits", "timeouts"),
    [
        ({"total_rto": 1, "connection": 9}, [None, None], [1, 0]),
        ({"total_rto": 1, "connection": 9, "fast_retransmits": 2, "timeouts": 7}, [2, 0], [1, 0]),
        ({}, [None, None], [None, 0]),
    ],
)
def test_counters_of_a_connection_are_of_its_first_transfer_and_null_where_its_tcp_has_none(
    info: dict[str, int], fast_retransmits: list[int | None], timeouts: list[int | None]
) -> None:
    end = ("10.77.0.1", "10.77.0.2", 40_000)
    joined = Replicate.__new__(Replicate)
    joined.replicate, joined.connections, joined._sent = 0, {}, {}
    joined._infos, joined._numbers = {end: info}, {end: 3}
    joined._stall = lambda row, end: 0.0  # type: ignore[method-assign]
    told = defaultdict(int, response_bytes=1000)
    rows = [joined._transfer(told, end, {0: 10}) for _ in range(2)]  # type: ignore[dict-item]
    assert [row.get("fast_retransmits") for row in rows] == fast_retransmits
    assert [row["timeouts"] for row in rows] == timeouts
    assert [row["connection"] for row in rows] == [3, 3]


def test_a_client_with_one_port_towards_two_servers_has_two_connections() -> None:
    connections = [["10.77.0.1:40000", "10.77.0.2:80"], ["10.77.0.1:40000", "10.77.0.3:80"]]
    rows = pl.DataFrame({"connection": pl.Series([0, 1, 1, 7], dtype=pl.UInt32), "length": [1, 2, 3, 4]})
    found = {ends: part["length"].to_list() for ends, part in by_ends(rows, connections).items()}
    assert found == {("10.77.0.2", "10.77.0.1", 40_000): [1], ("10.77.0.3", "10.77.0.1", 40_000): [2, 3]}


@pytest.mark.parametrize(
    ("link", "megabits_by_second", "carried"),
    [
        # A fast link is judged by what passes it, in its busiest second.
        ({"rate_bps": 10**9}, [90, 99, 0, 1], None),
        ({"rate_bps": 10**9}, [1, 150, 0, 1], 150),
        ({"rate_bps": 10**8}, [1, 101], None),
        ({"rate_bps": None}, [400], None),
        ({"rate_bps": 10**7, "rate_schedule": {"kind": "steps"}}, [9, 300], 300),
        # A trace has fast moments.
        ({"rate_bps": 76 * 10**6, "rate_schedule": {"kind": "trace"}}, [200, 20, 20], None),
        ({"rate_bps": 200 * 10**6, "rate_schedule": {"kind": "trace"}}, [200, 220, 180], 200),
    ],
)
def test_a_link_is_judged_by_what_it_carried(
    link: dict[str, Any], megabits_by_second: list[int], carried: int | None
) -> None:
    layout = SimpleNamespace(links={"slow": {"rate_bps": 10**7}, "fast": link})
    second = np.repeat(np.arange(len(megabits_by_second)), [4 * megabits for megabits in megabits_by_second])
    packets = second.size
    # Each is a quarter of a megabit; what the queue drops does not pass.
    columns: dict[str, Any] = {
        "link": np.ones(2 * packets, np.uint16),
        "bytes": np.full(2 * packets, 31_250, np.uint32),
        "event": np.repeat([1, 2], packets).astype(np.uint8),
        "end_ns": np.tile(second * 10**9 + 5 * 10**9 + 7, 2).astype(np.int64),
    }
    log = {name: (column.dtype.str, column.tobytes()) for name, column in columns.items()}
    found = beyond_calibration(layout, {"tables": {"crossings": log}})  # type: ignore[arg-type]
    said = f"fast carried {carried} Mbit/s, and the link emulator is accurate up to 100 Mbit/s"
    assert found == ([] if carried is None else [said])
