"""Text for people: at a terminal wrapped at its width and with colored verdicts; in a pipe or file as it is."""

from __future__ import annotations

import re
import sys
import textwrap

_LEAST = 60
"""Columns; a narrower terminal cuts lines itself."""
_MARGIN = re.compile(r" *(?:\S.{0,22}?\S?  +)*")
"""What stands left of the running text: the indent, and columns of at most 24 characters."""
_END = r"(?=  |$)"
_COLORS = {
    "green": rf"(?:holds|better|within|pass|ok){_END}|within the budget\b",
    "red": rf"(?:differs|worse|over|error|missing){_END}|over the budget\b",
    "yellow": rf"(?:undecided|inconclusive|too few flows|unsupported){_END}|(?:no gain shown|inconclusive against)\b",
}
"""Verdicts at the beginning of a column."""


def show(text: str) -> None:
    """Print `text`. NO_COLOR is respected (no-color.org)."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in text.split("\n"):
        margin = _MARGIN.match(line)
        hanging = " " * min(margin.end() if margin else 0, _LEAST // 2)
        wrapped = textwrap.wrap(
            line,
            max(console.width, _LEAST),
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        shown = Text("\n".join(wrapped), no_wrap=True, overflow="ignore")
        for color, verdicts in _COLORS.items():
            shown.highlight_regex(rf"(?:^|  )(?:{verdicts})", f"bold {color}")
        console.print(shown, soft_wrap=True)
