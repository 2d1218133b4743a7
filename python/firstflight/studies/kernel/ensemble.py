"""Ensembles: many settings of the parameters that a publication leaves open; its baseline selects among them (history
matching).

A member of an ensemble is one setting of the open parameters. Member 0 has the reference values, the others come from a
Sobol sequence over stated ranges. A member is compatible with a publication if none of the published numbers of its
baseline is farther off than `CUTOFF` standard deviations, which the study states. The effect is never looked at for
that; its spread over the compatible members is the prediction.

Craig et al., "Pressure matching for hydrocarbon reservoirs", 1997; Vernon, Goldstein, Bower, "Galaxy formation: a
Bayesian uncertainty analysis", Bayesian Analysis 5 (4), 2010.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.report.figure import Figure, Spec, layer, nominal, quantitative
from firstflight.report.style import BASE, ORDERED
from firstflight.studies.kernel.claim import ClaimSpec
from firstflight.studies.kernel.figure import heading_of
from firstflight.studies.kernel.quantity import named, undrawn
from firstflight.studies.kernel.sample import DRAW, MEMBERS, METHOD
from firstflight.studies.kernel.table import table

MEMBER = "member"
"""The key of a grid that names the members: 0, 1, ..."""
CUTOFF = 3.0
"""Standard deviations: at most 5% of any unimodal distribution is farther off (Pukelsheim, "The three sigma rule", The
American Statistician 48 (2), 1994)."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that a publication leaves open: a range, uniform in the logarithm with `log`, and the `reference` of
    member 0; with `whole` integers only, including both ends.
    """

    title: str
    low: float
    high: float
    reference: float
    log: bool = False
    whole: bool = False

    def at(self, share: float) -> float:
        """The value at this share, 0 to 1, of the range."""
        if self.whole:
            return float(self.low + np.floor(share * (self.high - self.low + 1)))
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


class Ensemble:
    """The members of `parameters`: the reference and `count` others, a power of two."""

    def __init__(self, parameters: Mapping[str, Parameter], count: int) -> None:
        self.parameters, self._count = parameters, count

    @cached_property
    def values(self) -> xr.DataArray:
        """Values by `parameter` and `member`: the middle of each stratum of a Sobol sequence, without randomness."""
        from scipy.stats import qmc

        points = qmc.Sobol(len(self.parameters), scramble=False).random(self._count) + 0.5 / self._count
        settings = [
            [of.reference, *(round(of.at(share), 6) for share in shares)]
            for of, shares in zip(self.parameters.values(), points.T.tolist(), strict=True)
        ]
        members = list(range(self._count + 1))
        return xr.DataArray(settings, {"parameter": list(self.parameters), MEMBER: members}, ["parameter", MEMBER])

    def member(self, number: int) -> dict[str, float]:
        """The values of one member, by the parameter's name."""
        return dict(zip(self.parameters, self.values.sel({MEMBER: number}).values.tolist(), strict=True))


@dataclass(frozen=True)
class Number:
    """A published number of the baseline: the value of each member (along `member`), the printed value, and the stated
    standard deviation, in one unit.
    """

    title: str
    found: xr.DataArray
    published: float
    deviation: float


