"""The study's tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.offered import Offered
from firstflight.studies.uk_homes import overfill, ranking
from firstflight.studies.uk_homes.gain import of_rate, of_technology, of_time, saved_ms, saved_percent
from firstflight.studies.uk_homes.grid import ASSUMPTIONS, HOMES, NO_LOSS, PAGE, responses, settings
from firstflight.studies.uk_homes.measure import national, part, shown

if TYPE_CHECKING:
    from firstflight.records import Run

_UNITS = {
    "saved": "percent",
    "saved_ms": "ms",
    "time": "ms",
    "homes": "count",
    "flight": "segments",
    "first_lost": "percent",
    "sent_again": "percent",
    "hit": "percent",
    "late": "percent",
    "simulated": "percent",
    "queue": "percent",
    "wire": "percent",
    "pipe": "percent",
    "queue_right": "percent",
    "wire_right": "percent",
    "pipe_right": "percent",
    "overfilled": "percent",
    "ours_rank": "correlation",
    "round_trip_rank": "correlation",
    "rate_rank": "correlation",
    "measured": "ms",
    "ours": "ms",
}
_RULED = (*overfill.RULES, *(f"{rule}_right" for rule in overfill.RULES))
_AGAINST = "95 % intervals by bootstrap over homes, each with both windows."


def larger() -> list[int]:
    """The windows that are compared with today's, 3 among them."""
    return [iw for iw in settings()["initial_windows"] if iw != settings()["today"]]


def _gain(run: Run) -> Table:
    keys = ("year", "farther_ms", "response", "iw")
    rows = []
    for year in settings()["years"]:
        for farther_ms in settings()["farther_ms"]:
            for response in responses():
                for iw in larger():
                    comparison = of_time(run, year, farther_ms, response, iw)
                    if comparison is not None:
                        place = dict(zip(keys, (year, farther_ms, response, iw), strict=True))
                        rows.append(_row(place, "saved", saved_percent(comparison)))
                        rows.append(_row(place, "saved_ms", saved_ms(comparison)))
    return Table(
        "gain",
        f"What each window saves the median home against {settings()['today']}",
        "Difference of the medians over homes, weighted; above 0 is sooner. From the opening of the connection to the "
        f"last byte; the page is 30 kB and then six times 80 kB on one connection. {_AGAINST}",
        keys,
        rows_frame(keys, rows),
        across="iw",
        metrics=(Metric("saved", "Saved", 1), Metric("saved_ms", "Saved", 1)),
    )


def _percentiles(run: Run) -> Table:
    keys = ("year", "response", "percentile", "iw")
    rows = []
    farther_ms = settings()["shown_farther_ms"]
    for year in settings()["years"]:
        for response in (settings()["shown_response"], PAGE):
            for percentile in (10, 50, 90, 95, 99):
                for iw in larger():
                    comparison = of_time(run, year, farther_ms, response, iw, f"p{percentile}")
                    if comparison is not None:
                        place = dict(zip(keys, (year, response, percentile, iw), strict=True))
                        rows.append(_row(place, "saved", saved_percent(comparison)))
                        if iw == larger()[0]:
                            rows.append(_row(place | {"iw": settings()["today"]}, "time", comparison.baseline))
    return Table(
        "percentiles",
        "What each window saves fast and slow homes",
        f"{farther_ms} ms farther than measured. A percentile is of the times in each arm, weighted; with "
        f"{settings()['today']} it is the time given. {_AGAINST}",
        keys,
        rows_frame(keys, rows),
        across="iw",
        metrics=(Metric("time", "Time", 0), Metric("saved", "Saved", 1)),
    )


def _technologies(run: Run) -> Table:
    keys = ("year", "technology", "iw")
    found = []
    chosen = settings()
    for year in chosen["years"]:
        counts = (
            shown(run, year)
            .group_by("technology")
            .agg(pl.col("home").n_unique())
            .sort("home", "technology", descending=[True, False])
        )
        for technology, homes in counts.iter_rows():
            for iw in chosen["asked"]:
                comparison = of_technology(run, year, technology, iw, PAGE, chosen["shown_farther_ms"])
                if comparison is None:
                    continue
                place = dict(zip(keys, (year, technology, iw), strict=True))
                if iw == chosen["asked"][0]:
                    found.append(_row(place | {"iw": chosen["today"]}, "homes", Estimate(homes)))
                    found.append(_row(place | {"iw": chosen["today"]}, "time", comparison.baseline))
                found.append(_row(place, "saved", saved_percent(comparison)))
                overfilled = overfill.by_technology(run, year, iw)
                if technology in overfilled:
                    found.append(_row(place, "overfilled", Estimate(overfilled[technology])))
    return Table(
        "technologies",
        "The page, by technology",
        f"{chosen['shown_farther_ms']} ms farther than measured. Medians over the homes of a technology, each counting "
        f"once, because Ofcom gives some technologies no weight. No interval: too few homes. {_AGAINST} They are not "
        "corrected for the number of technologies.",
        keys,
        rows_frame(keys, found),
        across="iw",
        metrics=(
            Metric("homes", "Homes", 0),
            Metric("time", "Time", 0),
            Metric("saved", "Saved", 1),
            Metric("overfilled", "First flight overfills the path", 1),
        ),
    )


