"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.analysis.claim import NoDataError
from firstflight.studies.rfc6928_cluster.claims.buckets import percents
from firstflight.studies.rfc6928_cluster.grid import (
    AVGDC,
    FEW,
    FITTED,
    INDEPENDENT,
    MANY,
    MAPS,
    NAMES,
    SEARCH,
    SLOWDC,
    Place,
    settings,
)
from firstflight.studies.rfc6928_cluster.measure import Results, of_run
from firstflight.studies.rfc6928_cluster.published import RETRANSMITTED, SEARCH_GAIN

if TYPE_CHECKING:
    from firstflight.records import Run


def answer(run: Run) -> list[str]:
    """What is gained, what it costs, and what hangs on the joint law; what the run lacks is left out."""
    results = of_run(run)
    told = []
    for sentence in (_gained, _paid, _joint):
        try:
            told.append(sentence(results))
        except NoDataError as error:
            told.append(str(error))
    return list(dict.fromkeys(told))


def _gained(results: Results) -> str:
    parts = []
    for population, (ms, percent) in SEARCH_GAIN.items():
        found = results.latency(Place(population, SEARCH))
        parts.append(
            f"{-found.difference.value:.0f} ms or {-found.percent.value:.1f} % in {NAMES[population]} (published "
            f"{ms:.0f} ms, {percent} %)"
        )
    return f"IW {MANY} instead of {FEW} makes web search faster by {' and '.join(parts)}."


def _paid(results: Results) -> str:
    parts = []
    for population, (few, many) in RETRANSMITTED.items():
        found = results.retransmitted(population, tuple(settings()["users"]))
        parts.append(
            f"from {100 * found.baseline.value:.2f} to {100 * found.treatment.value:.2f} % in {NAMES[population]} "
            f"(published {few} to {many})"
        )
    tail = results.latency(Place(SLOWDC, MAPS), "p99").difference.value
    slower = "slower" if tail > 0 else "faster"
    changed = f"{abs(tail):.0f} ms {slower}"
    return f"Retransmissions go {' and '.join(parts)}; the slowest hundredth of Maps in SlowDC gets {changed}."


def _joint(results: Results) -> str:
    def ends(dependence: str) -> str:
        found = [value for value in percents(results, Place(AVGDC, SEARCH, dependence), "down") if value is not None]
        return f"{found[0]:.0f} % at the lowest bandwidths and {found[-1]:.0f} % at the highest"

    return (
        f"It matters how round trips go with bandwidth: fitted to the published product, users gain {ends(FITTED)}; "
        f"independent of one another, {ends(INDEPENDENT)}."
    )
