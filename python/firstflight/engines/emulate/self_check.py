"""The self-check of a testbed: before a campaign it shows that packets and TCP follow the settings.

For each cell's settings it captures one connection, whose first flight must be exactly N segments, each of full size,
into a receive window that has room for them; and the round trip must be within 1 ms of the scenario's. Then the rate of
a train of packets must be within 0.5%. Where the rate changes or packets meet jitter a round trip may be longer, and no
train is sent. A try in which the path lost a packet, as the scenario wants it, shows nothing about the machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from firstflight import _native
from firstflight.engines.emulate.kernel import segment_bytes
from firstflight.engines.emulate.layout import Layout, queue_limit
from firstflight.engines.emulate.prepared import Prepared
from firstflight.engines.emulate.records import CapturedConnection, Replicate
from firstflight.errors import MachineError, SelfCheckError
from firstflight.scenario.scenario import IP_HEADER_BYTES

if TYPE_CHECKING:
    from firstflight.engines.emulate.campaign import Campaign

RTT_TOLERANCE_S = 1e-3
RATE_TOLERANCE = 0.005
_AGAIN = "; if the machine is busy, run the same command again later"
# With these a link has no rate that a train of packets shows.
_NO_STEADY_RATE = {"burst", "loss_model", "rate_schedule", "impairments"}
# With these it cannot be said when a single packet arrives, only before when it does not.
_NO_STEADY_TIME = {"rate_schedule", "impairments"}
# A machine that stalls can fail one try; a wrong setting fails them all.
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
    """The path lost packets of this try."""


def _tried(attempt: Callable[[int], Any]) -> Any:
    """The result of an attempt at the check. Its argument numbers the tries, as replicates: other losses are drawn."""
    last = _TRIES - 1
    for number in range(last):
        try:
            return attempt(number)
        except _LostError:
            pass
        except (MachineError, SelfCheckError):
            time.sleep(_FIRST_PAUSE_S * 2**number)
    try:
        return attempt(last)
    except _LostError as error:
        return {"not_checked": str(error)}


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
