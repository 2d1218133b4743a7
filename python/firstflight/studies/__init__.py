"""The studies by name. Each is imported when it is asked for."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from firstflight import records
from firstflight.counted import nearest
from firstflight.errors import RequestError, missing_extra
from firstflight.scenario import Cell, Scenario
from firstflight.studies.study import Study, declared
from firstflight.studies.varied import SingleScenario, VariedScenario

if TYPE_CHECKING:
    from firstflight.analysis.table import Table

# `firstflight advise` stores a run of this name, whose grid comes from the flows.
ADVICE = "advise"
# `firstflight scorecard` stores a run of this name, whose cells name the scheme.
SCORECARD = "scorecard"
_FOLDER = Path(__file__).parent
NAMES = tuple(
    sorted(
        {path.parent.name.replace("_", "-") for path in _FOLDER.glob("*/study.toml")} - {SCORECARD},
        key=lambda name: (not name.startswith("rfc"), name),
    )
)
"""Each folder with a study.toml, whose module has a STUDY: those of an RFC first, then by name."""

__all__ = ["NAMES", "Cell", "Run", "SingleScenario", "Study", "VariedScenario", "find", "listed", "of"]


def find(name: str) -> Study:
    """The study called `name`; RequestError with the nearest known one, MachineError without the extra `studies`."""
    if name not in NAMES:
        raise RequestError(f'unknown study "{name}"; {nearest(name, NAMES)}')
    try:
        module = importlib.import_module(f"{__name__}.{_folder(name).name}")
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "") or error from None
    if not hasattr(module, "STUDY"):
        raise RequestError(f"{module.__file__} has no STUDY; write STUDY = k.DeclaredStudy(...)")
    study: Study = module.STUDY
    return study


def listed() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and study.toml of every study. None is imported."""
    for name in NAMES:
        yield name, declared(_folder(name))


def _folder(name: str) -> Path:
    return _FOLDER / name.replace("-", "_")


def of(run: records.Run) -> Study:
    """The study that `run` is of; for a run of a scenario file, the study of that one scenario or of its grid."""
    if run.study == ADVICE:
        raise RequestError(
            f'"{run.directory}" holds an advice: its page is advice.html, which "firstflight advise" writes'
        )
    if run.study == SCORECARD and run.scenario is None:
        from firstflight.studies.scorecard import Scorecard

        return Scorecard.of(run)
    if run.scenario is None:
        return find(run.study)
    scenario = Scenario.from_toml(run.scenario, source=f"{run.directory}/run.json")
    return VariedScenario(scenario, run.vary) if run.vary else SingleScenario(scenario)


class Run(records.Run):
    """Records and results of a finished or partial run. `Run.open` opens a directory."""

    def tables(self) -> "dict[str, Table]":
        """The tables of `firstflight table`, by name: results with intervals, next to the published values."""
        return {table.name: table for table in of(self).tables(self)}

    def table(self, name: str, /, **key: str | int | float) -> pl.LazyFrame:
        """Records such as "transfers", or the rows of a table of `firstflight table`, with the cell's key columns
        first.

        `key` keeps the cells with these values; other cells' records are not read. RequestError for an unknown table or
        key.
        """
        stored = (*records.schema.STORED, *records.schema.CAPTURED)
        if name in stored:
            return super().table(name, **key)
        study = of(self)
        known = study.table_names(self)
        if name not in known:
            raise RequestError(f'a run has no table "{name}"; {nearest(name, (*stored, *known))}')
        table = study.table(self, name)
        for column in key:
            if column not in table.keys:
                raise RequestError(f'the table "{name}" has no key "{column}"; {nearest(column, table.keys)}')
        chosen = [pl.col(column).cast(pl.String) == str(value) for column, value in key.items()]
        return table.frame.lazy().filter(*chosen)