def _cost(run: Run) -> Table:
    keys = ("year", "farther_ms", "iw")
    found = []
    chosen = settings()
    for year in chosen["years"]:
        for farther_ms in chosen["farther_ms"]:
            for iw in chosen["initial_windows"]:
                rows = national(part(run, HOMES, year, farther_ms, chosen["shown_response"]))
                own = rows.filter(pl.col("iw") == iw)
                if own.is_empty():
                    continue
                place = dict(zip(keys, (year, farther_ms, iw), strict=True))
                found.append(_row(place, "flight", Estimate(float(own["first_flight_segments"].median() or 0))))  # type: ignore[arg-type]
                for metric, numerator, denominator in (
                    ("first_lost", "first_flight_lost", "first_flight_segments"),
                    ("sent_again", "retransmissions", "segments_sent"),
                ):
                    found.append(_row(place, metric, _rate(run, own, place, numerator, denominator)))
                found.append(_row(place, "hit", Estimate(_share(own, pl.col("first_flight_lost") > 0))))
                found.append(_row(place, "late", Estimate(_share(own, pl.col("timeouts") > 0))))
    return Table(
        "cost",
        f"What each window costs ({chosen['shown_response']})",
        "Over the country's homes, weighted. The first flight is bounded by the window that the receiver announces, 64 "
        f"KiB at first. {_AGAINST}",
        keys,
        rows_frame(keys, found),
        across="iw",
        metrics=(
            Metric("flight", "First flight of the median home", 0),
            Metric("first_lost", "Of the first flight lost", 2),
            Metric("sent_again", "Retransmitted segments", 2),
            Metric("hit", "Homes that lose of the first flight", 1),
            Metric("late", "Homes with a timeout", 2),
        ),
    )


def _rate(run: Run, own: pl.DataFrame, place: dict[str, Any], numerator: str, denominator: str) -> Estimate:
    """In percent; with an interval where today's window is there to compare with."""
    today, iw = settings()["today"], place["iw"]
    # Today's own rate is the baseline of any comparison.
    other = larger()[0] if iw == today else iw
    comparison = of_rate(
        run, place["year"], place["farther_ms"], settings()["shown_response"], other, numerator, denominator
    )
    if comparison is None:
        return Estimate(_ratio(own, numerator, denominator))
    side = comparison.baseline if iw == today else comparison.treatment
    return Estimate(100 * side.value, 100 * side.low, 100 * side.high, side.replicates)


def _overfilled(run: Run) -> Table:
    keys = ("year", "iw")
    found = [
        _row({"year": year, "iw": row["iw"]}, metric, Estimate(row[metric]))
        for year in settings()["years"]
        for row in overfill.shares(run, year).iter_rows(named=True)
        for metric in ("flight", "simulated", *_RULED)
    ]
    return Table(
        "overfill",
        "Homes whose path a first flight overfills",
        f"Without random losses, {settings()['shown_farther_ms']} ms farther than measured, "
        f"{settings()['shown_response']}; over the country's homes, weighted. Simulated: the queue dropped of the "
        "first flight. By the queue: the flight is larger than the queue, while the acknowledgement of the request is "
        "on the wire; with the wire: than the queue and one packet; with the pipe: than bandwidth-delay product and "
        "queue. Right: homes for which the rule says what the simulation does.",
        keys,
        rows_frame(keys, found),
        metrics=(
            Metric("flight", "First flight", 0),
            Metric("simulated", "Simulated", 2),
            Metric("queue", "By the queue", 2),
            Metric("wire", "With the wire", 2),
            Metric("pipe", "With the pipe", 2),
            Metric("queue_right", "Right by the queue", 1),
            Metric("wire_right", "Right with the wire", 1),
            Metric("pipe_right", "Right with the pipe", 1),
        ),
    )


