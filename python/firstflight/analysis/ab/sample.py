"""From rows to the two arms of a comparison: its design, the rows that count, the pairs, and the resampled units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl


@dataclass(frozen=True, kw_only=True)
class Design:
    """The design of a comparison: rows whose column `arm` is `treatment` against those where it is `baseline`.

    `unit`: columns that name a unit, which may have several rows (objects of a user). `paired`: a unit is in both arms
    and drawn together; otherwise units of the arms are drawn separately. `cluster`: columns of units that are drawn
    together (users of a subnet). `strata`: each keeps its number of units in every draw, and counts by its share in
    both arms together, or by `shares` (name: share). `weight`: column with the survey weight of a row. `least`: minimum
    number of units for an interval; None: by calibration. `resamples` are drawn from `seed`; `confidence`: of the
    intervals.
    """

    arm: str
    baseline: object
    treatment: object
    unit: Sequence[str]
    weight: str | None = None
    strata: str | Sequence[str] | None = None
    cluster: str | Sequence[str] | None = None
    paired: bool = True
    shares: Mapping[str, float] | None = None
    least: int | None = None
    resamples: int = 2000
    seed: int = 1
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not self.unit:
            raise ValueError("unit: name at least one column, such as replicate and client")
        if self.baseline == self.treatment:
            raise ValueError(f"{self.arm}: both arms are {self.baseline!r}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence: {self.confidence} is not between 0 and 1")
        if self.resamples < 100:
            raise ValueError(f"resamples: {self.resamples} are too few for an interval, take at least 100")


Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_ARM, _WEIGHT = "__arm", "__weight"


@dataclass(frozen=True)
class ArmRows:
    """The rows of one arm. `values` has shape (rows, columns); `block` says which resampled block a row is in, and
    `stratum` (blocks,) in which stratum a block is. `units` is the number of its units.
    """

    values: Values
    weight: Values
    block: Places
    stratum: Places
    units: int
    unmatched: int
    unfinished: int
    unknown: int

    @property
    def blocks(self) -> int:
        """The number of blocks to draw from."""
        return len(self.stratum)


@dataclass(frozen=True)
class TwoArms:
    """Both arms. `paired`: a block is the same one in both. `strata`: their names, in the order of `ArmRows.stratum`.
    `block`, `unit` and `arms` name what is drawn, what is counted and both arms in messages.
    """

    baseline: ArmRows
    treatment: ArmRows
    paired: bool
    strata: tuple[str, ...]
    block: str
    unit: str
    arms: tuple[str, str]


def columns(names: str | Sequence[str] | None) -> list[str]:
    """One name, several or none as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


