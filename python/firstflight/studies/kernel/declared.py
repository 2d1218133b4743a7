"""A study that is declared: `study.toml` in its folder, and functions over its quantities."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import polars as pl
import xarray as xr

from firstflight.analysis.claim import Claim
from firstflight.analysis.table import VALUE_COLUMNS, Table
from firstflight.counted import nearest
from firstflight.errors import FirstflightError, RequestError
from firstflight.records import TABLES, Run, RunWriter, empty, machine
from firstflight.records.directory import QUANTITIES
from firstflight.report.figure import Figure
from firstflight.scenario import Cell
from firstflight.scenario.explain import shown
from firstflight.studies.kernel import stored
from firstflight.studies.kernel.claim import ClaimSpec, depending, judge
from firstflight.studies.kernel.grid import EXPERIMENT, Build, Grid, Label
from firstflight.studies.kernel.quantity import Quantities, Quantity, measured
from firstflight.studies.kernel.sample import DRAW, METHOD, PERCENTILE, REPLICATE
from firstflight.studies.study import Study, declared

Of = Callable[[Quantities], Iterable[Any]]
# A run takes hours in which its code may be edited, and a notebook loads some modules again and others not.
_LOADED = machine.sources()


class DeclaredStudy(Study):
    """A study declared by `study.toml` (title, question, source, limitations, engines, `[grid]` or several
    `[grids.NAME]`), quantities, and functions of these for claims, tables, figures and the answer.
    """

    def __init__(
        self,
        file: str | Path,
        quantities: Sequence[Quantity],
        claims: Of = lambda q: (),
        tables: Of = lambda q: (),
        figures: Of = lambda q: (),
        answer: Of = lambda q: (),
        build: Build | None = None,
    ) -> None:
        """`file` is the module's: next to it are study.toml and the scenarios. `build` sets computed values."""
        if Path(file).is_dir():
            raise RequestError(f'"{file}" is a folder; write k.DeclaredStudy(__file__, ...)')
        folder = Path(file).parent
        self._declared = said = declared(folder)
        self.name = folder.name.replace("_", "-")  # type: ignore[misc]
        self.title, self.source, self.shows = said["title"], said["source"], said["shows"]  # type: ignore[misc]
        self.asked, self.limitations = said["question"], tuple(said["limitations"])  # type: ignore[misc]
        self.engines, self.replicates = tuple(said["engines"]), said["replicates"]  # type: ignore[misc]
        self._folder, self._quantities = folder, _checked(quantities, said, self.name)
        self._claims, self._tables, self._figures, self._answer = claims, tables, figures, answer
        self._build = build

    @cached_property
    def grids(self) -> dict[str, Grid]:
        """The grids of study.toml by name; a single one has an empty name."""
        grids = self._declared.get("grids") or {"": self._declared["grid"]}
        shared = self._declared.get("keys", {})
        return {name: Grid(self._folder, name, said, shared, self._build) for name, said in grids.items()}

    def keys(self, engine: str) -> list[dict[str, Label | None]]:
        """See `Study`."""
        names = self._keys(engine)
        return [key for grid in self._grids_of(engine) for key in grid.keys_of_cells(names)]

    def cells(self, engine: str) -> list[Cell]:
        """The cells of all grids."""
        return self.cells_at(engine, range(sum(grid.size for grid in self._grids_of(engine))))

    def cells_at(self, engine: str, places: Sequence[int]) -> list[Cell]:
        """See `Study`."""
        names, first, cells = self._keys(engine), 0, []
        for grid in self._grids_of(engine):
            cells += grid.cells(engine, names, {place - first for place in places})
            first += grid.size
        return cells

    def _grids_of(self, engine: str) -> list[Grid]:
        """The grids that runs of `engine` have."""
        return [grid for grid in self.grids.values() if grid.is_of(engine)]

    def _keys(self, engine: str) -> list[str]:
        return list(dict.fromkeys(key for grid in self._grids_of(engine) for key in grid.keys))

    @property
    def kept(self) -> dict[str, list[str]]:
        """Those that the quantities read; all where one of them takes its rows from the run by itself."""
        if not all(isinstance(of.records, str) for of in self._quantities):
            return {}
        read = {table: {"replicate", "application", "completed"} for table in ("transfers", "pages")}
        for of in self._quantities:
            read.get(str(of.records), set()).update(of.columns())
        return {table: [of.name for of in TABLES[table] if of.name in names] for table, names in read.items()}

    def quantities(self, run: Run) -> Quantities:
        """The quantities of `run`, by name: those that it keeps, or else those of its records."""
        place = self, len(run.cells)
        if place not in run.derived:
            self._check(run)
            quantities, coordinates = self._of(run.engine)
            origin = self._origin(run)
            arrays = stored.read(run.directory / QUANTITIES, quantities, coordinates, origin) if origin else None
            run.derived = {place: Quantities(self._titled(arrays or measured(run, quantities, coordinates)), run)}
        made: Quantities = run.derived[place]
        return made

    def stored_quantities(self, path: Path, engine: str) -> Quantities:
        """The quantities in a file, of a run by `engine`. RequestError if the study has other labels since; other
        changes of its scenarios or quantities are not seen.
        """
        quantities, coordinates = self._of(engine)
        arrays = stored.read(path, quantities, coordinates)
        if arrays is None:
            raise RequestError(f'"{path}" has no quantities with the labels of {self.name}; run it, and store it again')
        return Quantities(self._titled(arrays))

    def keep(self, run: RunWriter) -> None:
        """See `Study`."""
        origin = self._origin(run)
        if origin and stored.read(run.directory / QUANTITIES, *self._of(run.engine), origin) is None:
            run.write_quantities(stored.packed(self.quantities(run).arrays(), origin))

    def _origin(self, run: Run) -> str:
        """What the quantities of a run depend on: its records, the code and the libraries. Empty for code that is not
        the package's, of which it is not known what it reads, and for code that was edited since it was loaded.
        """
        if not self._folder.is_relative_to(machine.PACKAGE) or machine.sources() != _LOADED:
            return ""
        return " ".join([_LOADED, *machine.versions().values(), run.checksum])

    def check(self, engine: str) -> None:
        """See `Study`. Claims and tables of a small study are tried with made-up values."""
        quantities, coordinates = self._of(engine)
        for key in self._keys(engine):
            if taken := _TAKEN.get(key):
                raise RequestError(f'{self._folder}/study.toml: key "{key}" is the name of {taken}; rename the key')
        keys = {*self._keys(engine), EXPERIMENT}
        for of in quantities:
            for key, labels in (of.at or {}).items():
                if key not in coordinates[of.grid]:
                    raise RequestError(f'{self.name}: quantity "{of.name}" has labels at "{key}", no key of its grid')
                if unknown := [str(label) for label in labels if label not in coordinates[of.grid][key]]:
                    there = nearest(unknown[0], map(str, coordinates[of.grid][key]))
                    raise RequestError(f'{self.name}: quantity "{of.name}" is at {key} {unknown[0]}; {there}')
            if isinstance(of.records, str):
                _check_columns(f'{self.name}: quantity "{of.name}"', of, of.records, keys, coordinates[of.grid])
        if sum(of.blank(coordinates[of.grid]).size for of in quantities) > _TRIED:
            return
        made_up = self._made_up(engine)
        claims, tables = self._results(self._claims, made_up, ClaimSpec), self._results(self._tables, made_up, Table)
        self._results(self._answer, made_up, str, NoneType)
        self._check_tables(tables)
        self._check_claims(claims)

    def _check_tables(self, tables: list[Table]) -> None:
        names = [table.name for table in tables]
        for name in names:
            if name in TABLES or names.count(name) > 1:
                other = "the records" if name in TABLES else "another table"
                raise RequestError(f'{self.name}: table "{name}" has the name of {other}; rename it')

    def _check_claims(self, specs: list[ClaimSpec]) -> None:
        ids = [spec.id for spec in specs]
        for spec in specs:
            if ids.count(spec.id) > 1:
                raise RequestError(f'{self.name}: two claims are called "{spec.id}"; give each its own id')
            if left := [str(key) for key in spec.found.dims if key != DRAW]:
                raise RequestError(
                    f'{self.name}: claim "{spec.id}" still has the dimensions {", ".join(left)}; select or reduce them'
                )
            unit, found = spec.sentence.expectation.unit, spec.found.attrs.get("units", "")
            if any(unit in same and found in same and unit != found for same in _UNITS):
                raise RequestError(
                    f'{self.name}: claim "{spec.id}" expects {unit}, and its value is in {found}; convert it, and name '
                    "the unit of the value with named(...)"
                )
            if spec.sentence.needs != "value" and DRAW not in spec.found.dims and not np.isnan(spec.found):
                raise RequestError(
                    f'{self.name}: claim "{spec.id}" has no draws, so no interval; reduce named dimensions, as in '
                    '.max(["iw"]), or write needs="value"'
                )

    def _results(self, function: Of, quantities: Quantities, kind: type, *others: type) -> list[Any]:
        """What `function` of the study returns, of these types; RequestError with the line that fails."""
        try:
            made = function(quantities)
            is_list = isinstance(made, Iterable) and not isinstance(made, str)
            results = list(made) if is_list else [made]
        except FirstflightError:
            raise
        # The code is the author's, and so is any mistake in it.
        except Exception as error:
            frames = [
                at for at in traceback.extract_tb(error.__traceback__) if self._folder in Path(at.filename).parents
            ]
            where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else self.name
            reason = " ".join(str(error.args[0] if error.args else error).split())
            # That of a missing key is the key alone.
            reason = reason if " " in reason else f"{type(error).__name__}: {reason}"
            raise RequestError(f"{where}: {reason}") from error
        if wrong := [of for of in results if not (is_list and isinstance(of, (kind, *others)))]:
            what = kind.__name__ if is_list else "list"
            raise RequestError(f"{self.name}: {shown(wrong[0])} is no {what}; return a list of {kind.__name__}")
        return results

    def claim_ids(self, engine: str) -> list[str]:
        """Ids of the claims for runs of `engine`."""
        return [spec.id for spec in self._results(self._claims, self._made_up(engine), ClaimSpec)]

    def _made_up(self, engine: str) -> Quantities:
        """The quantities of runs of `engine` with made-up values."""
        quantities, coordinates = self._of(engine)
        blank = Quantities(self._titled({of: of.blank(coordinates[of.grid]) for of in quantities}))
        return blank.filled(blank.absent(), {}, 0)

    def _of(self, engine: str) -> tuple[list[Quantity], dict[str, dict[str, list[Label]]]]:
        """The quantities of runs of `engine`, and the coordinates of their grids."""
        coordinates = {name: grid.coordinates for name, grid in self.grids.items() if grid.is_of(engine)}
        return [of for of in self._quantities if of.grid in coordinates], coordinates

    def _titled(self, arrays: dict[Quantity, xr.DataArray]) -> dict[Quantity, xr.DataArray]:
        for quantity, array in arrays.items():
            for name, key in self.grids[quantity.grid].keys.items():
                array[name].attrs = {"long_name": key.title, "titles": key.titles}
        return arrays

    def _check(self, run: Run) -> None:
        """RequestError if the run's cells have other keys than the study's, as those of an older version."""
        keys = [*([] if "" in self.grids else [EXPERIMENT]), *self._keys(run.engine)]
        if run.cells and set(run.cells[0]) != set(keys):
            raise RequestError(
                f'"{run.directory}" is a run of another version of {self.name}: its cells have the keys '
                f"{', '.join(run.cells[0])} and the study has {', '.join(keys)}; run it again with another --out"
            )

    def claims(self, run: Run, *, listed: bool = True) -> list[Claim]:
        """The claims with their verdicts. Without `listed` this is faster, and the reason of a claim that cannot be
        checked names all missing cells, not only those that it needs.
        """
        return self.claims_of(self.quantities(run), listed=listed)

    def claims_of(self, quantities: Quantities, *, listed: bool = True) -> list[Claim]:
        """As `claims`, of the quantities of a run."""
        return judge(lambda q: self._results(self._claims, q, ClaimSpec), quantities, listed=listed)

    def tables(self, run: Run) -> list[Table]:
        """The tables with data."""
        tables = self._results(self._tables, self.quantities(run), Table)
        return [table for table in tables if not table.frame.is_empty()]

    def figures(self, run: Run) -> list[Figure]:
        """The figures with data."""
        figures = self._results(self._figures, self.quantities(run), Figure, NoneType) if run.cells else []
        return [figure for figure in figures if figure]

    def answer(self, run: Run) -> list[str]:
        """The sentences whose cells the run has."""
        return self.answer_of(self.quantities(run)) if run.cells else []

    def answer_of(self, quantities: Quantities) -> list[str]:
        """As `answer`, of the quantities of a run."""
        sentences = depending(self._answer, quantities, lambda text, other: text != other, listed=False)
        return [sentence for sentence, lacking in sentences if sentence and not lacking]


