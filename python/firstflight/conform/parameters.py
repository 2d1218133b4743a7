"""The parameters of one recorded connection, and their random draw."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Loss = tuple[int, int]
"""The m-th transmission of segment n, both from 1."""


@dataclass(frozen=True)
class Acks:
    """The ACK policy of a scripted receiver: one ACK for `every` segments, a lone one after `delay_ms`, and each ACK of
    new data as `split` ACKs of equal parts.
    """

    every: int = 1
    delay_ms: int = 40
    split: int = 1


@dataclass(frozen=True)
class Parameters:
    """One connection with the kernel as the sender of data, or as its receiver.

    `losses`: of the sender's segments. `writes`: when (ms after the handshake) the sender has how many bytes more; of a
    scripted sender each is a flight of segments. `swaps`: segments that a scripted sender sends behind the next one;
    `repeats`: those that it sends twice. `reads_ms`: how often the receiving application reads, 0 for immediately.
    `requests`: sizes of what a scripted client sends, one for each write, which answers it; the times of the writes are
    then its pauses. `windows`: what a scripted receiver advertises from when on (ms, bytes), without any the most that
    its scale `wscale` allows; -1: no scaling. `marks`: data segments whose first transmission is marked by ECN.
    `trains`, `compressed`: with `tcp_min_tso_segs` and `tcp_comp_sack_nr` as Linux has them; without, 1 and 0.
    """

    family: str
    direction: str = "sender"
    cc: str = "cubic"
    iw: int = 10
    mss: int = 1000
    sack: bool = True
    timestamps: bool = False
    restart: bool = False
    nodelay: bool = False
    ecn: bool = False
    trains: bool = False
    compressed: bool = False
    rtt_ms: int = 100
    spacing_us: int = 1000
    acks: Acks = Acks()
    losses: tuple[Loss, ...] = ()
    writes: tuple[tuple[int, int], ...] = ((0, 20_000),)
    swaps: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    reads_ms: int = 0
    requests: tuple[int, ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    wscale: int = 7
    marks: tuple[int, ...] = ()
    synacks_lost: int = 0

    @property
    def jumbo(self) -> bool:
        """Whether its segments need an MTU above 1500 bytes."""
        return self.mss > 1460

    def described(self) -> str:
        """The differences from the plainest connection, in one line."""
        plain = Parameters(self.family)
        parts = [
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.name != "family" and getattr(self, field.name) != getattr(plain, field.name)
        ]
        return " ".join([self.family, *parts])


def draw(random: Random, number: int, controls: list[str]) -> Parameters:
    """The connection with this number; families take turns."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    return FAMILIES[family](random, Parameters(family, cc=random.choice(controls), **_usual(random)))


def _usual(random: Random) -> dict[str, Any]:
    mss = random.choice([88, 216, 536, 1000, 1000, 1200, 1380, 1460, 1460, 4000, 8960])
    return {
        "iw": random.choice([1, 2, 3, 4, 6, 10, 10, 10, 16, 20, 32]),
        "mss": mss,
        "sack": random.random() < 0.8,
        "timestamps": random.random() < 0.4,
        "restart": random.random() < 0.3,
        "trains": random.random() < 0.5,
        "wscale": random.choice([7, 7, 7, 7, 7, -1, 0, 2, 10, 14]),
        "ecn": random.random() < 0.1,
        "rtt_ms": random.choice([1, 5, 20, 50, 100, 100, 200, 400, 1000, 2000]),
        "spacing_us": random.choice([0, 200, 1000, 1000, 3000]),
        "writes": ((0, mss * random.randint(1, 60)),),
    }


def _plain(random: Random, base: Parameters) -> Parameters:
    return base


def _one_loss(random: Random, base: Parameters) -> Parameters:
    segments = random.choice([base.iw, base.iw + 2, 3 * base.iw, 40])
    loss = (random.randint(1, min(base.iw, segments)), 1)
    return dataclasses.replace(base, losses=(loss,), writes=((0, base.mss * segments),))


def _several_losses(random: Random, base: Parameters) -> Parameters:
    segments = random.choice([base.iw + 2, 3 * base.iw, 40])
    lost = random.sample(range(1, segments + 1), min(segments, random.randint(2, 6)))
    again = [(number, 2) for number in lost if random.random() < 0.2]
    return dataclasses.replace(
        base, losses=(*((number, 1) for number in sorted(lost)), *again), writes=((0, base.mss * segments),)
    )


def _ack_policy(random: Random, base: Parameters) -> Parameters:
    acks = random.choice([Acks(2), Acks(2), Acks(4), Acks(8), Acks(2, 200), Acks(split=2), Acks(split=4), Acks(3, 100)])
    lost = ((random.randint(1, base.iw), 1),) if random.random() < 0.5 else ()
    return dataclasses.replace(base, acks=acks, losses=lost)