class ComparedRows:
    """Rows of arms, read and numbered once, of which `sample` takes those of two arms, all of them or some.

    `frame`: the rows, of `arms` alone, with the columns that were named. `of_arm`: the places of an arm's rows in it.
    """

    def __init__(
        self,
        frame: pl.DataFrame | pl.LazyFrame,
        names: Sequence[str],
        design: Design,
        arms: Sequence[object] | None = None,
    ) -> None:
        """`names`: of values and of buckets. `arms`: by default those of `design`.

        ValueError for a missing column, and a weight that is not a number of at least 0.
        """
        arm, weight, arms = design.arm, design.weight, arms or (design.baseline, design.treatment)
        unit, groups, layers = list(design.unit), columns(design.cluster), columns(design.strata)
        lazy = frame.lazy()
        schema = lazy.collect_schema()
        kept = dict.fromkeys([*unit, *layers, *groups, *names])
        missing = [name for name in dict.fromkeys([arm, *kept, *([weight] if weight else [])]) if name not in schema]
        if missing:
            raise ValueError(f"the frame lacks the column {', '.join(missing)}: it has {', '.join(schema)}")
        plain = pl.col(arm).cast(pl.String) if schema[arm] in (pl.Enum, pl.Categorical) else pl.col(arm)
        known = [plain.alias(_ARM), (pl.col(weight).cast(pl.Float64) if weight else pl.lit(1.0)).alias(_WEIGHT)]
        in_arms = pl.any_horizontal(pl.col(_ARM) == name for name in arms)
        self.frame = lazy.select(*kept, *known).filter(in_arms).collect()
        self.weights = self.frame[_WEIGHT].to_numpy()
        odd = np.count_nonzero(~((self.weights >= 0) & np.isfinite(self.weights)))
        if odd:
            raise ValueError(f"{weight}: {odd} rows have a weight that is not a finite number of at least 0")
        self._names = (unit, groups, layers)
        self._of_unit = _places(self.frame, unit)
        self._of_drawn = _places(self.frame, groups) if groups else self._of_unit
        levels = _levels(self.frame, layers) if layers else None
        self._strata = ("",) if levels is None else tuple(", ".join(map(str, row)) for row in levels.iter_rows())
        of_stratum = _places(self.frame, layers) if layers else np.zeros(self.frame.height, dtype=np.int64)
        # By stratum and then by name: the order of the rows does not change the resamples.
        most = self._of_drawn.max(initial=0) + 1
        blocks, self._of_block = np.unique(of_stratum * most + self._of_drawn, return_inverse=True)
        self._stratum = blocks // most
        self.of_arm = {name: np.flatnonzero((self.frame[_ARM] == name).to_numpy()) for name in arms}
        self._of_names: dict[tuple[str, ...], tuple[Values, Mask, Mask]] = {}
        self._inside: dict[tuple[str, object], Mask] = {}
        self.made: dict[tuple[object, ...], Any] = {}
        """Comparisons of them, by the request."""

    def inside(self, column: str, value: object) -> Mask:
        """Of each row whether it has that value."""
        if (column, value) not in self._inside:
            has_it = pl.col(column).eq_missing(pl.lit(value))
            self._inside[column, value] = self.frame.select(has_it).to_series().to_numpy()
        return self._inside[column, value]

    def _numbers(self, names: Sequence[str]) -> tuple[Values, Mask, Mask]:
        """Of all rows the values (rows, columns), whether any is null, and whether any other is NaN."""
        key = tuple(names)
        if key not in self._of_names:
            numbers = self.frame.select(pl.col(name).cast(pl.Float64) for name in names).to_numpy().astype(np.float64)
            null = self.frame.select(pl.any_horizontal(pl.col(name).is_null() for name in names)).to_series().to_numpy()
            self._of_names[key] = numbers, null, np.isnan(numbers).any(axis=1) & ~null
        return self._of_names[key]

    def sample(self, names: Sequence[str], design: Design, unfinished_last: bool, here: Mask | None = None) -> TwoArms:
        """The sample of columns `names` in both arms of `design`, of the rows `here`, None: of all. `unfinished_last`:
        NaN stands beyond every number; else its row is left out.

        A unit that is left without a row in one arm is left out of both when paired. ValueError for a unit in two
        clusters or strata.
        """
        unit, groups, layers = self._names
        numbers, null, unfinished = self._numbers(names)
        every = [self.of_arm[arm] for arm in (design.baseline, design.treatment)]
        if here is not None:
            every = [side[here[side]] for side in every]
        known = [side[~null[side]] for side in every]
        matched = sides = self._matched(known) if design.paired else known
        if unfinished_last:
            numbers = np.where(np.isnan(numbers), math.inf, numbers)
        else:
            sides = [side[~unfinished[side]] for side in sides]
            sides = self._matched(sides) if design.paired else sides
        together = np.concatenate(sides)
        # Not paired, a unit of the same name in the other arm is another one.
        drawn_from = [together, together] if design.paired else sides
        for rows in [together] if design.paired else sides:
            if groups:
                _nested(self._of_unit[rows], self._of_drawn[rows], unit, groups, "cluster")
            if layers:
                _nested(self._of_drawn[rows], self._stratum[self._of_block[rows]], groups or unit, layers, "stratum")
        strata = np.unique(self._stratum[self._of_block[together]])
        arms = []
        for arm, (side, rows) in enumerate(zip(sides, drawn_from, strict=True)):
            blocks = np.flatnonzero(np.bincount(self._of_block[rows], minlength=len(self._stratum)))
            place = np.zeros(len(self._stratum), dtype=np.int64)
            place[blocks] = np.arange(len(blocks))
            arms.append(
                ArmRows(
                    numbers[side],
                    self.weights[side],
                    place[self._of_block[side]],
                    np.searchsorted(strata, self._stratum[blocks]),
                    self._units(side),
                    self._units(known[arm]) - self._units(matched[arm]),
                    int(unfinished[every[arm]].sum()),
                    int(null[every[arm]].sum()),
                )
            )
        names_of_arms = (f"{design.arm} {design.baseline}", f"{design.arm} {design.treatment}")
        titles = tuple(self._strata[place] for place in strata) if layers else self._strata
        return TwoArms(arms[0], arms[1], design.paired, titles, " and ".join(groups or unit), unit[-1], names_of_arms)

    def _matched(self, sides: Sequence[Places]) -> list[Places]:
        """Of the rows of each side those whose unit the other has, too."""
        size = self._of_unit.max(initial=0) + 1
        here = [np.bincount(self._of_unit[side], minlength=size) > 0 for side in sides]
        both = here[0] & here[1]
        return [side[both[self._of_unit[side]]] for side in sides]

    def _units(self, rows: Places) -> int:
        return _number(self._of_unit[rows])


def _places(rows: pl.DataFrame, names: list[str]) -> Places:
    """Of each row the place of its values of columns `names` among all that there are, in rising order."""
    columns = rows.select(names)
    column = columns.to_series()
    if len(names) == 1 and column.dtype.is_integer() and not column.null_count():
        # The ids of users, mostly, and a fifth of the time that the join takes.
        return np.unique(column.to_numpy(), return_inverse=True)[1].astype(np.int64)
    levels = _levels(rows, names).with_row_index("__place")
    placed = columns.join(levels, on=names, how="left", nulls_equal=True, maintain_order="left")
    return placed["__place"].to_numpy().astype(np.int64)


def _levels(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The values of columns `names` that there are, in rising order."""
    return rows.select(names).unique().sort(names)


def _number(places: Places) -> int:
    return int(np.count_nonzero(np.bincount(places)))


def _nested(inner: Places, outer: Places, inner_names: list[str], outer_names: list[str], what: str) -> None:
    if _number(inner) != len(np.unique(inner * (outer.max(initial=0) + 1) + outer)):
        raise ValueError(f"a {' and '.join(inner_names)} is in more than one {what} ({', '.join(outer_names)})")
