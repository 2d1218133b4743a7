"""The engine: a scenario's cells on a testbed, replicate after replicate, cells that differ in TCP only in turn.

Compared cells must have the same background load, so a group of such cells shares one testbed, and its
replicates are interleaved (A B A B). Every measurement follows the same order: settings (set and read back), metrics
forgotten, links as new, applications, connections closed, nothing in flight, counters taken.

Before a campaign a self-check shows that the testbed follows its settings. If not, nothing is measured.
"""

import copy
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from firstflight.engines.emulate import quic, self_check
from firstflight.engines.emulate.disturbance import STALL_RULE_S, beyond_calibration, refuse_losses
from firstflight.engines.emulate.kernel import KernelSettings
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import Layout, lay_out, refuse_links
from firstflight.engines.emulate.prepared import Prepared, has_ml_dsa, prepare
from firstflight.engines.emulate.records import CellRecords, Replicate
from firstflight.engines.emulate.start import PROGRAMS, Inside, search_path, version_of
from firstflight.errors import MachineError
from firstflight.records.machine import usable_cpus
from firstflight.records.schema import first_transfers
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import FileTransfer
from firstflight.temporary import temporary_directory

# A connection's last packets: FIN, its ACK, and a retransmission of either.
_CLOSING_S = 4.0
_QUIET_S = 10.0
_ANSWER_S = 20.0
# See `jobs`.
_BEARS_NEIGHBORS_BPS = 10e6

OnReplicates = Callable[[Cell, int], None]


def run_cell(cell: Cell, seed: int, replicates: int, first_replicate: int = 0) -> dict[str, pl.DataFrame]:
    """Replicates `first_replicate` and on of one cell, on a separate testbed: `transfers`, `pages`, `links`,
    `streams`, `counts` and `environment`, and `segments` if the cell captures.

    RequestError for a scenario whose settings a kernel lacks, MachineError for a machine that cannot do it.
    """
    (tables,) = run_together([cell], seed, [replicates], lambda cell, replicates: None, first_replicate)
    return tables


def run_together(
    cells: Sequence[Cell], seed: int, replicates: Sequence[int], on_replicates: OnReplicates, first: int = 0
) -> list[dict[str, pl.DataFrame]]:
    """The tables of `run_cell` for each cell of a group, from one testbed and in turn."""
    scenario = cells[0].scenario
    layout = lay_out(scenario, seed, first)
    refuse_links(layout, scenario)
    prepared = [
        prepare(cell, layout, seed, range(first, first + count)) for cell, count in zip(cells, replicates, strict=True)
    ]
    records = [CellRecords(cell) for cell in cells]
    with Lab(layout, seed=seed, log=True) as lab:
        campaign = Campaign(lab, layout, seed)
        campaign.configure(prepared[0][0])
        campaign.warm_up(prepared[0][0])
        checked = self_check.check(campaign, [by_turn[0] for by_turn in prepared])
        for turn in range(max(replicates)):
            for by_turn, kept in zip(prepared, records, strict=True):
                if turn < len(by_turn):
                    cell = by_turn[turn]
                    campaign.configure(cell)
                    facts, box = campaign.replicate(cell, first + turn)
                    kept.add(first + turn, campaign.layout, facts, box, cell.windows)
                    on_replicates(cell.cell, 1)
        tables = []
        for by_turn, kept in zip(prepared, records, strict=True):
            campaign.configure(by_turn[-1])
            facts = lab.facts | checked | by_turn[-1].tls | {"hosts": lab.kernel_dump(), "stall_rule_s": STALL_RULE_S}
            tables.append(kept.finished(facts))
    return tables


