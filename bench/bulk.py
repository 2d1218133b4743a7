"""Bulk flows over one bottleneck: data packets per CPU second, next to each peer, on the same work."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.peers import Peer
from bench.process import simulate
from bench.row import Goal, Row
from bench.work import plan

ROUNDS = 5


@dataclass(frozen=True)
class Form:
    """A form of the work: its scenario, access delays in s, and goals (data packets/s; times ns-2)."""

    title: str
    scenario: str
    access_delays_s: tuple[float, float]
    rates: tuple[Goal, Goal]
    times_ns2: tuple[Goal, Goal]


FORMS = (
    Form("bulk, even", "bulk_even", (0.001, 0.001), (Goal(6e6), Goal(12e6)), (Goal(8.5), Goal(12))),
    Form("bulk, uneven", "bulk_uneven", (0.0005, 0.0015), (Goal(4e6), Goal(8e6)), (Goal(8), Goal(10))),
)
UNIT = "data packets / CPU s"

# Simulated seconds of a peer's run: each costs it a few CPU seconds.
_STOP_S = {"ns-2": 40.0, "ns-3": 2.0}
_OUR_STOP_S = 40.0


@dataclass(frozen=True)
class BottleneckTotals:
    """Traffic at the bottleneck in one run: data packets, drops, utilization in percent."""

    data_packets: float
    drops: float
    util: float


def rows(form: Form, peers: Sequence[Peer]) -> list[Row]:
    """Our rate, then our rate next to each peer's, round by round in turn."""
    made = plan(form.scenario, _OUR_STOP_S)

    def ours() -> float:
        found = simulate([made])
        return found.links["bottleneck"]["sent_packets"] / found.cpu_s

    if not peers:
        rates = [ours() for _ in range(ROUNDS)]
        return [Row(form.title, median(rates), UNIT, goals=form.rates, goals_of_ratio=False)]
    return [row for peer in peers for row in _beside(form, ours, peer)]


def _beside(form: Form, ours: Callable[[], float], peer: Peer) -> list[Row]:
    our_rates, peer_rates = [], []
    for _ in range(ROUNDS):
        our_rates.append(ours())
        run = peer.bulk(form.access_delays_s, _STOP_S[peer.name])
        peer_rates.append(run.figures["data_packets"] / run.cpu_s)
    ratios = [a / b for a, b in zip(our_rates, peer_rates, strict=True)]
    row = Row(
        form.title,
        median(our_rates),
        UNIT,
        peer=peer.name,
        peer_value=median(peer_rates),
        spread=(min(ratios), max(ratios)),
        goals=form.times_ns2 if peer.name == "ns-2" else (),
    )
    if peer.name != "ns-2":
        return [row]
    absolute = Row(form.title, row.ours, UNIT, goals=form.rates, goals_of_ratio=False)
    return [absolute, row]


def ours_through_bottleneck(form: Form, stop_s: float) -> BottleneckTotals:
    """Our run of `stop_s` simulated seconds, counted as the peers' scripts count theirs."""
    made = plan(form.scenario, stop_s)
    link = simulate([made]).links["bottleneck"]
    capacity_bytes = made["network"]["bottleneck"]["forward"]["rate_bps"] / 8 * stop_s
    util = 100 * link["sent_bytes"] / capacity_bytes
    return BottleneckTotals(link["sent_packets"], link["dropped_packets"], util)
