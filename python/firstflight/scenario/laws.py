"""Laws of sizes, times, rates and probabilities. A quantity alone ("9kB", "2s") is the constant law."""

import csv
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, Union

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo, model_validator

from firstflight.input_files import read_beside
from firstflight.scenario.table import Made, ScenarioTable, by_name, choose
from firstflight.scenario.units import BitsPerSecond, Bytes, Duration, UnitNumber

# A quantity with a unit, or a plain number where the law counts things.
Q = TypeVar("Q", bound=float)


class Constant(ScenarioTable, Generic[Q]):
    """Always `value`."""

    distribution: Literal["constant"] = "constant"
    value: Q


class Uniform(ScenarioTable, Generic[Q]):
    """Equally likely anywhere from `low` to `high`."""

    distribution: Literal["uniform"] = "uniform"
    low: Q
    high: Q

    @model_validator(mode="after")
    def _ordered(self) -> "Uniform[Q]":
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) is above high ({self.high})")
        return self


class Exponential(ScenarioTable, Generic[Q]):
    """Memoryless, with the given mean."""

    distribution: Literal["exponential"] = "exponential"
    mean: Q

    @model_validator(mode="after")
    def _spread(self) -> "Exponential[Q]":
        if self.mean <= 0:
            raise ValueError("a mean of zero cannot be drawn; write a mean above zero, or the constant distribution")
        return self


class Lognormal(ScenarioTable, Generic[Q]):
    """The logarithm is normal; `sigma` is its standard deviation (natural logarithm), `median` its center.

    Draws outside [minimum, maximum] are moved to the bound.
    """

    distribution: Literal["lognormal"] = "lognormal"
    median: Q
    sigma: float = Field(ge=0)
    minimum: Q | None = None
    maximum: Q | None = None

    @model_validator(mode="after")
    def _centered(self) -> "Lognormal[Q]":
        if self.median <= 0:
            raise ValueError(
                "a median of zero has no logarithm; write a median above zero, or the constant distribution"
            )
        _check_bounds(self.minimum, self.maximum)
        return self


class Pareto(ScenarioTable, Generic[Q]):
    """P(X > x) = (minimum / x)^shape from `minimum` up; with `maximum`, truncated there (the law conditioned on it)."""

    distribution: Literal["pareto"] = "pareto"
    shape: float = Field(gt=0)
    minimum: Q
    maximum: Q | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "Pareto[Q]":
        if self.minimum == 0:
            raise ValueError("minimum is 0: a Pareto distribution starts above zero")
        if self.maximum is not None and self.maximum <= self.minimum:
            raise ValueError(f"maximum ({self.maximum}) is not above minimum ({self.minimum})")
        return self


class Empirical(ScenarioTable, Generic[Q]):
    """A measured distribution: points of its cumulative distribution function (CDF), joined between.

    `file` is a CSV file next to the scenario, one `cumulative probability, value` a line (bytes, seconds or bit/s; a
    first line of names is skipped). `points` holds the same in place and wins when both are given, so that a dumped
    scenario stands alone. `scale` multiplies every value before `minimum` and `maximum` bound it.
    """

    distribution: Literal["empirical"] = "empirical"
    file: str | None = None
    points: tuple[tuple[float, float], ...] | None = None
    interpolation: Literal["log", "linear"] = "log"
    scale: float = Field(default=1.0, gt=0)
    minimum: Q | None = None
    maximum: Q | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("points") is not None:
            check_points(data["points"])
            return data
        if not isinstance(data.get("file"), str):
            raise ValueError(
                'an empirical distribution needs file = "NAME.csv" (cumulative probability, value) or points'
            )
        directory = (info.context or {}).get("directory")
        return data | {"points": read_points(data["file"], directory)}

    @model_validator(mode="after")
    def _bounded(self) -> "Empirical[Q]":
        _check_bounds(self.minimum, self.maximum)
        return self


def _check_bounds(minimum: float | None, maximum: float | None) -> None:
    if maximum is not None and (maximum <= 0 or (minimum is not None and minimum > maximum)):
        raise ValueError(
            f"minimum ({minimum}) is above maximum ({maximum})" if maximum > 0 else "a maximum of zero leaves nothing"
        )


_LAWS = by_name("distribution", (Constant, Uniform, Exponential, Lognormal, Pareto, Empirical))


def _written(law: Any) -> Any:
    if not isinstance(law, ScenarioTable):
        # A default, as a file would spell it.
        return law
    if isinstance(law, Constant):
        return str(law.value) if isinstance(law.value, UnitNumber) else law.value
    return law.model_dump(exclude_none=True)


def _laws(quantity: Any, *checks: AfterValidator, prepared: Callable[[Any], Any] = lambda data: data) -> Made:
    """All laws of one kind of quantity, written as a table or, for the constant one, as a quantity alone."""
    kinds: dict[str, type[ScenarioTable]] = {name: law[quantity] for name, law in _LAWS.items()}
    # Pickle looks a type up in this module, by its name.
    globals().update({kind.__name__: kind for kind in kinds.values()})

    def read(data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, ScenarioTable):
            return data
        if not isinstance(data, dict):
            return kinds["constant"].model_validate({"distribution": "constant", "value": data})
        return choose(prepared(data), kinds, "distribution", "distribution", info.context)

    any_law: Any = Union[tuple(kinds.values())]  # noqa: UP007
    tables: Any = Annotated[any_law, Field(discriminator="distribution")]
    before = BeforeValidator(read, json_schema_input_type=quantity | tables)
    return Made(Annotated[any_law, before, *checks, PlainSerializer(_written)])


