"""Types of the compiled module (crates/python)."""

from os import PathLike
from typing import Self, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

@type_check_only
class Names(TypedDict):
    """What the indices in the tables stand for."""

    links: list[str]
    applications: list[str]
    states: list[str]
    triggers: list[str]

@type_check_only
class Simulated(TypedDict):
    """Tables as {column: (NumPy dtype, little-endian bytes)}; what was counted."""

    names: Names
    tables: dict[str, dict[str, tuple[str, bytes]]]
    counts: dict[str, int]

def version() -> str:
    """Version of the native code."""

def profiles() -> str:
    """The TCP profiles with all their fields, as JSON: {name: {field: value}}."""

def check_profile(profile: str) -> None:
    """Check a complete profile (JSON). Raises ValueError, one sentence, for a field out of range or without effect."""

def initial_window_bytes(policy: str, mss_bytes: int) -> int:
    """The initial window by a profile's policy (JSON), for segments of so many bytes. Raises ValueError for another."""

def choices() -> str:
    """The values that the fields of a profile with a choice can have, as JSON: {path: [value]}.

    A value is a word; a table whose first key names the variant and whose others are parameters at their defaults; or a
    table whose one key is the variant and holds the table of its parameters. 0 stands for a number without a default.
    """

def link_parts() -> str:
    """The queues, losses, rates and impairments that a link can have, as JSON: {key of a native link: [part]}.

    A part has a `name`, a `doc` and `fields`; a field a `name`, a `doc`, a `type`, `bounds`, and perhaps a `default`.
    """

def check_link(link: str) -> tuple[str, str, str] | None:
    """Key, value and correction of what no link can have, in a native link (JSON); None if there is nothing.

    Raises ValueError, one sentence, for another form.
    """

def mean_rate_bps(schedule: str) -> int:
    """Mean of a rate that changes (JSON). Raises ValueError, one sentence, for one that cannot be."""

SCHEMA_VERSION: int
"""Number of the records' schema."""

COUNTED: list[str]
"""What aggregates and histograms count."""

DIMENSIONS: list[str]
"""By what they sort it into buckets."""

SENDER_EVENTS: list[list[list[str]]]
"""Sender events in words, by old state, new state and trigger."""

GAMMA: float
"""Bin b of a histogram holds completion times above GAMMA^(b-1) ns, up to GAMMA^b ns."""

def record_tables() -> list[tuple[str, list[tuple[str, str | None, str, str, float | None]]]]:
    """Of each table each column: name, type in NumPy's spelling (None: names), unit, meaning, value for null."""

@final
class Law:
    """A law of sizes or times as a plan has it (JSON). Raises ValueError for another."""

    def __new__(cls, law: str) -> Self: ...

def draw(owner: tuple[int, int, int, int], purpose: str, index: int, law: Law | None = None) -> float:
    """A draw as the simulator makes it, from a law or else uniform in [0, 1).

    `owner`: seed, replicate, application, client. Raises ValueError for another purpose than a client's.
    """

def normal_cdf(values: npt.NDArray[np.float64]) -> bytes:
    """Share of the standard normal law at or below each value: float64, of a contiguous float64 array."""

def student_cdf(freedom: float, value: float) -> float:
    """Share of Student's t at or below a value; NaN without degrees of freedom or of NaN."""

def student_quantile(freedom: float, share: float) -> float:
    """Quantile of Student's t, with infinitely many degrees of freedom of the normal law; NaN as for `student_cdf`."""

def chi_squared_tail(freedom: float, value: float) -> float:
    """Share of the chi-squared law above a value; NaN as for `student_cdf`."""

def simulate(plan: str, seed: int, first_replicate: int, replicates: int, capture: bool = False) -> Simulated:
    """Simulate replicates `first_replicate` and on of a plan (JSON, `Scenario.to_plan`).

    Lets other threads run meanwhile. Raises ValueError, one sentence, for a plan that cannot be run.
    """

@type_check_only
class Drawn(TypedDict):
    """Users before their simulation: `users` as a table of `Simulated`; what it leaves out, a value a user.

    `bytes` is empty where the paths are no table with sizes, and `handshakes` (bytes, exchanges) likewise; `runs`
    says of each application who runs it.
    """

    users: dict[str, tuple[str, bytes]]
    up_buffer_bytes: list[int]
    bytes: list[float]
    handshakes: list[tuple[float, int]]
    runs: list[list[bool]]