def _idle(random: Random, base: Parameters) -> Parameters:
    times = [0]
    for _ in range(random.randint(1, 3)):
        times.append(times[-1] + random.choice([50, 250, 400, 600, 1300, 2500]))
    writes = tuple((at, random.choice([1, base.mss]) * random.randint(1, 30)) for at in times)
    return dataclasses.replace(base, writes=writes, restart=random.random() < 0.5)


def _random_losses(random: Random, base: Parameters) -> Parameters:
    share = random.choice([0.02, 0.05, 0.1, 0.2])
    losses = tuple((n, m) for n in range(1, 61) for m in (1, 2, 3) if random.random() < share)
    return dataclasses.replace(base, losses=losses, acks=random.choice([Acks(), Acks(), Acks(2)]))


def _trains(random: Random, base: Parameters) -> Parameters:
    """A long transfer whose segments may leave together, over paths with many ACKs in a millisecond."""
    lost = tuple((number, 1) for number in range(1, 201) if random.random() < random.choice([0, 0.01]))
    return dataclasses.replace(
        base,
        trains=True,
        spacing_us=random.choice([0, 100, 200, 500, 1000]),
        acks=random.choice([Acks(), Acks(2)]),
        losses=lost,
        writes=((0, base.mss * random.randint(60, 200)),),
    )


def _flights(random: Random, base: Parameters) -> Parameters:
    """A scripted sender's slow start, now and then with a pause or with small segments."""
    at, flight, writes = 0, random.choice([1, 2, 4, 10]), []
    for _ in range(random.randint(2, 6)):
        small = random.random() < 0.2
        writes.append((at, flight * (random.randint(1, base.mss) if small else base.mss)))
        at += base.rtt_ms * random.choice([1, 1, 1, 2, 5])
        flight = min(40, flight * random.choice([1, 2, 2]))
    how: dict[str, Any] = {"iw": 10, "cc": "cubic", "restart": False, "trains": False}
    return dataclasses.replace(base, direction="receiver", writes=tuple(writes), **how)


def _reassembly(random: Random, base: Parameters) -> Parameters:
    base = _flights(random, base)
    sent = sum(bytes for _, bytes in base.writes) // base.mss

    def some() -> tuple[int, ...]:
        return tuple(number for number in range(1, sent + 1) if random.random() < 0.05)

    return dataclasses.replace(base, losses=tuple((n, 1) for n in some()), swaps=some(), repeats=some())


def _slow_reader(random: Random, base: Parameters) -> Parameters:
    return dataclasses.replace(_flights(random, base), reads_ms=random.choice([50, 300, 1000]))


def _compressed(random: Random, base: Parameters) -> Parameters:
    """Holes whose ACKs are merged for so long that the moment at which each is sent is clear of arrivals."""
    base = _flights(random, base)
    segments = random.randint(10, 40)
    lost = random.sample(range(11, 11 + segments), random.randint(1, 2))
    return dataclasses.replace(
        base,
        compressed=True,
        sack=True,
        timestamps=random.random() < 0.5,
        rtt_ms=200,
        spacing_us=3000,
        losses=tuple((number, 1) for number in sorted(lost)),
        writes=((0, base.mss * 10), (200, base.mss * segments)),
    )


def _small_writes(random: Random, base: Parameters) -> Parameters:
    """An application that writes a little at a time, with Nagle's algorithm or without."""
    pauses = random.choice([[0], [0, 1, 5], [5, 20, 50], [0, 20, 300]])
    at, writes = 0, []
    for _ in range(random.randint(3, 30)):
        writes.append((at, random.choice([random.randint(1, 100), random.randint(1, 2 * base.mss), base.mss])))
        at += random.choice(pauses)
    acks = random.choice([Acks(), Acks(2), Acks(2, 200)])
    return _lossy(random, dataclasses.replace(base, writes=tuple(writes), nodelay=random.random() < 0.4, acks=acks))


def _lossy(random: Random, base: Parameters) -> Parameters:
    """In one of three connections, with a few losses."""
    share = random.choice([0, 0, 0.04])
    return dataclasses.replace(base, losses=tuple((n, 1) for n in range(1, 61) if random.random() < share))


def _windows(random: Random, base: Parameters) -> Parameters:
    """A receiver that limits the sender; now and then its window changes, closes and opens."""
    largest = 65_535 << max(0, base.wscale)
    limits = [min(largest, base.mss * random.randint(1, 60)) for _ in range(random.choice([1, 1, 2, 4]))]
    if len(limits) > 1 and random.random() < 0.5:
        limits[-2] = 0
    at = sorted(random.randint(0, 5 * base.rtt_ms + 300) for _ in limits[1:])
    writes = ((0, base.mss * random.randint(1, 100)),)
    return _lossy(random, dataclasses.replace(base, windows=tuple(zip([0, *at], limits, strict=True)), writes=writes))


