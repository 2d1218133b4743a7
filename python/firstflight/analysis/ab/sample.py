"""From rows to the two arms of a comparison: its design, the rows that count, the pairs, and the resampled units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

_WEIGHT = "__weight"


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


@dataclass(frozen=True)
class ComparedRows:
    """The rows of both arms, read and numbered once, of which `sample` takes all or some.

    `of_unit`, `of_drawn`, `of_stratum`: for each row the place of its unit, of its drawn block and of its stratum among
    all that there are, in rising order. `names`: of the columns of units, of clusters and of strata; `arms`: of both.
    """

    numbers: Values
    weights: Values
    unknown: Mask
    in_arm: tuple[Mask, Mask]
    of_unit: Places
    of_drawn: Places
    of_stratum: Places
    titles: tuple[str, ...]
    names: tuple[list[str], list[str], list[str]]
    arms: tuple[str, str]
    bucket: pl.Series
    paired: bool
    unfinished_last: bool

    def sample(self, here: Mask | None = None) -> TwoArms:
        """The sample of the rows `here`, None: of all.

        A unit that is left without a row in one arm is left out of both when `paired`. ValueError for a unit in two
        clusters or strata.
        """
        unit, groups, layers = self.names
        unfinished = np.isnan(self.numbers).any(axis=1) & ~self.unknown
        in_arm = self.in_arm if here is None else tuple(side & here for side in self.in_arm)
        sides = [side & ~self.unknown for side in in_arm]
        counts = [(int((side & self.unknown).sum()), int((side & unfinished).sum())) for side in in_arm]
        of_unit, of_drawn, numbers, unmatched = self.of_unit, self.of_drawn, self.numbers, [0, 0]
        if self.paired:
            matched = _matched(sides, of_unit)
            pairs = zip(sides, matched, strict=True)
            unmatched = [_number(of_unit[every]) - _number(of_unit[kept]) for every, kept in pairs]
            sides = matched
        if self.unfinished_last:
            numbers = np.where(np.isnan(numbers), math.inf, numbers)
        else:
            sides = [side & ~unfinished for side in sides]
            sides = _matched(sides, of_unit) if self.paired else sides
        together = sides[0] | sides[1]
        there, of_stratum = np.unique(self.of_stratum[together], return_inverse=True)
        titles = tuple(self.titles[place] for place in there) if layers else ("",)
        # Not paired, a unit of the same name in the other arm is another one.
        for mask in [together] if self.paired else sides:
            if groups:
                _nested(of_unit[mask], of_drawn[mask], unit, groups, "cluster")
            if layers:
                _nested(of_drawn[mask], self.of_stratum[mask], groups or unit, layers, "stratum")
        # By stratum and then by name: the order of the rows does not change the resamples.
        key = of_stratum * (of_drawn.max(initial=0) + 1) + of_drawn[together]
        arms = []
        for side, missing_partner, (null_rows, open_rows) in zip(sides, unmatched, counts, strict=True):
            of_side = side[together]
            drawn = slice(None) if self.paired else of_side
            _, first, block = np.unique(key[drawn], return_index=True, return_inverse=True)
            stratum = of_stratum[drawn][first]
            block = block[of_side] if self.paired else block
            number = _number(of_unit[side])
            arms.append(
                ArmRows(
                    numbers[side], self.weights[side], block, stratum, number, missing_partner, open_rows, null_rows
                )
            )
        return TwoArms(arms[0], arms[1], self.paired, titles, " and ".join(groups or unit), unit[-1], self.arms)


def read(
    frame: pl.DataFrame | pl.LazyFrame,
    values: Sequence[str],
    design: Design,
    *,
    unfinished_last: bool,
    bucket: str | None = None,
) -> ComparedRows:
    """The rows of columns `values`. `unfinished_last`: NaN stands beyond every number; else its row is left out.

    ValueError for a missing column, and a weight that is not a number of at least 0.
    """
    arm, weight = design.arm, design.weight
    unit, layers, groups = list(design.unit), columns(design.strata), columns(design.cluster)
    lazy = frame.lazy()
    schema = lazy.collect_schema()
    kept = [*unit, *layers, *groups, *([bucket] if bucket else [])]
    missing = [
        name for name in dict.fromkeys([arm, *kept, *([weight] if weight else []), *values]) if name not in schema
    ]
    if missing:
        raise ValueError(f"the frame lacks the column {', '.join(missing)}: it has {', '.join(schema)}")
    plain = pl.col(arm).cast(pl.String) if schema[arm] in (pl.Enum, pl.Categorical) else pl.col(arm)
    known = [plain.alias("__arm"), (pl.col(weight).cast(pl.Float64) if weight else pl.lit(1.0)).alias(_WEIGHT)]
    taken = [pl.col(name).cast(pl.Float64).alias(f"__value{place}") for place, name in enumerate(values)]
    null = pl.any_horizontal(pl.col(name).is_null() for name in values).alias("__unknown")
    asked = lazy.select(*dict.fromkeys(kept), *known, *taken, null)
    rows = asked.filter((pl.col("__arm") == design.baseline) | (pl.col("__arm") == design.treatment)).collect()
    weights = rows[_WEIGHT].to_numpy()
    odd = np.count_nonzero(~((weights >= 0) & np.isfinite(weights)))
    if odd:
        raise ValueError(f"{weight}: {odd} rows have a weight that is not a finite number of at least 0")
    of_unit = _places(rows, unit)
    levels = _levels(rows, layers) if layers else None
    return ComparedRows(
        rows.select(f"__value{place}" for place in range(len(values))).to_numpy().astype(np.float64),
        weights,
        rows["__unknown"].to_numpy(),
        ((rows["__arm"] == design.baseline).to_numpy(), (rows["__arm"] == design.treatment).to_numpy()),
        of_unit,
        _places(rows, groups) if groups else of_unit,
        _places(rows, layers) if layers else np.zeros(rows.height, dtype=np.int64),
        () if levels is None else tuple(", ".join(map(str, row)) for row in levels.select(layers).iter_rows()),
        (unit, groups, layers),
        (f"{arm} {design.baseline}", f"{arm} {design.treatment}"),
        rows[bucket] if bucket else pl.Series(),
        design.paired,
        unfinished_last,
    )


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


def _matched(sides: Sequence[Mask], of_unit: Places) -> list[Mask]:
    """Of the rows of each side those whose unit the other has, too."""
    size = of_unit.max(initial=0) + 1
    here = [np.bincount(of_unit[side], minlength=size) > 0 for side in sides]
    both = (here[0] & here[1])[of_unit]
    return [side & both for side in sides]


def _nested(inner: Places, outer: Places, inner_names: list[str], outer_names: list[str], what: str) -> None:
    if _number(inner) != len(np.unique(inner * (outer.max(initial=0) + 1) + outer)):
        raise ValueError(f"a {' and '.join(inner_names)} is in more than one {what} ({', '.join(outer_names)})")