def _above_zero(law: Any) -> Any:
    if not _smallest(law) > 0:
        raise ValueError(
            f"this {law.distribution} distribution can draw a rate of zero, over which nothing arrives; let it start "
            "above zero"
        )
    return law


def _linear(data: dict[str, Any]) -> dict[str, Any]:
    """A measured law of probabilities runs linearly between its points, since probabilities begin at zero."""
    if data.get("distribution") != "empirical":
        return data
    if data.get("interpolation", "linear") != "linear":
        raise ValueError(
            'a measured law of probabilities begins at zero, which has no logarithm: write interpolation = "linear"'
        )
    return data | {"interpolation": "linear"}


def _below_one(law: Any) -> Any:
    greatest = largest(law)
    if greatest is None:
        raise ValueError(
            f"this {law.distribution} distribution has no upper end: a probability is below 1; add maximum = 0.5, for "
            "example"
        )
    if greatest >= 1:
        raise ValueError(
            f"this distribution reaches {greatest:g}: a probability of loss is below 1, or nothing ever arrives"
        )
    return law


SizeLaw = Annotated[ScenarioTable, _laws(Bytes)]
TimeLaw = Annotated[ScenarioTable, _laws(Duration)]
CountLaw = Annotated[ScenarioTable, _laws(Annotated[float, Field(ge=0)])]
RateLaw = Annotated[ScenarioTable, _laws(BitsPerSecond, AfterValidator(_above_zero))]
ProbabilityLaw = Annotated[
    ScenarioTable, _laws(Annotated[float, Field(ge=0, lt=1)], AfterValidator(_below_one), prepared=_linear)
]


def _smallest(law: Any) -> float:
    """The least value that can be drawn."""
    if isinstance(law, Constant):
        return float(law.value)
    if isinstance(law, Uniform):
        return float(law.low)
    if isinstance(law, Empirical):
        least = law.scale * (law.points or ((0, 0),))[0][1]
        return least if law.minimum is None else max(least, float(law.minimum))
    # The others come as near to zero as one likes, and reach it never; bounds and a Pareto's start are above zero.
    return math.ulp(0.0)


def largest(law: Any) -> float | None:
    """The greatest value that can be drawn; None: there is no bound."""
    if isinstance(law, Constant):
        return float(law.value)
    if isinstance(law, Uniform):
        return float(law.high)
    if isinstance(law, Exponential):
        return None
    if isinstance(law, Empirical):
        greatest = law.scale * (law.points or ((0, 0),))[-1][1]
        return greatest if law.maximum is None else min(greatest, float(law.maximum))
    return None if law.maximum is None else float(law.maximum)


# Draws are below it.
_MOST = 2.0**63


def mean(law: ScenarioTable) -> float:
    """Mean of a law, in base units; ValueError for one that has none, or one that no size or number can be."""
    try:
        value = _mean(law)
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not value < _MOST:
        raise ValueError("the mean of this distribution is too large; narrow it, or give a maximum")
    return value


def _mean(law: ScenarioTable) -> float:
    if isinstance(law, Constant):
        return float(law.value)
    if isinstance(law, Uniform):
        return (float(law.low) + float(law.high)) / 2
    if isinstance(law, Exponential):
        return float(law.mean)
    if isinstance(law, Lognormal):
        return _lognormal(law)
    if isinstance(law, Pareto):
        return _pareto(law)
    assert isinstance(law, Empirical)
    return _empirical(law)


def _phi(score: float) -> float:
    return math.erfc(-score / math.sqrt(2)) / 2


def _lognormal(law: Any) -> float:
    """Draws beyond a bound become the bound."""
    median, sigma = float(law.median), law.sigma
    low = 0.0 if law.minimum is None else float(law.minimum)
    high = math.inf if law.maximum is None else float(law.maximum)
    if sigma == 0:
        return min(max(median, low), high)
    below = -math.inf if low == 0 else math.log(low / median) / sigma
    above = math.inf if high == math.inf else math.log(high / median) / sigma
    inside = median * math.exp(sigma**2 / 2) * (_phi(above - sigma) - _phi(below - sigma))
    return float(low * _phi(below) + inside + (0.0 if high == math.inf else high * _phi(-above)))


def _pareto(law: Any) -> float:
    """Truncated at its maximum."""
    shape, low = law.shape, float(law.minimum)
    if law.maximum is None:
        if shape <= 1:
            raise ValueError(f"a Pareto law of shape {shape:g} without a maximum has no mean; give it a maximum")
        return float(shape * low / (shape - 1))
    ratio = low / float(law.maximum)
    if shape == 1:
        return float(low * math.log(1 / ratio) / (1 - ratio))
    return float(shape * low / (shape - 1) * (1 - ratio ** (shape - 1)) / (1 - ratio**shape))


