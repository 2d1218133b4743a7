"""TCP of a scenario: a named profile of the native module, and fields of it that are set otherwise.

The names of profiles and fields come from the native module alone. A field whose name ends in `_ns` or `_bytes`
may be written without the ending, with a unit: `receive_window = "64KiB"`, `rto = { minimum = "200ms" }`.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ..errors import RequestError
from .table import nearest
from .units import Bytes, Duration, Quantity

# What each field with a choice knows; for a policy, the parameters it takes.
_POLICIES: dict[str, dict[str, tuple[str, ...]]] = {
    "initial_window": {"fixed": ("segments",), "rfc2581": (), "rfc3390": (), "rfc6928": (), "linux": ()},
    "restart_window": {"off": (), "rfc5681": (), "rfc6928": (), "fixed": ("segments",)},
    "ack": {
        "every_segment": (),
        "delayed": ("segments", "timer_ns"),
        "heartbeat": ("segments", "interval_ns"),
    },
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "lost_syn": ("rfc3390", "rfc6928", "keep"),
    "recovery": ("tahoe", "reno", "new_reno"),
    "slow_start_growth": ("per_ack", "bytes"),
    "congestion_avoidance": ("per_ack", "per_window"),
}
# Fields that may be absent; TOML has no null, so a scenario writes "none".
_NULLABLE = {"initial_ssthresh_segments", "max_send_window_segments", "rto.after_syn_loss_ns"}
_UNITS: dict[str, type[Quantity]] = {"_ns": Duration, "_bytes": Bytes}


@cache
def profiles() -> dict[str, dict[str, Any]]:
    """Every profile by name, complete, as the native module reads it back."""
    from .. import _native

    loaded: dict[str, dict[str, Any]] = json.loads(_native.profiles())
    return loaded


def profile(name: str) -> dict[str, Any]:
    """A copy of the profile `name`; ValueError with the nearest known name."""
    known = profiles()
    if name not in known:
        raise ValueError(f'profile: unknown profile "{name}"; {nearest(str(name), known)}')
    return deepcopy(known[name])


class Tcp:
    """A table `tcp`, `client_tcp` or `server_tcp`: an optional `profile` and the fields set in it.

    Fields read and assign like attributes (`tcp.initial_window = 10`); what is assigned is checked at once and
    raises RequestError. A table that names a profile starts afresh from it; one that does not changes the profile
    of the table around it.
    """

    __slots__ = ("_fields", "_profile")
    _fields: dict[str, Any]
    _profile: str | None

    def __init__(self, **fields: Any) -> None:
        object.__setattr__(self, "_fields", {})
        object.__setattr__(self, "_profile", None)
        for name, value in fields.items():
            self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        if name == "profile":
            profile(value)
            object.__setattr__(self, "_profile", value)
            return
        # Checked against a complete profile: which one does not matter to the names and ranges.
        applied(profile(self._profile or next(iter(profiles()))), {name: value})
        self._fields[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._assign(name, value)
        except ValueError as error:
            raise RequestError(f"tcp.{error}") from None

    def __getattr__(self, name: str) -> Any:
        if name == "profile":
            return self._profile
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f'"{name}" is not set in this tcp table') from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tcp) and self.as_table() == other.as_table()

    def __hash__(self) -> int:
        return hash(json.dumps(self.as_table(), sort_keys=True))

    def __repr__(self) -> str:
        return f"Tcp({', '.join(f'{key}={value!r}' for key, value in self)})"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.as_table().items()

    def as_table(self) -> dict[str, Any]:
        """The table as a scenario file writes it."""
        head = {} if self._profile is None else {"profile": self._profile}
        return head | deepcopy(self._fields)

    def over(self, outer: dict[str, Any] | None) -> dict[str, Any]:
        """The complete profile that results where `outer` is the one around; ValueError if they do not fit."""
        if self._profile is not None:
            return applied(profile(self._profile), self._fields)
        if outer is None:
            raise ValueError(f'profile is missing: write for example profile = "{next(iter(profiles()))}"')
        return applied(deepcopy(outer), self._fields)

    def __copy__(self) -> "Tcp":
        return Tcp(**self.as_table())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tcp":
        return Tcp(**self.as_table())

    @classmethod
    def _validated(cls, data: Any) -> "Tcp":
        if isinstance(data, Tcp):
            return data
        if not isinstance(data, dict):
            raise ValueError(f'{data!r} is not a table: write {{ profile = "rfc", initial_window = 3 }}')
        try:
            return cls(**data)
        except ValueError as error:
            raise PydanticCustomError("tcp_field", "{message}", {"message": str(error)}) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.plain_serializer_function_ser_schema(cls.as_table)
        )


def applied(base: dict[str, Any], fields: dict[str, Any], where: str = "") -> dict[str, Any]:
    """`base` (a complete profile, or a table within one) with `fields` set.

    ValueError names the field and says what would be right.
    """
    for written, value in fields.items():
        name, spelled = _native_name(written, base, where)
        path = f"{where}{written}"
        if spelled is not None and name in fields and written != name:
            raise ValueError(f'{path}: both "{written}" and "{name}" are given; keep one')
        base[name] = _field(f"{where}{name}", path, value, base[name], spelled)
    return base


def _native_name(written: str, base: dict[str, Any], where: str) -> tuple[str, type[Quantity] | None]:
    """The native field behind a key of the file, and the unit its value must carry, if any."""
    if written in base and written != "policy":
        return written, None
    for ending, unit in _UNITS.items():
        if written + ending in base:
            return written + ending, unit
    known = {_friendly(name) for name in base} | ({"profile"} if not where else set())
    raise ValueError(f'{where}{written}: unknown key "{written}"; {nearest(written, known)}')


def _friendly(name: str) -> str:
    for ending in _UNITS:
        name = name.removesuffix(ending)
    return name


def _field(name: str, path: str, value: Any, before: Any, unit: type[Quantity] | None) -> Any:
    if name in _POLICIES:
        return _policy(name, value, before)
    if name in _CHOICES:
        if not isinstance(value, str) or value not in _CHOICES[name]:
            raise ValueError(f'{path}: unknown choice "{value}"; {nearest(str(value), _CHOICES[name])}')
        return value
    if value == "none" and name in _NULLABLE:
        return None
    if isinstance(before, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {value!r} is not a table; known keys: {', '.join(map(_friendly, before))}")
        return applied(dict(before), value, f"{path}.")
    if unit is not None:
        try:
            return int(unit(value))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if isinstance(before, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{path}: {value!r} is not true or false")
        return value
    if isinstance(before, int) or name in _NULLABLE:
        return _whole(path, value)
    # A field this table knows nothing about: the native module checks it.
    return value


def _whole(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path}: {value!r} is not a whole number")
    if value < 0:
        raise ValueError(f"{path}: {value} is negative")
    return value


def _policy(name: str, value: Any, before: dict[str, Any]) -> dict[str, Any]:
    """A policy from its short form (3: fixed segments; "rfc6928": by name) or its table."""
    policies = _POLICIES[name]
    if isinstance(value, int) and not isinstance(value, bool) and "fixed" in policies:
        value = {"policy": "fixed", "segments": value}
    if isinstance(value, str):
        value = {"policy": value}
    if not isinstance(value, dict) or not isinstance(value.get("policy"), str):
        example = "3" if "fixed" in policies else f'"{next(iter(policies))}"'
        raise ValueError(f"{name}: {value!r} is not a policy: write for example {name} = {example}")
    policy = value["policy"]
    if policy not in policies:
        raise ValueError(f'{name}: unknown policy "{policy}"; {nearest(policy, policies)}')
    parameters = policies[policy]
    # What is left out stays as it is where the policy stays the same.
    kept = before if before.get("policy") == policy else {}
    blank = {parameter: kept.get(parameter, 0) for parameter in parameters}
    given = {key: parameter for key, parameter in value.items() if key != "policy"}
    plan = applied(dict(blank), given, f"{name}.")
    for parameter in parameters:
        if plan[parameter] < 1:
            if parameter not in given and _friendly(parameter) not in given:
                raise ValueError(f'{name}: the policy "{policy}" needs "{_friendly(parameter)}"')
            raise ValueError(f"{name}.{_friendly(parameter)}: {plan[parameter]} is below 1")
    return {"policy": policy} | plan
