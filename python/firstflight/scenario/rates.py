"""Rates that a link can have."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, ValidationInfo, model_validator

from firstflight import _native
from firstflight.input_files import read_beside
from firstflight.scenario.parts import RATES, Part
from firstflight.scenario.table import Made
from firstflight.scenario.units import BitsPerSecond

Unlimited = Literal["unlimited"]

# The native module counts a trace's milliseconds in 32 bits.
_LATEST_MS = 2**32 - 1


_TRACE: Any = RATES["trace"]


class Trace(_TRACE):  # type: ignore[misc]  # noqa: D101
    __doc__ = _TRACE.__doc__

    # The file gives them, so an editor need not ask for them.
    model_config = ConfigDict(json_schema_extra={"required": []})

    trace: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict) or data.get("opportunities_ms") is not None:
            return data
        if not isinstance(data.get("trace"), str):
            raise ValueError('a trace needs the name of its file, such as trace = "cellular.down"')
        return data | {"opportunities_ms": _opportunities(data["trace"], (info.context or {}).get("directory"))}


def _opportunities(name: str, directory: Path | None) -> list[int]:
    """Those in the file `name`, relative to `directory` (the scenario's; else the current one).

    Raises ValueError with file and line.
    """
    path, text = read_beside(name, directory)
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


# A rate that changes is known by the first of its keys, a trace in a file by the file's.
_CHANGING: dict[str, type[Part]] = {
    **{next(iter(model.native)): model for model in RATES.values()},
    "trace": Trace,
    "opportunities_ms": Trace,
}


def is_changing(data: Any) -> bool:
    """Whether `data`, as a file spells it, is a rate that changes."""
    return isinstance(data, Part) or (isinstance(data, dict) and any(key in data for key in _CHANGING))


def _rate(data: Any, info: ValidationInfo) -> Any:
    if data == "unlimited" or isinstance(data, Part):
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
    return rate.model_dump(exclude_none=True) if isinstance(rate, Part) else str(rate)


# A rate, "unlimited", or a table of one that changes.
_ANY: Any = Union[(BitsPerSecond, Unlimited, *dict.fromkeys(_CHANGING.values()))]
Rate = Annotated[
    BitsPerSecond | Unlimited | Part,
    Made(Annotated[_ANY, BeforeValidator(_rate, json_schema_input_type=_ANY), PlainSerializer(_written)]),
]


def mean_bps(rate: BitsPerSecond | Part | str) -> int | None:
    """The rate as one number, of one that changes its mean; None if it is unlimited."""
    if isinstance(rate, Part):
        return _mean_bps(json.dumps(rate.plan()))
    return None if isinstance(rate, str) else int(rate)


@lru_cache(maxsize=64)
def _mean_bps(schedule: str) -> int:
    return _native.mean_rate_bps(schedule)