def _assumptions(run: Run) -> Table:
    keys = ("year", "assumption")
    found = []
    chosen = settings()
    farther_ms, iw = chosen["assumptions"]["farther_ms"], max(chosen["assumptions"]["initial_windows"])
    for year in chosen["years"]:
        for experiment in (HOMES, *ASSUMPTIONS):
            place = {"year": year, "assumption": "as assumed" if experiment == HOMES else experiment}
            for response, metric in ((chosen["shown_response"], "saved"), (PAGE, "saved_page")):
                comparison = of_time(run, year, farther_ms, response, iw, experiment=experiment)
                if comparison is not None:
                    found.append(_row(place, metric, saved_percent(comparison), "percent"))
            own = national(shown(run, year, experiment).filter(pl.col("iw") == iw))
            if not own.is_empty():
                found.append(_row(place, "hit", Estimate(_share(own, pl.col("first_flight_lost") > 0))))
                found.append(_row(place, "sent_again", Estimate(_ratio(own, "retransmissions", "segments_sent"))))
    return Table(
        "assumptions",
        f"What the panel does not tell, turned round (IW {iw} against {chosen['today']})",
        f"{farther_ms} ms farther than measured; the median home, weighted. Small and large buffers: where none was "
        "measured (15 % of the homes of 2023, all of 2015), the lower or upper quartile of the technology in 2023. No "
        "loss: only the queue drops. 64 packets at least: a home where no queue was seen has room all the same.",
        keys,
        rows_frame(keys, found),
        metrics=(
            Metric("saved", f"Saved, {chosen['shown_response']}", 1),
            Metric("saved_page", "Saved, page", 1),
            Metric("hit", "Homes that lose of the first flight", 1),
            Metric("sent_again", "Retransmitted segments", 2),
        ),
    )


def _ranking(run: Run) -> Table:
    keys = ("year", "technology")
    found = []
    for year in settings()["years"]:
        for rank in ranking.ranks(run, year):
            place = {"year": year, "technology": rank.technology}
            found.append(_row(place, "homes", Estimate(rank.homes)))
            found.append(_row(place, "ours_rank", rank.ours))
            found.append(_row(place, "round_trip_rank", rank.round_trip))
            found.append(_row(place, "rate_rank", rank.rate))
            found.append(_row(place, "measured", Estimate(rank.measured_ms)))
            found.append(_row(place, "ours", Estimate(rank.ours_ms)))
    return Table(
        "ranking",
        "Our page times against the measured ones, by rank",
        f"Spearman's rank correlation over homes, each counting once, IW {settings()['today']}, as near as the test "
        "server; beside it that of the round trip alone and of the rate alone. The measured page is another one: from "
        "other servers, with names to look up, many hosts and work to do at both ends.",
        keys,
        rows_frame(keys, found),
        metrics=(
            Metric("homes", "Homes", 0),
            Metric("ours_rank", "Our page", 2),
            Metric("round_trip_rank", "Round trip alone", 2),
            Metric("rate_rank", "Rate alone", 2),
            Metric("measured", "Median, measured", 0),
            Metric("ours", "Median, ours", 0),
        ),
    )


def _share(own: pl.DataFrame, condition: pl.Expr) -> float:
    return float(own.select(100 * (condition * pl.col("weight")).sum() / pl.col("weight").sum()).item())


def _ratio(own: pl.DataFrame, numerator: str, denominator: str) -> float:
    sums: Iterable[pl.Expr] = ((pl.col(name) * pl.col("weight")).sum() for name in (numerator, denominator))
    above, below = sums
    return float(own.select(100 * above / below).item())


def _row(place: dict[str, Any], metric: str, found: Estimate, unit: str | None = None) -> dict[str, Any]:
    figures = {"ours": found.value, "low": found.low, "high": found.high}
    return {**place, "metric": metric, **figures, "unit": unit or _UNITS[metric]}


def _has(run: Run, experiment: str, farther_ms: Iterable[int], *windows: int) -> bool:
    """Whether there are the homes of a year at one of these distances with one of the windows, and today's too."""
    cells = {(key["experiment"], key["year"], key["farther_ms"], key["iw"]) for key in run.cells}
    return any(
        {(experiment, year, far, settings()["today"]), (experiment, year, far, iw)} <= cells
        for year in settings()["years"]
        for far in farther_ms
        for iw in windows
    )


def _shown() -> list[int]:
    return [settings()["shown_farther_ms"]]


def _any_of(run: Run, experiment: str, farther_ms: Iterable[int], windows: Iterable[int]) -> bool:
    places = [(experiment, far, iw) for far in farther_ms for iw in windows]
    return any(
        (key["experiment"], key["farther_ms"], key["iw"]) in places and key["year"] in settings()["years"]
        for key in run.cells
    )


def _any_assumption(run: Run) -> bool:
    window = [max(settings()["assumptions"]["initial_windows"])]
    return any(_any_of(run, experiment, _shown(), window) for experiment in (HOMES, *ASSUMPTIONS))


TABLES: tuple[Offered[Run], ...] = (
    Offered("gain", lambda run: _has(run, HOMES, settings()["farther_ms"], *larger()), _gain),
    Offered("percentiles", lambda run: _has(run, HOMES, _shown(), *larger()), _percentiles),
    Offered("technologies", lambda run: _has(run, HOMES, _shown(), *settings()["asked"]), _technologies),
    Offered("cost", lambda run: _any_of(run, HOMES, settings()["farther_ms"], settings()["initial_windows"]), _cost),
    Offered("overfill", lambda run: _any_of(run, NO_LOSS, _shown(), settings()["initial_windows"]), _overfilled),
    Offered("assumptions", _any_assumption, _assumptions),
    Offered("ranking", lambda run: _any_of(run, HOMES, [0], [settings()["today"]]), _ranking),
)
