"""TCP of a scenario: a named profile of the native module, and fields of it that are set otherwise.

The names of profiles, fields, choices and their parameters come from the native module alone. A field whose name
ends in `_ns` or `_bytes` may be written without the ending, with a unit: `receive_window = "64KiB"`,
`rto = { minimum = "200ms" }`. Where the native module has a table whose first key names a variant, such as
`{ policy = "fixed", segments = 3 }`, its name alone will do if nothing else is needed: `startup = "jump_start"`. Where
a table's one key names a variant and holds its rules, such as `{ reno = { exit = "ssthresh" } }`, the name alone keeps
the rules of the profile around if it has that variant, and else takes the defaults: `recovery = "reno"`.

Beside these stands `stack`: whose TCP an end has where real programs run, the kernel's or ours. The simulator
has ours only.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from firstflight import _native
from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.scenario.document import as_written, copied
from firstflight.scenario.explain import shown
from firstflight.scenario.tcp_fields import TcpFields
from firstflight.scenario.units import Bytes, Duration, UnitNumber

Stack = Literal["kernel", "firstflight"]
CHOSEN_STACKS: tuple[Stack, ...] = get_args(Stack)

UNITS: dict[str, type[UnitNumber]] = {"_ns": Duration, "_bytes": Bytes}


@cache
def profiles() -> dict[str, dict[str, Any]]:
    """Every profile by name, complete, as the native module reads it back."""
    loaded: dict[str, dict[str, Any]] = json.loads(_native.profiles())
    return loaded


@cache
def choices() -> dict[str, list[Any]]:
    """The values that each field with a choice can have, by its path: words, or tables with default parameters."""
    loaded: dict[str, list[Any]] = json.loads(_native.choices())
    return loaded


@cache
def _checked(profile: str) -> str | None:
    try:
        _native.check_profile(profile)
    except ValueError as error:
        return str(error)
    return None


def check_profile(profile: dict[str, Any]) -> None:
    """ValueError if a field of a complete profile is out of its range, or has no effect together with the others."""
    wrong = _checked(json.dumps(profile))
    if wrong is not None:
        raise ValueError(wrong)


# The native module counts in 32 bits, times apart.
_MOST = 2**32 - 1

# Tables that every profile leaves out, with Linux's values for keys that a scenario does not set.
_IN_NO_PROFILE = {
    "pacing": {"slow_start_percent": 200, "avoidance_percent": 120, "burst_segments": 2},
    # CONFIG_HZ = 250.
    "timer_tick": {"period_ns": 4_000_000, "wheel": True},
}


@cache
def examples() -> dict[str, list[Any]]:
    """The values that each field has in profiles and choices, by its path; a table's fields have their own paths."""
    by_name: dict[str, list[Any]] = {}

    def collect(table: dict[str, Any], where: str) -> None:
        for name, value in table.items():
            by_name.setdefault(where + name, []).append(value)
            if isinstance(value, dict):
                collect(value, f"{where}{name}.")

    for complete in (*profiles().values(), _IN_NO_PROFILE):
        collect(complete, "")
    for name, values in choices().items():
        for table in values:
            if isinstance(table, dict):
                collect(table, f"{name}.")
    return by_name


def profile(name: str) -> dict[str, Any]:
    """A copy of the profile `name`; ValueError with the nearest known name."""
    known = profiles()
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"profile: unknown profile {shown(name)}; {nearest(str(name), known)}")
    return copied(known[name])


def initial_window_bytes(policy: dict[str, Any], mss_bytes: int) -> int:
    """Bytes that a sender may send before the first ACK.

    `policy` is a profile's `initial_window`. The formulas and their sources are the endpoint's, in
    `crates/tcp/src/sender/initial_window`; for a policy that learns from others, its value when nothing is known.
    """
    return _native.initial_window_bytes(json.dumps(policy), mss_bytes)


