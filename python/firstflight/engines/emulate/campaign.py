"""The engine: a scenario's cells on a testbed, replicate after replicate, cells that differ in TCP only in turn.

Compared cells must have the same background load, so a group of such cells shares one testbed, and its
replicates are interleaved (A B A B). Every measurement follows the same order: settings (set and read back), metrics
forgotten, links as new, applications, connections closed, nothing in flight, counters taken.

Before a campaign a self-check shows that the testbed follows its settings. If not, nothing is measured. For each cell's
settings one captured connection whose first flight must be exactly N segments, each of full size, into a receive window
that has room for them; a round trip within 1 ms of the scenario's, and a train of packets whose rate is within 0.5% of
it. Where the rate changes or packets meet jitter a round trip may be longer, and no train is sent. A try in which the
path lost a packet, as the scenario wants it, shows nothing about the machine.
"""

import copy
import json
import math
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import polars as pl

from firstflight import _native
from firstflight.engines.emulate import quic
from firstflight.engines.emulate.disturbance import STALL_RULE_S, beyond_calibration, refuse_losses
from firstflight.engines.emulate.kernel import KernelSettings, segment_bytes
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import Layout, lay_out, queue_limit, refuse_links
from firstflight.engines.emulate.prepared import Prepared, has_ml_dsa, prepare
from firstflight.engines.emulate.records import CapturedConnection, CellRecords, Replicate
from firstflight.engines.emulate.start import PROGRAMS, Inside, search_path, version_of
from firstflight.errors import MachineError, SelfCheckError
from firstflight.records.machine import usable_cpus
from firstflight.records.schema import first_transfers
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.scenario import IP_HEADER_BYTES
from firstflight.temporary import temporary_directory

# A connection's last packets: FIN, its ACK, and a retransmission of either.
_CLOSING_S = 4.0
_QUIET_S = 10.0
_ANSWER_S = 20.0
# See `jobs`.
_BEARS_NEIGHBORS_BPS = 10e6

# Of the self-check.
RTT_TOLERANCE_S = 1e-3
RATE_TOLERANCE = 0.005
_AGAIN = "; if the machine is busy, run the same command again later"
# With these a link has no rate that a train of packets shows.
_NO_STEADY_RATE = {"burst", "loss_model", "rate_schedule", "impairments"}
# With these it cannot be said when a single packet arrives, only before when it does not.
_NO_STEADY_TIME = {"rate_schedule", "impairments"}
# A stall of the machine spoils a check as it spoils a transfer; a wrong setting spoils all.
_TRIES = 6
# Before the second try, and twice as long before each further one: a machine that is busy for seconds must not end a
# campaign of an hour.
_FIRST_PAUSE_S = 0.25
# TCP headers: on a SYN-ACK 20 bytes of options, on an ACK with timestamps 12.
_SYN_ACK_BYTES = 20 + 20
_ACK_BYTES = 20 + 12
_MOST_TRAIN_BYTES = 1500
_TRAIN_PACKETS = 101
# A slow link's train is short enough to last no longer, and one into a short queue has no more packets than it holds:
# of such there are more.
_TRAIN_LASTS_S = 0.05
_FEWEST_TRAINS, _MOST_TRAINS = 4, 30
_PACKETS = 200
# How long after it should have come a train's last packet is waited for, and then the testbed's answer.
_TRAIN_WAIT_S, _TRAIN_ANSWER_S = 2.0, 30.0

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
        checked = check(campaign, [by_turn[0] for by_turn in prepared])
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
        """The same for any applications."""
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


def check(campaign: Campaign, cells: Sequence[Prepared]) -> dict[str, Any]:
    """The measurement, for the provenance. SelfCheckError gives the measured and the expected value."""
    checks: dict[str, Any] = {}
    done: list[dict[str, Any]] = []
    for cell in cells:
        settings = {"hosts": cell.hosts, "servers": cell.servers}
        if settings in done:
            continue
        done.append(settings)
        campaign.configure(cell)
        first = next((entry["number"] for entry in cell.applications if entry["name"] in cell.profiles), None)
        for application in cell.applications:
            # All arms of the first that is TCP.
            if application["number"] == first:
                checks[f"first_flight_{len(checks) + 1}"] = _tried(partial(_first_flight, campaign, cell, application))
    checks["rate"] = _tried(lambda number: _rate(campaign))
    return {"self_check": checks}


class _LostError(SelfCheckError):
    """The path lost packets of the try."""