def _empirical(law: Any) -> float:
    """Of the points joined as they are drawn, scaled and then bounded; by ten thousand steps of probability."""
    import numpy as np

    steps = (np.arange(10_000) + 0.5) / 10_000
    probabilities, values = np.array(law.points).T
    if law.interpolation == "log":
        drawn = np.exp(np.interp(steps, probabilities, np.log(np.maximum(values, 1.0))))
    else:
        drawn = np.interp(steps, probabilities, values)
    low = None if law.minimum is None else float(law.minimum)
    high = None if law.maximum is None else float(law.maximum)
    return float(np.clip(law.scale * drawn, low, high).mean())


def law_plan(law: ScenarioTable, time: Literal["s", "ns"] = "s") -> dict[str, Any]:
    """The law as the native module reads it: plain numbers, bytes, bit/s, probabilities, and times in `time`."""
    plan: dict[str, Any] = {}
    for name in type(law).model_fields:
        value = getattr(law, name)
        if value is None or name == "file":
            continue
        plan[name] = _plain(value, time)
    return plan


# Endings of a plan's keys for the base units of their values.
_ENDINGS = ("_ns", "_bytes", "_bps", "_chunks")


class Planned(ScenarioTable):
    """A table whose keys a plan has as well, in base units."""

    planned: ClassVar[str]
    """Their names in the plan, whose endings are units; NAME=KEY where a scenario calls a key otherwise."""

    def plan(self) -> dict[str, Any]:
        """Laws and quantities as the native module reads them."""
        return self._base_units(self.planned)

    def _base_units(self, names: str) -> dict[str, Any]:
        plan = {}
        for name, _, key in (word.partition("=") for word in names.split()):
            ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "")
            value = getattr(self, key or name.removesuffix(ending))
            if isinstance(value, ScenarioTable):
                value = law_plan(value)
            plan[name] = int(value) if isinstance(value, UnitNumber) else value
        return plan


def _plain(value: Any, time: str) -> Any:
    if isinstance(value, Duration):
        return int(value) if time == "ns" else value.seconds
    if isinstance(value, UnitNumber):
        return int(value)
    if isinstance(value, tuple):
        # A file of times holds seconds.
        return [[probability, 1e9 * point if time == "ns" else point] for probability, point in value]
    return value


def read_points(name: str, directory: Path | None) -> tuple[tuple[float, float], ...]:
    """Read and check the file `name`, relative to `directory` (the scenario's; else the current one).

    Returns (cumulative probability, value) pairs, probabilities rising from 0 to 1 and values not falling.
    Raises ValueError with file and line.
    """
    path, text = read_beside(name, directory)
    points: list[tuple[float, float]] = []
    lines: list[int] = []
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not row or row[0].lstrip().startswith("#"):
            continue
        try:
            probability, value = (float(field) for field in row)
        except ValueError:
            if not points and not _is_number(row[0]):
                continue
            written = ",".join(row)
            raise ValueError(
                f'{path}, line {line}: "{written}" is not "cumulative probability, value", such as "0.5,2112"'
            ) from None
        points.append((probability, value))
        lines.append(line)
    check_points(points, [f"{path}, line {line}: " for line in lines] or [f"{path}: "])
    return tuple(points)


def check_points(points: Any, places: Sequence[str] | None = None) -> None:
    """Raise ValueError unless `points` is a CDF; `places[i]` says where point i was read."""

    def place(index: int) -> str:
        return places[index] if places else f"points[{index}]: "

    if not isinstance(points, list | tuple) or len(points) < 2:
        raise ValueError(f"{place(0)}a CDF needs at least two points")
    for index, point in enumerate(points):
        if not isinstance(point, list | tuple) or len(point) != 2 or not all(isinstance(part, Real) for part in point):
            raise ValueError(
                f"{place(index)}a point is [cumulative probability, value], two numbers (bytes, seconds or bit/s)"
            )
        probability, value = point
        if not 0 <= probability <= 1:
            raise ValueError(f"{place(index)}the cumulative probability {probability} is outside 0 to 1")
        if not 0 <= value < float("inf"):
            raise ValueError(f"{place(index)}the value {value} is negative or not finite")
    for index, (before, after) in enumerate(pairwise(points), start=1):
        if after[0] < before[0]:
            raise ValueError(
                f"{place(index)}the cumulative probability falls from {before[0]} to {after[0]}; a CDF never falls"
            )
        if after[0] == before[0]:
            raise ValueError(
                f"{place(index)}the cumulative probability stays at {after[0]}; it must rise from point to point"
            )
        if after[1] < before[1]:
            raise ValueError(
                f"{place(index)}the value falls from {before[1]} to {after[1]}; sort the points of a CDF by value"
            )
    if points[0][0] != 0:
        raise ValueError(f"{place(0)}the CDF starts at {points[0][0]}; its first point must have probability 0")
    if points[-1][0] != 1:
        last = place(len(points) - 1)
        raise ValueError(f"{last}the CDF ends at {points[-1][0]}; its last point must have probability 1")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
