"""The cost of a packet-hop, a packet and a connection, without a peer."""

import time
from statistics import median

from bench.process import Simulated, simulate
from bench.row import Goal, Row
from bench.work import connections, plan, scheduler_sources
from firstflight import _native

ROUNDS = 5


def hop_row() -> Row:
    """CPU time of a packet-hop in the uneven bulk work, against a bare pop and push of the same scheduler."""
    made = plan("bulk_uneven", 20.0)
    sources = scheduler_sources(made)
    hops, bare = [], []
    events_a_hop = 0.0
    for _ in range(ROUNDS):
        found = simulate([made])
        events_a_hop = found.events / found.packet_hops
        hops.append(1e9 * found.cpu_s / found.packet_hops)
        bare.append(_scheduler_ns(sources))
    ratios = [a / b for a, b in zip(hops, bare, strict=True)]
    return Row(
        "packet-hop, uneven bulk",
        median(hops),
        "ns",
        peer="pop + push",
        peer_value=median(bare),
        spread=(min(ratios), max(ratios)),
        goals=(Goal(4, at_least=False), Goal(2, at_least=False)),
        note=f"{sources} sources, {events_a_hop:.2g} events a hop",
    )


def shared_queue_row() -> Row:
    """Packet-hops a second of CPU where 500 users share an FQ-CoDel bottleneck for ten simulated minutes."""
    found = simulate([plan("fq_codel_users")])
    return Row(
        "500 users, FQ-CoDel",
        found.packet_hops / found.cpu_s,
        "packet-hops / CPU s",
        goals=(Goal(2e6), Goal(5e6)),
        goals_of_ratio=False,
        note=f"{found.events / found.packet_hops:.2g} events a hop",
    )


def _scheduler_ns(sources: int, operations: int = 10_000_000) -> float:
    """CPU ns of a pop and a push; the call times itself by the clock, here CPU is compared with CPU."""
    before = time.process_time()
    _native.scheduler_cost(sources, operations)
    return 1e9 * (time.process_time() - before) / operations


def linearity_rows() -> list[Row]:
    """CPU time per simulated data packet over four decades of packets, each against the longest run."""
    # simulated s, and how often to repeat it so that there is something to measure
    lengths = ((0.125, 1000), (0.28, 100), (1.38, 10), (12.2, 1), (120.5, 1))
    costs = []
    for duration_s, repeat in lengths:
        made = plan("bulk_uneven", duration_s)
        runs: list[Simulated] = [simulate([made], repeat=repeat) for _ in range(3)]
        packets = runs[0].data_packets // repeat
        costs.append((packets, 1e9 * median(run.cpu_s / run.data_packets for run in runs)))
    last_packets, last_cost = costs[-1]
    return [
        Row(
            f"{packets:,} data packets",
            cost,
            "CPU ns / data packet",
            peer=f"{last_packets:,} packets",
            peer_value=last_cost,
        )
        for packets, cost in costs[:-1]
    ]


def connection_rows() -> list[Row]:
    """Set-up time and memory of 1,000 and of 100,000 concurrently open connections."""
    base = plan("connections")
    made = []
    # subtracted: a constant cost for any number of connections, most of it code that is read for the first time
    once = median(simulate([connections(base, 1, 1.0)]).memory_bytes for _ in range(3))
    for clients in (1_000, 100_000):
        # all open at 0 s: a microsecond holds the set-up and nothing else
        opened = connections(base, clients, 1e-6)
        repeat = max(1, 20_000 // clients)
        set_up_s = median(simulate([opened], repeat=repeat).wall_s / repeat for _ in range(3))
        made.append(
            Row(
                f"{clients:,} connections, set-up",
                1e3 * set_up_s / (clients / 1000),
                "ms / 1,000 connections",
                goals=(Goal(10, at_least=False),),
                goals_of_ratio=False,
            )
        )
        # a second: handshake, request and response are over, the connection waits
        kept = median(simulate([connections(base, clients, 1.0)]).memory_bytes for _ in range(3))
        made.append(
            Row(
                f"{clients:,} connections, memory",
                (kept - once) / (clients - 1),
                "bytes / connection",
                goals=(Goal(2048, at_least=False), Goal(1500, at_least=False)),
                goals_of_ratio=False,
                note=f"beyond the {once / 2**20:.2f} MiB that a run of one takes",
            )
        )
    return made
