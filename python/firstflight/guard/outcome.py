"""A finished connection, as the guard's rules see it: from the kernel at close, or from a log in virtual time."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

Network = IPv4Network | IPv6Network
Arm = Literal["control", "raised"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One finished connection. None stands for a value that its source lacks."""

    at: float
    """When it closed, in seconds of the source's clock."""
    prefix: Network
    """Network whose arm was drawn: the smallest that a window can be set for, down to one host."""
    arm: Arm
    initial_window: int
    """In segments."""
    bytes_acked: int
    largest_cwnd: int
    """In segments."""
    retransmissions: int
    """Segments retransmitted."""
    first_flight_lost: bool | None
    """Whether a segment of the first flight was retransmitted."""
    timeouts: int
    """Retransmission timeouts."""
    rtt: float | None
    """Smallest or smoothed RTT, in seconds."""
    delivery_rate: float | None
    """In bytes per second."""
    marks: int | None
    """ECN marks echoed by the client."""
    is_finished: bool = True
    """False: a handshake that stays unfinished. It counts as a timeout, for prefixes known by other connections."""