class Tcp(TcpFields):
    """A table `tcp`, `client_tcp` or `server_tcp`: an optional `profile`, an optional `stack`, and the fields set.

    Fields are attributes (`tcp.initial_window = 10`). An assigned value is checked immediately (RequestError); a key
    that is not set has the profile's value, if the table names a profile. A table without a profile changes that of the
    enclosing table.
    """

    __slots__ = ("_fields", "_profile", "_stack")
    _fields: dict[str, Any]
    _profile: str | None
    _stack: Stack | None

    def __init__(self, **fields: Any) -> None:
        object.__setattr__(self, "_fields", {})
        object.__setattr__(self, "_profile", None)
        object.__setattr__(self, "_stack", None)
        for name, value in fields.items():
            self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        value = as_written(value)
        if name == "profile":
            profile(value)
            object.__setattr__(self, "_profile", value)
            return
        if name == "stack":
            object.__setattr__(self, "_stack", _word(name, value, list(CHOSEN_STACKS)))
            return
        # Checked against a complete profile: which one does not matter to the names and ranges.
        applied(dict(profiles()[self._profile or next(iter(profiles()))]), {name: value})
        self._fields[name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            self._assign(name, value)
        except ValueError as error:
            raise RequestError(f"tcp.{error}") from None

    def __getattr__(self, name: str) -> Any:
        if name in ("profile", "stack"):
            return getattr(self, f"_{name}")
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._fields:
            unit = next(
                (unit for ending, unit in UNITS.items() if name + ending in next(iter(profiles().values()))), None
            )
            value = self._fields[name]
            return value if unit is None or value == "none" else unit(value)
        if self._profile is None:
            raise AttributeError(f'"{name}" is not set in this tcp table, which names no profile')
        try:
            native, unit = _native_name(name, complete := self.over(None), "")
        except ValueError as error:
            raise AttributeError(str(error)) from None
        return complete[native] if unit is None or complete[native] is None else unit.of(complete[native])

    def __dir__(self) -> list[str]:
        keys = map(friendly, next(iter(profiles().values())))
        return sorted({*super().__dir__(), "profile", "stack", *keys})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tcp) and self.as_table() == other.as_table()

    def __hash__(self) -> int:
        return hash(json.dumps(self.as_table(), sort_keys=True))

    def __repr__(self) -> str:
        return f"Tcp({', '.join(f'{key}={value!r}' for key, value in self)})"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.as_table().items()

    def as_table(self) -> dict[str, Any]:
        """The table as in a scenario file."""
        head = {"profile": self._profile, "stack": self._stack}
        return {name: value for name, value in head.items() if value is not None} | copied(self._fields)

    def sets(self, key: str) -> bool:
        """Whether the table has this key."""
        return key in self._fields

    def over(self, outer: dict[str, Any] | None) -> dict[str, Any]:
        """The complete profile over the enclosing table's `outer`; ValueError if they are inconsistent."""
        if self._profile is not None:
            outer = profiles()[self._profile]
        if outer is None:
            raise ValueError(f'profile is missing: write for example profile = "{next(iter(profiles()))}"')
        complete = applied(copied(outer), self._fields)
        # Not a parameter of the policies, so that a change of policy never takes it along.
        if "idle_check" in self._fields and complete["restart_window"]["policy"] == "off":
            raise ValueError('idle_check has no effect with restart_window = "off"; leave it out')
        return complete

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made from the table, since assignment is checked."""
        return Tcp._validated, (self.as_table(),)

    @classmethod
    def _validated(cls, data: Any) -> "Tcp":
        if isinstance(data, Tcp):
            return data
        if not isinstance(data, dict):
            raise ValueError(f'{shown(data)} is not a table: write {{ profile = "rfc", initial_window = 3 }}')
        try:
            return cls(**data)
        except ValueError as error:
            raise PydanticCustomError("tcp_field", "{message}", {"message": str(error)}) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            ref=cls.__name__,
            serialization=core_schema.plain_serializer_function_ser_schema(cls.as_table),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A table of the fields, each with the values that the native module accepts."""
        return _schema()


def applied(base: dict[str, Any], fields: dict[str, Any], where: str = "") -> dict[str, Any]:
    """`base` (a complete profile, or a table within one) with `fields` set.

    ValueError names the field and gives the correct form.
    """
    for written, value in fields.items():
        name, spelled = _native_name(written, base, where)
        path = f"{where}{written}"
        if spelled is not None and name in fields and written != name:
            raise ValueError(f'{path}: both "{written}" and "{name}" are given; keep one')
        base[name] = _field(f"{where}{name}", path, value, base[name], spelled)
    return base


