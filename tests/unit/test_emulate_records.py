"""The values in real programs' records, and those that are missing."""

from types import SimpleNamespace
from typing import Any

import polars as pl

from firstflight.engines.emulate.connections import by_ends
from firstflight.engines.emulate.records import Replicate


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


def test_a_client_with_one_port_towards_two_servers_has_two_connections() -> None:
    connections = [["10.77.0.1:40000", "10.77.0.2:80"], ["10.77.0.1:40000", "10.77.0.3:80"]]
    rows = pl.DataFrame({"connection": pl.Series([0, 1, 1, 7], dtype=pl.UInt32), "length": [1, 2, 3, 4]})
    found = {ends: part["length"].to_list() for ends, part in by_ends(rows, connections).items()}
    assert found == {("10.77.0.2", "10.77.0.1", 40_000): [1], ("10.77.0.3", "10.77.0.1", 40_000): [2, 3]}
