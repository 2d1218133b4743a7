"""Draws the pictures of docs/running-kernel.md that hold the simulator against the running kernel.

    .venv/bin/python docs/kernel_check_images.py runs/kernel-check

Each that the run has data for is written to docs/images.
"""

from __future__ import annotations

import sys
from pathlib import Path

from firstflight.records import Run
from firstflight.report.figure import png
from firstflight.studies import find

IMAGES = Path(__file__).parent / "images"
DRAWN = ("differences", "connection_clean", "connection_losses")


def main(directory: str) -> None:
    """Draw what the run in `directory` has data for, and say what was written."""
    for figure in find("kernel-check").figures(Run.open(directory)):
        if figure.name in DRAWN:
            path = IMAGES / f"kernel-check-{figure.name.replace('_', '-')}.png"
            path.write_bytes(png(figure.chart, scale=1.5))
            print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
