"""Laws that sizes and times are drawn from. A quantity alone ("9kB", "2s") is the constant law."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, model_validator

from .empirical import check_points, read_points
from .table import Table, choose
from .units import Bytes, Duration, Quantity

# A quantity with a unit, or a plain number where the law counts things.
Q = TypeVar("Q", bound=float)


class Constant(Table, Generic[Q]):
    """Always `value`."""

    law: Literal["constant"] = "constant"
    value: Q


class Uniform(Table, Generic[Q]):
    """Equally likely anywhere from `low` to `high`."""

    law: Literal["uniform"] = "uniform"
    low: Q
    high: Q

    @model_validator(mode="after")
    def _ordered(self) -> "Uniform[Q]":
        if self.low > self.high:
            raise ValueError(f"low ({self.low}) is above high ({self.high})")
        return self


class Exponential(Table, Generic[Q]):
    """Memoryless, with the given mean."""

    law: Literal["exponential"] = "exponential"
    mean: Q

    @model_validator(mode="after")
    def _spread(self) -> "Exponential[Q]":
        if self.mean <= 0:
            raise ValueError("a mean of zero leaves nothing to draw; write a mean above zero, or the constant law")
        return self


class Lognormal(Table, Generic[Q]):
    """The logarithm is normal; `sigma` is its standard deviation (natural logarithm), `median` its centre.

    Draws outside [minimum, maximum] are moved to the bound.
    """

    law: Literal["lognormal"] = "lognormal"
    median: Q
    sigma: float = Field(ge=0)
    minimum: Q | None = None
    maximum: Q | None = None

    @model_validator(mode="after")
    def _centred(self) -> "Lognormal[Q]":
        if self.median <= 0:
            raise ValueError("a median of zero has no logarithm; write a median above zero, or the constant law")
        return self


class Pareto(Table, Generic[Q]):
    """P(X > x) = (minimum / x)^shape from `minimum` up; with `maximum`, truncated there (the law conditioned on it)."""

    law: Literal["pareto"] = "pareto"
    shape: float = Field(gt=0)
    minimum: Q
    maximum: Q | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "Pareto[Q]":
        if self.minimum == 0:
            raise ValueError("minimum is 0: a Pareto law starts above zero")
        if self.maximum is not None and self.maximum <= self.minimum:
            raise ValueError(f"maximum ({self.maximum}) is not above minimum ({self.minimum})")
        return self


class Empirical(Table, Generic[Q]):
    """A measured distribution: points of its cumulative distribution function (CDF), joined between.

    `file` is a CSV beside the scenario, one `cumulative probability, value` a line (bytes or seconds; a first
    line of names is skipped). `points` holds the same in place and wins when both are given, so that a dumped
    scenario stands alone. `scale` multiplies every value before `minimum` and `maximum` bound it.
    """

    law: Literal["empirical"] = "empirical"
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
            raise ValueError('an empirical law needs file = "NAME.csv" (cumulative probability, value) or points')
        directory = (info.context or {}).get("directory")
        return data | {"points": read_points(data["file"], directory)}


_LAWS = {
    "constant": Constant,
    "uniform": Uniform,
    "exponential": Exponential,
    "lognormal": Lognormal,
    "pareto": Pareto,
    "empirical": Empirical,
}


class _Reader:
    """Turns a quantity or a table into the law of one kind of quantity."""

    def __init__(self, quantity: Any) -> None:
        self.laws: dict[str, type[Table]] = {name: law[quantity] for name, law in _LAWS.items()}  # type: ignore[index]

    def __call__(self, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, Table):
            return data
        if not isinstance(data, dict):
            return self.laws["constant"].model_validate({"law": "constant", "value": data})
        return choose(data, self.laws, "law", "law", info.context)


def _written(law: Table) -> Any:
    if isinstance(law, Constant):
        return str(law.value) if isinstance(law.value, Quantity) else law.value
    return law.model_dump(exclude_none=True)


SizeLaw = Annotated[
    Constant[Bytes] | Uniform[Bytes] | Exponential[Bytes] | Lognormal[Bytes] | Pareto[Bytes] | Empirical[Bytes],
    BeforeValidator(_Reader(Bytes)),
    PlainSerializer(_written),
]
TimeLaw = Annotated[
    Constant[Duration]
    | Uniform[Duration]
    | Exponential[Duration]
    | Lognormal[Duration]
    | Pareto[Duration]
    | Empirical[Duration],
    BeforeValidator(_Reader(Duration)),
    PlainSerializer(_written),
]
NotNegative = Annotated[float, Field(ge=0)]
CountLaw = Annotated[
    Constant[NotNegative]
    | Uniform[NotNegative]
    | Exponential[NotNegative]
    | Lognormal[NotNegative]
    | Pareto[NotNegative]
    | Empirical[NotNegative],
    BeforeValidator(_Reader(NotNegative)),
    PlainSerializer(_written),
]


def law_plan(law: Table) -> dict[str, Any]:
    """The law as the native module reads it: plain numbers, bytes or seconds."""
    plan: dict[str, Any] = {}
    for name in type(law).model_fields:
        value = getattr(law, name)
        if value is None or name == "file":
            continue
        plan[name] = _plain(value)
    return plan


def _plain(value: Any) -> Any:
    if isinstance(value, Duration):
        return value.seconds
    if isinstance(value, Quantity):
        return int(value)
    if isinstance(value, tuple):
        return [list(point) for point in value]
    return value
