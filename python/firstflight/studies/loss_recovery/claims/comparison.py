"""IW 10 without SACK against IW 3 with it, under random loss and over a congested link."""

from __future__ import annotations

from collections.abc import Mapping

from firstflight.analysis.claim import Claim, Sentence, above
from firstflight.analysis.intervals import Means, jackknife

from ..grid import CONGESTED, RANDOM, Point, conditions, settings
from .sentences import COMPARISON, FEW, MANY

Times = Mapping[Point, Mapping[int, float]]

SOURCE = "RFC 6928, on the experiments of Chu and Wang (CW10)"
# Without SACK and with it: as RFCs of the time, and as a kernel of today.
_RFC, _LINUX = ("new_reno", "sack"), ("linux_no_sack", "linux")
_SENDERS = {_RFC: "NewReno against RFC 6675", _LINUX: "profile linux"}
_KEY = {RANDOM: "loss_percent", CONGESTED: "rate_kbps"}
_WHERE = {RANDOM: "under random loss", CONGESTED: "five at once over a congested link"}


def claims(times: Times) -> list[Claim]:
    """Each size by itself under random loss, then all sizes; then each rate of the congested link, then all."""
    sizes, rates = settings()["sizes_segments"], settings()["rates_kbps"]
    return [
        *(_claim(times, _RFC, RANDOM, f"{size}-segments", sizes=[size]) for size in sizes),
        _claim(times, _RFC, RANDOM, "all-sizes"),
        _claim(times, _LINUX, RANDOM, "linux"),
        *(_claim(times, _RFC, CONGESTED, f"{rate}-kbps", rates=[rate]) for rate in rates),
        _claim(times, _LINUX, CONGESTED, "congested-linux"),
    ]


def _claim(
    times: Times,
    stacks: tuple[str, str],
    experiment: str,
    what: str,
    sizes: list[int] | None = None,
    rates: list[int] | None = None,
) -> Claim:
    """How much sooner, in percent of the mean completion time of IW 3 with SACK; by default over all there is."""
    sizes = sizes or settings()["sizes_segments"]
    base = [Point(*condition, FEW) for condition in conditions() if condition[0] == experiment]
    base = [point for point in base if rates is None or point.rate_kbps in rates]

    points = [point._replace(size_segments=size) for point in base for size in sizes]
    without, with_sack = stacks

    def mean(data: Means[Point], stack: str, iw: int, places: list[Point]) -> float:
        return sum(data(place._replace(stack=stack, iw=iw)) for place in places) / len(places)

    def gain(data: Means[Point], places: list[Point] = points) -> float:
        return 100 * (1 - mean(data, without, MANY, places) / mean(data, with_sack, FEW, places))

    def part(data: Means[Point], name: str, value: float) -> float:
        return gain(data, [point for point in points if getattr(point, name) == value])

    name = f"rfc6928-cw10-no-sack-{what}"
    varied = [getattr(point, _KEY[experiment]) for point in base]
    text = (
        f"IW {MANY} without SACK beats IW {FEW} with SACK (mean completion time of responses of {_listed(sizes)} "
        f"segments {_WHERE[experiment]} of {_listed(varied)} {_unit(experiment)}; {_SENDERS[stacks]})."
    )
    sentence = Sentence(name, SOURCE, text, above(0), 0, "percent", COMPARISON)
    try:
        found = jackknife(times, gain)
        data = Means(times)
        each = [
            *(f"{part(data, 'size_segments', size):+.1f} % with {size} segments" for size in sizes if len(sizes) > 1),
            *(f"{part(data, _KEY[experiment], value):+.1f} % at {value:g} {_unit(experiment)}" for value in varied),
        ]
    except KeyError as error:
        point = error.args[0]
        return sentence.unchecked(
            f"This run lacks responses of {point.size_segments} segments {_WHERE[experiment]} with {point.stack} and "
            f"IW {point.iw}."
        )
    return sentence.judge(found, f"Part by part: {', '.join(each)}.")


def _unit(experiment: str) -> str:
    return "%" if experiment == RANDOM else "kbit/s"


def _listed(values: list[int] | list[float]) -> str:
    *most, last = (f"{value:g}" for value in values)
    return f"{', '.join(most)} and {last}" if most else last
