"""Parts of a link: queues, losses, rates that change and impairments.

Their models are made of the native module's descriptions of them: another part is a file and a line there.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
    create_model,
    model_validator,
)

from firstflight import _native
from firstflight.errors import RequestError
from firstflight.input_files import read_beside
from firstflight.scenario.explain import shown
from firstflight.scenario.table import Made, ScenarioTable, choose
from firstflight.scenario.units import RELATIONS, BitsPerSecond, Bytes, Duration, Packets, UnitNumber, within


class RoundTrips(UnitNumber):
    """A multiple of the link's bandwidth-delay product (rate times propagation there and back), in thousandths."""

    noun = "multiple of the bandwidth-delay product"
    example = "2bdp"
    units: ClassVar[dict[str, int]] = {"bdp": 1000}

    def __str__(self) -> str:
        return f"{int(self) / 1000:g}bdp"


_LIMITS: dict[str, type[UnitNumber]] = {"bdp": RoundTrips, "p": Packets, "B": Bytes, "s": Duration}


def _queue_limit(data: Any) -> Any:
    """A limit in packets ("25p"), bytes ("32kB"), time at the link's rate ("50ms") or bdp ("2bdp"), above zero."""
    kind = next(
        (kind for unit, kind in _LIMITS.items() if isinstance(data, str) and data.rstrip().endswith(unit)), None
    )
    if isinstance(data, tuple(_LIMITS.values())):
        limit: Any = data
    elif kind is not None:
        limit = kind(data)
    else:
        raise ValueError(
            f'{shown(data)} is not a queue limit: write packets, such as "25p", bytes, such as "32kB", time, such as '
            '"50ms", or "2bdp"'
        )
    if limit < 1:
        raise ValueError(f'a queue of "{limit}" drops everything: write at least "1p"')
    return limit


Limit = Annotated[Packets | Bytes | Duration | RoundTrips, BeforeValidator(_queue_limit)]


@dataclass(frozen=True)
class Before:
    """The link before which a queue is: its rate (None: unlimited), and its propagation there and back."""

    rate_bps: int | None
    round_trip_ns: int

    def limit(self, limit: UnitNumber) -> dict[str, int]:
        """{"packets": n} or {"bytes": n}. RequestError for a time at an unlimited rate, or in which nothing fits."""
        if isinstance(limit, Packets | Bytes):
            return {"packets" if isinstance(limit, Packets) else "bytes": int(limit)}
        if self.rate_bps is None:
            raise RequestError(f'queue: a limit of "{limit}" needs a rate; write packets or bytes, such as "25p"')
        time_ns = int(limit) if isinstance(limit, Duration) else int(limit) * self.round_trip_ns // 1000
        size = self.rate_bps * time_ns // 8_000_000_000
        if size < 1:
            raise RequestError(f'queue: a limit of "{limit}" is less than a byte on this link; write at least "1p"')
        return {"bytes": size}


class _Anywhere(Before):
    """The link before which a part is checked: any limit holds a packet."""

    def limit(self, limit: UnitNumber) -> dict[str, int]:
        return {"packets": 1}


_ANYWHERE = _Anywhere(10**9, 0)
_LINK = {"rate_bps": 10**9, "delay_ns": 0, "queue": {"kind": "drop_tail", "limit": {"packets": 1}}}


class Part(ScenarioTable):
    """A part of a link, with the keys that the native module describes; their units are in the values."""

    place: ClassVar[str]
    """Its key in a native link."""
    kind_name: ClassVar[str]
    """Its kind there."""
    native: ClassVar[dict[str, str]]
    """The native names of its keys."""

    def plan(self, link: Before = _ANYWHERE) -> dict[str, Any]:
        """The part as the native module reads it."""
        return {"kind": self.kind_name} | self._parameters(link)

    def _parameters(self, link: Before) -> dict[str, Any]:
        return {name: _native_value(getattr(self, key), name, link) for key, name in self.native.items()}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        plan: Any = self.plan()
        refusal = _native.check_link(json.dumps(_LINK | {self.place: [plan] if self.place == "impairments" else plan}))
        if refusal is not None:
            name, value, right = refusal
            key = next((key for key, native in self.native.items() if native == name), name)
            given = getattr(self, key, None)
            spelled = str(given) if isinstance(given, UnitNumber) else given
            raise ValueError(f"{key} is {shown(spelled) if isinstance(given, int | float) else value}; {right}")
        return self


