"""Where it is gained: round trip, bandwidth, their product; and what their dependence has to do with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from firstflight.analysis.claim import Expectation, NoDataError, above, at_least, below, between, near
from firstflight.analysis.intervals import Estimate
from firstflight.studies.rfc6928_cluster.claims.statement import FIGURE, SECTION, Found, Statement, gain, mean_of
from firstflight.studies.rfc6928_cluster.grid import AVGDC, FITTED, INDEPENDENT, SEARCH, Place
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import TITLES, figure5, labels

_HERE = Place(AVGDC, SEARCH)
_WHOLE = "1 point: the sentence rounds to whole percent."
_ALIKE = 0.8


def statements() -> Iterator[Statement]:
    """The sentences about buckets, the order of Figure 5's bars, and the 2014 reproduction's critique."""
    for by, index in (("rtt", 7), ("bdp", 5)):
        yield _bucket(
            f"rfc6928-high-{by}",
            "On paths of high round trip or high bandwidth-delay product latency falls by more than 20 % "
            f"({_name(by, index)}).",
            by,
            index,
            above(20),
        )
    yield Statement(
        "rfc6928-low-rtt",
        SECTION,
        "On paths of low round trip latency falls by about 5 % (round trip up to 100 ms).",
        near(5),
        2,
        "percent",
        "2 points: Figure 5 has 3.3, 4.2 and 5.3 % in the three buckets that this sums up.",
        _low_rtt,
    )
    for index in (0, 1):
        yield _bucket(
            f"rfc6928-low-bandwidth-{index + 1}",
            f"At 0-56 and 56-256 kbit/s latency falls by 10 to 20 % ({_name('down', index)}).",
            "down",
            index,
            between(10, 20),
        )
    for by in ("rtt", "down", "bdp"):
        for quantity in ("ms", "percent"):
            yield _order(by, quantity)
    yield from _critique()


def _name(by: str, index: int) -> str:
    from firstflight.studies.rfc6928_cluster.published import UNITS

    return f"{TITLES[by]} {labels(by)[index]} {UNITS[by]}"


def _bucket(id_: str, text: str, by: str, index: int, expectation: Expectation) -> Statement:
    def found(results: Results) -> Found:
        return _gain(_HERE, by, index, results)

    return Statement(id_, SECTION, f"{text} AvgDC, web search.", expectation, 1, "percent", _WHOLE, found)


def _gain(place: Place, by: str, index: int, results: Results) -> Found:
    bucket = results.buckets(place, by)[index]
    if bucket.comparison is None:
        raise NoDataError(f"{_name(by, index)}: {bucket.reason}")
    found = bucket.comparison
    return Found(
        gain(found.percent),
        f"{found.units} responses, {0 - found.difference.value:.0f} ms of {found.baseline.value:.0f} ms with IW 3."
        + (f" No interval: {found.reason}." if found.reason else ""),
    )


def _low_rtt(results: Results) -> Found:
    parts = [bucket.comparison for bucket in results.buckets(_HERE, "rtt")[:3] if bucket.comparison is not None]
    if not parts:
        raise NoDataError("This run has no response with a round trip of at most 100 ms.")
    weights = [part.units * part.baseline.value for part in parts]
    each = ", ".join(f"{-part.percent.value:.1f}" for part in parts)
    return Found(
        gain(mean_of((part.percent for part in parts), weights)),
        f"Percent in the buckets up to 20, 50 and 100 ms: {each}.",
    )


def percents(results: Results, place: Place, by: str, quantity: str = "percent") -> list[float | None]:
    """Gain (percent or ms) in each bucket; None where there is none."""
    name = "percent" if quantity == "percent" else "difference"
    return [
        None if bucket.comparison is None else 0 - float(getattr(bucket.comparison, name).value)
        for bucket in results.buckets(place, by)
    ]


def _order(by: str, quantity: str) -> Statement:
    def found(results: Results) -> Found:
        ours = percents(results, _HERE, by, quantity)
        theirs = [bar.gain_percent if quantity == "percent" else bar.gain_ms for bar in figure5(by)]
        return Found(Estimate(rank_correlation(ours, theirs)), _beside(ours, theirs))

    return Statement(
        f"dukkipati-order-{by}-{quantity}",
        FIGURE,
        f"Gains in {'%' if quantity == 'percent' else quantity} by {TITLES[by]} have the order of the published bars "
        "(rank correlation; AvgDC, web search).",
        at_least(_ALIKE),
        0,
        "correlation",
        "0.8 lets neighbours change places, whose bars often differ by less than reading them off the figure can tell.",
        found,
        needs="value",
    )


def _beside(ours: Sequence[float | None], theirs: Sequence[float]) -> str:
    each = ", ".join(
        f"{'none' if our is None else f'{our:.1f}'} [{their:g}]" for our, their in zip(ours, theirs, strict=True)
    )
    return f"Bucket by bucket, published in brackets: {each}."


def rank_correlation(ours: Sequence[float | None], theirs: Sequence[float]) -> float:
    """Spearman's, over the buckets that we have; NaN with fewer than three."""
    pairs = [(our, their) for our, their in zip(ours, theirs, strict=True) if our is not None]
    if len(pairs) < 3:
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def _critique() -> Iterator[Statement]:
    source = "CS244 2014, results; RFC 6928 section 10"
    for dependence, expectation, direction in ((INDEPENDENT, above(0), "rises"), (FITTED, below(0), "falls")):
        place = _HERE._replace(dependence=dependence)

        def found(results: Results, place: Place = place) -> Found:
            gains = percents(results, place, "down")
            each = ", ".join("none" if value is None else f"{value:.1f}" for value in gains)
            return Found(Estimate(rank_correlation(gains, range(len(gains)))), f"Percent by bandwidth bucket: {each}.")

        told = (
            "Where round trips do not depend on bandwidth"
            if dependence == INDEPENDENT
            else "Where slow users have long round trips, as Figure 5's product implies,"
        )
        yield Statement(
            f"cs244-percent-by-bandwidth-{dependence}",
            source,
            f"{told} the gain in percent {direction} with bandwidth (rank correlation over the buckets; AvgDC, web "
            "search).",
            expectation,
            0,
            "correlation",
            "The sentence gives a direction and no number.",
            found,
            needs="value",
        )
    for index in (0, 1):
        place = _HERE._replace(dependence=INDEPENDENT)
        yield Statement(
            f"cs244-low-bandwidth-{index + 1}-independent",
            source,
            "Where round trips do not depend on bandwidth the slowest gain less than the published 10 % "
            f"({_name('down', index)}).",
            below(10),
            0,
            "percent",
            "The published range begins at 10 %.",
            partial(_gain, place, "down", index),
        )
