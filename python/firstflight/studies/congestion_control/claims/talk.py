"""The talk's statements: parallel connections, and elephants against short flows."""

from __future__ import annotations

from collections.abc import Callable

from firstflight.analysis.claim import Claim, Expectation, Sentence, above, near
from firstflight.analysis.intervals import Means, jackknife

from ..grid import mouse, settings, titles, together
from ..grid import talk as shown
from ..measure import Place, Values
from .missing import missing

SOURCE = "J. Thalheim's talk"
COMPARISON = "The sentence compares and gives no number, so any difference in its direction will do."


def claims(values: Values) -> list[Claim]:
    """Parallel connections, then elephants."""
    many = max(settings()["parallel"]["flows"])
    size = settings()["parallel"]["size_kb"]

    def relative(metric: str) -> Callable[[Means[Place], str], float]:
        def ratio(data: Means[Place], control: str) -> float:
            return data(Place(metric, together(control, many))) / data(Place(metric, together(control, 1)))

        return ratio

    found = [
        _least(
            values,
            "talk-parallel-slow-starts",
            f"Parallel connections add up their slow starts: {many} that open together send {many} times as much "
            f"before the first acknowledgement as one does (least over the talk's algorithms).",
            near(many),
            "times",
            "A count of segments, so the tolerance is 0.",
            relative("first_flights"),
        ),
        _least(
            values,
            "talk-parallel-compete",
            f"Parallel connections compete: an object of {size} kB takes longer beside {many - 1} others than alone "
            f"(least over the talk's algorithms).",
            above(0),
            "percent",
            COMPARISON,
            lambda data, control: 100 * (relative("completion_time")(data, control) - 1),
        ),
    ]
    for size in settings()["mice"]["sizes_kb"]:
        found.append(
            _least(
                values,
                f"talk-elephants-{size}kb",
                f"An elephant flow takes an unfair share against a short flow: more than half of the link while a "
                f"response of {size} kB is sent (least over the talk's algorithms).",
                above(50),
                "percent",
                "Half is the fair share of two flows.",
                _elephant_share(size),
            )
        )
    return found


def _elephant_share(size_kb: int) -> Callable[[Means[Place], str], float]:
    def share(data: Means[Place], control: str) -> float:
        return data(Place("elephant_share", mouse(control, 1, size_kb)))

    return share


def _least(
    values: Values,
    name: str,
    text: str,
    expectation: Expectation,
    unit: str,
    why: str,
    found: Callable[[Means[Place], str], float],
) -> Claim:
    """The least value over the algorithms that the talk shows; the note gives all."""

    def least(data: Means[Place]) -> float:
        return min(found(data, control) for control in shown())

    sentence = Sentence(name, SOURCE, text, expectation, 0, unit, why)
    try:
        value = jackknife(values, least)
        each = [f"{title} {found(Means(values), control):.3g}" for control, title in titles().items()]
    except KeyError as error:
        return sentence.unchecked(missing(error))
    return sentence.judge(value, f"{', '.join(each)}.")
