"""Coverage of 95 % intervals of a gain in percent, of clusters that both arms share: what `docs/statistics.md` says.

    .venv/bin/python research/sample_coverage.py

Lognormal latencies (sigma 0.8 within a cluster, 0.4 between), 3 % of them a second longer in either arm for itself; the
treatment takes 10 % less in the mean. By 500 resamples of clusters: percentiles, as the study kernel's `Sample` has
them; percentiles widened to Student's t; and bootstrap-t. Half a minute of CPU.
"""

import numpy as np
from scipy.special import ndtr
from scipy.stats import t

RESAMPLES, SIGMA, BETWEEN, TIMEOUT, SHIFT, SCATTER = 500, 0.8, 0.4, 0.03, -0.12, 0.2


def covered(clusters: int, users: int, repetitions: int) -> dict[str, str]:
    """Percent of the intervals that hold the truth, and that are above and below it."""
    draw = np.random.default_rng(1)
    mean = 0.1 * np.exp((BETWEEN**2 + SIGMA**2) / 2)
    truth = 100 * ((mean * np.exp(SHIFT + SCATTER**2 / 2) + TIMEOUT) / (mean + TIMEOUT) - 1)
    picked = draw.integers(0, clusters, (RESAMPLES, clusters))
    counts = np.array([np.bincount(row, minlength=clusters) for row in picked], float)
    free, grown = clusters - 1, clusters / (clusters - 1)
    far = t.ppf(0.975, free)
    end = far * np.sqrt(1 + 1 / free)
    hits: dict[str, list[tuple[bool, bool, bool]]] = {"percentiles": [], "widened": [], "bootstrap-t": []}
    for _ in range(repetitions):
        of_cluster, of_user = draw.normal(0, BETWEEN, (clusters, 1)), draw.normal(0, SIGMA, (clusters, users))
        base = np.exp(of_cluster + of_user) * 0.1
        treat = base * np.exp(draw.normal(SHIFT, SCATTER, (clusters, users)))
        base += draw.random((clusters, users)) < TIMEOUT
        treat += draw.random((clusters, users)) < TIMEOUT
        x, y = base.sum(1), treat.sum(1)
        ratio = y.sum() / x.sum()
        value, error = 100 * (ratio - 1), 100 * np.sqrt(((y - ratio * x) ** 2).sum() * grown) / x.sum()
        ratios = counts @ y / (counts @ x)
        drawn = 100 * (ratios - 1)
        squares = counts @ (y * y) - 2 * ratios * (counts @ (x * y)) + ratios**2 * (counts @ (x * x))
        errors = 100 * np.sqrt(np.maximum(squares, 0) * grown) / (counts @ x)
        low, high = np.quantile((drawn - value) / np.maximum(errors, error / 3), [0.025, 0.975])
        ends = {
            "percentiles": np.quantile(drawn, [0.025, 0.975]),
            "widened": np.quantile(drawn, [ndtr(-end), ndtr(end)]),
            "bootstrap-t": (value - max(high, far) * error, value - min(low, -far) * error),
        }
        for name, (least, most) in ends.items():
            hits[name].append((least <= truth <= most, truth < least, truth > most))
    return {name: " ".join(f"{share:.1f}" for share in 100 * np.mean(found, axis=0)) for name, found in hits.items()}


if __name__ == "__main__":
    for clusters, users, repetitions in ((50, 8, 2000), (100, 8, 2000), (400, 4, 2000), (2000, 1, 500)):
        print(clusters, users, repetitions, covered(clusters, users, repetitions), flush=True)
