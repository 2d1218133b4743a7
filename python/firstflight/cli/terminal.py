"""Text for people: at a terminal wrapped at its width and with colored verdicts; in a pipe or file as it is."""

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from firstflight.counted import time_span

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


_INTERRUPTED = 130
_SHOWN_EVERY_S = 0.5


def interrupted(kept: str, directory: Path) -> NoReturn:
    """End the process after Ctrl-C. The same command continues with what is kept in `directory`."""
    print(
        f"firstflight: interrupted; {kept} are kept in {directory}, and the same command continues with the rest",
        file=sys.stderr,
        flush=True,
    )
    # Threads inside the native module cannot be stopped, and an orderly exit would wait for them.
    os._exit(_INTERRUPTED)


def progress_line(doing: str) -> Callable[[int, int], None]:
    """A function of the number done and of all: shows them with the time left, in one line on stderr at a terminal."""
    first, began, shown = 0, 0.0, 0.0

    def on_done(done: int, of: int) -> None:
        nonlocal first, began, shown
        now = time.monotonic()
        # What is done at the first call took its time before.
        if not began:
            first, began, shown = done, now, now
        if sys.stderr.isatty() and (done >= of or (done > first and now - shown >= _SHOWN_EVERY_S)):
            shown = now
            left = time_span((now - began) * (of - done) / max(done - first, 1))
            text = f"{doing} {done:,} of {of:,}, {left} left" if done < of else ""
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r{text[:columns]:<{columns}}", end="" if text else "\r", file=sys.stderr, flush=True)

    return on_done


def room() -> int | None:
    """Characters of a line of the terminal, at least 60; None in a pipe or file."""
    return max(shutil.get_terminal_size().columns, _LEAST) if sys.stdout.isatty() else None


def show(text: str) -> None:
    """Print `text`. NO_COLOR is respected (no-color.org)."""
    width = room()
    if width is None:
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
            width,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        shown = Text("\n".join(wrapped), no_wrap=True, overflow="ignore")
        for color, verdicts in _COLORS.items():
            shown.highlight_regex(rf"(?:^|  )(?:{verdicts})", f"bold {color}")
        console.print(shown, soft_wrap=True)