def together(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells that differ in TCP only, in groups; their order within a group is the order of their turns. MachineError
    for a missing QUIC stack: no group has run yet.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        for application in cell.scenario.application:
            if isinstance(application, FileTransfer) and application.transport == "quic":
                quic.command(application)
        groups.setdefault(_without_tcp(cell.scenario), []).append(cell)
    return list(groups.values())


def surroundings() -> dict[str, str]:
    """The environment of the records besides scenario and code: kernel, programs, settings of a new host.
    MachineError without a testbed.
    """
    return _found_on(search_path())


@cache
def _found_on(path: str) -> dict[str, str]:
    # Another search path may lead to other programs.
    with closing(Inside()) as inside:
        facts: dict[str, str] = inside.connection.call("surroundings", {}, _ANSWER_S)
    programs = {name: version_of(name)[0] for name in PROGRAMS}
    return facts | programs | {"tls": f"{ssl.OPENSSL_VERSION}, {'with' if has_ml_dsa() else 'without'} ML-DSA"}


def jobs(group: Sequence[Cell]) -> int:
    """Concurrent testbeds: two per CPU, and one where the network carries more than 10 Mbit/s or pages are fetched.

    A transfer waits most of its time: on two idle CPUs 16 concurrent testbeds, each with a download over 10 Mbit/s,
    moved no median by more than 0.7 ms. At 100 Mbit/s programs want a CPU more often than there are two: four at once
    lengthened 500 kB by 14%, and the link box saw none of it. A page is a curl an object: with four testbeds at once
    pages of 13 objects over 10 Mbit/s took 80% longer.
    """
    if any(application.kind == "web_page" for cell in group for application in cell.scenario.application):
        return 1
    fastest = max(cell.scenario.one_network("The engine emulate").capacity_bps() for cell in group)
    return 1 if fastest > _BEARS_NEIGHBORS_BPS else 2 * usable_cpus()


def _without_tcp(scenario: Scenario) -> str:
    document = copy.deepcopy(scenario.to_dict())
    document.pop("description", None)
    document.pop("name")
    document.pop("tcp")
    document.pop("arm", None)
    for application in document["application"]:
        for key in ("tcp", "client_tcp", "server_tcp"):
            application.pop(key, None)
    # Cells with another TCP need another testbed.
    stacks = [scenario.stacks(index) for index in range(len(scenario.application))]
    return json.dumps([document, stacks], sort_keys=True, default=str)


class Campaign:
    """A testbed in use, with the settings last sent to it, so that only changes are sent. `layout` has the links of the
    last replicate.
    """

    def __init__(self, lab: Lab, layout: Layout, seed: int) -> None:
        self.lab = lab
        self.layout = layout
        self.seed = seed
        self._laid_out = layout
        self._hosts: dict[str, KernelSettings] = {}
        self._servers: dict[str, dict[str, Any]] | None = None

    def configure(self, cell: Prepared) -> None:
        """Apply this cell's TCP settings to the kernels, and start its servers."""
        for host, settings in cell.hosts.items():
            if self._hosts.get(host) != settings:
                self.lab.set(host, settings)
                self._hosts[host] = settings
        if self._servers != cell.servers:
            self.lab.call("start_servers", hosts=cell.servers)
            self._servers = cell.servers

    def warm_up(self, cell: Prepared) -> None:
        """Everything once, unrecorded: programs and pages of theirs are in memory then."""
        self.replicate(cell, 0, duration_s=min(2.0, cell.plan["duration_ns"] / 1e9), once=True)

    def replicate(
        self, cell: Prepared, replicate: int, duration_s: float | None = None, once: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Data from clients, kernel and capture, and the link box's counters. `once`: each client asks once."""
        applications = [application | ({"count": 1} if once else {}) for application in cell.applications]
        return self.run(applications, replicate, cell.plan["duration_ns"] / 1e9 if duration_s is None else duration_s)

    def run(
        self, applications: list[dict[str, Any]], replicate: int, duration_s: float
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `replicate`, for any applications."""
        self.quiet()
        self.layout = self._laid_out.of_replicate(self.seed, replicate)
        changed = [] if self.layout is self._laid_out else self.layout.both_ways()
        self.lab.box("reset", replicate=replicate, changed=changed)
        over_quic = self._server_ends(applications)
        if over_quic:
            self.lab.box("watch", links=over_quic)
        close_s, empty_s = _CLOSING_S + self.layout.round_trip_s() * 4, self.layout.emptying_s()
        facts: dict[str, Any] = self.lab.call(
            "run_replicate",
            timeout_s=duration_s + 2 * close_s + empty_s + 30.0,
            seed=self.seed,
            replicate=replicate,
            duration_s=duration_s,
            applications=applications,
            close_s=close_s,
            empty_s=empty_s,
        )
        box = self.quiet()
        # Too much traffic is why packets go astray, where both are found.
        if fast := beyond_calibration(self.layout, box):
            raise MachineError(f"{fast[0]}; nothing is recorded: lower its rate or the traffic, or use simulate")
        refuse_losses(box, facts)
        if over_quic:
            with temporary_directory() as directory:
                path = Path(directory, "packets")
                self.lab.box("pcapng", links=over_quic, path=str(path))
                facts["datagrams"] = path.read_bytes()
        return facts, box

    def _server_ends(self, applications: Sequence[Mapping[str, Any]]) -> list[str]:
        """The last links, in the direction of the server, on the paths of applications over QUIC."""
        ends = {
            self.layout.path(host, server)[-1]
            for application in applications
            if "quic" in application
            for number, host in application["clients"]
            for server in self.layout.placements[application["number"]].servers_of(number)
        }
        return [name for name in self.layout.links if name in ends]

    def quiet(self) -> dict[str, Any]:
        """Wait until nothing is in flight; the box's counters since they were taken last."""
        patience_s = _QUIET_S + self.layout.emptying_s()
        if not self.lab.is_quiet(patience_s):
            raise MachineError(f"packets are still in flight {patience_s:g} s after the last transfer")
        return self.lab.box("take", intervals=True)


class PassedPackets(NamedTuple):
    """Packets that passed one place: how many, and a pcapng file of their headers."""

    packets: int
    pcapng: bytes


class Captured(NamedTuple):
    """`tables`: `transfers`, `segments` as the servers' devices saw them, and `crossings`.
    `packets`: by place. "client" and "server" are the hosts of the first application's first connection; a link's name
    is the far end of that direction.
    """

    tables: dict[str, pl.DataFrame]
    packets: dict[str, PassedPackets]


def capture(scenario: Scenario, seed: int) -> Captured:
    """One replicate, in real time; times count from the first packet of the first application's first transfer.

    RequestError and MachineError as `run_cell`.
    """
    cell = Cell({}, scenario.over_tcp("a capture of segments"), capture=True)
    layout = lay_out(scenario, seed)
    refuse_links(layout, scenario)
    (prepared,) = prepare(cell, layout, seed, range(1))
    records = CellRecords(cell)
    placement = layout.placements[0]
    hosts = {"client": placement.clients[0], "server": placement.servers_of(0)[0]}
    packets = {}
    with Lab(layout, seed=seed, log=True) as lab, temporary_directory() as directory:
        campaign = Campaign(lab, layout, seed)
        campaign.configure(prepared)
        campaign.warm_up(prepared)
        lab.call("start_captures", hosts=list(hosts.values()))
        lab.box("watch", links=None)
        facts, box = campaign.replicate(prepared, 0)
        path = Path(directory, "packets")
        for end, host in hosts.items():
            answer = lab.call("write_packets", host=host, path=str(path))
            packets[end] = PassedPackets(answer["packets"], path.read_bytes())
        joined = Replicate(0, campaign.layout, facts, box)
        for link in joined.names["link"]:
            answer = lab.box("pcapng", links=[link], path=str(path))
            packets[link] = PassedPackets(answer["packets"], path.read_bytes())
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