def _marked(random: Random, base: Parameters) -> Parameters:
    """With ECN, in both directions."""
    if random.random() < 0.3:
        base = _flights(random, base)
    share = random.choice([0, 0.03, 0.1])
    return dataclasses.replace(base, ecn=True, marks=tuple(n for n in range(1, 201) if random.random() < share))


def _lost_syn_ack(random: Random, base: Parameters) -> Parameters:
    return _lossy(random, dataclasses.replace(base, synacks_lost=random.choice([1, 1, 2])))


def _kept(random: Random, base: Parameters) -> Parameters:
    """Requests and responses on one connection, with idle times."""
    turns = random.randint(2, 5)
    requests = tuple(random.randint(40, 3000) for _ in range(turns))
    pauses = (random.choice([0, 1, 50, 300, 1000, 2500]) for _ in range(turns))
    writes = tuple((at, random.choice([200, base.mss * random.randint(1, 40)])) for at in pauses)
    return _lossy(random, dataclasses.replace(base, requests=requests, writes=writes))


def _tls(random: Random, base: Parameters) -> Parameters:
    """The flights of a TLS 1.3 handshake: hello, certificate, Finished with tickets, a request and its response."""
    requests = (random.choice([517, 1750]), random.choice([64, 80]), random.randint(80, 900))
    sizes = (random.randint(1200, 6000), random.choice([0, 510]), random.randint(200, 60_000))
    how: dict[str, Any] = {
        "requests": requests,
        "writes": tuple((0, size) for size in sizes),
        "nodelay": random.random() < 0.7,
    }
    return _lossy(random, dataclasses.replace(base, **how))


FAMILIES = {
    "plain": _plain,
    "one loss": _one_loss,
    "several losses": _several_losses,
    "ACK policy": _ack_policy,
    "idle": _idle,
    "random losses": _random_losses,
    "trains": _trains,
    "receive": _flights,
    "reassembly": _reassembly,
    "slow reader": _slow_reader,
    "compressed SACKs": _compressed,
    "small writes": _small_writes,
    "windows": _windows,
    "ECN": _marked,
    "lost SYN-ACK": _lost_syn_ack,
    "kept connection": _kept,
    "TLS": _tls,
}
"""By name, the functions that make a family's parameters from the usual ones."""


def simpler(parameters: Parameters) -> Iterator[Parameters]:
    """Connections with one thing less, the largest steps first."""
    for name in ("losses", "writes", "swaps", "repeats", "windows", "marks"):
        if name == "writes" and parameters.requests:
            continue
        many = getattr(parameters, name)
        least = 1 if name == "writes" else 0
        for size in sorted({len(many) // 2, 1} - {0}, reverse=True):
            for start in range(0, len(many), size):
                fewer = many[:start] + many[start + size :]
                if least <= len(fewer) < len(many):
                    yield dataclasses.replace(parameters, **{name: fewer})
    for place, (at, count) in enumerate(parameters.writes):
        for less in (count // 2 // parameters.mss * parameters.mss, count - parameters.mss):
            if 0 < less < count:
                writes = (*parameters.writes[:place], (at, less), *parameters.writes[place + 1 :])
                yield dataclasses.replace(parameters, writes=writes)
    plain = Parameters(parameters.family, direction=parameters.direction)
    for name in (
        "acks",
        "timestamps",
        "restart",
        "trains",
        "compressed",
        "sack",
        "reads_ms",
        "nodelay",
        "ecn",
        "wscale",
        "synacks_lost",
        "cc",
        "spacing_us",
        "rtt_ms",
        "mss",
    ):
        if getattr(parameters, name) != getattr(plain, name):
            changed = dataclasses.replace(parameters, **{name: getattr(plain, name)})
            if name == "mss":
                writes = tuple((at, max(1, count * plain.mss // parameters.mss)) for at, count in parameters.writes)
                changed = dataclasses.replace(changed, writes=writes)
            yield changed
    if parameters.iw > 1 and parameters.direction == "sender":
        yield dataclasses.replace(parameters, iw=parameters.iw // 2)


def from_table(table: dict[str, Any]) -> Parameters:
    """Parameters from the output of `dataclasses.asdict`, as stored in JSON."""
    return Parameters(**({name: _tuples(value) for name, value in table.items()} | {"acks": Acks(**table["acks"])}))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _short(value: Any) -> str:
    if isinstance(value, Acks):
        return f"every{value.every}" + (f",split{value.split}" if value.split > 1 else f",delay{value.delay_ms}ms")
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)
    return str(value)
