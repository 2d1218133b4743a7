"""Many servers, politely: one connection at a time to each, a pause after it, a few servers side by side."""

import ipaddress
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from firstflight.errors import FirstflightError, MachineError, RequestError
from firstflight.probe.handshake import Handshake
from firstflight.probe.judge import Verdict, judge
from firstflight.probe.measure import Flight, measure, other_hello, scout
from firstflight.probe.raw import StoppedError, open_raw
from firstflight.probe.speech import Target

# The smallest that Linux takes is 48; 64 makes a page of 1 kB enough. 536 and 1460 are the usual values for small
# segments and for Ethernet.
MSS = (64, 536, 1460)
REPEATS = 3
PAUSE_S = 1.0
SIDE_BY_SIDE = 4
_LEAST_MSS, _LARGEST_MSS = 48, 65_495
_REDIRECTIONS = 3
# The longest wait for the resets of open connections, after Ctrl-C.
_RESET_S = 1.0
_LOOK_S = 0.2
# RFC 6052: addresses of IPv4 behind a translator.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True)
class Answer:
    """The result of one URL. `asked`: as given; `url`: after redirections; `error`: why it ended early; `handshakes`:
    with the usual ClientHello and with one of another number of segments, None for one that failed; empty without TLS.
    """

    asked: str
    url: str
    address: str | None
    flights: tuple[Flight, ...]
    verdict: Verdict | None
    error: str | None
    handshakes: tuple[Handshake | None, ...] = ()


def probe(
    urls: Sequence[str],
    mss: Sequence[int] = MSS,
    repeats: int = REPEATS,
    pause_s: float = PAUSE_S,
    on_answer: Callable[[Answer], None] = lambda answer: None,
) -> list[Answer]:
    """Probe each URL, in the order given; `on_answer` is called with each result.

    A server that does not answer is an `error` of its URL. RequestError for a wrong URL or value, MachineError without
    CAP_NET_RAW, both before the first packet.
    """
    targets = [Target.parse(url) for url in urls]
    if wrong := [size for size in mss if not _LEAST_MSS <= size <= _LARGEST_MSS]:
        raise RequestError(f"an MSS of {wrong[0]} is out of range; give {_LEAST_MSS} to {_LARGEST_MSS} bytes")
    if repeats < 1 or pause_s < 0:
        raise RequestError(f"{repeats} repeats with a pause of {pause_s:g} s; give 1 or more, and 0 s or more")
    open_raw(socket.AF_INET).close()
    stop = Event()
    # Several names may be one server.
    servers = _side_by_side([partial(_server, target) for target in targets], stop)
    by_server: dict[str, list[int]] = {}
    for at, server in enumerate(servers):
        by_server.setdefault(server, []).append(at)
    answers: dict[int, Answer] = {}

    def of_server(places: list[int]) -> None:
        for at in places:
            answers[at] = _probe_one(urls[at], targets[at], mss, repeats, pause_s, stop)
            on_answer(answers[at])

    _side_by_side([partial(of_server, places) for places in by_server.values()], stop)
    return [answers[at] for at in range(len(urls))]


def _side_by_side(tasks: Sequence[Callable[[], Any]], stop: Event) -> list[Any]:
    """The results of all tasks, a few at a time. What one raises is raised, and so is Ctrl-C, at once: a thread that
    waits for a name server cannot be ended, and ends with the program.
    """
    waiting = deque(enumerate(tasks))
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while waiting and not stop.is_set():
            at, task = waiting.popleft()
            try:
                done.put((at, task(), None))
            except BaseException as error:
                done.put((at, None, error))

    threads = [Thread(target=work, daemon=True) for _ in range(min(SIDE_BY_SIDE, len(tasks)))]
    for thread in threads:
        thread.start()
    results: dict[int, Any] = {}
    try:
        while len(results) < len(tasks):
            try:
                # A signal may be another thread's to take, which wakes nobody here.
                at, result, error = done.get(timeout=_LOOK_S)
            except Empty:
                continue
            if error is not None:
                raise error
            results[at] = result
    except BaseException:
        # Connections are reset.
        stop.set()
        until = time.monotonic() + _RESET_S
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        raise
    return [results[at] for at in range(len(tasks))]


def _probe_one(asked: str, target: Target, mss: Sequence[int], repeats: int, pause_s: float, stop: Event) -> Answer:
    flights: list[Flight] = []
    address, error = None, None
    handshakes: tuple[Handshake | None, ...] = ()

    def pause() -> None:
        if stop.wait(pause_s):
            raise StoppedError

    try:
        address = _resolve(target)
        given = _reach(address[1])
        scouted = scout(target, address, stop)
        for _ in range(_REDIRECTIONS):
            if scouted.redirection is None:
                break
            target = Target.parse(scouted.redirection)
            resolved = _resolve(target)
            if _reach(resolved[1]) not in ("public", given):
                raise RequestError(
                    f"it redirects to {target.url}, at a {_reach(resolved[1])} address ({resolved[1]}), which is not "
                    "followed; give that URL if you want it"
                )
            address = resolved
            pause()
            scouted = scout(target, address, stop)
        if scouted.handshake is not None:
            pause()
            handshakes = (scouted.handshake, other_hello(target, address, scouted.handshake, stop))
        for _ in range(repeats):
            if not all(flight.settled for flight in flights[-len(mss) :]):
                # The server, or the machine, may have been busy when it was scouted.
                pause()
                scouted = scout(target, address, stop)
            # Sizes in turn, so that a server that changes its mind does not change it between sizes.
            for size in mss:
                pause()
                flights.append(measure(target, address, size, scouted, stop))
    except FirstflightError as failure:
        error = str(failure)
    except StoppedError:
        raise
    except Exception as failure:
        # Whatever a server answers, the others of a list are probed.
        error = f"its answer cannot be dealt with: {failure}"
    answered = [flight for flight in flights if flight.bytes]
    if flights and not answered:
        error = error or "the server sent no data before the first ACK"
    verdict = judge(answered) if answered else None
    return Answer(asked, target.url, address and address[1], tuple(flights), verdict, error, handshakes)


def _server(target: Target) -> str:
    """Its address; its name where there is none, which `_probe_one` reports."""
    try:
        return _resolve(target)[1]
    except MachineError:
        return target.host


def _reach(address: str) -> str:
    """The part of the network that an address is in: "public", or one that a redirection must not lead to."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    if ip in _NAT64:
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    kinds = {"loopback": ip.is_loopback, "link-local": ip.is_link_local, "private": not ip.is_global}
    return next((kind for kind, holds in kinds.items() if holds), "public")


def _resolve(target: Target) -> tuple[socket.AddressFamily, str]:
    try:
        ends = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise MachineError(f"{target.host} has no address: {error.strerror}") from None
    except ValueError:
        raise MachineError(f"{target.host} has no address: it is no name of a host") from None
    family, _, _, _, end = ends[0]
    return family, str(end[0])