@dataclass(frozen=True)
class Matched:
    """An ensemble matched to the baseline; `effect` along `member`, with title and unit, and its `published` value."""

    ensemble: Ensemble
    baseline: Sequence[Number]
    effect: xr.DataArray
    published: float

    @cached_property
    def distances(self) -> xr.DataArray:
        """Signed distances by `number` and `member`, in standard deviations; NaN without data."""
        titles = [number.title for number in self.baseline]
        offsets = [(undrawn(number.found) - number.published) / number.deviation for number in self.baseline]
        return xr.concat(offsets, "number").assign_coords(number=titles)

    @cached_property
    def distance(self) -> xr.DataArray:
        """The largest distance of each member from a number, in standard deviations."""
        largest = abs(self.distances).max("number", skipna=False)
        return named(largest, "distance", "Largest distance from the baseline", "standard deviations")

    @cached_property
    def compatible(self) -> xr.DataArray:
        """Whether each member is compatible."""
        return self.distance <= CUTOFF

    @cached_property
    def effects(self) -> xr.DataArray:
        """The effect of the compatible members."""
        return self.of_compatible(self.effect)

    def of_compatible(self, array: xr.DataArray) -> xr.DataArray:
        """The values of the compatible members, in the order of the members."""
        values = undrawn(array)
        return values.isel(
            {MEMBER: np.flatnonzero(self.compatible.reindex_like(values).values & values.notnull().values)}
        )

    def judged(self, claim: ClaimSpec) -> ClaimSpec:
        """The claim, whose `found` is along `member`, judged by the compatible members: their median and 95% range. The
        reason counts the members for which it holds.
        """
        values = self.of_compatible(claim.found).values
        lowest, highest = claim.sentence.expectation.limits
        within = int(((values >= lowest) & (values <= highest)).sum())
        note = f"The claim holds for {within} of {len(values)} members that are compatible with the baseline."
        statistic = spread(np.median(values) if len(values) else math.nan, values)
        return replace(
            claim, found=statistic, note=note if len(values) else "No member is compatible with the baseline."
        )

    @property
    def share(self) -> float:
        """Of the members with data, how many are compatible, percent."""
        return 100 * float(self.compatible.sum()) / max(1, int(self.distance.notnull().sum()))

    def answer(self, who: str, baseline: str, effect: str, number: str) -> Sequence[str]:
        """The prediction, the deciding parameter, and the number that rules most members out. `who` leaves parameters
        open, `effect` and `number` stand before the values of these.
        """
        if not self.effects.size:
            return (f"No setting of the parameters that {who} reproduces {baseline}.",)
        low, middle, high = self.effects.quantile([0.025, 0.5, 0.975]).values.tolist()
        ruled, _ = self.ruled_out()
        return (
            f"{self.effects.size} of {int(self.distance.notnull().sum())} settings of the parameters that {who} "
            f"reproduce {baseline}. In these {effect} {middle:.1f}% (95% of them: {low:.1f} to {high:.1f}%); the RFC "
            f"has {self.published}%.",
            self.decisive(),
            f"The published number that rules out most settings, {float(ruled.max()):.0f}%, is the "
            f"{number}{ruled.idxmax('number').item()}.",
        )

    def influence(self, chosen: xr.DataArray) -> xr.DataArray:
        """Rank correlation of each `parameter` with the effect over the members of `chosen`; NaN for fewer than four,
        or for equal values.
        """
        effects = undrawn(self.effect).sel({MEMBER: chosen[MEMBER]}).dropna(MEMBER)
        values = self.ensemble.values.sel({MEMBER: effects[MEMBER]})
        rho = (
            rank_correlation(values.values, effects.values) if effects.size > 3 else np.full(values.shape[:-1], np.nan)
        )
        of = xr.DataArray(rho, {"parameter": values["parameter"].values}, ["parameter"])
        return named(of, "influence", "Rank correlation with the effect", "", 2)

    def decisive(self) -> str:
        """A sentence on the parameter with the largest rank correlation over all members; empty without one."""
        known = self.influence(self.distance).dropna("parameter")
        if not known.size:
            return ""
        name = str(abs(known).idxmax("parameter").item())
        title, of = self.ensemble.parameters[name].title, float(known.sel(parameter=name))
        limit = chance(self.distance[MEMBER].size)
        if abs(of) <= limit:
            return (
                f"No parameter decides: the largest rank correlation with the gain is {of:+.2f} (chance: {limit:.2f})."
            )
        return (
            f'The most decisive parameter is "{title}": the rank correlation with the gain over all settings is '
            f"{of:+.2f} (chance: {limit:.2f}). This one number, if published, would explain {100 * of**2:.0f}% of the "
            "variance."
        )

    def ruled_out(self) -> tuple[xr.DataArray, xr.DataArray]:
        """By `number`: the percentage of members that it rules out, and that it alone rules out."""
        far = abs(self.distances.isel({MEMBER: np.flatnonzero(self.distance.notnull().values)})) > CUTOFF
        alone = far & (far.sum("number") == 1)
        return (
            named(100 * far.mean(MEMBER), "ruled_out", "Members ruled out", "percent", 0),
            named(100 * alone.mean(MEMBER), "alone", "By this number alone", "percent", 0),
        )

    def tables(self, others: Sequence[xr.DataArray] = ()) -> list[Table]:
        """Tables of the baseline's numbers, of the parameters, and of the members with their effect and `others`."""
        titles = [number.title for number in self.baseline]
        numbers = xr.concat([undrawn(number.found) for number in self.baseline], "number").assign_coords(number=titles)
        ends = [
            named(of, name, title, "as published", 2)
            for name, title, of in (("least", "Least", numbers.min(MEMBER)), ("most", "Most", numbers.max(MEMBER)))
        ]
        printed = xr.DataArray([number.published for number in self.baseline], {"number": titles}, ["number"])
        parameters = self.ensemble.parameters.values()
        open_ = xr.DataArray(
            [[of.low, of.high, of.reference] for of in parameters], {"parameter": [of.title for of in parameters]},
            ["parameter", "end"],
        )  # fmt: skip
        ranges = [
            named(open_.isel(end=place), name, title, "", 2)
            for place, (name, title) in enumerate((("low", "From"), ("high", "To"), ("reference", "Member 0")))
        ]
        by_title = {"parameter": open_["parameter"]}
        influence = [
            named(self.influence(of).assign_coords(by_title), name, title, "", 2)
            for name, title, of in (
                ("influence", "Rank correlation, all", self.distance),
                ("influence_kept", "Compatible members", self.effects),
            )
        ]
        limit = f"{CUTOFF:g} standard deviations"
        return [
            table("baseline", "The published baseline", f"Of all members; ruled out are those more than {limit} away.",
                  [*ends, *self.ruled_out()], published={"least": printed}),
            table("parameters", "Open parameters", "Ranges, and the rank correlation with the effect over the "
                  "compatible members.", [*ranges, *influence]),
            table("members", "Members", f"Compatible up to {limit}.", [self.distance, self.effect, *others]),
        ]  # fmt: skip

    def figure(self, title: str, caption: str) -> Figure | None:
        """The effect of each member against its distance from the baseline, with the published effect as a line."""
        rows = [
            {
                "member": member,
                "distance": float(distance),
                "effect": float(effect),
                "kind": _KINDS[int(distance > CUTOFF)],
            }
            for member, distance, effect in zip(
                self.distance[MEMBER].values.tolist(), self.distance.values, undrawn(self.effect).values, strict=True
            )
            if distance == distance and effect == effect
        ]
        if not rows:
            return None
        wide, narrow = (self._chart(rows, width) for width in (560, 300))
        parts = [
            f"{min(effects):.1f} to {max(effects):.1f}% in settings that {does}"
            for does, kind in zip(("reproduce the baseline", "do not"), _KINDS, strict=True)
            if (effects := [row["effect"] for row in rows if row["kind"] == kind])
        ]
        return Figure("effect", title, caption, wide, narrow, f"Gain: {', '.join(parts)}")

    def _chart(self, rows: list[dict[str, Any]], width: int) -> Spec:
        scales = ({"type": "log", "nice": False, "padding": 10}, {"zero": False, "padding": 10})
        at = {
            "x": quantitative("distance", title=heading_of(self.distance), scale=scales[0]),
            "y": quantitative("effect", title=heading_of(self.effect), scale=scales[1]),
        }
        color = nominal("kind", title=None, sort=_KINDS, scale={"domain": _KINDS, "range": [ORDERED[0], BASE]})
        first, published = {"transform": [{"filter": "datum.member == 0"}]}, {"datum": self.published}
        orange: Spec = {"color": ORDERED[1]}
        name = orange | {"type": "text", "align": "left", "dx": 10, "text": "member 0"}
        said = orange | {"type": "text", "align": "right", "dy": -6, "text": f"published: {self.published:g}"}
        # A mark for each row of the data lies on top of the others.
        once: list[dict[str, Any]] = [{}]
        layers = [
            layer({"type": "rule", "color": BASE}, once, x={"datum": CUTOFF}),
            layer(orange | {"type": "rule", "strokeDash": [5, 3]}, once, y=published),
            layer({"type": "circle", "size": 45, "opacity": 0.8}, **at, color=color),
            first | layer(orange | {"type": "point", "size": 140, "strokeWidth": 2}, **at),
            first | layer(name, **at),
            layer(said, once, x={"value": width}, y=published),
        ]
        return {"data": {"values": rows}, "layer": layers, "width": width, "height": 280}


