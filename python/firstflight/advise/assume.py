"""Values that the data lacks and the operator assumes, shown as assumed: `--assume lines=uk-2023`, `--assume-sizes`.

Access logs mostly lack round trips: one RTT, or the paths of a built-in population. Speed tests have no sizes: those of
a built-in application.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from firstflight import populations
from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.observe import Observation
from firstflight.observe.tables import transfers
from firstflight.populations import applications
from firstflight.scenario.applications import FileTransfer
from firstflight.scenario.laws import Lognormal
from firstflight.scenario.units import BitsPerSecond, Duration

# What each is, and an example as the last word.
KEYS = {
    "rtt": "RTT of users whose flows lack one, such as 50ms",
    "paths": "RTTs and link rates of such users: a built-in population, with added RTT or not, such as uk-2023+30ms",
    "lines": "link rates of the users: a built-in population (uk-2015, uk-2023, avgdc) or one rate such as 20Mbit",
    "buffer": "queue before a user's access link, such as 130ms",
    "connections": "parallel connections of a user, such as 4",
    "loss": "loss on the path apart from overflow, such as 0.5%",
}
PATHS = ("uk-2015", "uk-2023")
"""Populations whose round trips and rates were seen together."""
# The others are pages, whose time is not that of one response, or have no end.
NAMES = ("web-search",)
MOST_CONNECTIONS = 32
_MOST_LOSS = 0.5


@dataclass(frozen=True)
class Assumed:
    """Known values, None where there are none. `lines`: a population or a rate as written; `down_bps`: that rate."""

    rtt_s: float | None = None
    paths: str | None = None
    farther_s: float = 0.0
    lines: str | None = None
    down_bps: float | None = None
    buffer_s: float | None = None
    connections: int | None = None
    loss: float | None = None

    @property
    def has_paths(self) -> bool:
        """Whether there are round trips for flows without any."""
        return self.rtt_s is not None or self.paths is not None

    @property
    def texts(self) -> tuple[str, ...]:
        """The assumptions, in words, each with its option."""
        return tuple(text for text in map(self.text, KEYS) if text)

    def text(self, key: str) -> str:
        """The assumption of one of `KEYS`, in words, with its option; empty where there is none."""
        lines = f"one rate of {self.lines}" if self.down_bps else f'the rates of the population "{self.lines}"'
        farther = f", RTT + {1e3 * self.farther_s:g} ms" if self.farther_s else ""
        away = f"+{1e3 * self.farther_s:g}ms" if self.farther_s else ""
        value, written, meaning = {
            "rtt": (self.rtt_s, f"{1e3 * (self.rtt_s or 0):g}ms", "the RTT of users whose flows lack one"),
            "paths": (
                self.paths,
                f"{self.paths}{away}",
                f'their RTTs and link rates are drawn from the population "{self.paths}"{farther}, independent of '
                "the size",
            ),
            "lines": (self.lines, self.lines, f"access links without a rate in the data have {lines}"),
            "buffer": (
                self.buffer_s,
                f"{1e3 * (self.buffer_s or 0):g}ms",
                "queues hold that much, or the observed size if larger",
            ),
            "connections": (
                self.connections,
                self.connections,
                "a user opens this many in parallel, each for a response",
            ),
            "loss": (self.loss, f"{100 * (self.loss or 0):g}%", "paths lose that much apart from overflow"),
        }[key]
        return "" if value is None else f"--assume {key}={written}: {meaning}"


def parse(terms: Sequence[str]) -> Assumed:
    """The assumptions of `KEY=VALUE` terms. RequestError, one sentence, for one that is not right."""
    assumptions: dict[str, object] = {}
    for term in terms:
        key, equals, value = (part.strip() for part in term.partition("="))
        if key not in KEYS:
            raise RequestError(f'--assume "{term}": nothing is called "{key}"; {nearest(key, tuple(KEYS))}')
        if key in assumptions:
            raise RequestError(f'--assume "{term}": {key} is there twice; keep one')
        if not (equals and value):
            raise RequestError(f'--assume "{term}" is not KEY=VALUE; write for example {key}={KEYS[key].split()[-1]}')
        try:
            assumptions |= _read(key, value)
        except ValueError as error:
            raise RequestError(f'--assume "{term}": {error}') from None
    if "rtt_s" in assumptions and "paths" in assumptions:
        raise RequestError("--assume rtt=... and paths=... both give an RTT; leave one of them out")
    return Assumed(**assumptions)  # type: ignore[arg-type]


def _read(key: str, value: str) -> dict[str, object]:
    if key == "rtt":
        return {"rtt_s": _within(Duration(value).seconds, 1e-5, 30.0, "10us to 30s")}
    if key == "paths":
        name, plus, farther = value.partition("+")
        if name not in PATHS:
            raise ValueError(nearest(name, PATHS))
        return {"paths": name, "farther_s": Duration(farther).seconds if plus else 0.0}
    if key == "lines":
        if value in populations.NAMES:
            return {"lines": value}
        if not value[0].isdigit():
            raise ValueError(f"{nearest(value, populations.NAMES)}, or write a rate such as 20Mbit")
        return {"lines": value, "down_bps": float(_within(int(BitsPerSecond(value)), 1e3, 1e11, "1kbit to 100Gbit"))}
    if key == "buffer":
        return {"buffer_s": _within(Duration(value).seconds, 0.0, 60.0, "0ms to 60s")}
    if key == "connections":
        if not value.isdigit():
            raise ValueError(f'"{value}" is no number of connections; write 1 to {MOST_CONNECTIONS}')
        return {"connections": int(_within(int(value), 1, MOST_CONNECTIONS, f"1 to {MOST_CONNECTIONS}"))}
    number = value.removesuffix("%").strip()
    try:
        loss = float(number) / (100 if value.endswith("%") else 1)
    except ValueError:
        raise ValueError(f'"{value}" is no share; write for example 0.5%') from None
    return {"loss": _within(loss, 0.0, _MOST_LOSS, "0% to 50%")}


def _within(value: float, low: float, high: float, words: str) -> float:
    if not low <= value <= high:
        raise ValueError(f"it is out of range; write {words}")
    return value


def with_paths(observed: Observation, given: Assumed, seed: int) -> Observation:
    """`observed` with the round trips (and rates) that `given` has, where the flows have no RTT.

    RequestError where all flows have one.
    """
    if given.rtt_s is None and given.paths is None:
        return observed
    users = observed.users
    unknown = users["rtt_s"].is_null()
    if not unknown.any():
        key = "rtt" if given.rtt_s is not None else "paths"
        raise RequestError(f"{observed.source.path} has RTTs, which are used; leave --assume {key}=... out")
    if given.rtt_s is not None:
        return replace(observed, users=users.with_columns(pl.col("rtt_s").fill_null(given.rtt_s)))
    assert given.paths is not None
    columns = {name: np.array(values) for name, values in populations.find(given.paths)["columns"].items()}
    weight = columns["weight"] / columns["weight"].sum()
    drawn = np.random.default_rng(seed).choice(len(weight), users.height, p=weight)
    rtt_s = pl.Series(columns["rtt_s"][drawn] + given.farther_s)
    down = pl.when(unknown).then(pl.Series(columns["down_bps"][drawn])).otherwise(pl.col("down_bps"))
    return replace(observed, users=users.with_columns(pl.col("rtt_s").fill_null(rtt_s), down_bps=down))


def check_sizes(name: str) -> None:
    """RequestError for anything but an application of one response a connection."""
    if name not in NAMES:
        raise RequestError(
            f'--assume-sizes "{name}"'
            f" is no built-in application of one short response per connection; write "
            f"--assume-sizes {NAMES[0]}"
        )


def with_sizes(observed: Observation, name: str, seed: int) -> Observation:
    """`observed` with one response a connection, its size drawn from the application `name` independent of the path.

    RequestError where the data has sizes.
    """
    if not observed.transfers.is_empty():
        raise RequestError(f"{observed.source.path} has sizes, which are used; leave --assume-sizes {name} out")
    law = FileTransfer.model_validate(applications.preset(name)).size
    assert isinstance(law, Lognormal)
    normal = np.random.default_rng(seed).standard_normal(observed.users.height)
    sizes = np.maximum(np.rint(law.median * np.exp(law.sigma * normal)), 1).astype(np.int64)
    drawn = transfers(observed.users.select("client", bytes=pl.Series(sizes)))
    note = f'sizes are not in the data but assumed: those of the built-in application "{name}", independent of the path'
    return replace(observed, transfers=drawn, source=replace(observed.source, notes=(*observed.source.notes, note)))
