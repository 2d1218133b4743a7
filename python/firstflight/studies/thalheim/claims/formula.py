"""The talk's formula against measured times, as far as it is known."""

from __future__ import annotations

import numpy as np

from firstflight.analysis.claim import Claim, Needs, NoDataError, Sentence, near
from firstflight.analysis.medians import Values, middle

from ..computed import closed_form_s, talk_s
from ..gain import transfers
from ..grid import Point, settings
from ..measure import TIME, Place
from .statement import SOURCE, Data, Statement

_ONE_WINDOW = "A formula that is off by more would not tell one initial window from the next but one."


def claims(data: Data, needs: Needs) -> list[Claim]:
    """The formula itself, which is lost, and what its words say."""
    lost = Sentence(
        id="talk-formula",
        source=SOURCE,
        text="The talk's formula for the transfer time gives the measured times.",
        expectation=near(0),
        tolerance=5,
        unit="percent",
        why=_ONE_WINDOW,
    ).unchecked(
        "The formula is an image that is not preserved; the next claim and the table `formula` hold what the talk says "
        "of it in words against the measured times, and the closed form of docs/model.md beside it."
    )
    return [lost, _WORDS.check(data, needs)]


def _known(data: Data) -> list[Point]:
    found = [point for point in transfers() if Place(TIME, point) in data]
    rates = settings()["rates_mbit"]
    # What the words leave out is the link, so one rate alone would decide nothing.
    if {point.rate_mbit for point in found} != set(rates):
        *most, last = rates
        raise NoDataError(
            f"This needs transfers at {', '.join(map(str, most))} and {last} Mbit/s, and this run lacks a rate; its "
            "own times stand in the table formula."
        )
    return found


def _distance(data: Data, point: Point) -> Values:
    """By how much the words' time differs from the measured one, percent, without its sign."""
    return np.abs(100 * (talk_s(point) / data(Place(TIME, point)) - 1))


def _median_distance(data: Data, points: list[Point]) -> Values:
    return middle(_distance(data, point) for point in points)


def _note(data: Data) -> str:
    known = _known(data)
    parts = []
    for rate in settings()["rates_mbit"]:
        own = [point for point in known if point.rate_mbit == rate]
        closed = [100 * abs(closed_form_s(point) / data(Place(TIME, point))[0] - 1) for point in own]
        parts.append(f"{_median_distance(data, own)[0]:.1f} % at {rate} Mbit/s (closed form {np.median(closed):.2f} %)")
    return f"Median over {len(known)} transfers; by rate {', '.join(parts)}."


_WORDS = Statement(
    "talk-formula-in-words",
    "While nothing is lost the throughput is cwnd x MTU / RTT (median distance of the measured transfer times from "
    "windows that double each round trip, and one round trip for the handshake).",
    near(0),
    5,
    "percent",
    _ONE_WINDOW,
    lambda data: _median_distance(data, _known(data)),
    _note,
)
