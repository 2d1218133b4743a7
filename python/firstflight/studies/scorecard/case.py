"""A case of the scorecard: two changes against the reference, each with its verdict."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl
import xarray as xr

from firstflight.analysis.intervals import Estimate
from firstflight.counted import with_unit
from firstflight.studies.kernel.quantity import Quantities, Quantity, estimate
from firstflight.studies.kernel.sample import DRAW

Verdict = Literal["better", "equal", "worse", "inconclusive", "not applicable", "no data"]
VERDICTS: tuple[Verdict, ...] = ("better", "equal", "worse", "inconclusive", "not applicable", "no data")
ROLES = {"gain": "own flows", "harm": "others or link"}

LINK = pl.col("link").cast(pl.String) == "spokes[0]"
DONE = pl.col("completed") == 1
DELIVERED, OFFERED, DROPPED = pl.col("delivered_bytes"), pl.col("offered_packets"), pl.col("dropped_packets")


@dataclass(frozen=True)
class Measure:
    """The quantity of a change, equal up to `margin`: percent of the reference or, with `absolute`, in `unit`."""

    title: str
    unit: str
    value: pl.Expr
    more_is_better: bool = False
    margin: float = 5.0
    absolute: bool = False
    digits: int = 0

    @property
    def change_unit(self) -> str:
        """Of the difference from the reference."""
        return {"percent": "pp"}.get(self.unit, self.unit) if self.absolute else "%"


MEASURES = {
    "time": Measure("mean time", "ms", 1e3 * pl.col("completion_time_s").filter(DONE).mean()),
    "delivered": Measure("delivered", "MB", 1e-6 * DELIVERED.sum(), more_is_better=True, digits=1),
    "fairness": Measure(
        "Jain's index", "", DELIVERED.sum() ** 2 / (pl.len() * (DELIVERED**2.0).sum()), True, 0.05, True, 3
    ),
    "retransmitted": Measure(
        "retransmitted",
        "percent",
        100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum(),
        margin=5,
        absolute=True,
        digits=1,
    ),
    "rating": Measure("rating", "MOS", pl.col("mos").mean(), True, 0.1, True, 2),
    "queue": Measure("mean queue", "packets", pl.col("queue_mean_packets").mean(), digits=1),
    "dropped": Measure("dropped", "percent", 100 * DROPPED.sum() / OFFERED.sum(), margin=0.5, absolute=True, digits=2),
    "overloaded": Measure(
        "seconds of overload", "percent", 100 * (DROPPED > 0.1 * OFFERED).mean(), margin=5, absolute=True, digits=1
    ),
    "unanswered": Measure(
        "packets without feedback",
        "packets",
        OFFERED.filter(pl.col("interval_start_s").is_between(10.5, 19.5)).sum(),
        margin=5,
        absolute=True,
        digits=1,
    ),
}
_NAMES = {
    "own_long": "long flows",
    "own_short": "short flows",
    "own_page": "pages",
    "other_long": "long flow of others",
    "other_short": "short flows of others",
    "call": "call",
    "link": "link",
}


@dataclass(frozen=True)
class MeasureChange:
    """The change of one measure: `reference` and `scheme` in its own unit, `change` with its 95% CI."""

    measure: Measure
    of: str
    reference: float
    scheme: float
    change: Estimate

    @property
    def title(self) -> str:
        """The flows, and the measure."""
        return f"{self.of}: {self.measure.title}"

    @property
    def verdict(self) -> Verdict:
        """By the whole 95% CI."""
        if math.isnan(self.change.value):
            return "no data"
        sign = 1 if self.measure.more_is_better else -1
        low, high = sorted((sign * self.change.low, sign * self.change.high))
        if math.isnan(low) or math.isnan(high):
            return "inconclusive"
        if low > self.measure.margin:
            return "better"
        if high < -self.measure.margin:
            return "worse"
        return "equal" if low >= -self.measure.margin and high <= self.measure.margin else "inconclusive"

    def shown(self) -> str:
        """`-12% [-15, -9]`, less what is not known."""
        if math.isnan(self.change.value):
            return ""
        digits = self.measure.digits if self.measure.absolute else 0 if abs(self.change.value) >= 10 else 1
        low, high = (f"{end:+.{digits}f}" for end in (self.change.low, self.change.high))
        value = round(self.change.value, digits) or 0.0  # no sign of a zero
        change = with_unit(f"{value:+.{digits}f}" if value else f"{value:.{digits}f}", self.measure.change_unit)
        interval = "" if math.isnan(self.change.low) else f" [{low}, {high}]"
        return f"{change}{interval}"

    def from_to(self) -> str:
        """The values themselves."""
        if math.isnan(self.change.value):
            return ""
        digits = self.measure.digits
        values = f"{self.reference:.{digits}f} \N{RIGHTWARDS ARROW} {self.scheme:.{digits}f}"
        return with_unit(values, self.measure.unit)


@dataclass(frozen=True)
class Judged:
    """A row of the scorecard. `gain` is the change for the scheme's own flows, `harm` that for others or the link;
    without them `lacks` is the verdict.
    """

    id: str
    section: str
    title: str
    text: str
    lacks: Verdict = "no data"
    gain: MeasureChange | None = None
    harm: MeasureChange | None = None

    @property
    def changes(self) -> dict[str, MeasureChange]:
        """By whose they are; empty without results."""
        role_changes = {"gain": self.gain, "harm": self.harm}
        return {ROLES[role]: change for role, change in role_changes.items() if change is not None}


@dataclass(frozen=True)
class Case:
    """A case as study.toml declares it."""

    id: str
    declared: Mapping[str, Any]

    def measure(self, role: str) -> Measure:
        """Of the gain or of the harm."""
        return MEASURES[self.declared[role][1]]

    def quantities(self) -> list[Quantity]:
        """Gain and harm, in the case's own grid."""
        return [self._quantity(role, *self.declared[role]) for role in ("gain", "harm")]

    def _quantity(self, role: str, who: str, what: str) -> Quantity:
        measure, kinds = MEASURES[what], {"link": "links", "own_page": "pages", "call": "streams"}
        where = LINK if who == "link" else pl.col("application").cast(pl.String) == who
        title = f"{_NAMES[who]}: {measure.title}"
        records: Any = kinds.get(who, "transfers")
        return Quantity(f"{self.id}.{role}", title, measure.unit, measure.value, where, records, (), 1, self.id)

    def change(self, q: Quantities, role: str) -> xr.DataArray:
        """Of the scheme against the reference: mean over the other keys of the case."""
        measure = self.measure(role)
        reference, scheme = (getattr(q, f"{self.id}.{role}").isel(scheme=place, drop=True) for place in (0, 1))
        difference = scheme - reference if measure.absolute else 100 * (scheme / reference.where(reference > 0) - 1)
        mean: xr.DataArray = difference.mean([key for key in difference.dims if key != DRAW], skipna=False)
        return mean

    def improvement(self, q: Quantities, role: str) -> xr.DataArray:
        """Of the scheme to the reference as a ratio; above 1 is better. Nothing where the change is not in percent."""
        measure = self.measure(role)
        ratio = 1 + self.change(q, role) / 100
        if measure.absolute:
            return ratio * math.nan
        return ratio if measure.more_is_better else 1 / ratio.where(ratio > 0)

    def row(self) -> Judged:
        """The case without its results."""
        said = self.declared
        return Judged(self.id, said["section"], said["title"], said["criterion"])

    def judged(self, q: Quantities) -> Judged:
        """The case with both changes; without where nothing of either kind completed."""
        gain, harm = (self._change(q, role) for role in ("gain", "harm"))
        if math.isnan(gain.change.value) and math.isnan(harm.change.value):
            return self.row()
        return replace(self.row(), gain=gain, harm=harm)

    def _change(self, q: Quantities, role: str) -> MeasureChange:
        array = getattr(q, f"{self.id}.{role}").isel({DRAW: 0})
        values = [float(array.isel(scheme=place).mean()) for place in (0, 1)]
        of = _NAMES[self.declared[role][0]]
        return MeasureChange(self.measure(role), of, values[0], values[1], estimate(self.change(q, role)))


def counted(cases: Sequence[Judged]) -> dict[str, dict[Verdict, int]]:
    """The counts by verdict, best first: of own flows, of others or the link, and of cases without results."""
    counts: dict[str, dict[Verdict, int]] = {}
    for who in (*ROLES.values(), "no result"):
        numbers = Counter(
            case.changes[who].verdict if who in case.changes else case.lacks
            for case in cases
            if (who in case.changes) or (who == "no result" and not case.changes)
        )
        counts[who] = {verdict: numbers[verdict] for verdict in VERDICTS if numbers[verdict]}
    return {who: of for who, of in counts.items() if of}


def in_words(numbers: Mapping[str, Mapping[Verdict, int]]) -> str:
    """`own flows 2 better, 1 equal; others or link 3 equal`."""
    return "; ".join(
        f"{who} {', '.join(f'{number} {verdict}' for verdict, number in of.items())}" for who, of in numbers.items()
    )


def in_order(cases: Sequence[Judged]) -> list[Judged]:
    """By section of the RFC."""
    return sorted(cases, key=lambda case: [int(number) for number in case.section.split(".")])