def draw_users(plan: str, seed: int, replicate: int, users: int) -> Drawn:
    """The first `users` of a replicate of a plan with a population, without simulating them.

    Raises ValueError, one sentence, for a plan without a population or with fewer users, and for laws that give what no
    path can have.
    """

@final
class Topology:
    """The network of a plan (JSON) in a replicate."""

    def __new__(cls, plan: str, seed: int, replicate: int) -> Self:
        """Raises ValueError, one sentence, for a plan that cannot be read or has no network, and for laws that give
        what no link can have.
        """

    def links(self) -> str:
        """The links as JSON: [[name, link], ...], each direction, in the order of the records. A link has
        no key for what is not set, except "rate_bps", "loss" and "lose".
        """

    def hosts(self, selection: str) -> list[str]:
        """The hosts that a selection names, "left" or "left[2]". Raises ValueError for one that names none."""

    def path(self, source: str, destination: str) -> list[str]:
        """The links from one host to another, in order. Raises ValueError for hosts that are not there or are one,
        and for a selection of several.
        """

def datagram_flows(plan: str) -> str:
    """What each application's ends send in datagrams, as JSON: a list for each application, empty for TCP.

    A flow: {"from_server", "interval_ns", "payload": law, "header_bytes", "length_ns": null for no end, "at_ticks"}.
    Raises ValueError, one sentence, for a plan that cannot be run.
    """

def stream_reports(plan: str, streams: str) -> dict[str, tuple[str, bytes]]:
    """The table `streams` of `Simulated`, of streams that a testbed saw, as JSON. Times are ns since the run began.

    A stream: {"replicate", "application", "arm": 0 for none, "client", "from_server", "sent": [[ns, payload bytes]],
    "arrived": [[number, ns]] in the order of arrival, "lost"}. Raises ValueError for one that no client has.
    """

def write_packets(
    plan: str,
    seed: int,
    replicate: int,
    path: str | PathLike[str],
    comment: str,
    at: str = "client",
    link: str | None = None,
    ipv6: bool = False,
) -> int:
    """Simulate a replicate and write the packets that pass a place, over IPv4 or IPv6; returns how many.

    `at` is "client" or "server": the host of that end of the first application's first connection. With `link`, the
    place is the far end of that link. A path that ends in .pcap makes a pcap file, any other pcapng; it appears
    complete or not at all. Raises ValueError for a plan that cannot be run, a link that is not there or a segment too
    large for a packet, OSError where the file cannot be written: one sentence each.
    """

def run_script(text: str, tolerance_ns: int) -> str:
    """Run a packet script in virtual time.

    The report is JSON: verdict (pass, differs, unsupported, error), reason, line, details, notes, checks: the blocks
    `%{ }%` that the run came to, with the values of their names.
    """

def scheduler_cost(sources: int, operations: int) -> float:
    """Nanoseconds for taking the earliest event and scheduling the next of its source, among `sources` pending."""

CALIBRATED_BPS: int
"""The highest rate of a link, in bits a second, at which the box was measured to be as accurate as promised."""

def open_device(kind: str, name: str) -> int:
    """Open a device in the calling thread's network namespace; returns its descriptor, which is the caller's.

    `kind` "tun" makes a TUN interface `name`, down and without an address, which vanishes with its last descriptor;
    "packet" opens a packet socket on the interface `name` that is there: the box's end of a veth pair. Raises OSError
    where the kernel refuses, ValueError for another kind.
    """

def run_box(plan_json: str, fds: list[tuple[str, int]], control_fd: int) -> None:
    """Run a link box on devices given as (kind, descriptor), in the order of the plan's ports.

    The plan is JSON as crates/linkbox/src/plan.rs has it. Returns when the control socket (a stream socket of the Unix
    domain) says `{"do": "stop"}` or closes; crates/linkbox has the other commands. Lets other threads run meanwhile;
    descriptors stay the caller's. Raises ValueError for a plan that cannot be read, RuntimeError where the box cannot
    go on, OSError for a descriptor that is not what it should be: one sentence each.
    """