def _native_value(value: Any, name: str, link: Before) -> Any:
    if isinstance(value, Part):
        return value._parameters(link)
    if isinstance(value, UnitNumber):
        return link.limit(value) if name == "limit" else int(value)
    if isinstance(value, list | tuple):
        # A trace has a hundred thousand times.
        plain = set(map(type, value)) <= {float, int}
        return list(value) if plain else [_native_value(item, "", link) for item in value]
    return value


_UNITS: dict[str, type[UnitNumber]] = {"_ns": Duration, "_bytes": Bytes, "_packets": Packets, "_bps": BitsPerSecond}
# Integers of the native module, and what it can count.
_INTEGERS = {"u32": 2**32 - 1, "u64": 2**63 - 1}


def _type(name: str, described: Any, bounds: list[tuple[str, Any]]) -> tuple[str, Any, Callable[[Any], Any]]:
    """The key of a parameter, the type of its values, and its default from the native one."""
    if isinstance(described, dict):
        ((form, of),) = described.items()
        if form == "words":
            return name, Literal[tuple(of)], lambda word: word
        if form == "part":
            return name, _PARTS[of], lambda default: default
        key, inner, convert = _type(name, of, bounds)
        return key, inner | None, lambda default: None if default is None else convert(default)
    if described in _INTEGERS:
        ending = next((ending for ending in _UNITS if name.endswith(ending)), "")
        if ending:
            unit = _UNITS[ending]
            most = ("<=", _INTEGERS[described])
            return name.removesuffix(ending), Annotated[unit, within(*bounds, most)], unit.of
        return name, _number(int, bounds), lambda number: number
    types: dict[str, Any] = {
        "boolean": bool,
        "number": _number(float, bounds),
        "limit": Limit,
        # A day of the fastest trace that mahimahi's format can spell has more, and no recorded one does.
        "integers": Annotated[
            list[Annotated[int, Field(ge=0, le=_INTEGERS["u32"])]], Field(min_length=1, max_length=1_000_000)
        ],
        "rates by time": Annotated[list[tuple[Duration, BitsPerSecond]], Field(min_length=1)],
    }
    limit: Callable[[Any], Any] = lambda limit: Packets.of(limit["packets"])  # noqa: E731
    return name, types[described], limit if described == "limit" else lambda value: value


def _number(kind: type[float], bounds: list[tuple[str, Any]]) -> Any:
    return Annotated[kind, Field(**{RELATIONS[relation][0]: bound for relation, bound in bounds})]


_PARTS: dict[str, type[Part]] = {}


def _made(place: str, part: dict[str, Any], chosen_by: str | None) -> type[Part]:
    kind = re.sub(r"\B[A-Z]", r"_\g<0>", part["name"]).lower()
    fields: dict[str, Any] = {} if chosen_by is None else {chosen_by: (Literal[kind], kind)}
    native = {}
    for field in part["fields"]:
        key, values, convert = _type(field["name"], field["type"], [tuple(bound) for bound in field["bounds"]])
        native[key] = field["name"]
        given = {"default": convert(field["default"])} if "default" in field else {}
        fields[key] = (values, Field(description=field["doc"].replace("\n", " "), **given))
    made = create_model(part["name"], __base__=Part, __doc__=part["doc"], __module__=__name__, **fields)
    made.place, made.kind_name, made.native = place, kind, native
    # By its name it can be pickled.
    _PARTS[part["name"]] = globals()[part["name"]] = made
    return made


_DESCRIBED = json.loads(_native.link_parts())


