"""Characters that a terminal or a drawing obeys instead of showing them: control characters, changes of direction."""

import re

# C0, DEL and C1; line and paragraph separator; overrides and isolates of the writing direction; halves of pairs.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def control(text: str) -> str | None:
    """The first such character of `text`, by its code and place: "U+001B at character 2"; None if it has none."""
    found = _CONTROL.search(text)
    return None if found is None else f"U+{ord(found[0]):04X} at character {found.start() + 1}"


def escaped(text: str) -> str:
    """`text` with each such character spelled by its code, as in Python."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)
