"""How often the guard stops a window that does no harm, over simulated months; by default 200 (about five minutes).

    .venv/bin/python research/guard_false_stops.py [MONTHS]

A month has 5,000 connections of 400 clients, whose loss rates differ by a factor of 100 (0.2 to 20 %), one timeout in
100 connections, and a doubled rate of losses from 18 to 23 o'clock. The larger window changes nothing.
"""

import sys
from ipaddress import ip_network
from random import Random

from firstflight.guard.brain import Brain, Settings
from firstflight.guard.groups import Groups
from firstflight.guard.policy import Policy
from firstflight.guard.rehearse import BadLink, LoggedConnection, Rehearsal, rehearse

DAY_S = 86400.0
CLIENTS = 400


def month(seed: int, connections: int = 5000, bad: BadLink | None = None) -> Rehearsal:
    """One month of a static window of 32 segments."""
    random = Random(seed)
    risks = [0.002 * 100 ** random.random() for _ in range(CLIENTS)]
    log = []
    for number in range(connections):
        at = number * 30 * DAY_S / connections
        client = random.randrange(CLIENTS)
        busy = 18 <= at % DAY_S / 3600 < 23
        lost = random.random() < risks[client] * (2 if busy else 1)
        prefix = ip_network((0x0A000000 + client, 32))
        timeouts = int(random.random() < 0.01)
        log.append(LoggedConnection(at, at + 0.5, prefix, 60_000, int(lost), lost, timeouts, 0.05))
    settings = Settings(Policy("static", 32), secret=seed.to_bytes(4))
    # The clients' two /24 are one group at first, and two once each has 500 connections.
    return rehearse(log, Brain(settings, Groups(least_connections=500)), settings.rule.period_s, bad, seed)


if __name__ == "__main__":
    months = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    found = [month(seed) for seed in range(months)]
    stopped, trials = sum(bool(one.stops) for one in found), sum(len(one.verdicts) for one in found)
    raised = sum(one.raised for one in found) / sum(one.connections for one in found)
    print(
        f"{stopped} of {months} harmless months stopped ({trials} groups); {100 * raised:.0f} % of connections raised"
    )