_KINDS = ["compatible with the baseline", "not compatible"]


def spread(middle: float, values: Iterable[float]) -> xr.DataArray:
    """A value with the range of several settings as its interval, which replicates do not narrow."""
    drawn = np.array([middle, *values])
    return xr.DataArray(drawn, {DRAW: np.arange(len(drawn)), METHOD: MEMBERS}, [DRAW])


def chance(members: int) -> float:
    """Rank correlations up to this one have 95% of all sets of this number of members by chance."""
    return 1.96 / math.sqrt(max(members - 1, 1))


def rank_correlation(values: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Spearman's, of `values` along their last axis and `order`, of the same length; equal values share a rank. NaN
    where a value is, and where all values are equal.
    """
    apart, places = ranks(values), ranks(order)
    apart, places = apart - apart.mean(axis=-1, keepdims=True), places - places.mean()
    with np.errstate(invalid="ignore"):
        correlations: np.ndarray[Any, Any] = apart @ places / np.sqrt((apart**2).sum(axis=-1) * (places**2).sum())
    return correlations


def ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ranks along the last axis, from 1; equal values have the mean of theirs, and all are NaN if a value is."""
    rows, others = values[..., np.newaxis], values[..., np.newaxis, :]
    places = (rows > others).sum(axis=-1) + ((rows == others).sum(axis=-1) + 1) / 2
    ranked: np.ndarray[Any, Any] = np.where(np.isnan(values).any(axis=-1, keepdims=True), np.nan, places)
    return ranked
