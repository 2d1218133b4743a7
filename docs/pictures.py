"""Draws the pictures of the pages' commands again, after a change of the theme or of what they show.

The evidence's pictures are drawn of runs, which are not kept: there each color of the last commit's theme becomes the
one that the theme has now.
docs/images/explorer.png is a photograph of the explorer.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
THEME = "python/firstflight/report/theme.json"


def committed(*words: str) -> str:
    """What a command of git prints."""
    return subprocess.run(["git", *words], check=True, cwd=ROOT, capture_output=True, text=True).stdout


def recolor(before: str, now: str) -> None:
    """Replace the colors of one theme file by those of another in the evidence's pictures, as they were committed."""
    old, new = (json.loads(theme)["colors"] for theme in (before, now))
    changes = {was: new[name][at] for name, pair in old.items() if name in new for at, was in enumerate(pair)}
    for name in committed("ls-files", "docs/evidence/*.svg").split():
        text = committed("show", f"HEAD:{name}")
        (ROOT / name).write_text(re.sub("#[0-9a-f]{6}", lambda color: changes.get(color[0], color[0]), text), "utf-8")


def commands() -> Iterator[list[str]]:
    """The arguments of each command that draws a picture of a page; the last one is the picture's path."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        for command in re.findall(r"^    firstflight ((?:trace|explain) .* docs/\S+\.(?:svg|png))$", text, re.M):
            yield shlex.split(command)
    yield ["explain", "--iw", "3,10", "--out", "docs/images/explain.svg"]


def main() -> None:
    """Recolor the evidence, and draw what a page shows with the command that draws it into docs."""
    recolor(committed("show", f"HEAD:{THEME}"), (ROOT / THEME).read_text("utf-8"))
    program = Path(sys.executable).with_name("firstflight")
    for command in commands():
        subprocess.run([program, *command], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