def _models(place: str, chosen_by: str | None = None) -> dict[str, type[Part]]:
    """The models of the parts at this key of a native link, by their kinds."""
    return {model.kind_name: model for model in (_made(place, part, chosen_by) for part in _DESCRIBED[place])}


QUEUES = _models("queue", "kind")
LOSSES = _models("loss_model", "kind")
RATES = _models("rate_schedule")
IMPAIRMENTS = _models("impairments")
"""By the keys of a link, in the order in which they befall a packet."""


def _queue(data: Any) -> Any:
    if isinstance(data, Part):
        return data
    return (
        choose(data, QUEUES, "kind", "queue")
        if isinstance(data, dict)
        else QUEUES["drop_tail"].model_validate({"limit": data})
    )


def _written_queue(queue: Part) -> Any:
    written = queue.model_dump(exclude_defaults=True)
    return written["limit"] if queue.kind_name == "drop_tail" and len(written) == 1 else queue.model_dump()


def _loss(data: Any) -> Any:
    if isinstance(data, dict):
        return choose(data, LOSSES, "kind", "loss")
    # Checked here, so that an error is one of the number alone and not of each model.
    return data if isinstance(data, Part) else _BERNOULLI.validate_python(data)


_WRITTEN = PlainSerializer(lambda impairment: None if impairment is None else impairment.model_dump(exclude_none=True))


def impairment(kind: str) -> Made:
    """In the annotation of a link's key: its table, or the value of the table's one key without a default."""
    model = IMPAIRMENTS[kind]
    needed = [(key, field.annotation) for key, field in model.model_fields.items() if field.is_required()]
    written: Any = model | None
    if len(needed) == 1:
        written = needed[0][1] | written

    def read(data: Any) -> Any:
        return (
            data if data is None or isinstance(data, dict | ScenarioTable) or len(needed) > 1 else {needed[0][0]: data}
        )

    return Made(Annotated[model | None, BeforeValidator(read, json_schema_input_type=written), _WRITTEN])


_ANY_QUEUE: Any = Union[tuple(QUEUES.values())]  # noqa: UP007
_QUEUE_TABLE: Any = Annotated[_ANY_QUEUE, Field(discriminator="kind")]
Queue = Annotated[
    Part,
    Made(
        Annotated[
            _ANY_QUEUE,
            BeforeValidator(_queue, json_schema_input_type=Limit | _QUEUE_TABLE),
            PlainSerializer(_written_queue),
        ]
    ),
]

_BERNOULLI: TypeAdapter[float] = TypeAdapter(Annotated[float, Field(ge=0, lt=1)])
_ANY_LOSS: Any = Union[(Annotated[float, Field(ge=0, lt=1)], *LOSSES.values())]
# A probability, or a model.
Loss = Annotated[float | Part, Made(Annotated[_ANY_LOSS, BeforeValidator(_loss, json_schema_input_type=_ANY_LOSS)])]

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


def _written_rate(rate: Any) -> Any:
    return rate.model_dump(exclude_none=True) if isinstance(rate, Part) else str(rate)


# A rate, "unlimited", or a table of one that changes.
_ANY_RATE: Any = Union[(BitsPerSecond, Unlimited, *dict.fromkeys(_CHANGING.values()))]
Rate = Annotated[
    BitsPerSecond | Unlimited | Part,
    Made(
        Annotated[_ANY_RATE, BeforeValidator(_rate, json_schema_input_type=_ANY_RATE), PlainSerializer(_written_rate)]
    ),
]


def mean_bps(rate: BitsPerSecond | Part | str) -> int | None:
    """The rate as one number, of one that changes its mean; None if it is unlimited."""
    if isinstance(rate, Part):
        return _mean_bps(json.dumps(rate.plan()))
    return None if isinstance(rate, str) else int(rate)


@lru_cache(maxsize=64)
def _mean_bps(schedule: str) -> int:
    return _native.mean_rate_bps(schedule)
