"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstflight.studies.uk_homes import overfill
from firstflight.studies.uk_homes.gain import of_rate, of_technology, of_time, saved_ms, saved_percent
from firstflight.studies.uk_homes.grid import HOMES, PAGE, settings
from firstflight.studies.uk_homes.measure import part

if TYPE_CHECKING:
    from firstflight.records import Run

_YEAR = 2023


def answer(run: Run) -> list[str]:
    """What 16 and 32 would gain today, for whom, and at what cost."""
    return [_gain(run), _whom(run), _cost(run)]


def _gain(run: Run) -> str:
    chosen = settings()
    found = []
    for iw in chosen["asked"]:
        page = of_time(run, _YEAR, chosen["shown_farther_ms"], PAGE, iw)
        if page is not None:
            saved = saved_percent(page)
            found.append(
                f"{saved.value:.1f} % ({saved.low:.1f} to {saved.high:.1f}; {saved_ms(page).value:.0f} ms) with {iw}"
            )
    if not found:
        return f"This run does not compare larger windows with {chosen['today']} on the homes of {_YEAR}."
    return (
        f"Instead of {chosen['today']}, a larger initial window saves the median UK home of {_YEAR}, of a page of "
        f"510 kB from a server {chosen['shown_farther_ms']} ms beyond the country's test server, "
        f"{' and '.join(found)}."
    )


def _whom(run: Run) -> str:
    chosen = settings()
    iw, shown = max(chosen["asked"]), chosen["shown_farther_ms"]
    by_distance = {far: of_time(run, _YEAR, far, PAGE, iw) for far in chosen["farther_ms"]}
    distances = [f"{saved_ms(found).value:.0f} ms {_away(far)}" for far, found in by_distance.items() if found]
    kinds = sorted(_technologies(run, iw, shown))
    tail = of_time(run, _YEAR, shown, PAGE, iw, "p90")
    if not distances or not kinds or tail is None:
        return f"For whom, this run does not tell: it lacks IW {iw} at {shown} ms."
    (least, low), (most, high) = kinds[0], kinds[-1]
    late = saved_percent(tail)
    return (
        f"With IW {iw} that is {', '.join(distances)}; at the 90th percentile of the homes {late.value:.1f} % "
        f"({late.low:.1f} to {late.high:.1f}), and by technology from {least:.1f} % ({low}) to {most:.1f} % ({high})."
    )


def _technologies(run: Run, iw: int, farther_ms: int) -> list[tuple[float, str]]:
    """Percent saved by the median home of each technology that has homes enough for an interval."""
    found = []
    for technology in part(run, HOMES, _YEAR, farther_ms, PAGE)["technology"].unique().sort():
        compared = of_technology(run, _YEAR, technology, iw, PAGE, farther_ms)
        if compared is not None and compared.verdict() != "too few flows":
            found.append((saved_percent(compared).value, technology))
    return found


def _away(farther_ms: int) -> str:
    return f"{farther_ms} ms farther" if farther_ms else "as near as the test server"


def _cost(run: Run) -> str:
    chosen = settings()
    shares = {row["iw"]: row["simulated"] for row in overfill.shares(run, _YEAR).iter_rows(named=True)}
    known = [iw for iw in chosen["asked"] if iw in shares]
    rates = {
        iw: rate
        for iw in known
        if (
            rate := of_rate(
                run, _YEAR, chosen["shown_farther_ms"], chosen["shown_response"], iw, "retransmissions", "segments_sent"
            )
        )
    }
    if not rates:
        return "What it costs, this run does not tell."
    overfilled = " and ".join(f"{shares[iw]:.1f} % of the homes with {iw}" for iw in known)
    again = ", ".join(f"{100 * rate.treatment.value:.2f} % with {iw}" for iw, rate in rates.items())
    before = next(iter(rates.values())).baseline
    return (
        f"The price: back to back, the first flight overfills the queue of {overfilled}; of the segments of "
        f"{chosen['shown_response']}, {100 * before.value:.2f} % are retransmitted with {chosen['today']}, {again}."
    )
