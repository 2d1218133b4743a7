"""Numbers and lists in sentences."""

from collections.abc import Iterable


def counted(number: int, one: str, many: str | None = None) -> str:
    """The number and its noun: 1 connection, 2,000 connections; `many` if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def with_unit(number: str, unit: str) -> str:
    """The number and its unit: 10 ms, 15.2%; the number alone if the unit is empty."""
    return f"{number}{unit}" if unit.startswith("%") else f"{number} {unit}".rstrip()


def listed(words: Iterable[str]) -> str:
    """Words in a row: a; a and b; a, b and c."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
