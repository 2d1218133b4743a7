"""How much is gained, at which bandwidth."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
import polars as pl

from firstflight.analysis.claim import Claim, Sentence, above, at_least, near
from firstflight.studies.cs244_2014 import intervals
from firstflight.studies.cs244_2014.grid import LINE, ROUND_TRIP_S, bucket_name, edges_kbps
from firstflight.studies.cs244_2014.measure import present

SOURCE = "CS244 2014, results"
_ABOUT = 0.5
_STABLE = 0.5


def claims(paired: pl.DataFrame, path: str) -> Iterator[Claim]:
    """Of the undisturbed pairs over a path: a claim a bucket, then stability, then the percentage."""
    for index in range(len(edges_kbps())):
        yield _gain(paired.filter(pl.col("bucket") == index), index, path)
    yield _stable(paired, path)
    yield _percentage(paired, path)


def _named(path: str, name: str) -> str:
    return name if path == LINE else f"{name}-{path}"


def _over(path: str) -> str:
    return "" if path == LINE else f"Over Mininet's shaper ({path}): "


def _gain(own: pl.DataFrame, index: int, path: str) -> Claim:
    name = bucket_name(index)
    sentence = Sentence(
        id=_named(path, f"cs244-gain-{name.replace('<= ', '').replace('> ', 'above-')}-kbps"),
        source=SOURCE,
        text=f"{_over(path)}At {name} kbit/s an initial window of 10 instead of 3 gains about one round trip.",
        expectation=near(1),
        tolerance=_ABOUT,
        unit="round trips",
        why='"About one" is nearer to one round trip than to none or two. Median over pairs, bootstrap interval.',
    )
    if own.is_empty():
        return sentence.unchecked(f"This run has no pair of undisturbed responses at {name} kbit/s.")
    found = intervals.median(own["gain_ms"] / (1000 * ROUND_TRIP_S), _named(path, "gain"), index)
    return sentence.judge(found, f"{own.height} pairs.")


def _stable(paired: pl.DataFrame, path: str) -> Claim:
    sentence = Sentence(
        id=_named(path, "cs244-gain-stable"),
        source=SOURCE,
        text=f"{_over(path)}The gain is stable over bandwidth (least median of a bucket as a share of the greatest).",
        expectation=at_least(_STABLE),
        tolerance=0,
        unit="share",
        why='The post gives no number; a gain that more than doubles from one bandwidth to another is not "stable".',
    )
    groups: dict[Hashable, intervals.Values] = {
        index: _values(paired.filter(pl.col("bucket") == index)["gain_ms"]) for index in present(paired)
    }
    if len(groups) < 2:
        return sentence.unchecked("This run has undisturbed pairs in fewer than two buckets.")

    def share(found: list[intervals.Values]) -> float:
        medians = [float(np.median(values)) for values in found]
        return min(medians) / max(medians)

    return sentence.judge(intervals.of_groups(groups, _named(path, "gain"), share))


def _percentage(paired: pl.DataFrame, path: str) -> Claim:
    sentence = Sentence(
        id=_named(path, "cs244-percentage-rises"),
        source=SOURCE,
        text=f"{_over(path)}The gain in percent rises with bandwidth (rank correlation of the users' bandwidths "
        "and medians).",
        expectation=above(0),
        tolerance=0,
        unit="correlation",
        why="The sentence gives a direction and no number.",
    )
    users = sorted(paired.partition_by("client"), key=lambda own: float(own["rate_kbps"][0]))
    if len(users) < 3:
        return sentence.unchecked("This run has undisturbed pairs of fewer than three users.")
    medians = paired.group_by("bucket").agg(pl.col("gain_percent").median()).sort("bucket")
    each = [f"{bucket_name(index)}: {percent:.0f} %" for index, percent in medians.iter_rows()]
    groups: dict[Hashable, intervals.Values] = {own["client"][0]: _values(own["gain_percent"]) for own in users}
    found = intervals.of_groups(groups, _named(path, "gain_percent"), _rank_correlation)
    return sentence.judge(found, f"Medians by bucket, kbit/s: {', '.join(each)}.")


def _rank_correlation(groups: list[intervals.Values]) -> float:
    """Spearman's, of the groups' order and their medians; equal medians share a rank."""
    ranks = pl.Series([float(np.median(values)) for values in groups]).rank("average").to_numpy()
    return float(np.corrcoef(np.arange(len(groups)), ranks)[0, 1])


def _values(series: pl.Series) -> intervals.Values:
    return series.to_numpy().astype(np.float64)
