"""`python -m research.calibration.means [--repetitions N] [--first SEED]`: intervals of means, often.

A mean needs sums only, so many samples are drawn and resampled at once: a hundred times as many repetitions in the same
time. Beside the method as it is (each end the farther one of the studentized bootstrap's and Student's t) stand its two
halves, each alone. Twenty-five samples share their resamples.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from firstflight.analysis.intervals import CONFIDENCE
from research.calibration.cases import LAW, NORMAL, RESAMPLES

Values = npt.NDArray[np.float64]
Drawn = Literal["treated", "same law", "pairs of the same law"]
TOGETHER = 25
"""Samples drawn together, with the same resamples."""
METHODS = ("as it is", "bootstrap alone", "Student's t alone")
_CASES: tuple[tuple[Drawn, int, bool], ...] = (
    ("treated", 400, True),
    ("treated", 400, False),
    ("treated", 1000, True),
    ("same law", 400, False),
    ("pairs of the same law", 400, True),
)


@dataclass(frozen=True)
class Figure:
    """A figure of each sample, shape (samples,), and of its resamples, (samples, resamples), with standard errors."""

    value: Values
    error: Values
    resampled: Values
    resampled_error: Values
    freedom: int

    def covers(self, truth: float) -> dict[str, Values]:
        """By method, whether the 95% CI of each sample covers the truth."""
        from scipy.special import stdtrit

        off = np.sort((self.resampled - self.value[:, None]) / self.resampled_error, axis=1)
        places = [level * (off.shape[1] + 1) - 1 for level in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)]
        low, high = (off[:, math.floor(at)] * (1 - at % 1) + off[:, math.ceil(at)] * (at % 1) for at in places)
        far = np.full(len(low), stdtrit(self.freedom, (1 + CONFIDENCE) / 2))
        stands = (self.value - truth) / self.error
        ends = ((np.minimum(low, -far), np.maximum(high, far)), (low, high), (-far, far))
        return {name: (a <= stands) & (stands <= b) for name, (a, b) in zip(METHODS, ends, strict=True)}


def figures(base: Values, treat: Values, paired: bool, draw: np.random.Generator) -> dict[str, Figure]:
    """`baseline`, `difference` and `percent` of samples (samples, units), with their resamples."""
    units = base.shape[1]
    counts = [_counts(units, draw) for _ in range(1 if paired else 2)]
    whole = _both(base, treat, [np.ones((1, units))] * 2, paired)
    again = _both(base, treat, [counts[0], counts[-1]], paired)
    return {name: Figure(value[:, 0], error[:, 0], *again[name], units - 1) for name, (value, error) in whole.items()}


def _counts(units: int, draw: np.random.Generator) -> Values:
    drawn = draw.integers(0, units, (RESAMPLES, units)) + units * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * units).reshape(RESAMPLES, units).astype(np.float64)


def _both(base: Values, treat: Values, counts: list[Values], paired: bool) -> dict[str, tuple[Values, Values]]:
    """Values and standard errors, (samples, resamples)."""
    units = base.shape[1]
    one, other = base @ counts[0].T / units, treat @ counts[1].T / units

    def covariance(values: Values, mean: Values, count: Values) -> Values:
        return np.asarray((values @ count.T / units - mean) / (units - 1), dtype=np.float64)

    of_one, of_other = (
        covariance(values**2, mean**2, count)
        for values, mean, count in zip((base, treat), (one, other), counts, strict=True)
    )
    joint = covariance(base * treat, one * other, counts[0]) if paired else np.zeros(one.shape)
    ratio = other / one
    return {
        "baseline": (one, np.sqrt(np.maximum(of_one, 0))),
        "difference": (other - one, np.sqrt(np.maximum(of_one + of_other - 2 * joint, 0))),
        "percent": (
            100 * (ratio - 1),
            100 / one * np.sqrt(np.maximum(of_other + ratio**2 * of_one - 2 * ratio * joint, 0)),
        ),
    }


def samples(drawn: Drawn, units: int, paired: bool, draw: np.random.Generator) -> tuple[Values, Values, float, float]:
    """Both arms, (samples, units), and their true means."""
    count = TOGETHER * units
    if drawn == "pairs of the same law":
        path = LAW.baseline(count, draw)
        arms = [path * np.exp(0.2 * draw.standard_normal(count)) for _ in range(2)]
    else:
        base = LAW.baseline(count, draw)
        other = base if paired else LAW.baseline(count, draw)
        arms = [base, other if drawn == "same law" else LAW.treatment(other, draw)]
    treated = LAW.treated_mean if drawn == "treated" else LAW.mean
    return arms[0].reshape(TOGETHER, units), arms[1].reshape(TOGETHER, units), LAW.mean, treated


def main() -> int:
    """Print the shares of each case, percent; always exits 0."""
    parser = argparse.ArgumentParser(prog="python -m research.calibration.means", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20_000, help="of each case (default 20000)")
    parser.add_argument("--first", type=int, default=100_000, help="first seed (default 100000)")
    asked = parser.parse_args()
    if asked.repetitions < TOGETHER or asked.first < 0:
        parser.error(f"fewer than {TOGETHER} repetitions, which are drawn at once, or a seed below 0")
    print(f"{'case, units':36}{'figure':12}{'repetitions':>12}  {'share in percent, ± 95% by chance':36}")
    for drawn, units, paired in _CASES:
        found: dict[tuple[str, str], list[Values]] = {}
        for seed in range(asked.first, asked.first + asked.repetitions // TOGETHER):
            draw = np.random.default_rng([seed, units, paired])
            base, treat, mean, treated = samples(drawn, units, paired, draw)
            truths = {"baseline": mean, "difference": treated - mean, "percent": 100 * (treated / mean - 1)}
            for name, figure in figures(base, treat, paired, draw).items():
                if drawn == "treated" or name == "difference":
                    for method, covers in figure.covers(truths[name]).items():
                        found.setdefault((name, method), []).append(covers)
        for name in dict.fromkeys(name for name, _ in found):
            shares = [100 * float(np.concatenate(found[name, method]).mean()) for method in METHODS]
            count = TOGETHER * len(found[name, METHODS[0]])
            told = "  ".join(
                f"{m} {s:.2f} ±{NORMAL * math.sqrt(s * (100 - s) / count):.2f}"
                for m, s in zip(METHODS, shares, strict=True)
            )
            kind = f"{drawn}, {'paired' if paired else 'unpaired'}, {units}"
            print(f"{kind:36}{name:12}{count:>12,}  {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
