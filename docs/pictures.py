"""Draws the stored pictures again, after a change of the theme or of what they show.

    .venv/bin/python docs/pictures.py                  those of the pages' commands, and of the evidence
    .venv/bin/python docs/pictures.py runs/uk-homes    those of the run of a study

docs/images/explorer.png is a photograph of the explorer; docs/images/explain.svg is of
`firstflight explain --iw 3,10 --out docs/images/explain.svg`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import evidence_page

from firstflight.records import Run
from firstflight.report.figure import png
from firstflight.studies import of

DOCS = Path(__file__).parent
# Figure of a study, and its picture.
DRAWN = {
    "post-quantum": {"steps": "post-quantum-steps"},
    "uk-homes": {"size_map": "uk-homes-size-map"},
}


def of_pages() -> None:
    """The pictures that a page shows with the command that draws them into docs."""
    program = Path(sys.executable).with_name("firstflight")
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        for command in re.findall(r"^    firstflight ((?:trace|explain) .* docs/\S+\.(?:svg|png))$", text, re.M):
            subprocess.run([program, *shlex.split(command)], check=True, cwd=DOCS.parent)
    subprocess.run([program, "explain", "--iw", "3,10", "--out", DOCS / "images/explain.svg"], check=True)


def of_run(directory: str) -> None:
    """Those for which the run in `directory` has data."""
    run = Run.open(directory)
    for figure in of(run).figures(run):
        if name := DRAWN[run.study].get(figure.name):
            path = DOCS / "images" / f"{name}.png"
            path.write_bytes(png(figure.chart, scale=1.5))
            print(path)


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        of_run(directory)
    if not sys.argv[1:]:
        of_pages()
        evidence_page.main([sys.argv[0]])
