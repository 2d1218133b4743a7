"""From rows to the two arms of a comparison: which rows count, what is paired with what, and what is resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Values = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_BLOCK, _WEIGHT, _STRATUM = "__block", "__weight", "__stratum"


@dataclass(frozen=True)
class Arm:
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
        """How many blocks there are to draw from."""
        return len(self.stratum)


@dataclass(frozen=True)
class Sample:
    """Both arms. `paired`: a block is the same one in both. `strata`: their names, in the order of `Arm.stratum`."""

    baseline: Arm
    treatment: Arm
    paired: bool
    strata: tuple[str, ...]
    block: str


def columns(names: str | Sequence[str] | None) -> list[str]:
    """One name, several or none as a list."""
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def read(
    frame: pl.DataFrame | pl.LazyFrame,
    values: Sequence[str],
    *,
    arm: str,
    baseline: object,
    treatment: object,
    unit: Sequence[str],
    weight: str | None,
    strata: str | Sequence[str] | None,
    cluster: str | Sequence[str] | None,
    paired: bool,
    unfinished_last: bool,
) -> Sample:
    """The sample of columns `values`. `unfinished_last`: NaN stands beyond every number; else its row is left out.

    A unit that is left without a row in one arm is left out of both when `paired`. ValueError for a missing column, an
    arm equal to the other, a weight that is not a number of at least 0, and a unit in two clusters or strata.
    """
    unit, layers, groups = list(unit), columns(strata), columns(cluster)
    if not unit:
        raise ValueError("unit: name at least one column, such as replicate and client")
    if baseline == treatment:
        raise ValueError(f"{arm}: both arms are {baseline!r}")
    lazy = frame.lazy()
    names = lazy.collect_schema().names()
    wanted = dict.fromkeys([arm, *unit, *layers, *groups, *([weight] if weight else []), *values])
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"the frame lacks the column {', '.join(missing)}: it has {', '.join(names)}")
    plain = pl.col(arm).cast(pl.String) if lazy.collect_schema()[arm] in (pl.Enum, pl.Categorical) else pl.col(arm)
    drawn = groups or unit
    rows = lazy.select(
        *dict.fromkeys([*unit, *layers, *groups]),
        plain.alias("__arm"),
        (pl.col(weight).cast(pl.Float64) if weight else pl.lit(1.0)).alias(_WEIGHT),
        *(pl.col(name).cast(pl.Float64).alias(f"__value{place}") for place, name in enumerate(values)),
    ).filter(pl.col("__arm").is_in([baseline, treatment]))
    collected = rows.collect()
    odd = collected.filter(pl.col(_WEIGHT).is_null() | ~(pl.col(_WEIGHT) >= 0) | pl.col(_WEIGHT).is_infinite())
    if odd.height:
        raise ValueError(f"{weight}: {odd.height} rows have a weight that is not a finite number of at least 0")
    taken = [f"__value{place}" for place in range(len(values))]
    sides = [collected.filter(pl.col("__arm") == side).drop("__arm") for side in (baseline, treatment)]
    counts = []
    for place, side in enumerate(sides):
        unknown = pl.any_horizontal(pl.col(name).is_null() for name in taken)
        known = side.filter(~unknown)
        open_ = pl.any_horizontal(pl.col(name).is_nan() for name in taken)
        counts.append({"unknown": side.height - known.height, "unfinished": known.filter(open_).height})
        sides[place] = known
    if paired:
        kept = _matched(sides, unit)
        for count, side, match in zip(counts, sides, kept, strict=True):
            count["unmatched"] = _number(side, unit) - _number(match, unit)
        sides = kept
    if unfinished_last:
        sides = [side.with_columns(pl.col(taken).fill_nan(float("inf"))) for side in sides]
    else:
        sides = [side.filter(~pl.any_horizontal(pl.col(name).is_nan() for name in taken)) for side in sides]
        if paired:
            sides = _matched(sides, unit)
    together = pl.concat(sides)
    # Not paired, a unit of the same name in the other arm is another one.
    for rows_of_units in [together] if paired else sides:
        _nested(rows_of_units, unit, groups, "cluster")
        _nested(rows_of_units, drawn, layers, "stratum")
    levels = together.select(layers).unique().sort(layers) if layers else None
    shared = _blocks(together, drawn, layers, levels) if paired else None
    arms = []
    for side, count in zip(sides, counts, strict=True):
        blocks = _blocks(side, drawn, layers, levels) if shared is None else shared
        placed = side.join(blocks.select(*drawn, _BLOCK), on=drawn, how="left", nulls_equal=True, maintain_order="left")
        arms.append(
            Arm(
                placed.select(taken).to_numpy().astype(np.float64).reshape(placed.height, len(taken)),
                placed[_WEIGHT].to_numpy(),
                placed[_BLOCK].to_numpy().astype(np.int64),
                blocks[_STRATUM].to_numpy().astype(np.int64),
                _number(side, unit),
                count.get("unmatched", 0),
                count["unfinished"],
                count["unknown"],
            )
        )
    titles = ("",) if levels is None else tuple(", ".join(map(str, row)) for row in levels.iter_rows())
    return Sample(arms[0], arms[1], paired, titles, " and ".join(drawn))


def _number(rows: pl.DataFrame, unit: list[str]) -> int:
    return rows.select(unit).unique().height


def _matched(sides: list[pl.DataFrame], unit: list[str]) -> list[pl.DataFrame]:
    one, other = sides
    return [
        one.join(other.select(unit).unique(), on=unit, how="semi", nulls_equal=True, maintain_order="left"),
        other.join(one.select(unit).unique(), on=unit, how="semi", nulls_equal=True, maintain_order="left"),
    ]


def _nested(rows: pl.DataFrame, inner: list[str], outer: list[str], what: str) -> None:
    more = [name for name in outer if name not in inner]
    if more and rows.select(*inner, *more).unique().height != rows.select(inner).unique().height:
        raise ValueError(f"a {' and '.join(inner)} is in more than one {what} ({', '.join(outer)})")


def _blocks(rows: pl.DataFrame, drawn: list[str], layers: list[str], levels: pl.DataFrame | None) -> pl.DataFrame:
    """One row a block, sorted by stratum and then by key: the order of the rows does not change the resamples."""
    keys = rows.select(*dict.fromkeys([*drawn, *layers])).unique()
    if levels is None:
        keys = keys.with_columns(pl.lit(0).alias(_STRATUM))
    else:
        keys = keys.join(levels.with_row_index(_STRATUM), on=layers, how="left", nulls_equal=True)
    return keys.sort(_STRATUM, *drawn).with_row_index(_BLOCK)
