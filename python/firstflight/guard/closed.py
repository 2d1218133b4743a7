"""Outcomes of connections as the kernel reports them when it destroys them (sock_diag, TCP_INFO)."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any, NamedTuple

from firstflight import _native
from firstflight.errors import MachineError
from firstflight.guard.outcome import Arm, Network, Outcome
from firstflight.guard.policy import RFC6928_SEGMENTS

# So that reading and judging stay below 5% of a core however many connections there are.
_MOST_PER_SECOND = 2000
_NETWORKS_KEPT = 65_536


class Row(NamedTuple):
    """The result of `_native.ClosedConnections.take`."""

    network: bytes
    segments: int
    retransmissions: int
    dsacks: int
    bytes_acked: int
    cwnd: int
    min_rtt_us: int | None
    delivery_rate: int
    marks: int
    timeouts: int | None
    cookie: int
    """Of the socket."""


@dataclass(frozen=True, slots=True)
class Began:
    """The initial window of a closed connection."""

    segments: int
    """Its initial window."""
    judged: bool
    """Whether it had the window that was drawn for it."""
    lost: bool | None = None
    """Whether one of the first segments was lost, as many as the largest window under trial; None if that was not
    recorded.
    """


class Counts(NamedTuple):
    """Since the start."""

    reported: int
    passed_over: int
    beyond: int
    dropped: int


class _Hashed:
    """A network that keeps its hash: working it out takes a microsecond, and a connection's is looked up ten times."""

    def __init__(self, address: Any, strict: bool = True) -> None:
        super().__init__(address, strict)  # type: ignore[call-arg]
        self._hash = super().__hash__()

    def __hash__(self) -> int:
        return self._hash


class _V4(_Hashed, IPv4Network):
    pass


class _V6(_Hashed, IPv6Network):
    pass


class Closed:
    """Finished connections, by prefix. Raises MachineError where the kernel does not report them."""

    def __init__(self, ports: list[int], prefix_lengths: tuple[int, int]) -> None:
        self._kinds: dict[int, tuple[type[_V4 | _V6], int]] = {
            4: (_V4, prefix_lengths[0]),
            16: (_V6, prefix_lengths[1]),
        }
        self._networks: dict[bytes, Network] = {}
        try:
            self._source = _native.ClosedConnections(ports, prefix_lengths)
        except OSError as error:
            raise MachineError(
                f"closed connections (sock_diag): {error.strerror}; run as root or with CAP_NET_ADMIN, on a kernel "
                "with tcp_diag"
            ) from None

    def take(self, wait_s: float) -> list[tuple[Network, Row]]:
        """The connections closed within this number of seconds. Raises OSError."""
        rows = map(Row._make, self._source.take(wait_s, max(int(_MOST_PER_SECOND * wait_s), 1)))
        return [(self._of(row.network), row) for row in rows]

    def network(self, address: bytes) -> Network:
        """The prefix of a client."""
        bits = 8 * len(address) - self._kinds[len(address)][1]
        return self._of((int.from_bytes(address) >> bits << bits).to_bytes(len(address)))

    def counts(self) -> Counts:
        """The connections so far."""
        return Counts(*self._source.counts())

    def _of(self, packed: bytes) -> Network:
        network = self._networks.get(packed)
        if network is None:
            if len(self._networks) >= _NETWORKS_KEPT:
                self._networks.clear()
            kind, length = self._kinds[len(packed)]
            network = self._networks[packed] = kind((packed, length))
        return network


def outcome(at: float, prefix: Network, row: Row, began: Began, compared: int) -> Outcome:
    """A row as the rules see it.

    TCP_INFO does not say which segment was retransmitted. So a loss in the first flight is known for connections that
    sent no more than `compared` segments in all, the largest window under trial: of these each retransmission that no
    DSACK explains counts, in both arms alike. Of longer connections it is not known.
    """
    lost = began.lost
    if lost is None and row.segments <= compared:
        lost = row.retransmissions > row.dsacks
    return Outcome(
        at=at,
        prefix=prefix,
        arm="raised" if began.segments > RFC6928_SEGMENTS else "control",
        initial_window=began.segments,
        bytes_acked=row.bytes_acked,
        # The kernel reports the window only at the end.
        largest_cwnd=row.cwnd,
        retransmissions=row.retransmissions,
        first_flight_lost=lost,
        timeouts=row.timeouts or 0,
        rtt=None if row.min_rtt_us is None else row.min_rtt_us / 1e6,
        delivery_rate=row.delivery_rate or None,
        marks=row.marks,
    )


def unfinished_handshake(at: float, prefix: Network, began: Began) -> Outcome:
    """A client that was answered and not heard of again, as when packets to it go astray: a timeout of its arm."""
    arm: Arm = "raised" if began.segments > RFC6928_SEGMENTS else "control"
    return Outcome(at, prefix, arm, began.segments, 0, 0, 0, None, 1, None, None, None, is_finished=False)