def _tried(attempt: Callable[[int], Any]) -> Any:
    """What an attempt comes to; its argument is its number, as a replicate's, so that other losses are drawn."""
    for number in range(_TRIES):
        is_last = number == _TRIES - 1
        try:
            return attempt(number)
        except _LostError as error:
            if is_last:
                return {"not_checked": str(error)}
        except (MachineError, SelfCheckError):
            if is_last:
                raise
            time.sleep(_FIRST_PAUSE_S * 2**number)
    raise AssertionError


def _first_flight(campaign: Campaign, cell: Prepared, application: dict[str, Any], number: int) -> dict[str, Any]:
    index, client = application["clients"][0]
    server = campaign.layout.placements[application["number"]].servers_of(index)[0]
    receiver, profile = cell.profiles[application["name"]]
    full = segment_bytes({name: min(profile[name], receiver[name]) for name in ("mss_bytes", "timestamps")})
    expected = cell.windows[application["name"]]
    growth = receiver["receive_window_growth"]
    # A receiver's first window has room for so many: a larger initial window sends no others.
    room = int(receiver["receive_window_bytes"] if growth is None else growth["initial_bytes"]) // full
    connection, lost = _captured(campaign, application, client, server, (min(expected, room) + 2) * full, number)
    window = connection.first_window()
    header = IP_HEADER_BYTES[campaign.layout.ip]
    asked = _one_way(campaign.layout, server, client, header + _SYN_ACK_BYTES)
    asked += _one_way(campaign.layout, client, server, header + _ACK_BYTES)
    # On a slow link the tail loss probe, two round trips later, leaves before anything is acknowledged as well.
    sizes = connection.first_flight_bytes(within_s=asked)
    where = f"self-check of {client} and {server}"
    if window < expected * full:
        # The receiver's window is part of the scenario; then it, and not the sender, bounds the first flight.
        expected = window // full
    is_ours = campaign.layout.host(server).stack != "kernel"
    rtt_s = connection.round_trip_s()
    is_full = sizes == [full] * expected or (is_ours and _begins_otherwise(profile))
    crossed = _crossed(campaign.layout, server, client) + _crossed(campaign.layout, client, server)
    latest = math.inf if any(_NO_STEADY_TIME & link.keys() for link in crossed) else asked + RTT_TOLERANCE_S
    is_in_time = asked - 1e-4 <= rtt_s <= latest
    if lost and not (is_full and is_in_time):
        raise _LostError(_lost(lost))
    if not is_full:
        raise SelfCheckError(
            f"{where}: the first flight should be {expected} segments of {full} bytes and was "
            f"{len(sizes)} of {sorted(set(sizes))} bytes"
        )
    if not is_in_time:
        raise SelfCheckError(
            f"{where}: the round trip should be {asked * 1e3:.3f} ms to within {RTT_TOLERANCE_S * 1e3:g} ms and was "
            f"{rtt_s * 1e3:.3f} ms{_AGAIN}"
        )
    return {
        "segments": len(sizes),
        "segment_bytes": full,
        "window_bytes": window,
        "round_trip_s": round(rtt_s, 6),
        "round_trip_asked_s": round(asked, 6),
    }


def _begins_otherwise(profile: Mapping[str, Any]) -> bool:
    """Whether the first flight of our own TCP is no whole number of segments known beforehand, sent back to back."""
    return profile["startup"]["scheme"] != "window" or profile["initial_window"]["policy"] not in ("fixed", "linux")


def _captured(
    campaign: Campaign, first: dict[str, Any], client: str, server: str, size: int, number: int
) -> tuple[CapturedConnection, int]:
    """One download of `size` bytes, as the server's capture saw it, and how many packets the path lost meanwhile."""
    # TLS would begin with flights of other sizes.
    application = {key: value for key, value in first.items() if key != "handshakes"} | {
        "kind": "file_transfer",
        "start": {"distribution": "constant", "value": 0.0},
        "size": {"distribution": "constant", "value": size},
        "gap": {"distribution": "constant", "value": 0.0},
        "request_bytes": 0,
        "response_header_bytes": 0,
        "count": 1,
        "clients": [(0, client)],
        "servers": [server],
        "server_choice": "by_client",
    }
    facts, box = campaign.run([application], number, campaign.layout.patience_s(size))
    transfers = facts["transfers"]
    lost = sum(link["lost"]["packets"] for link in box["links"])
    if lost and not (transfers and transfers[0]["completed"]):
        raise _LostError(_lost(lost))
    if not transfers or not transfers[0]["completed"]:
        raise MachineError(f"self-check: {client} did not get {size} bytes from {server} in time")
    end = (campaign.layout.host(server).address, campaign.layout.host(client).address, transfers[0]["port"])
    connections = Replicate(number, campaign.layout, facts, box).connections
    if end not in connections:
        raise MachineError(f"self-check: the capture on {server} saw nothing of the connection from {client}")
    return connections[end], lost


