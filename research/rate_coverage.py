"""Coverage of 95 % intervals of rates, over replicates and over homes: what `docs/statistics.md` says.

    .venv/bin/python research/rate_coverage.py

A rate is retransmitted over sent segments. A user sends 1 + a geometric number (mean 20) of segments; a tenth of the
users lose a burst, which is half of the rate, the others lose single ones. Replicates have a common scale (lognormal,
sigma 0.3). The truth is the value of 4,000 replicates. Two minutes of CPU.
"""

from typing import Any

import numpy as np
import xarray as xr

from firstflight.analysis.intervals import Estimate, ratio
from firstflight.studies import kernel as k

REPETITIONS = 2000
Counts = np.ndarray[Any, np.dtype[np.int64]]


def simulated(seed: int, rate: float, replicates: int, users: int) -> tuple[Counts, Counts]:
    """Retransmitted and sent segments of each replicate."""
    draw = np.random.default_rng(seed)
    own = rate * draw.lognormal(-0.045, 0.3, (replicates, 1))
    sent = draw.geometric(1 / 20, (replicates, users)) + 1
    burst = (draw.random(sent.shape) < 0.1) * np.minimum(10 * own * draw.random(sent.shape), 1)
    return draw.binomial(sent, np.minimum(burst + own / 2, 1)).sum(1), sent.sum(1)


def of_study(retransmitted: Counts, sent: Counts) -> Estimate:
    """A quantity of a study: the mean over replicates of the rate of each."""
    rates = xr.DataArray(100 * retransmitted / sent, dims=["replicate"])
    return k.estimate(k.mean_of(k.named(rates, "rate", "Rate", "percent", 1)))


def of_table(retransmitted: Counts, sent: Counts) -> Estimate:
    """A rate of `table`: the sums over all replicates."""
    return ratio(100.0 * retransmitted, sent.astype(float))


def of_panel(homes: int) -> tuple[float, float]:
    """Coverage of the bootstrap over homes, as a `Sample` has it, where the same homes are simulated with each seed: of
    the rate of these homes, and of the rate of all from which they were taken.
    """
    held = np.zeros(2)
    every = 0.01 * np.random.default_rng(1).lognormal(0, 1.5, 10**6).clip(max=100)
    for panel in range(REPETITIONS // 20):
        own = np.random.default_rng(panel).choice(every, homes)
        for seed in range(20):
            draw = np.random.default_rng((panel, seed))
            lost = draw.binomial(200, own) / 200
            drawn = lost[draw.integers(0, homes, (500, homes))].mean(1)
            low, high = np.quantile(drawn, (0.025, 0.975))
            held += [low <= own.mean() <= high, low <= every.mean() <= high]
    return float(100 * held[0] / REPETITIONS), float(100 * held[1] / REPETITIONS)


def main() -> None:
    """Print a line per case: percent of the intervals that hold the truth."""
    print("400 homes: of these {:.1f}%, of all {:.1f}%".format(*of_panel(400)), flush=True)
    for rate in (0.05, 0.01, 0.001, 0.0001):
        for replicates, users in ((5, 100), (10, 100), (30, 20)):
            truth = {method: method(*simulated(10**6, rate, 4000, users)).value for method in (of_study, of_table)}
            held = dict.fromkeys(truth, 0)
            for seed in range(REPETITIONS):
                counts = simulated(seed, rate, replicates, users)
                for method, value in truth.items():
                    found = method(*counts)
                    held[method] += found.low <= value <= found.high
            shares = ", ".join(f"{method.__name__} {100 * of / REPETITIONS:.1f}%" for method, of in held.items())
            print(f"{rate:.2%}, {replicates} replicates of {users} users: {shares}", flush=True)


if __name__ == "__main__":
    main()
