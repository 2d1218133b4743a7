"""One replicate of a scenario on a testbed with every segment and packet, as `firstflight trace` shows them."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl

from firstflight.engines.emulate.campaign import Campaign, prepare
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import lay_out, refuse_links
from firstflight.engines.emulate.records import CellRecords, Replicate
from firstflight.engines.tables import first_transfers
from firstflight.scenario import Cell, Scenario


class Packets(NamedTuple):
    """Packets that passed one place: how many, and a pcapng file of their headers."""

    packets: int
    pcapng: bytes


class Captured(NamedTuple):
    """`tables`: `transfers`, `segments` as the servers' devices saw them, and `crossings`.
    `packets`: by place. "client" and "server" are the hosts of the first application's first connection; a link's name
    is the far end of that direction.
    """

    tables: dict[str, pl.DataFrame]
    packets: dict[str, Packets]


def capture(scenario: Scenario, seed: int) -> Captured:
    """One replicate, in real time; times count from the first packet of the first application's first transfer.

    RequestError and MachineError as `campaign.run_cell`.
    """
    cell = Cell({}, scenario.over_tcp("a capture of segments"), capture=True)
    layout = lay_out(scenario)
    refuse_links(layout, scenario)
    (prepared,) = prepare(cell, layout, seed, range(1))
    records = CellRecords(cell)
    placement = layout.placements[0]
    hosts = {"client": placement.clients[0], "server": placement.servers_of(0)[0]}
    packets = {}
    with Lab(layout, seed=seed, log=True) as lab, tempfile.TemporaryDirectory(prefix="firstflight-") as directory:
        campaign = Campaign(lab, layout, seed)
        campaign.configure(prepared)
        campaign.warm_up(prepared)
        lab.call("start_captures", hosts=list(hosts.values()))
        lab.box("watch", links=None)
        facts, box = campaign.replicate(prepared, 0)
        path = Path(directory, "packets")
        for end, host in hosts.items():
            answer = lab.call("write_packets", host=host, path=str(path))
            packets[end] = Packets(answer["packets"], path.read_bytes())
        joined = Replicate(0, campaign.layout, facts, box)
        for link in joined.names["link"]:
            answer = lab.box("pcapng", links=[link], path=str(path))
            packets[link] = Packets(answer["packets"], path.read_bytes())
    records.add(0, campaign.layout, facts, box, prepared.windows)
    tables = records.finished({}) | {"crossings": joined.crossings()}
    return Captured(_from_first_packet(tables, scenario), packets)


def _from_first_packet(tables: dict[str, pl.DataFrame], scenario: Scenario) -> dict[str, pl.DataFrame]:
    """Moved in time: a client takes milliseconds to start, which differ from run to run, as do its reports."""
    transfers = tables["transfers"]
    opened = first_transfers(transfers, scenario)["connection"]
    packets = tables["crossings"].filter(pl.col("connection").is_in(opened.head(1).to_list()))
    first_ns = min(packets["time_ns"].to_list(), default=0)
    times = pl.col("^(time|start|end)_ns$") - first_ns
    rows = {
        name: tables[name].with_columns(pl.col("start_s") - first_ns / 1e9)
        for name in ("transfers", "handshakes")
        if name in tables
    }
    return rows | {
        "segments": tables["segments"].with_columns(times),
        "crossings": tables["crossings"].with_columns(times),
    }