def _lost(packets: int) -> str:
    return f"the path lost {packets} packets of the connection, as the scenario wants it"


def _one_way(layout: Layout, source: str, destination: str, size: int) -> float:
    links = _crossed(layout, source, destination)
    # A token bucket lets single packets pass immediately; of a rate that changes nothing is known.
    lines = [link["rate_bps"] for link in links if link["rate_bps"] and not {"burst", "rate_schedule"} & link.keys()]
    return float(sum(link["delay_ns"] / 1e9 for link in links) + sum(8 * size / rate for rate in lines))


def _crossed(layout: Layout, source: str, destination: str) -> list[dict[str, Any]]:
    links = layout.links
    return [links[name] for name in layout.path(source, destination)]


def _rate(campaign: Campaign) -> dict[str, Any] | None:
    """The rate of the slowest link from the first server to its first client; None where all are unlimited or faster
    than the link emulator is calibrated for, and where a kernel that could send or receive the train keeps silent next
    to our own TCP.
    """
    layout = campaign.layout
    placement = layout.placements[0]
    client, server = placement.clients[0], placement.servers_of(0)[0]
    if any(layout.host(name).stack != "kernel" for name in (client, server)):
        return None
    crossed = _crossed(layout, server, client)
    rates = [link["rate_bps"] for link in crossed if link["rate_bps"]]
    if not rates or min(rates) > _native.CALIBRATED_BPS:
        return None
    asked = min(rates)
    size = min(_MOST_TRAIN_BYTES, layout.mtu)
    room = min(_room(link["queue"], size) for link in crossed)
    lasting = max(3, round(_TRAIN_LASTS_S * asked / (8 * size)))
    packets = min(_TRAIN_PACKETS, room, lasting)
    if packets < 2 or any(link["loss"] or link["lose"] or _NO_STEADY_RATE & link.keys() for link in crossed):
        return None
    trains = min(max(_FEWEST_TRAINS, _PACKETS // packets), _MOST_TRAINS if asked > 1e6 else _FEWEST_TRAINS)
    interval_s = 2 * 8 * size * packets / asked + 0.005
    patience_s = _one_way(layout, server, client, size * packets) + _TRAIN_WAIT_S
    answer = campaign.lab.call(
        "probe_packets",
        timeout_s=trains * interval_s + patience_s + _TRAIN_ANSWER_S,
        client=server,
        server=client,
        packet_bytes=size,
        burst=packets,
        bursts=trains,
        interval_s=interval_s,
        patience_s=patience_s,
    )
    campaign.quiet()
    received = answer["received"]
    if None in received:
        raise MachineError(f"self-check: of {len(received)} packets from {server} to {client} not all arrived")
    arrived = [received[at : at + packets] for at in range(0, len(received), packets)]
    bps = min((8 * size / spacing for spacing in _spacings(arrived)), key=lambda rate: abs(rate - asked))
    if abs(bps / asked - 1) > RATE_TOLERANCE:
        raise SelfCheckError(
            f"self-check of {server} and {client}: the rate should be {asked / 1e6:g} Mbit/s to within "
            f"{RATE_TOLERANCE * 100:g}% and was {bps / 1e6:.4f} Mbit/s{_AGAIN}"
        )
    return {"bps": round(bps), "asked_bps": asked}


def _spacings(trains: list[list[int]]) -> Iterator[float]:
    """Seconds between two packets of a train, measured in two ways: by whole trains, which a late first packet of a
    short one spoils, and by single gaps, which packets handed over together spoil.
    """
    yield median((train[-1] - train[0]) / (len(train) - 1) / 1e9 for train in trains)
    yield max(median(after - before for train in trains for before, after in pairwise(train)) / 1e9, 1e-9)


def _room(queue: dict[str, Any], packet_bytes: int) -> int:
    """Packets of a train that a queue holds for certain, that in service not counted."""
    if "min_threshold_packets" in queue:
        return int(queue["min_threshold_packets"])
    packets, size = queue_limit(queue)
    return size // packet_bytes if packets is None else packets