_TAKEN = (
    dict.fromkeys(("value", *VALUE_COLUMNS), "a column of the tables")
    | {column.name: "a column of the records" for table in TABLES.values() for column in table}
    | dict.fromkeys((DRAW, METHOD, PERCENTILE, EXPERIMENT), "a dimension or coordinate of every quantity")
    | dict.fromkeys(inspect.signature(xr.DataArray.sel).parameters, "an argument of sel")
)
"""Names that a key cannot have, and whose they are."""

_UNITS = (("s", "ms", "us", "ns"), ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"), ("bytes", "B", "kB", "MB", "KiB", "MiB"))
"""Units of one thing, each: a claim and its value have the same."""

_TRIED = 2_000
"""Values of a study that is small: its claims and tables take some tenths of a second."""


def _check_columns(where: str, of: Quantity, records: str, keys: set[str], labels: Mapping[str, Sequence[Any]]) -> None:
    """RequestError for a column that the records of the quantity do not have, and for a value that is no aggregate."""
    columns = {name: {column.name for column in table} | {REPLICATE} for name, table in TABLES.items()}
    for column in sorted(of.columns() - keys - columns[records]):
        others = [name for name, of_table in columns.items() if column in of_table]
        hint = f'write records = "{others[0]}"' if others else nearest(column, columns[records])
        raise RequestError(f'{where} reads "{column}", no column of the records "{records}"; {hint}')
    if again := [column for column in of.by if column in keys]:
        raise RequestError(f"{where} is by {again[0]}, a key of its grid; leave it out: keys are dimensions anyway")
    rows = empty(records).lazy().with_columns(pl.lit(next(iter(labels.get(key, ())), 0)).alias(key) for key in keys)
    # A run's own names of applications take the place of none.
    rows = rows.with_columns(pl.col(pl.Enum([])).cast(pl.String))
    for column, chosen in of.labels().items():
        is_number = rows.collect_schema()[column].is_numeric()
        if wrong := [label for label in chosen if isinstance(label, str) == is_number]:
            kind = "numbers" if is_number else "text"
            raise RequestError(f"{where}: {column} is never {shown(wrong[0])}; write {kind}")
    try:
        passes = None if of.where is None else rows.select(of.where).collect_schema().dtypes()
        dtype = rows.group_by(REPLICATE).agg(value=of.value).collect_schema()["value"]
    except pl.exceptions.PolarsError as error:
        raise RequestError(f"{where}: {str(error).splitlines()[0]}") from error
    if passes not in (None, [pl.Boolean]):
        raise RequestError(f"{where}: its where is not true or false; compare, for example with == 1")
    if isinstance(dtype, pl.List):
        raise RequestError(f"{where} has a value for each row; aggregate them, for example with .mean()")
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise RequestError(f"{where} is no number; count it, for example with .n_unique()")


def _checked(quantities: Sequence[Quantity], declared: dict[str, Any], study: str) -> Sequence[Quantity]:
    """RequestError for a quantity of a grid that study.toml does not declare, and for two of one name."""
    grids = declared.get("grids") or {"": declared["grid"]}
    names = [of.name for of in quantities]
    for of in quantities:
        if of.grid not in grids:
            there = "there is one without a name" if "" in grids else f"there are {', '.join(grids)}"
            raise RequestError(f'{study}: quantity "{of.name}" is of a grid "{of.grid}"; {there}')
        if names.count(of.name) > 1:
            raise RequestError(f'{study}: two quantities are called "{of.name}"; give each its own name')
    return quantities
