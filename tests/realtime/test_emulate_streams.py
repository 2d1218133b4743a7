"""Calls, games and constant rates as real datagrams, next to real TCP."""

from typing import Any

import polars as pl
import pytest

import emulations
from firstflight import Cell, Scenario
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign
from firstflight.errors import RequestError

SCENARIO = """
name = "datagrams"
duration = "3s"

[tcp]
profile = "linux"
receive_window_growth = "none"

[network]
topology = "dumbbell"
bottleneck = { rate = "1Mbit", delay = "10ms", queue = "20p" }
left = { count = 2, rate = "50Mbit", delay = "1ms", queue = "1000p" }
right = { count = 2, rate = "50Mbit", delay = "1ms", queue = "1000p" }
"""
CALL = """
[[application]]
name = "call"
kind = "voice"
client_hosts = "left[0]"
server_hosts = "right[0]"
"""
GAME = """
[[application]]
name = "game"
kind = "game"
client_hosts = "left[0]"
server_hosts = "right[0]"
start = "500ms"
length = "1s"
server_payload = { distribution = "uniform", low = "100B", high = "300B" }
"""
FILE = """
[[application]]
name = "file"
kind = "file_transfer"
size = "200kB"
count = 1
client_hosts = "left[1]"
server_hosts = "right[1]"
"""


def streams(applications: str) -> dict[str, pl.DataFrame]:
    cell = Cell({}, Scenario.from_toml(SCENARIO + applications))
    tables = campaign.run_cell(cell, 1, 1)
    simulated = simulate.run_cell(cell, 1, 1)
    return {"real": tables["streams"], "simulated": simulated["streams"], "transfers": tables["transfers"]}


def rows(table: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return table.sort("application", "from_server").select(pl.col("application").cast(pl.String), *columns).rows()


def test_streams_send_what_simulated_ones_send_and_all_of_it_arrives() -> None:
    emulations.skip_unless_possible()
    found = streams(CALL + GAME)
    same = ("from_server", "packets_sent", "bytes_sent", "packets_lost")
    assert rows(found["real"], *same) == rows(found["simulated"], *same)
    assert found["real"].height == 4
    # Nothing is faster than the path.
    assert found["real"]["delay_min_s"].min() >= 0.012


def test_a_call_waits_in_the_queue_that_a_download_fills() -> None:
    emulations.skip_unless_possible()
    found = streams(CALL + FILE)
    assert found["transfers"]["completed"].to_list() == [1]
    delays = {bool(row[1]): row[2] for row in rows(found["real"], "from_server", "delay_max_s")}
    # A window of packets of 12 ms each is in its way downstream.
    assert delays[True] > delays[False]
    assert delays[True] > 0.05


def test_what_a_full_queue_drops_is_lost() -> None:
    emulations.skip_unless_possible()
    found = streams(
        '[[application]]\nname = "twice"\nkind = "constant_rate"\nrate = "2Mbit"\npayload = "1000B"\nlength = "1s"\n'
        'client_hosts = "left[0]"\nserver_hosts = "right[0]"\n'
    )
    (real,), (simulated,) = (found[which].to_dicts() for which in ("real", "simulated"))
    assert real["packets_sent"] == simulated["packets_sent"]
    assert real["packets_received"] + real["packets_lost"] == real["packets_sent"]
    # It holds 20 packets, and half of the others pass; a sender that was late and caught up loses some more.
    assert abs(real["packets_lost"] - simulated["packets_lost"]) <= simulated["packets_lost"] / 4


def test_a_datagram_without_room_for_its_number_is_refused() -> None:
    emulations.skip_unless_possible()
    tiny = CALL.replace('"voice"', '"constant_rate"\nrate = "10kbit"\npayload = "4B"')
    with pytest.raises(RequestError, match="a datagram carries 4 B"):
        streams(tiny)
