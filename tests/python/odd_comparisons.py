"""Small random comparisons of the kinds that break intervals, and what is wrong with what came out.

    .venv/bin/python tests/python/odd_comparisons.py [CASES [FIRST_SEED]]

Few units that differ, ties, zeros, long tails, rounding, unfinished transfers, weights, strata, clusters.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from firstflight.analysis.ab import Comparison, compare, compare_jain, compare_rate

FIGURES = ("baseline", "treatment", "difference", "percent")
_ARMS = {"arm": "iw", "baseline": 10, "treatment": 20}
_WIDEST = 30.0
"""No end is farther from its value than so many times what the rows of both arms spread over."""


def case(seed: int) -> tuple[str, pl.DataFrame, dict[str, Any]]:
    """A statistic, rows and a request, drawn by the seed."""
    draw = np.random.default_rng(seed)
    statistic = str(draw.choice(["mean", "p50", "p90", "p99", "rate", "jain"]))
    units = int(draw.integers(2, 40) if draw.random() < 0.4 else draw.integers(100, 500))
    base = _values(draw, units, signed=statistic not in ("rate", "jain"))
    treat = _treated(draw, base)
    if statistic not in ("rate", "jain") and draw.random() < 0.2:
        treat = np.where(draw.random(units) < draw.choice([0.01, 0.6]), np.nan, treat)
    rows = pl.concat(_rows(draw, iw, values) for iw, values in ((10, base), (20, treat)))
    per_unit = int(draw.choice([1, 1, 3]))
    own = (pl.col("row") // per_unit).alias("client")
    request = _ARMS | {"paired": bool(draw.random() < 0.6), "resamples": 199, "seed": int(draw.integers(3))}
    request |= {"unit": ["client"], "least": 2, "confidence": float(draw.choice([0.5, 0.95, 0.95, 0.999]))}
    if draw.random() < 0.3:
        request |= {"weight": "weight"}
    if draw.random() < 0.2:
        request |= {"strata": "stratum"}
    if draw.random() < 0.2:
        request |= {"cluster": "household"}
    return (
        statistic,
        rows.with_columns(own).with_columns(
            (pl.col("client") % 2).alias("stratum"),
            (pl.col("client") // 4 * 2 + pl.col("client") % 2).alias("household"),
        ),
        request,
    )


def _values(draw: np.random.Generator, units: int, signed: bool) -> np.ndarray:
    kinds = ["lognormal", "pareto", "flags", "counts", "levels", "alike", "zeros", "two groups"]
    kind = draw.choice([*kinds, "normal"] if signed else kinds)
    values = {
        "lognormal": lambda: draw.lognormal(-1, 0.8, units),
        "pareto": lambda: draw.pareto(1.1, units) + 0.01,
        "flags": lambda: (draw.random(units) < draw.choice([0.002, 0.05, 0.9])).astype(float),
        "counts": lambda: draw.poisson(draw.choice([0.01, 1.0, 40.0]), units).astype(float),
        "levels": lambda: draw.choice([0.1, 0.2, 0.3], units),
        "alike": lambda: np.full(units, 0.25),
        "zeros": lambda: draw.lognormal(0, 1, units) * (draw.random(units) < 0.03),
        "two groups": lambda: np.where(draw.random(units) < 0.95, 0.1, 60.0) * draw.uniform(0.9, 1.1, units),
        "normal": lambda: draw.normal(0.1, 1, units),
    }[str(kind)]()
    return np.asarray(values * draw.choice([1e-9, 1.0, 1.0, 1e9]), dtype=np.float64)


def _treated(draw: np.random.Generator, base: np.ndarray) -> np.ndarray:
    units = len(base)
    few = np.isin(np.arange(units), draw.choice(units, min(units, int(draw.integers(0, 6))), replace=False))
    other = draw.permutation(base)
    return {
        "same": lambda: base.copy(),
        "few": lambda: np.where(few, other, base),
        "few, and a hair": lambda: np.where(few, 3 * base, base * (1 + 1e-7 * draw.random(units))),
        "rounding": lambda: base * (1 + 1e-16),
        "scaled": lambda: 0.8 * base,
        "shortened": lambda: base * draw.uniform(0.7, 1, units),
        "others": lambda: other,
        "nothing": lambda: np.zeros(units),
    }[
        str(
            draw.choice(
                ["same", "few", "few", "few, and a hair", "rounding", "scaled", "shortened", "others", "nothing"]
            )
        )
    ]()


def _rows(draw: np.random.Generator, iw: int, values: np.ndarray) -> pl.DataFrame:
    """As many wholes, each at least its part: the segments sent, of which `time_s` were retransmissions."""
    places = np.arange(len(values))
    whole = np.where(np.isnan(values), 0, values) * (1 + (places % 5))
    weight = np.where(places % 7 == 0, 9.0, 1.0 + places % 3)
    return pl.DataFrame({"iw": iw, "row": places, "time_s": values, "sent": whole, "weight": weight})


def compared(seed: int) -> tuple[Comparison, pl.DataFrame, dict[str, Any]]:
    """The comparison of `case(seed)`."""
    statistic, rows, request = case(seed)
    if statistic == "rate":
        found = compare_rate(rows, "time_s", "sent", **request)
    elif statistic == "jain":
        found = compare_jain(rows, "time_s", **request)
    else:
        found = compare(rows, "time_s", statistic=statistic, **request)
    return found, rows, request


def faults(seed: int) -> Iterator[str]:
    """What cannot be right about the comparison of `case(seed)`."""
    found, rows, request = compared(seed)
    values = rows["time_s"].drop_nans().to_numpy()
    least = -math.inf if values.min() < 0 else 0.0
    share = found.statistic in ("rate", "jain") or (found.statistic == "mean" and np.isin(values, (0, 1)).all())
    most = 1.0 if share else math.inf
    rounded = max(abs(found.baseline.value), abs(found.treatment.value))
    for name in FIGURES:
        one = getattr(found, name)
        low, high = {
            "baseline": (least, most),
            "treatment": (least, most),
            "difference": (-most, most),
            "percent": (-100.0 if least == 0 else -math.inf, math.inf),
        }[name]
        if math.isnan(one.low) != math.isnan(one.high):
            yield f"{name}: half an interval"
        if math.isnan(one.low):
            if name == "difference" and not found.reason:
                yield "no interval, and no reason"
            continue
        if math.isnan(one.value):
            yield f"{name}: an interval without a value"
        if one.low > one.high:
            yield f"{name}: inverted"
        if not one.low <= one.value <= one.high:
            yield f"{name}: without its own estimate"
        if one.low < low or one.high > high:
            yield f"{name}: beyond what is possible"
        # A few units have Student's t of a few degrees of freedom, which is far out, and so it should be.
        reach = {"percent": math.inf, **dict.fromkeys(FIGURES[:3], 1.0 if share else values.max() - values.min())}[name]
        far = max((one.value - one.low, one.high - one.value), default=0.0)
        if found.units > 100 and math.isfinite(far) and far > _WIDEST * reach + 1e-6 * rounded:
            yield f"{name}: {far / reach if reach else math.inf:.3g} times as wide as the rows spread"
    separated = found.difference.low > 0 or found.difference.high < 0
    sides = [rows.filter(pl.col("iw") == iw)["time_s"].to_numpy() for iw in (10, 20)]
    if request["paired"] and np.array_equal(*sides) and not math.isnan(found.difference.low):
        exact = (found.difference.value, found.difference.low, found.difference.high)
        if exact != (0, 0, 0):
            yield f"nothing changed, and the difference is {exact}"
    if not math.isnan(found.difference.low) and not 0 < found.p_value <= 1 and not separated:
        yield f"a p-value of {found.p_value}"


def main() -> int:
    """Print how often each fault was found, with a seed that shows it; 1 if any was."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    counts: Counter[str] = Counter()
    example: dict[str, int] = {}
    for seed in range(first, first + cases):
        for fault in faults(seed):
            kind = fault.split(" (")[0]
            counts[kind] += 1
            example.setdefault(kind, seed)
    print(f"{cases:,} comparisons, {sum(counts.values()):,} faults")
    for fault, count in counts.most_common():
        print(f"{count:7,}  {fault}  (first with seed {example[fault]})")
    return 1 if counts else 0


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.exit(main())