def _native_name(written: str, base: dict[str, Any], where: str) -> tuple[str, type[UnitNumber] | None]:
    """The native field behind a key of the file, and the unit its value must carry, if any."""
    if written in base:
        return written, None
    for ending, unit in UNITS.items():
        if written + ending in base:
            return written + ending, unit
    known = {friendly(name) for name in base} | ({"profile", "stack"} if not where else set())
    raise ValueError(f"{where}{written}: unknown key {shown(written)}; {nearest(written, known)}")


def friendly(name: str) -> str:
    """A native name as a scenario writes it, where a unit stands with the value."""
    for ending in UNITS:
        name = name.removesuffix(ending)
    return name


def spelled(value: Any, name: str = "") -> str:
    """A value of the native field `name` as a scenario writes it."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        if len(value) == 1 and not value.keys().isdisjoint(("policy", "scheme")):
            return spelled(next(iter(value.values())))
        return "{ " + ", ".join(f"{friendly(key)} = {spelled(item, key)}" for key, item in value.items()) + " }"
    unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), None)
    return f'"{value if unit is None else unit.of(value)}"' if unit or isinstance(value, str) else str(value)


def _field(name: str, path: str, value: Any, before: Any, unit: type[UnitNumber] | None) -> Any:
    known = choices().get(name)
    if known is not None:
        rules = {name: held for choice in known if isinstance(choice, dict) for name, held in choice.items()}
        if any(isinstance(held, dict) for held in rules.values()):
            return _kind(path, value, before, known)
        return _variant(name, value, before) if rules else _word(path, value, known)
    seen = examples().get(name, [])
    # Fields that may be absent; TOML has no null, so a scenario writes "none".
    if value == "none" and None in seen:
        return None
    table = next((example for example in [before, *seen] if isinstance(example, dict)), None)
    if table is not None:
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {shown(value)} is not a table; known keys: {', '.join(map(friendly, table))}")
        return applied(dict(table), value, f"{path}.")
    if unit is not None:
        try:
            number = int(unit(value))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return _in_32_bits(path, number, f'"{_MOST}B"') if unit is Bytes else number
    if isinstance(before, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{path}: {shown(value)} is not true or false")
        return value
    return _whole(path, value)


def _whole(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path}: {shown(value)} is not a whole number")
    if value < 0:
        raise ValueError(f"{path}: {value} is negative")
    return value if path.endswith("_ns") else _in_32_bits(path, value, str(_MOST))


def _in_32_bits(path: str, value: int, most: str) -> int:
    if value > _MOST:
        raise ValueError(f"{path}: {value} is too large; write at most {most}")
    return value


def _word(path: str, value: Any, known: list[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{path}: unknown choice {shown(value)}; {nearest(str(value), known)}")
    return value


def _kind(path: str, value: Any, before: Any, known: list[Any]) -> Any:
    """A variant by its name, or in a table of one entry with some of its rules: { reno = { exit = "ssthresh" } }."""
    names = [choice if isinstance(choice, str) else next(iter(choice)) for choice in known]
    rules = {name: choice[name] for name, choice in zip(names, known, strict=True) if isinstance(choice, dict)}
    if isinstance(value, dict) and len(value) != 1:
        raise ValueError(f"{path}: {shown(value)} names {len(value)} of {', '.join(names)}; write one of them")
    kind, given = next(iter(value.items())) if isinstance(value, dict) else (value, {})
    _word(path, kind, names)
    if not isinstance(given, dict):
        raise ValueError(f"{path}.{kind}: {shown(given)} is not a table; known keys: {', '.join(rules.get(kind, {}))}")
    if kind not in rules:
        if given:
            raise ValueError(f'{path}: "{kind}" has no rules; write {path} = "{kind}"')
        return kind
    held = before[kind] if isinstance(before, dict) and kind in before else rules[kind]
    return {kind: applied(dict(held), given, f"{path}.{kind}.")}


def _variant(name: str, value: Any, before: dict[str, Any]) -> dict[str, Any]:
    """A policy, algorithm or scheme from its short form (3: fixed segments; "rfc6928": by name) or its table."""
    tag = next(iter(before))
    variants = {table[tag]: table for table in choices()[name]}
    if isinstance(value, int) and not isinstance(value, bool) and "fixed" in variants:
        value = {tag: "fixed", "segments": value}
    if isinstance(value, str):
        if value.isdecimal() and "fixed" in variants:
            raise ValueError(f"{name}: {shown(value)} is text; write the number without quotes")
        value = {tag: value}
    key = next(iter(value), "") if isinstance(value, dict) and tag not in value else ""
    fit = [kind for kind, table in variants.items() if key in map(friendly, table)]
    if fit:
        raise ValueError(f'{name}: the {tag} is missing; write for example {{ {tag} = "{fit[0]}", {key} = ... }}')
    if not isinstance(value, dict) or not isinstance(value.get(tag), str):
        example = "3" if "fixed" in variants else f'"{next(iter(variants))}"'
        article = "an" if tag[0] in "aeiou" else "a"
        raise ValueError(f"{name}: {shown(value)} is not {article} {tag}: write for example {name} = {example}")
    chosen = value[tag]
    if chosen not in variants:
        raise ValueError(f"{name}: unknown {tag} {shown(chosen)}; {nearest(chosen, variants)}")
    # Keys that are left out are unchanged where the variant is the same. Another variant keeps the set keys for which
    # it has a default, too; the rest get their default, if there is one.
    parameters = {key: default for key, default in variants[chosen].items() if key != tag}
    kept = {key: before[key] for key in parameters if key in before}
    if before[tag] != chosen:
        unset = variants[before[tag]]
        needed = {key for key, default in parameters.items() if default == 0 and default is not False}
        kept = {key: held for key, held in kept.items() if held != unset[key] and key not in needed}
    given = {key: parameter for key, parameter in value.items() if key != tag}
    plan = applied(parameters | kept, given, f"{name}.")
    for key, parameter in plan.items():
        if isinstance(parameter, int) and not isinstance(parameter, bool) and parameter < 1:
            if key not in given and friendly(key) not in given:
                raise ValueError(f'{name}: the {tag} "{chosen}" needs "{friendly(key)}"')
            raise ValueError(f"{name}.{friendly(key)}: {parameter} is below 1")
    return {tag: chosen} | plan


def _schema() -> dict[str, Any]:
    """The JSON schema of a whole table, from the native module: a profile, a stack, and any of the fields."""
    table = _table_schema(next(iter(profiles().values())), "")
    heads = {"profile": {"enum": list(profiles())}, "stack": {"enum": list(CHOSEN_STACKS)}}
    return table | {"properties": heads | table["properties"]}


def _table_schema(fields: dict[str, Any], where: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {friendly(name): _field_schema(where + name) for name in fields},
        # A field by its native name is a plain number.
        "patternProperties": {f"({'|'.join(UNITS)})$": {"type": "integer", "minimum": 0}},
        "additionalProperties": False,
    }


def _field_schema(path: str) -> dict[str, Any]:
    if path in choices():
        return {"anyOf": _choice_schema(path, choices()[path])}
    values = examples()[path]
    table = next((value for value in values if isinstance(value, dict)), None)
    unit = next((unit for ending, unit in UNITS.items() if path.endswith(ending)), None)
    if table is not None:
        schema = _table_schema(table, f"{path}.")
    elif unit is not None:
        schema = TypeAdapter(unit).json_schema()
    elif any(isinstance(value, bool) for value in values):
        schema = {"type": "boolean"}
    else:
        schema = {"type": "integer", "minimum": 0}
    return {"anyOf": [{"const": "none"}, schema]} if None in values else schema


def _choice_schema(path: str, values: list[Any]) -> list[dict[str, Any]]:
    """A word; a kind with a table of rules; a variant by its name, or in a table with parameters."""
    names: list[str] = []
    kinds: dict[str, Any] = {}
    tables: list[dict[str, Any]] = []
    for value in values:
        if isinstance(value, str):
            names.append(value)
            continue
        (tag, variant), *parameters = value.items()
        if isinstance(variant, dict):
            names.append(tag)
            kinds[tag] = _table_schema(variant, f"{path}.{tag}.")
            continue
        names.append(variant)
        if variant == "fixed":
            tables.append({"type": "integer", "minimum": 1})
        table = _table_schema(dict(parameters), f"{path}.")
        tables.append(table | {"properties": {tag: {"const": variant}} | table["properties"], "required": [tag]})
    if kinds:
        tables.append({"type": "object", "properties": kinds, "additionalProperties": False, "maxProperties": 1})
    return [{"enum": names}, *tables]
