"""`python -m research.calibration [--repetitions N] [--first SEED] [--jobs N] [--only TEXT]`.

Prints a table of shares, each with its error by chance (95%); exits 1 where a share is out of range by more than
chance allows. The methods were chosen on seeds below 100,000; `--first 100000` judges them on others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from research.calibration.check import CASES, LEAST, Outcome, outcome_of, run_some

_TOGETHER = 50


def main() -> int:
    """Run the calibration as the command line asks."""
    parser = argparse.ArgumentParser(prog="python -m research.calibration", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=LEAST, help=f"of each case (default {LEAST})")
    parser.add_argument("--first", type=int, default=0, help="seed of the first repetition (default 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    asked = parser.parse_args()
    chosen = [name for name in CASES if asked.only in name]
    if not chosen or asked.repetitions < 1 or asked.jobs < 1 or asked.first < 0:
        parser.error(f"no case holds {asked.only!r}, fewer than 1 repetition or job, or a seed below 0")
    outcomes = []
    print(Outcome.header(), flush=True)
    # Not forked: the data-frame engine's threads do not survive that.
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for name in chosen:
            pieces = list(_pieces(asked.first, asked.first + asked.repetitions))
            done: list[dict[str, bool]] = []
            for found in pool.map(run_some, [name] * len(pieces), pieces):
                done.extend(found)
                if sys.stderr.isatty():
                    print(f"\r{name}: {len(done):,} of {asked.repetitions:,} ", end="", file=sys.stderr, flush=True)
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            outcomes.append(outcome_of(name, done))
            print(outcomes[-1].line(), flush=True)
    out = [one for one in outcomes if not one.holds]
    print(f"{len(outcomes) - len(out)} of {len(outcomes)} cases hold.")
    return 1 if out else 0


def _pieces(start: int, end: int) -> Iterator[tuple[int, int]]:
    for first in range(start, end, _TOGETHER):
        yield first, min(first + _TOGETHER, end)


if __name__ == "__main__":
    sys.exit(main())
