"""Numbers, lists and near words in sentences."""

import difflib
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


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that names the known word nearest to `word`, or lists the known ones when none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known here: {', '.join(names)}" if names else "none is known here"
