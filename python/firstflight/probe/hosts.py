"""Many servers, politely: one connection at a time to each, a pause after it, a few servers side by side."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event

from firstflight.errors import FirstflightError, MachineError, RequestError
from firstflight.probe.judge import Verdict, judge
from firstflight.probe.measure import Flight, measure, scout
from firstflight.probe.raw import open_raw
from firstflight.probe.speech import Target

# The smallest that Linux takes is 48; 64 makes a page of 1 kB enough. 536 and 1460 are the usual values for small
# segments and for Ethernet.
MSS = (64, 536, 1460)
REPEATS = 3
PAUSE_S = 1.0
SIDE_BY_SIDE = 4
_LEAST_MSS, _LARGEST_MSS = 48, 65_495
_REDIRECTIONS = 3


@dataclass(frozen=True)
class Answer:
    """The state of one URL: `asked` as it was given, `url` where redirections led, `error` the reason why it ended
    before all connections were made.
    """

    asked: str
    url: str
    address: str | None
    flights: tuple[Flight, ...]
    verdict: Verdict | None
    error: str | None


def probe(
    urls: Sequence[str],
    mss: Sequence[int] = MSS,
    repeats: int = REPEATS,
    pause_s: float = PAUSE_S,
    on_answer: Callable[[Answer], None] = lambda answer: None,
) -> list[Answer]:
    """Probe each URL, in the order given; `on_answer` is called for each result. A server that does not answer is an
    `error` of that URL. RequestError for a wrong URL or value, MachineError without CAP_NET_RAW, both before the first
    packet.
    """
    targets = [Target.parse(url) for url in urls]
    if wrong := [size for size in mss if not _LEAST_MSS <= size <= _LARGEST_MSS]:
        raise RequestError(f"an MSS of {wrong[0]} is out of range; give {_LEAST_MSS} to {_LARGEST_MSS} bytes")
    if repeats < 1 or pause_s < 0:
        raise RequestError(f"{repeats} repeats with a pause of {pause_s:g} s; give 1 or more, and 0 s or more")
    open_raw(socket.AF_INET).close()
    # Several names may be one server.
    by_server: dict[str, list[int]] = {}
    for at, target in enumerate(targets):
        by_server.setdefault(_server(target), []).append(at)
    answers: dict[int, Answer] = {}
    stop = Event()

    def of_server(places: list[int]) -> None:
        for at in places:
            answers[at] = _probe_one(urls[at], targets[at], mss, repeats, lambda: stop.wait(pause_s))
            if stop.is_set():
                return
            on_answer(answers[at])

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            for done in as_completed([pool.submit(of_server, places) for places in by_server.values()]):
                done.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [answers[at] for at in range(len(urls))]


def _probe_one(asked: str, target: Target, mss: Sequence[int], repeats: int, pause: Callable[[], object]) -> Answer:
    flights: list[Flight] = []
    address, error = None, None
    try:
        address = _resolve(target)
        scouted = scout(target, address)
        for _ in range(_REDIRECTIONS):
            if scouted.redirection is None:
                break
            target = Target.parse(scouted.redirection)
            address = _resolve(target)
            pause()
            scouted = scout(target, address)
        for _ in range(repeats):
            if not all(flight.settled for flight in flights[-len(mss) :]):
                # The server, or the machine, may have been busy when it was scouted.
                pause()
                scouted = scout(target, address)
            # Sizes in turn, so that a server that changes its mind does not change it between sizes.
            for size in mss:
                pause()
                flights.append(measure(target, address, size, scouted))
    except FirstflightError as failure:
        error = str(failure)
    verdict = judge(flights) if flights else None
    return Answer(asked, target.url, address and address[1], tuple(flights), verdict, error)


def _server(target: Target) -> str:
    """Its address; its name where there is none, which `_probe_one` reports."""
    try:
        return _resolve(target)[1]
    except MachineError:
        return target.host


def _resolve(target: Target) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise MachineError(f"{target.host} has no address: {error.strerror}") from None
    family, _, _, _, end = found[0]
    return family, str(end[0])
