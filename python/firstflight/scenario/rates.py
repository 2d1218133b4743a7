"""Rates that a link can have; a rate more that changes is a class here and its key in `_CHANGING`."""

from abc import ABC, abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, model_validator

from firstflight.input_files import read_text
from firstflight.scenario.table import Table
from firstflight.scenario.units import BitsPerSecond, Duration

Unlimited = Literal["unlimited"]

# The bytes that a delivery opportunity of a trace sends.
_OPPORTUNITY_BYTES = 1500
# A day of the fastest trace that mahimahi's format can spell has more, and no recorded one does.
_MOST_OPPORTUNITIES = 1_000_000
# The native module counts a trace's milliseconds in 32 bits.
_LATEST_MS = 2**32 - 1


class Changing(Table, ABC):
    """A rate that changes. Whatever asks for one number gets the mean: queue limits in time, loads, grants."""

    @abstractmethod
    def mean_bps(self) -> int:
        """The mean over all of it."""

    @abstractmethod
    def plan(self) -> dict[str, Any]:
        """The schedule as the native module reads it."""


class Trace(Changing):
    """Delivery opportunities in the format of mahimahi's `mm-link`: one per line, in milliseconds, each 1500 bytes.

    The last one is also the length of the trace, after which it begins again. An opportunity without a waiting packet
    is lost.
    """

    # The file gives them, so an editor need not ask for them.
    model_config = ConfigDict(json_schema_extra={"required": []})

    trace: str | None = None
    opportunities_ms: list[int] = Field(min_length=1, max_length=_MOST_OPPORTUNITIES)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict) or data.get("opportunities_ms") is not None:
            return data
        if not isinstance(data.get("trace"), str):
            raise ValueError('a trace needs the name of its file, such as trace = "cellular.down"')
        return data | {"opportunities_ms": _opportunities(data["trace"], (info.context or {}).get("directory"))}

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        times = self.opportunities_ms
        if times[0] < 0 or times[-1] > _LATEST_MS or times[-1] == 0 or any(b < a for a, b in pairwise(times)):
            raise ValueError(
                f"opportunities_ms must ascend from 0 or more to a length above 0, {_LATEST_MS} ms at the most"
            )
        return self

    def mean_bps(self) -> int:
        """Of all opportunities over the length of the trace."""
        return _OPPORTUNITY_BYTES * 8 * 1000 * len(self.opportunities_ms) // self.opportunities_ms[-1]

    def plan(self) -> dict[str, Any]:
        """The schedule as the native module reads it."""
        return {"kind": "trace", "opportunities_ms": self.opportunities_ms}


def _opportunities(name: str, directory: Path | None) -> list[int]:
    """Those in the file `name`, relative to `directory` (the scenario's; else the current one).

    Raises ValueError with file and line.
    """
    path = (directory or Path()) / name
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise ValueError(f'there is no file "{path}"; the name is relative to the scenario\'s folder') from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f'"{path}" cannot be read: {error}') from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty; a trace has a time in ms for each 1500 bytes that the link can send")
    times: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not (line.isascii() and line.isdecimal()) or len(line) > len(str(_LATEST_MS)) or int(line) > _LATEST_MS:
            raise ValueError(
                f'{path}, line {number}: "{line[:40]}" is not a time in ms, a whole number of at most {_LATEST_MS}'
            )
        times.append(int(line))
        if number > 1 and times[-1] < times[-2]:
            raise ValueError(
                f"{path}, line {number}: {times[-1]} ms comes after {times[-2]} ms; the times of a trace never fall"
            )
    if times[-1] == 0:
        raise ValueError(f"{path}, line {len(times)}: the last time is the length of the trace and must be above 0")
    return times


class Steps(Changing):
    """A rate that changes at given times: `[["0s", "10Mbit"], ["5s", "2Mbit"]]`, and with `repeat` over and over.

    Nothing is sent at "0bit". Without `repeat` the last rate stays; it is the mean of all time.
    """

    steps: list[tuple[Duration, BitsPerSecond]] = Field(min_length=1)
    repeat: Duration | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        times = [at for at, _ in self.steps]
        if times[0] != 0 or any(b <= a for a, b in pairwise(times)):
            raise ValueError('the steps of a rate begin at "0s" and come in the order of time')
        if self.repeat is not None and self.repeat <= times[-1]:
            raise ValueError(f'repeat ("{self.repeat}") must come after the last step ("{times[-1]}")')
        if self.mean_bps() < 1:
            rest = "give the last step a rate, or repeat" if self.repeat is None else "give a step a rate"
            raise ValueError(f"these steps end with a rate of 0 for ever; {rest}")
        return self

    def mean_bps(self) -> int:
        """Over a period; without `repeat` the last rate."""
        if self.repeat is None:
            return int(self.steps[-1][1])
        ends = [int(at) for at, _ in self.steps[1:]] + [int(self.repeat)]
        sent = sum((end - int(at)) * int(rate) for (at, rate), end in zip(self.steps, ends, strict=True))
        return sent // int(self.repeat)

    def plan(self) -> dict[str, Any]:
        """The schedule as the native module reads it."""
        return {
            "kind": "steps",
            "steps": [(int(at), int(rate)) for at, rate in self.steps],
            "repeat_ns": None if self.repeat is None else int(self.repeat),
        }


# The key by which a table is known to be such a rate.
_CHANGING: dict[str, type[Changing]] = {"trace": Trace, "opportunities_ms": Trace, "steps": Steps}


def is_changing(data: Any) -> bool:
    """Whether `data`, as a file spells it, is a rate that changes."""
    return isinstance(data, Changing) or (isinstance(data, dict) and any(key in data for key in _CHANGING))


def _rate(data: Any, info: ValidationInfo) -> Any:
    if data == "unlimited" or isinstance(data, Changing):
        return data
    if isinstance(data, dict):
        kind = next((kind for key, kind in _CHANGING.items() if key in data), None)
        if kind is None:
            raise ValueError('a table as a rate is { trace = "FILE" } or { steps = [["0s", "10Mbit"], ...] }')
        return kind.model_validate(data, context=info.context)
    rate = BitsPerSecond(data)
    if rate < 1:
        raise ValueError(f'a rate of "{rate}" sends nothing: write at least "1bit", or "unlimited"')
    return rate


def _written(rate: Any) -> Any:
    return rate.model_dump(exclude_none=True) if isinstance(rate, Changing) else str(rate)


# A rate, "unlimited", or a table of one that changes.
Rate = Annotated[
    BitsPerSecond | Unlimited | Trace | Steps,
    BeforeValidator(_rate, json_schema_input_type=BitsPerSecond | Unlimited | Trace | Steps),
    PlainSerializer(_written),
]


def mean_bps(rate: BitsPerSecond | Changing | str) -> int | None:
    """The rate as one number; None if it is unlimited."""
    if isinstance(rate, Changing):
        return rate.mean_bps()
    return None if isinstance(rate, str) else int(rate)
