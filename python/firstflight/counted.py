"""Numbers, lists and near words in sentences."""

import difflib
import re
from collections.abc import Iterable

# C0, DEL and C1; line and paragraph separator; overrides and isolates of the writing direction; halves of pairs.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def control(text: str) -> str | None:
    """The first such character of `text`, by its code and place: "U+001B at character 2"; None if it has none."""
    match = _CONTROL.search(text)
    return None if match is None else f"U+{ord(match[0]):04X} at character {match.start() + 1}"


def escaped(text: str) -> str:
    """`text` with each such character spelled by its code, as in Python."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def counted(number: int, noun: str, many: str | None = None) -> str:
    """The number and its noun: 1 connection, 2,000 connections; `many` if it is not `noun` with an s."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


_SIGNS = {"percent": "%", "percentage points": "pp", "ratio": ""}


def with_unit(number: str, unit: str) -> str:
    """The number and its unit: 10 ms, 15.2%, 3 pp; the number alone if the unit is empty or a ratio."""
    unit = re.sub(r"^(percentage points|percent|ratio)\b", lambda name: _SIGNS[name[1]], unit)
    return f"{number}{unit}" if unit.startswith("%") else f"{number} {unit}".rstrip()


def listed(words: Iterable[str], joint: str = "and") -> str:
    """Words in a row: a; a and b; a, b and c; nothing of none."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} {joint} {last}" if most else last


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that names the known word nearest to `word`, or lists the known ones when none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"known here: {', '.join(names)}" if names else "none is known here"


def time_span(seconds: float) -> str:
    """A time in the largest unit that it holds twice: 90 s, 2.5 min, 3.0 days."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
