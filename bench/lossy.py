"""Flows that lose 1% of their packets: the cost of recovery with SACK, next to ns-2's Sack1 on the same work."""

from statistics import median

from bench.peers import Ns2
from bench.process import simulate
from bench.row import Goal, Row
from bench.work import plan

ROUNDS = 5
TITLE = "bulk, 1% loss"
UNIT = "data packets / CPU s"
TIMES_NS2 = (Goal(12), Goal(20))

_STOP_S = 10.0

# Both fill the link, so packets can differ by the start alone. One packet of a hundred is lost at random, and each side
# has its own draws: of some 2,000 losses the numbers differ by 3%, and three times that is rare.
_PACKETS_TOLERANCE = 0.01
_REPETITIONS_TOLERANCE = 0.1


def rows(ns2: Ns2 | None) -> list[Row]:
    """Our rate (profile linux: SACK, RACK-TLP, PRR, CUBIC) next to that of ns-2's Sack1, round by round in turn."""
    made = plan("lossy", _STOP_S)

    def ours() -> float:
        found = simulate([made])
        return found.data_packets / found.cpu_s

    if ns2 is None:
        return [Row(TITLE, median(ours() for _ in range(ROUNDS)), UNIT)]
    our_rates, peer_rates = [], []
    for _ in range(ROUNDS):
        our_rates.append(ours())
        run = ns2.lossy(_STOP_S)
        peer_rates.append(run.figures["sent_packets"] / run.cpu_s)
    ratios = [a / b for a, b in zip(our_rates, peer_rates, strict=True)]
    return [
        Row(
            TITLE,
            median(our_rates),
            UNIT,
            peer=ns2.name,
            peer_value=median(peer_rates),
            spread=(min(ratios), max(ratios)),
            goals=TIMES_NS2,
        )
    ]


def same_work_rows(ns2: Ns2) -> list[Row]:
    """Data packets that senders sent, packets through the bottleneck, and the share retransmitted, on both sides."""
    ours = simulate([plan("lossy", _STOP_S)])
    theirs = ns2.lossy(_STOP_S).figures
    share = 100 * ours.retransmissions / ours.data_packets
    their_share = 100 * theirs["repeated_packets"] / theirs["sent_packets"]
    found = (
        ("data packets", "packets", ours.data_packets, theirs["sent_packets"], _PACKETS_TOLERANCE),
        (
            "through the bottleneck",
            "packets",
            ours.links["bottleneck"]["sent_packets"],
            theirs["data_packets"],
            _PACKETS_TOLERANCE,
        ),
        ("retransmitted", "%", share, their_share, _REPETITIONS_TOLERANCE),
    )
    return [
        Row(
            f"same work, {TITLE}: {what}",
            value,
            unit,
            peer=ns2.name,
            peer_value=peer,
            same=abs(value - peer) <= tolerance * peer,
        )
        for what, unit, value, peer, tolerance in found
    ]
