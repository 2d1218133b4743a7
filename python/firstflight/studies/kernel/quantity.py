"""Quantities: values from the records, as arrays with the dimensions of a grid and one more, `draw`.

Draw 0 is the value over all replicates; the interval comes out of the others at the end (`estimate`), and no study
computes one. By the jackknife draw i leaves replicate i out (Tukey), in all cells at once: cells with the same seed
share their random numbers, and arithmetic between cells keeps them paired. By the bootstrap draw i takes replicates at
random, for each cell separately: measurements in real time share nothing. Quantities of both kinds do not mix.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.ab.resampling import one_blas_thread
from firstflight.analysis.intervals import Estimate, jackknife, percentiles, seed_of
from firstflight.counted import nearest, with_unit
from firstflight.errors import RequestError
from firstflight.records import TABLES, Run
from firstflight.scenario.cell import whole
from firstflight.studies.kernel.grid import EXPERIMENT
from firstflight.studies.kernel.sample import DRAW, METHOD, PERCENTILE, REPLICATE, RESAMPLES, Array, Sample, draws

FROM_ELSEWHERE, RISING = 2, 3


class Filling:
    """The cells of a quantity without data, and the values for them.

    In NumPy, since claims on a part of a run ask for some thousand fillings of small arrays.
    """

    def __init__(self, quantity: Quantity, array: xr.DataArray) -> None:
        self._quantity, self._array = quantity, array
        self._made = cache(self._make)
        # Several trials change the same cells, one after the other.
        self._changed: tuple[xr.DataArray | None, Array] = (None, np.zeros(0))
        self._near = cache(lambda: self._replaced(self._made(0)[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles leave out what is made again."""
        return Filling, (self._quantity, self._array)

    @cached_property
    def gaps(self) -> xr.DataArray:
        """Whether a cell has no data; the dimensions are the grid's keys."""
        array = undrawn(self._array)
        return array.isnull().all([key for key in array.dims if key in (*self._quantity.by, REPLICATE, PERCENTILE)])

    @cached_property
    def is_needed(self) -> bool:
        """Whether cells are to be filled: those missing, but of a partial quantity only if all are."""
        return bool(self.gaps.all() or (self.gaps.any() and not self._quantity.partial))

    def filled(self, changed: xr.DataArray | None, trial: int) -> xr.DataArray:
        """The quantity with a value in each of `gaps`; in those of `changed` another one in each trial.

        Trial values are made for minima, maxima and shares (far from the median), comparisons and ratios (another
        sign), counts of equal values (values that occur elsewhere), and trends (rising with the labels). Other results,
        such as a count of values in a narrow range, may stay the same though they depend on a cell.
        """
        if changed is None:
            return self._near()
        if changed is not self._changed[0]:
            self._changed = changed, self._spread(changed.reindex_like(self.gaps, fill_value=False))
        near, other = self._made(trial)
        return self._replaced(np.where(self._changed[1], other, near))

    @cached_property
    def _missing(self) -> Array:
        return self._spread(self.gaps)

    def _spread(self, cells: xr.DataArray) -> Array:
        """`cells` with a dimension for each of the quantity's."""
        dims = [key for key in self._array.dims if key in cells.dims]
        spread = tuple(slice(None) if key in dims else None for key in self._array.dims)
        return cells.transpose(*dims).values[spread]

    def _replaced(self, values: Array) -> xr.DataArray:
        return self._array.copy(data=np.where(self._missing, values, self._array.values))

    def _make(self, trial: int) -> tuple[Array, Array]:
        """Values that are the same in all trials, but for the scatter of draws, and those of this one."""
        of, array = self._quantity, self._array
        places = array.values[..., 0] if DRAW in array.dims else array.values
        first = np.random.default_rng(seed_of("fill", of.name))
        if of.kinds:
            kinds = first.integers(0, len(of.kinds), places.shape).astype(float)
            return self._drawn(kinds, np.zeros(1)), self._drawn((kinds + trial) % len(of.kinds), np.zeros(1))
        known = places[~np.isnan(places)]
        scale = (abs(float(np.median(known))) if known.size else 1.0) or 1.0
        near = scale * first.uniform(1, 2, places.shape)
        draw = np.random.default_rng(seed_of("trial", of.name, trial // 2))
        far = scale * 1e6 * 10 ** draw.uniform(0, 3, places.shape)
        if trial == FROM_ELSEWHERE:
            # Quantities of which nothing is known are then equal.
            other = draw.choice(known, places.shape) if known.size else np.ones(places.shape)
        elif trial == RISING:
            # With the label, of one quantity more than of another.
            other = scale * np.linspace(1, 2, places.size).reshape(places.shape) ** first.uniform(1, 9)
        else:
            other = (-1) ** trial * far
        # The replicates scatter as well.
        scatter = draw.uniform(0, 1e-3, array.sizes[DRAW] - 1) if DRAW in array.dims else np.zeros(0)
        scatter = np.concatenate([[0.0], scatter])
        return self._drawn(near, scatter), self._drawn(other, scatter)

    def _drawn(self, values: Array, scatter: Array) -> Array:
        return values[..., None] * (1 + scatter) if DRAW in self._array.dims else values


_PAIRED, _OBSERVED = "paired bootstrap", "bootstrap of observations"
Summary = Literal["median", "lower quartile", "upper quartile", "sum"]
_SUMMARIES: Mapping[Summary, Callable[..., Any]] = {
    "median": np.median,
    "lower quartile": partial(np.quantile, q=0.25),
    "upper quartile": partial(np.quantile, q=0.75),
    "sum": np.sum,
}

Rows = Callable[["Run"], pl.LazyFrame]


@dataclass(frozen=True, eq=False)
class Quantity:
    """A measure of one replicate of one cell: `value`, an aggregate of the rows of `records` that pass `where`. The
    value of a cell is the mean over replicates, with an interval by the jackknife where `is_jackknifed`.

    `grid` names the grid in a study with several. `records` is a table of the records, or a function that returns rows
    of the grid's cells, with their keys and `replicate`. `by` adds columns of the records as dimensions, with their
    labels; a tuple of names takes the labels from the run. `at` restricts keys to labels that can have a value. `unit`
    is that of `value`. `kinds` names the values 0, 1, ... of a category. `partial`: of the existing cells only.
    """

    is_jackknifed: ClassVar[bool] = True

    name: str
    title: str
    unit: str
    value: pl.Expr
    where: pl.Expr | None = None
    records: (
        Literal["transfers", "pages", "links", "streams", "handshakes", "users", "segments", "quic"] | Rows | Sample
    ) = "transfers"
    by: tuple[str, ...] | Mapping[str, Sequence[Any]] = ()
    digits: int = 1
    grid: str = ""
    at: Mapping[str, Sequence[Any]] | None = None
    kinds: tuple[str, ...] = ()
    partial: bool = False

    def __post_init__(self) -> None:
        """RequestError for a name that `Quantities` cannot give, and for arguments that would have no effect."""
        for wrong, problem in self._problems():
            if wrong:
                raise RequestError(f'quantity "{self.name}": {problem}')

    def _problems(self) -> list[tuple[bool, str]]:
        return [
            (not self.name or self.name.startswith("_"), "the name is empty or begins with _; give it another"),
            (hasattr(Quantities, self.name), "q has a method of this name; give it another"),
            (not all(isinstance(text, str) for text in (self.title, self.unit)), "title and unit are text"),
            (whole(self.digits, 0, 15) is None, f"digits is {self.digits!r}; write a whole number from 0 to 15"),
            (
                not isinstance(self.value, pl.Expr) or not isinstance(self.where, pl.Expr | None),
                'value and where are expressions, such as pl.col("bytes").sum() and pl.col("completed") == 1',
            ),
            (isinstance(self.by, str), f'by is "{self.by}"; write by=("{self.by}",), or its labels as a mapping'),
            *(self._problem_of_labels(key, labels) for key, labels in {**(self.at or {}), **self.labels()}.items()),
            self._problem_of_records(),
        ]

    def _problem_of_records(self) -> tuple[bool, str]:
        if isinstance(self.records, Sample):
            return True, "records is a Sample; write Sampled"
        known = callable(self.records) or (isinstance(self.records, str) and self.records in TABLES)
        return not known, f"records is {self.records!r}; {nearest(str(self.records), TABLES)}"

    def _problem_of_labels(self, key: str, labels: Any) -> tuple[bool, str]:
        given = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else list(labels)
        wrong = not given or any(given.count(label) > 1 for label in given)
        return wrong, f"the labels of {key} are {labels!r}; write a list of different labels"

    def columns(self) -> set[str]:
        """Columns of the records that the quantity reads, in addition to keys and `replicate`."""
        where = () if self.where is None else self.where.meta.root_names()
        return {*self.by, *self.value.meta.root_names(), *where}

    def by_replicate(self, records: pl.DataFrame, keys: Iterable[str], one_cell: bool = False) -> pl.DataFrame:
        """The `value` of each replicate of each cell in `records`. `one_cell`: all rows are of one cell, and its `keys`
        are taken from the first.
        """
        read = records if self.where is None else records.filter(self.where)
        by, of_cell = ([], keys) if one_cell else (keys, [])
        value = self.value.cast(pl.Float64).alias("value")
        groups = read.group_by(*by, *self.by, "replicate", maintain_order=True)
        return groups.agg(value, *(pl.col(key).first() for key in of_cell))

    def measure(self, rows: pl.DataFrame, coordinates: Mapping[str, Sequence[Any]]) -> xr.DataArray:
        """The quantity in all cells of `coordinates`, with dimensions `(*coordinates, *by, draw)`; NaN without rows.
        `rows`: of `by_replicate`.
        """
        labels = self.all_labels(coordinates)
        keys = [*coordinates, *self.by]
        if not isinstance(self.by, Mapping):
            # Names of the records are in the order of the scenario.
            labels |= {name: rows[name].unique().sort().cast(pl.String).to_list() for name in self.by}
            rows = rows.with_columns(pl.col(name).cast(pl.String) for name in self.by)
        replicates = max([0, *rows["replicate"]]) + 1
        values = np.full([*(len(axis) for axis in labels.values()), replicates], np.nan)
        places = [{label: place for place, label in enumerate(axis)} for axis in labels.values()]
        for *point, replicate, value in rows.select(*keys, "replicate", "value").iter_rows():
            if all(label in at for at, label in zip(places, point, strict=True)):
                values[(*(at[label] for at, label in zip(places, point, strict=True)), replicate)] = value
        return self._summarized(values, labels)

    def blank(self, coordinates: Mapping[str, Sequence[Any]]) -> xr.DataArray:
        """The array of `measure` without rows: all NaN."""
        labels = self.all_labels(coordinates)
        return self._summarized(np.full([*(len(axis) for axis in labels.values()), 1], np.nan), labels)

    def all_labels(self, coordinates: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """By dimension but `draw`; none for columns of `by` whose labels are the run's."""
        of_grid = {key: (self.at or {}).get(key, labels) for key, labels in coordinates.items()}
        return {key: list(of) for key, of in {**of_grid, **dict.fromkeys(self.by, ()), **self.labels()}.items()}

    def _summarized(self, values: Array, labels: Mapping[str, list[Any]]) -> xr.DataArray:
        coordinates = {**labels, REPLICATE: np.arange(values.shape[-1])}
        return self._over_replicates(self.described(xr.DataArray(values, coordinates, [*labels, REPLICATE])))

    def _over_replicates(self, values: xr.DataArray) -> xr.DataArray:
        return mean_of(values)

    def labels(self) -> Mapping[str, Sequence[Any]]:
        """Labels of the dimensions of `by` that are known without a run."""
        return self.by if isinstance(self.by, Mapping) else {}

    def described(self, array: xr.DataArray) -> xr.DataArray:
        """The array with the quantity's name, title and unit."""
        return named(array, self.name, self.title, self.unit, self.digits)


@dataclass(frozen=True, eq=False)
class Observed(Quantity):
    """A `summary` of the existing replicates with a bootstrap interval for each cell: for measurements in real time."""

    is_jackknifed = False
    summary: Summary = "median"

    def _problems(self) -> list[tuple[bool, str]]:
        problem = f'summary is "{self.summary}"; write {", ".join(_SUMMARIES)}'
        return [*super()._problems(), (self.summary not in _SUMMARIES, problem)]

    def _over_replicates(self, values: xr.DataArray) -> xr.DataArray:
        return _with_draws(values, _bootstrap(values.values, self.summary, self.grid, self.name), "bootstrap")


@dataclass(frozen=True, eq=False)
class Observations(Quantity):
    """The values of all replicates, along `replicate`, for pairing before `observed` summarizes them."""

    is_jackknifed = False

    def _over_replicates(self, values: xr.DataArray) -> xr.DataArray:
        return values


@dataclass(frozen=True, eq=False)
class Sampled(Quantity):
    """The mean over the units of all replicates of a `Sample`, their sum or their percentiles: `value` is that of a
    unit, and counts with its `weight`. The interval is by a bootstrap of clusters, and missing for too few units.
    """

    is_jackknifed = False
    summary: Literal["mean", "sum"] | tuple[float, ...] = "mean"
    weight: pl.Expr | None = None

    def _problems(self) -> list[tuple[bool, str]]:
        named, shares = isinstance(self.summary, str), self.percentiles
        wrong = (named and self.summary not in ("mean", "sum")) or not all(0 < share < 100 for share in shares)
        return [
            *super()._problems(),
            (not isinstance(self.by, Mapping) and bool(self.by), "a Sample needs by with labels, as a mapping"),
            (wrong, f'summary is "{self.summary}"; write mean, sum or percentiles such as (50, 95)'),
        ]

    def _problem_of_records(self) -> tuple[bool, str]:
        return not isinstance(self.records, Sample), "records is no Sample; give one, or write Quantity"

    def columns(self) -> set[str]:
        """Columns of a unit that the quantity reads, in addition to keys."""
        return super().columns().union([] if self.weight is None else self.weight.meta.root_names())

    @property
    def percentiles(self) -> tuple[float, ...]:
        """Percentiles along the dimension `percentile`; empty for a mean or a sum."""
        return () if isinstance(self.summary, str) else self.summary

    def labels(self) -> Mapping[str, Sequence[Any]]:
        """As `Quantity.labels`, and the percentiles."""
        return {**super().labels(), **({PERCENTILE: self.percentiles} if self.percentiles else {})}


def measured(
    run: Run, quantities: Sequence[Quantity], coordinates: Mapping[str, Mapping[str, Sequence[Any]]]
) -> dict[Quantity, xr.DataArray]:
    """Each quantity of `run`; `coordinates` by the name of the grid. Each table is read once."""
    read: dict[tuple[object, str], list[Quantity]] = {}
    for of in quantities:
        read.setdefault((of.records, of.grid), []).append(of)
    arrays: dict[Quantity, xr.DataArray] = {}
    for (records, grid), group in read.items():
        of_grid = {EXPERIMENT: grid} if grid else {}
        if isinstance(records, Sample):
            cells = [cell for cell in run.cells if of_grid.items() <= cell.items()]
            units = [of for of in group if isinstance(of, Sampled)]
            with one_blas_thread():
                drawn = draws(run, records, units, coordinates[grid], cells, of_grid)
            arrays |= {of: of.described(array.assign_coords({METHOD: _PAIRED})) for of, array in drawn.items()}
            continue
        columns = {*coordinates[grid], "replicate"}.union(*(quantity.columns() for quantity in group))
        values: dict[Quantity, list[pl.DataFrame]] = {of: [] for of in group}
        # The rows of one cell are in memory at a time.
        for part in [records(run)] if callable(records) else run.parts(str(records), **of_grid):
            # Sums of floating-point numbers depend in the last digit on how a lazy frame is cut into parts. The
            # streaming engine needs 10 ms a file, and there may be thousands.
            rows = part.select(sorted(columns)).collect(engine="in-memory")
            for of in group:
                values[of].append(of.by_replicate(rows, coordinates[grid], not callable(records)))
        arrays |= {of: of.measure(pl.concat(by), coordinates[grid]) for of, by in values.items()}
    most = max([0, *(array.sizes[DRAW] for of, array in arrays.items() if of.is_jackknifed)])
    # An experiment that the run lacks has as many draws as another, with which it may be compared.
    for quantity, array in arrays.items():
        if quantity.is_jackknifed and array.isnull().all():
            arrays[quantity] = array.reindex({DRAW: np.arange(most)})
    return {quantity: arrays[quantity] for quantity in quantities}


def _bootstrap(values: Array, over: Summary, grid: str, name: str) -> Array:
    """`over` of the last axis: of all that there are, then of as many drawn from them, in each place for itself."""
    summary = _SUMMARIES[over]
    resamples = np.full((*values.shape[:-1], 1 + RESAMPLES), np.nan)
    for place in np.ndindex(values.shape[:-1]):
        sample = values[place][~np.isnan(values[place])]
        if len(sample):
            picked = np.random.default_rng(seed_of(grid, name, place)).integers(
                0, len(sample), (RESAMPLES, len(sample))
            )
            resamples[place] = np.concatenate([[summary(sample)], summary(sample[picked], axis=1)])
    return resamples


def _jackknife(values: Array) -> Array:
    """Means over the last axis, replicates: over all, then without each in turn. NaN where one is missing."""
    count = values.shape[-1]
    total = values.sum(axis=-1, keepdims=True)
    without = (total - values) / (count - 1) if count > 1 else np.full_like(values, np.nan)
    return np.concatenate([total / count, without], axis=-1)


class Quantities:
    """Quantities of one run, by name: `q.completion_time`. AttributeError lists the known names."""

    def __init__(
        self,
        measured: Mapping[Quantity, xr.DataArray],
        run: Run | None = None,
        fill: Callable[[Quantity, xr.DataArray], xr.DataArray] | None = None,
    ) -> None:
        """`fill` makes the returned array; it is called once for those that are asked for."""
        self._run, self._fill = run, fill
        self._measured = {quantity.name: (quantity, array) for quantity, array in measured.items()}
        self._given: dict[str, xr.DataArray] = {}

    def __getattr__(self, name: str) -> xr.DataArray:
        if name.startswith("_"):
            # A copy is asked before it has its attributes.
            raise AttributeError(name)
        if name not in self._given:
            try:
                pair = self._measured[name]
            except KeyError:
                raise AttributeError(f'no quantity "{name}"; there are {", ".join(self._measured)}') from None
            self._given[name] = self._fill(*pair) if self._fill else pair[1]
        return self._given[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._measured]

    def __repr__(self) -> str:
        """Name, title and unit of each quantity."""
        lines = [f"{name}: {with_unit(of.title, f'({of.unit})')}" for name, (of, _) in self._measured.items()]
        return "\n".join(lines) or "no quantities"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def at(self, **labels: Any) -> Quantities:
        """The same quantities at these labels, without their dimensions. RequestError for a key that none has."""
        keys = {str(key) for array in self.arrays().values() for key in array.dims}
        if unknown := [key for key in labels if key not in keys]:
            raise RequestError(f'no quantity has the key "{unknown[0]}"; {nearest(unknown[0], keys)}')
        return Quantities(self.arrays(), self._run, partial(self._at, labels))

    def _at(self, labels: Mapping[str, Any], quantity: Quantity, _: xr.DataArray) -> xr.DataArray:
        """The array at these labels, read by its name, so that `read` lists it."""
        array: xr.DataArray = getattr(self, quantity.name)
        return array.sel({key: label for key, label in labels.items() if key in array.dims}, drop=True)

    def __contains__(self, name: str) -> bool:
        """Whether the run's engine has the grid of the quantity called `name`."""
        return name in self._measured

    @property
    def run(self) -> Run:
        """The measured run, for pictures of single transfers. RequestError for quantities that were stored without."""
        if self._run is None:
            raise RequestError("these quantities were stored without their run; measure one with study.quantities(run)")
        return self._run

    @property
    def trials(self) -> int:
        """Number of different fillings of missing cells."""
        return max([4, *(len(quantity.kinds) for quantity, _ in self._measured.values())])

    @cached_property
    def _fillings(self) -> dict[Quantity, Filling]:
        return {quantity: Filling(quantity, array) for quantity, array in self._measured.values()}

    def absent(self) -> dict[str, xr.DataArray]:
        """By grid with a gap: whether a cell lacks data for a quantity; the dimensions are the grid's keys."""
        grid_gaps: dict[str, list[xr.DataArray]] = {}
        for quantity, filling in self._fillings.items():
            gaps = filling.gaps
            if quantity.partial and not gaps.all():
                gaps = xr.zeros_like(gaps)
            grid_gaps.setdefault(quantity.grid, []).append(gaps)
        return {grid: reduce(_either, gaps) for grid, gaps in grid_gaps.items() if any(of.values.any() for of in gaps)}

    def values(self) -> Quantities:
        """The same quantities without resampled medians, which only intervals need."""
        return Quantities(
            {
                of: array if isinstance(of, Observations) or of.is_jackknifed else array.isel({DRAW: slice(1)})
                for of, array in self._measured.values()
            },
            self._run,
        )

    def is_empty(self, grid: str) -> bool:
        """Whether no quantity of the grid has data in any cell."""
        return all(bool(array.isnull().all()) for of, array in self._measured.values() if of.grid == grid)

    def filled(self, absent: Mapping[str, xr.DataArray], changed: Mapping[str, xr.DataArray], trial: int) -> Quantities:
        """The same with values in the cells of `absent`, and others in those of `changed` for each `trial`."""
        return Quantities(self.arrays(), self._run, partial(self._filled, absent, changed, trial))

    def _filled(
        self,
        absent: Mapping[str, xr.DataArray],
        changed: Mapping[str, xr.DataArray],
        trial: int,
        quantity: Quantity,
        array: xr.DataArray,
    ) -> xr.DataArray:
        filling = self._fillings[quantity] if quantity.grid in absent else None
        return filling.filled(changed.get(quantity.grid), trial) if filling and filling.is_needed else array

    def arrays(self) -> dict[Quantity, xr.DataArray]:
        """Each quantity with its values."""
        return dict(self._measured.values())

    def read(self) -> list[Quantity]:
        """The quantities that were read."""
        return [self._measured[name][0] for name in self._given]


def _either(gaps: xr.DataArray, others: xr.DataArray) -> xr.DataArray:
    """Quantities that leave labels out say nothing of these."""
    gaps, others = xr.align(gaps, others, join="outer", fill_value=False)
    return gaps | others


def by_replicate(array: xr.DataArray) -> xr.DataArray:
    """The values behind a jackknifed mean, along `replicate` instead of `draw`."""
    mean, without = array.isel({DRAW: 0}, drop=True), array.isel({DRAW: slice(1, None)})
    count = without.sizes[DRAW]
    values = count * mean - (count - 1) * without if count > 1 else mean.broadcast_like(without)
    return values.drop_vars([DRAW, METHOD]).rename({DRAW: REPLICATE}).transpose(..., REPLICATE)


def mean_of(values: xr.DataArray) -> xr.DataArray:
    """The mean over `replicate`, with jackknife draws, such as of a ratio formed replicate by replicate."""
    return _with_draws(values, _jackknife(values.transpose(..., REPLICATE).values), "jackknife")


def observed(values: xr.DataArray, *over: str, summary: Summary = "median") -> xr.DataArray:
    """The median, or another `summary`, along the dimensions `over`, with a bootstrap per remaining cell. RequestError
    for other dimensions, and for draws, which are no observations.
    """
    if DRAW in values.dims or not over or not set(over) <= set(values.dims) or summary not in _SUMMARIES:
        there = ", ".join(map(str, values.dims))
        raise RequestError(
            f'"{values.name}" has no {summary} over {", ".join(over) or "nothing"}: its dimensions are {there}; '
            f"observed takes {', '.join(_SUMMARIES)} over dimensions of k.Observations"
        )
    left = [str(key) for key in values.dims if key not in over]
    along = values.stack({REPLICATE + "s": over}).transpose(*left, ...)
    kept = values.isel(dict.fromkeys(over, 0), drop=True).transpose(*left)
    drawn = _bootstrap(along.values, summary, "observed", str(values.name))
    # One observation says nothing of how far others are from it.
    drawn[(~np.isnan(along.values)).sum(axis=-1) == 1, 1:] = np.nan
    coordinates = {**kept.coords, DRAW: np.arange(drawn.shape[-1]), METHOD: _OBSERVED}
    return xr.DataArray(drawn, coordinates, [*left, DRAW], values.name, values.attrs)


def common(*arrays: xr.DataArray) -> list[xr.DataArray]:
    """Means whose draws cover the first replicates that all of `arrays` have.

    Additional replicates count for the value only, so the interval is wider than necessary.
    """
    count = min(array.sizes[DRAW] for array in arrays) - 1
    means = []
    for array in arrays:
        few = mean_of(by_replicate(array).isel(replicate=slice(count)))
        means.append(few.where(few[DRAW] > 0, array.isel({DRAW: 0}, drop=True)))
    return means


def variation_of(values: xr.DataArray) -> xr.DataArray:
    """The coefficient of variation over `replicate`, with jackknife draws; NaN with fewer than two."""
    raw = values.transpose(..., REPLICATE).values
    count = raw.shape[-1]
    kept = [raw, *(np.delete(raw, left_out, axis=-1) for left_out in range(count))]
    ratios = [of.std(axis=-1, ddof=1) / of.mean(axis=-1) if of.shape[-1] > 1 else raw[..., 0] * np.nan for of in kept]
    return _with_draws(values, np.stack(ratios, axis=-1), "jackknife")


def resampled(values: xr.DataArray) -> xr.DataArray:
    """The mean over `replicate`, with draws paired over cells and quantities, for counts, where the jackknife fails."""
    raw = values.transpose(..., REPLICATE).values
    count = raw.shape[-1]
    picked = np.random.default_rng(count).integers(0, count, (RESAMPLES, count))
    means = np.concatenate([raw.mean(axis=-1, keepdims=True), raw[..., picked].mean(axis=-1)], axis=-1)
    return _with_draws(values, means, _PAIRED if count > 1 else "bootstrap")


def _with_draws(values: xr.DataArray, drawn: Array, method: str) -> xr.DataArray:
    kept = values.isel({REPLICATE: 0}, drop=True)
    coordinates = {**kept.coords, DRAW: np.arange(drawn.shape[-1]), METHOD: method}
    return xr.DataArray(drawn, coordinates, [*kept.dims, DRAW], values.name, values.attrs)


def named(array: xr.DataArray, name: str, title: str, unit: str, digits: int = 1) -> xr.DataArray:
    """The array with name, title and unit for tables and figures."""
    return array.rename(name).assign_attrs(long_name=title, units=unit, digits=digits)


def words(array: xr.DataArray) -> tuple[str, str, int]:
    """Title, unit and digits of an array. RequestError for one that was made of others and not `named`."""
    if missing := {"long_name", "units", "digits"} - array.attrs.keys():
        raise RequestError(f"an array has no {min(missing)}; write named(array, name, title, unit)")
    return str(array.attrs["long_name"]), str(array.attrs["units"]), int(array.attrs["digits"])


def headed(array: xr.DataArray, **headings: str) -> xr.DataArray:
    """The array with headings of its dimensions for figures. RequestError for another dimension, and for no text."""
    for key, heading in headings.items():
        if key not in array.coords or not isinstance(heading, str):
            raise RequestError(f'the heading of "{key}" is {heading!r}; write text for {dims_of(array)}')
    return array.assign_coords({key: array[key].assign_attrs(long_name=heading) for key, heading in headings.items()})


def estimate(array: xr.DataArray) -> Estimate:
    """The value and 95% CI of an array over `draw` alone.

    Student's t on the jackknife's standard error, or percentiles of the bootstrap. The interval is NaN with fewer than
    two replicates. ValueError if other dimensions remain, or if both kinds of interval were mixed.
    """
    return _estimate(_by_cell(array, ()), _method(array))


def estimates(array: xr.DataArray, keys: Sequence[str]) -> Iterator[tuple[dict[str, Any], Estimate]]:
    """The labels and the `estimate` of each cell with data of an array over `keys` and at most `draw`."""
    method, labels = _method(array), [map(plain, array[key].values) for key in keys]
    values = _by_cell(array, keys)
    for place, drawn in zip(itertools.product(*labels), values.reshape(-1, values.shape[-1]), strict=True):
        if not math.isnan(drawn[0]):
            yield dict(zip(keys, place, strict=True)), _estimate(drawn, method)


def dims_of(array: xr.DataArray) -> str:
    """The dimensions but `draw`, in words."""
    return ", ".join(str(key) for key in array.dims if key != DRAW) or "none"


def _by_cell(array: xr.DataArray, keys: Sequence[str]) -> Array:
    """The values with the dimensions `keys`, in order, and draws; of an array without draws one."""
    left = [str(name) for name in array.dims if name not in (*keys, DRAW)]
    if left:
        raise ValueError(f'"{array.name}" still has the dimensions {", ".join(left)}; select or reduce them')
    values: Array = array.transpose(*keys, ...).values
    return values if DRAW in array.dims else values[..., np.newaxis]


def _method(array: xr.DataArray) -> str:
    """The kind of interval of an array, "" if it has no draws."""
    if DRAW not in array.dims:
        return ""
    if METHOD not in array.coords:
        raise ValueError(f'"{array.name}" is made of quantities with different kinds of intervals')
    return str(array[METHOD].values)


def _estimate(draws: Array, method: str) -> Estimate:
    value, drawn = float(draws[0]), draws[1:]
    # Beside cells with more replicates the draws that a cell lacks are empty.
    drawn = drawn[~np.isnan(drawn)]
    if method != "jackknife":
        if not len(drawn) or (method == "bootstrap" and (drawn == value).all()):
            return Estimate(value)
        return percentiles(value, drawn)
    return jackknife(value, drawn)


def undrawn(array: xr.DataArray) -> xr.DataArray:
    """The values alone, without the draws that intervals come from."""
    return array.isel({DRAW: 0}, drop=True).drop_vars(METHOD, errors="ignore") if DRAW in array.dims else array


def value(array: xr.DataArray) -> float:
    """The value of an array with no dimension but `draw`. ValueError if others remain."""
    return float(_by_cell(array, ())[0])


def each(array: xr.DataArray, words: str) -> str:
    """`words` for each label of the one dimension, such as "{value:.1f}% at {label} ms", separated by commas.
    ValueError if others remain, or none does.
    """
    key = next((str(key) for key in array.dims if key != DRAW), None)
    if key is None:
        raise ValueError(f'"{array.name}" has no dimension left, so no label; write value(...)')
    labels, values = map(plain, array[key].values), _by_cell(array, (key,))[:, 0]
    return ", ".join(words.format(value=of, label=label) for label, of in zip(labels, values, strict=True))


def extreme(array: xr.DataArray, least: bool = False) -> dict[str, Any]:
    """The labels of the largest value, or with `least` of the smallest; the first of several, NaN without a value."""
    values = undrawn(array).fillna(math.inf if least else -math.inf)
    at = values.argmin(values.dims) if least else values.argmax(values.dims)
    return {str(key): plain(values[key].values[int(place)]) for key, place in at.items()}


def along(key: str, parts: Mapping[Any, xr.DataArray], join: Literal["inner", "outer"] = "outer") -> xr.DataArray:
    """Arrays joined along the new dimension `key`, whose labels are the keys of `parts`; attributes of the first."""
    arrays = [of.expand_dims({key: [label]}) for label, of in parts.items()]
    joined: xr.DataArray = xr.concat(arrays, key, join=join, coords="minimal", compat="override")
    return joined.rename(arrays[0].name).assign_attrs(arrays[0].attrs)


def plain(label: Any) -> Any:
    """A label as a Python value, not as NumPy's."""
    return label.item() if hasattr(label, "item") else label
