"""Claims: published sentences, or hypotheses written down before the first run, as expressions over quantities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import numpy as np
import xarray as xr

from firstflight.analysis.claim import Claim, Expectation, Needs, Sentence
from firstflight.counted import listed
from firstflight.errors import RequestError
from firstflight.studies.kernel.quantity import FROM_ELSEWHERE, Quantities, estimate, value
from firstflight.studies.kernel.sample import MEMBERS, METHOD

Result = TypeVar("Result")


Lacking = dict[str, dict[str, list[Any]]]
"""By grid and key: the labels of cells without data that a result depends on."""


def depending(
    results: Callable[[Quantities], Iterable[Result]],
    quantities: Quantities,
    differ: Callable[[Result, Result], bool],
    *,
    listed: bool = True,
) -> list[tuple[Result, Lacking]]:
    """Each result with the cells without data that it depends on: it changes with the values filled in for them.

    xarray's reductions skip NaN, so a result alone does not show it. All missing cells are filled at once, several
    times; only if a result changes, those of each grid in turn, and where a part of a grid is missing, of each label of
    each key. Without a missing cell `results` is called once, and never with one empty. Without `listed` such a result
    has all missing cells, which takes some fillings instead of hundreds.
    """
    # A value that is filled in may be a divisor and give infinite numbers.
    with xr.set_options(arithmetic_join="exact"), np.errstate(all="ignore"):  # type: ignore[no-untyped-call]
        absent = quantities.absent()
        first = quantities.filled(absent, {}, 0) if absent else quantities
        outcomes = list(results(first))
        read = {of.grid for of in first.read()}
        lacking: list[Lacking] = [{} for _ in outcomes]
        nowhere = [False] * len(outcomes)

        # Only values are compared, with those of arrays of the same layout: it decides how a sum is rounded.
        values = quantities.values()
        before = list(results(values.filled(absent, {}, 0))) if absent else outcomes

        def changing(gaps: Mapping[str, xr.DataArray], trials: Iterable[int]) -> list[bool]:
            made = []
            for trial in trials:
                filled = values.filled(absent, gaps, trial)
                made.append(list(results(filled)))
                read.update(of.grid for of in filled.read())
            return [any(differ(base, other) for other in of) for base, *of in zip(before, *made, strict=True)]

        every = range(quantities.trials)
        needing = changing(absent, every) if absent else []
        if not any(needing):
            return list(zip(outcomes, lacking, strict=True))
        whole = {grid: {str(key): gaps[key].values.tolist() for key in gaps.dims} for grid, gaps in absent.items()}
        # A value that is never read changes nothing.
        for grid, gaps in ((grid, gaps) for grid, gaps in absent.items() if listed and grid in read):
            # Of an experiment that is not there at all only its name is said: two trials are enough.
            nothing = quantities.is_empty(grid)
            depends = changing({grid: gaps}, _TWO_TRIALS if nothing else every)
            for named, needed in zip(lacking, depends, strict=True):
                if needed:
                    named[grid] = dict(whole[grid])
            if nothing or not any(depends):
                continue
            for key, labels in whole[grid].items():
                masks = [gaps & (gaps[key] == label) for label in labels]
                by_label = [
                    # Changed already, with the grid.
                    depends if cells.equals(gaps) else changing({grid: cells}, every) if cells.any() else nowhere
                    for cells in masks
                ]
                for named, *matters in zip(lacking, *by_label, strict=True):
                    if grid in named and any(matters):
                        named[grid][key] = [label for label, needed in zip(labels, matters, strict=True) if needed]
        for named, needed in zip(lacking, needing, strict=True):
            if needed and not named:
                named |= whole
    return list(zip(outcomes, lacking, strict=True))


_TWO_TRIALS = (1, FROM_ELSEWHERE)


@dataclass(frozen=True)
class ClaimSpec:
    """One claim: its sentence, and `found`, the value of this run (an array over `draw` alone).

    If no run can have a value, `found` is NaN and `note` gives the reason; a slow `note` can be a function. For a
    partial run each claim is evaluated several times, to find the cells that it depends on, and judged once.
    """

    sentence: Sentence
    found: xr.DataArray
    note: str | Callable[[], str] = ""

    @property
    def id(self) -> str:
        """Id of the sentence."""
        return self.sentence.id

    def judge(self, lacking: str = "") -> Claim:
        """The claim with its verdict. `lacking` names missing cells: the verdict is then "cannot be checked"."""
        note = self.note if isinstance(self.note, str) else self.note()
        if lacking or math.isnan(value(self.found)):
            return self.sentence.unchecked(
                f"This run has no value for {lacking}." if lacking else note or "This run lacks the data of the claim."
            )
        spread = METHOD in self.found.coords and self.found[METHOD].item() == MEMBERS
        return self.sentence.judge(estimate(self.found), note, spread)


@dataclass(frozen=True)
class Source:
    """A source of claims.

    `prefix` precedes each id; `needs` and `why` are defaults of its claims. For claims repeated on a part of the grid,
    `part` follows the id and `where` precedes the sentence.
    """

    name: str
    prefix: str = ""
    needs: Needs = "interval"
    why: str = ""
    part: str = ""
    where: str = ""

    def says(
        self,
        id_: str,
        text: str,
        statistic: xr.DataArray,
        expected: Expectation,
        why: str = "",
        note: str | Callable[[], str] = "",
        needs: Needs | None = None,
        given: bool = False,
    ) -> ClaimSpec:
        """A claim of this source: `text` is its sentence, `statistic` the value found, `why` justifies the tolerance or
        the limit; that of a direction needs no words. `given`: the value was put in or fitted, or follows from the
        method; such claims are counted apart. RequestError without a sentence, value, expectation or reason.
        """
        name, text = f"{self.prefix}{id_}{self.part}", self.where + text
        needs = needs or self.needs
        wrong = {
            "has no id or no sentence; write both": not (id_.strip() and text.strip()),
            "has no expected value; write for example near(60, 'percent', 5)": not isinstance(expected, Expectation),
            f"needs {needs!r}; write one of {', '.join(get_args(Needs))}": needs not in get_args(Needs),
            "has a number as its value; leave the draws to it, as in q.time.sel(iw=3)": not isinstance(
                statistic, xr.DataArray
            ),
        }
        if problem := next((problem for problem, there in wrong.items() if there), ""):
            raise RequestError(f'claim "{name}" {problem}')
        why = why.strip() or self.why or ("The claim is a direction only." if _is_direction(expected) else "")
        if not why:
            raise RequestError(f'claim "{name}" has no reason for its limit or tolerance; write why')
        return ClaimSpec(Sentence(name, self.name, text, expected, why, needs, given), statistic, note)


FIXED = "The limit was fixed before the first run."
"""The reason of a limit that was: a statement about the history of a claim, so that each claim says it itself."""


def _is_direction(expected: Expectation) -> bool:
    """Whether its only limit is that of no difference: a ratio of 1, 100% of the other, or a change of 0."""
    lowest, highest = expected.limits
    if expected.tolerance or math.isinf(lowest) == math.isinf(highest):
        return False
    limit = lowest if math.isinf(highest) else highest
    if expected.unit in ("ratio", "times") or expected.unit.startswith("% of"):
        return math.isclose(limit, 100 if expected.unit.startswith("%") else 1)
    # "At most 0" of a count is none of it, not a direction; "above 0" and "below 0" are signs of any unit.
    return math.isclose(limit, 0, abs_tol=1e-9) and (limit != 0 or expected.unit.startswith(("percent", "pp")))


OURS = Source("this study, before its first simulation")
"""Hypotheses that were written down, and committed, before a study was simulated."""


def judge(
    specs: Callable[[Quantities], Iterable[ClaimSpec]], quantities: Quantities, *, listed: bool = True
) -> list[Claim]:
    """Each claim with its verdict; `listed` as in `depending`."""
    pairs = depending(specs, quantities, _differ, listed=listed)
    absent = quantities.absent() if any(lacking for _, lacking in pairs) else {}
    return [spec.judge(_listed(lacking, absent)) for spec, lacking in pairs]


def _differ(claim: ClaimSpec, other: ClaimSpec) -> bool:
    values = [value(spec.found) for spec in (claim, other)]
    return values[0] != values[1] and not all(map(math.isnan, values))


def _listed(lacking: Lacking, absent: Mapping[str, xr.DataArray]) -> str:
    """The labels of each key that matter; a key all of whose labels do is not named."""
    parts = []
    for grid, keys in lacking.items():
        whole = absent[grid]
        named = [f"{key} {listed(map(str, labels))}" for key, labels in keys.items() if len(labels) < whole.sizes[key]]
        if grid:
            named.insert(0, f"experiment {grid}")
        parts.append(", ".join(named) or "any cell")
    return "; ".join(parts)
