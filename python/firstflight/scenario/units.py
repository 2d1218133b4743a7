"""Quantities as `tc` writes them: `1.5Mbit`, `50ms`, `25p`, `32kB`, each an exact integer with its own type.

A number without a unit is refused: 50 could be milliseconds or seconds, and a wrong guess is a wrong result.
"""

import decimal
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from firstflight.scenario.explain import shown

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*", re.ASCII)

# Of a quantity as it is written; more digits than any needs.
_LONGEST_TEXT = 80
# Exact for everything that is neither too large nor too fine; a value that is raises an error and is not rounded.
_EXACT = decimal.Context(prec=200, Emin=-100, Emax=100, traps=[decimal.Overflow, decimal.Inexact])


class UnitNumber(int):
    """An integer count of a base unit, read from and written as a string with a unit.

    Construction takes a string (`Duration("50ms")`) or another quantity of the same type; `of` takes a plain
    integer of base units. Raises ValueError, in one sentence, for anything else.
    """

    noun: ClassVar[str]
    example: ClassVar[str]
    units: ClassVar[dict[str, int]]
    aliases: ClassVar[dict[str, str]] = {}
    advice: ClassVar[dict[str, str]] = {}
    # Base units, which the native module counts in 64 bits: 292 years, 9.2 exabytes.
    most: ClassVar[int] = 2**63 - 1

    def __new__(cls, value: "str | UnitNumber") -> Self:
        """Read `value`, such as "50ms"; exact: "0.1ns" is refused, because there is no tenth of a nanosecond."""
        if isinstance(value, cls):
            return value
        return super().__new__(cls, cls._read(value) if type(value) is str else cls._parse(value))

    @classmethod
    def of(cls, base_units: int) -> Self:
        """The quantity of this number of base units (ns, bytes, bit/s or packets). TypeError for a number that is not
        whole, ValueError for one out of range.
        """
        count = operator.index(base_units)
        if not 0 <= count <= cls.most:
            raise ValueError(f"{count} is out of range; a {cls.noun} has 0 to {cls.most} base units")
        return int.__new__(cls, count)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made from base units, which the constructor refuses."""
        return self.of, (int(self),)

    # The scenarios of a grid say and write the same again and again.
    @classmethod
    @lru_cache(maxsize=1024)
    def _read(cls, text: str) -> int:
        return cls._parse(text)

    @classmethod
    def _parse(cls, value: object) -> int:
        known = ", ".join(dict.fromkeys(cls.units))
        if not isinstance(value, str):
            raise ValueError(f'{shown(value)} has no unit: write a {cls.noun} such as "{cls.example}" (units: {known})')
        match = _QUANTITY.fullmatch(value) if len(value) <= _LONGEST_TEXT else None
        if match is None:
            raise ValueError(f'{shown(value)} is not a {cls.noun}: write for example "{cls.example}" (units: {known})')
        number, unit = match.groups()
        if unit is None:
            raise ValueError(f'"{value}" has no unit: write a {cls.noun} such as "{cls.example}" (units: {known})')
        factor = cls.units.get(cls.aliases.get(unit, unit))
        if factor is None:
            hint = cls.advice.get(unit, f'write a {cls.noun} such as "{cls.example}"')
            raise ValueError(f'"{value}" is not a {cls.noun}: unknown unit "{unit}"; {hint} (units: {known})')
        smallest = min(cls.units, key=lambda name: cls.units[name])
        too_large = f'"{value}" is too large: a {cls.noun} is at most {cls.most}{smallest}'
        step = f"{_plain(Decimal(1) / cls.units[smallest])} {smallest}"
        too_fine = f'"{value}" is finer than {step}, the smallest step of a {cls.noun}'
        try:
            exact = _EXACT.multiply(_EXACT.create_decimal(number), factor)
        except decimal.Overflow:
            raise ValueError(too_large) from None
        except decimal.Inexact:
            raise ValueError(too_fine) from None
        if exact < 0:
            raise ValueError(f'"{value}" is negative: a {cls.noun} is zero or more, such as "{cls.example}"')
        if exact > cls.most:
            raise ValueError(too_large)
        if exact != exact.to_integral_value():
            raise ValueError(too_fine)
        return int(exact)

    def __str__(self) -> str:
        """The shortest exact spelling: the largest unit that leaves at most three decimals."""
        return self._spelled(int(self))

    @classmethod
    @lru_cache(maxsize=1024)
    def _spelled(cls, count: int) -> str:
        units = sorted(cls.units.items(), key=lambda item: -item[1])
        for unit, factor in units:
            scaled = Decimal(count) / factor
            if scaled >= 1 and scaled == scaled.quantize(Decimal("0.001")):
                return f"{_plain(scaled)}{unit}"
        return f"{count}{units[-1][0]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls, ref=cls.__name__, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A text with one of the units."""
        units = "|".join((*cls.units, *cls.aliases))
        pattern = rf"^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*({units})\s*$"
        return {"type": "string", "title": cls.__name__, "pattern": pattern, "examples": [cls.example]}