def run_capture(interface: str, control_fd: int, mtu: int = 1500) -> None:
    """Capture the headers of what passes an interface of the calling thread's network namespace, with kernel stamps.

    Returns when the control socket says `{"do": "stop"}` or closes; crates/linkbox has the other commands. Lets
    other threads run meanwhile; the descriptor stays the caller's. Raises RuntimeError for an interface that is not
    there or goes away, OSError for a bad descriptor.
    """

def run_wire(plan_json: str, interface: str, control_fd: int) -> None:
    """Run a host of our TCP on an interface of the calling thread's network namespace.

    The plan, `{"address": "10.77.0.1"}` at least, and the commands on the control socket (a stream socket of the Unix
    domain; a line of JSON each) are those of `firstflight_wire::{Plan, Command}`: `listen` serves `GET /N` with N bytes
    over HTTP/1.1, `fetch` fetches, `take` gives counters and segments, `stop` ends it, as closing does. Each is
    answered by a line with `ok`; lines with `report` come unasked: a `response` for each object that was fetched, a
    `connection` when one is over. Lets other threads run meanwhile; the descriptor stays the caller's.

    Raises ValueError for a plan that cannot be read, RuntimeError where it cannot go on, OSError for an interface that
    cannot be used: one sentence each.
    """

@final
class CaptureReader:
    """A pcap or pcapng file being read: rows of connections, responses and handshakes of TLS."""

    def __new__(cls, path: str | PathLike[str]) -> Self:
        """Raises OSError for a file that cannot be read, ValueError for one that is no capture: one sentence each."""

    def read(self, rows: int) -> dict[str, dict[str, tuple[str, bytes]]] | None:
        """The tables `connections`, `responses` and `handshakes`, as `Simulated` has them, with at least so many rows
        together; None after the last. Lets other threads run meanwhile. Raises OSError.
        """

    def problems(self) -> list[tuple[str, int, list[int]]]:
        """What could not be read so far: what, how often, and the first bytes of the file where it stands."""

    def others(self) -> list[tuple[str, int]]:
        """The packets so far that were no TCP segments, by protocol, the most frequent first."""

    def counts(self) -> tuple[int, int]:
        """Packets read so far, and TCP segments among them."""

_Closed = tuple[bytes, int, int, int, int, int, int | None, int, int, int | None, int]

@final
class ClosedConnections:
    """The kernel's reports of destroyed TCP connections (sock_diag), in the calling thread's network namespace."""

    def __new__(cls, ports: list[int], prefix_lengths: tuple[int, int]) -> Self:
        """With local `ports` (empty: all) and the prefix lengths of peers' networks for IPv4 and IPv6.

        Raises OSError without CAP_NET_ADMIN in the namespace.
        """

    def take(self, wait_s: float, limit: int) -> list[_Closed]:
        """Connections that are destroyed within `wait_s` seconds, at most about `limit`, chosen whatever they held.

        Each is (network as 4 or 16 bytes, data segments sent without retransmissions, segments of data retransmitted,
        DSACKs, bytes acknowledged, cwnd in segments at the end, smallest RTT in µs, last delivery rate in bytes/s,
        segments with CE marks, retransmission timeouts, the socket's cookie). Connections over loopback or without
        acknowledged data are passed over. Timeouts are None on kernels before 6.7, unless the connection ended in one.
        Lets other threads run meanwhile.
        """

    def counts(self) -> tuple[int, int, int, int]:
        """Connections reported so far; of these passed over and beyond the limit; reports dropped by the kernel."""

@final
class DrawnWindows:
    """A BPF program on a cgroup that draws the initial window of each accepted connection; ends with the process."""

    def __new__(cls, cgroup: PathLike[str], ports: list[int], compared: int) -> Self:
        """For connections on local `ports` (empty: all) in the calling thread's network namespace. Retransmissions
        among the first `compared` segments count as losses.

        Raises OSError without CAP_BPF and CAP_NET_ADMIN, for a directory that is no cgroup of version 2, and on a
        kernel before 5.15.
        """

    def set(self, network: bytes, length: int, segments: int, share: float) -> None:
        """Give connections to a network (4 or 16 bytes) `segments` with probability `share`, else ten."""

    def remove(self, network: bytes, length: int) -> None:
        """Draw nothing for connections to a network any more."""

    def take(self, cookie: int) -> tuple[int, bool] | None:
        """The window drawn for a socket and whether its first flight lost a segment; None if nothing was drawn."""