class Duration(UnitNumber):
    """A time in integer nanoseconds."""

    noun = "time"
    example = "50ms"
    units: ClassVar[dict[str, int]] = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
    advice: ClassVar[dict[str, str]] = {"m": 'write "min" or "ms"', "sec": 'write "s"', "usec": 'write "us"'}

    @property
    def seconds(self) -> float:
        """The same time in seconds."""
        return int(self) / 1e9

    def __str__(self) -> str:
        """As tc would write it; minutes are read but not written."""
        value = int(self)
        for unit in ("s", "ms", "us"):
            scaled = Decimal(value) / self.units[unit]
            if scaled >= 1 and scaled == scaled.quantize(Decimal("0.001")):
                return f"{_plain(scaled)}{unit}"
        return f"{value}ns" if value else "0s"


class Bytes(UnitNumber):
    """A size in bytes. kB is 1,000 and KiB is 1,024."""

    noun = "size"
    example = "32kB"
    units: ClassVar[dict[str, int]] = {
        "B": 1,
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "KiB": 2**10,
        "MiB": 2**20,
        "GiB": 2**30,
    }
    advice: ClassVar[dict[str, str]] = {
        "k": 'write "kB" (1,000 bytes) or "KiB" (1,024)',
        "K": 'write "kB" (1,000 bytes) or "KiB" (1,024)',
        "KB": 'write "kB" (1,000 bytes) or "KiB" (1,024)',
        "kb": 'write "kB" (1,000 bytes) or "KiB" (1,024)',
        "b": 'write "B" for bytes',
        "M": 'write "MB" or "MiB"',
        "G": 'write "GB" or "GiB"',
        "p": "this is counted in bytes, not packets",
    }

    def __str__(self) -> str:
        """In decimal units where that is exact, else in binary ones, else in bytes."""
        for unit in ("GB", "MB", "kB", "GiB", "MiB", "KiB"):
            if int(self) and int(self) % self.units[unit] == 0:
                return f"{int(self) // self.units[unit]}{unit}"
        return f"{int(self)}B"


class BitsPerSecond(UnitNumber):
    """A rate in bit/s, with tc's decimal prefixes."""

    noun = "rate"
    example = "1.5Mbit"
    units: ClassVar[dict[str, int]] = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
    # tc ignores the case of a rate's unit.
    aliases: ClassVar[dict[str, str]] = {"mbit": "Mbit", "gbit": "Gbit", "tbit": "Tbit", "Kbit": "kbit"}
    advice: ClassVar[dict[str, str]] = {
        "bps": 'tc reads "bps" as bytes per second, so write "bit"',
        "kbps": 'tc reads "kbps" as kilobytes per second, so write "kbit"',
        "Mbps": 'tc reads "mbps" as megabytes per second, so write "Mbit"',
        "Gbps": 'tc reads "gbps" as gigabytes per second, so write "Gbit"',
        "Mbit/s": 'write "Mbit"',
        "Gbit/s": 'write "Gbit"',
        "kbit/s": 'write "kbit"',
        "M": 'write "Mbit"',
    }


class Packets(UnitNumber):
    """A number of packets."""

    noun = "number of packets"
    example = "25p"
    most = 2**32 - 1
    units: ClassVar[dict[str, int]] = {"p": 1}


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"


RELATIONS: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    ">=": ("ge", operator.ge, "small; write at least"),
    ">": ("gt", operator.gt, "small; write more than"),
    "<=": ("le", operator.le, "large; write at most"),
    "<": ("lt", operator.lt, "large; write less than"),
}


def within(*bounds: tuple[str, int]) -> AfterValidator:
    """For an annotation: bounds of a quantity in its smallest unit, such as (">=", 1). A ValueError names the bound."""

    def check(value: UnitNumber) -> UnitNumber:
        for relation, bound in bounds:
            _, holds, words = RELATIONS[relation]
            if not holds(value, bound):
                raise ValueError(f'"{value}" is too {words} "{type(value).of(bound)}"')
        return value

    return AfterValidator(check)


# Sizes that the native module counts in 32 bits.
Bytes32 = Annotated[Bytes, within(("<=", 2**32 - 1))]
PositiveBytes = Annotated[Bytes32, within((">=", 1))]
