"""The registry of studies. Each is imported when it is asked for."""

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

# Name, and the module whose STUDY it is.
_STUDIES = {
    "rfc2415": "firstflight.studies.rfc2415",
    "rfc2415-extended": "firstflight.studies.rfc2415_extended",
    "rfc6928-rounds": "firstflight.studies.rfc6928_rounds",
    "rfc6928-cluster": "firstflight.studies.rfc6928_cluster",
    "congestion-control": "firstflight.studies.congestion_control",
    "long-pipes": "firstflight.studies.long_pipes",
    "loss-recovery": "firstflight.studies.loss_recovery",
    "kernel-check": "firstflight.studies.kernel_check",
    "kernel-slices": "firstflight.studies.kernel_slices",
    "startup-schemes": "firstflight.studies.startup_schemes",
    "thalheim": "firstflight.studies.thalheim",
    "cs244-2014": "firstflight.studies.cs244_2014",
    "uk-homes": "firstflight.studies.uk_homes",
    "restart-window": "firstflight.studies.restart_window",
    "queues": "firstflight.studies.queues",
    "real-time": "firstflight.studies.real_time",
    "slow-links": "firstflight.studies.slow_links",
    "early-exit": "firstflight.studies.early_exit",
    "lost-syn": "firstflight.studies.lost_syn",
    "segment-size": "firstflight.studies.segment_size",
    "receive-window": "firstflight.studies.receive_window",
    "bottleneck-place": "firstflight.studies.bottleneck_place",
    "learned-window": "firstflight.studies.learned_window",
    "why-ten": "firstflight.studies.why_ten",
    "cellular": "firstflight.studies.cellular",
    "post-quantum": "firstflight.studies.post_quantum",
    "shared-queue": "firstflight.studies.shared_queue",
    "pages": "firstflight.studies.pages",
    "rfc2415-ensemble": "firstflight.studies.rfc2415_ensemble",
    "rfc6928-cluster-ensemble": "firstflight.studies.rfc6928_cluster_ensemble",
    "quic-first-flight": "firstflight.studies.quic_first_flight",
}
NAMES = tuple(_STUDIES)
# `firstflight advise` stores a run of this name, whose grid comes from the flows.
ADVICE = "advise"
# `firstflight scorecard` stores a run of this name, whose cells name the scheme.
SCORECARD = "scorecard"

__all__ = ["NAMES", "Cell", "Run", "SingleScenario", "Study", "VariedScenario", "find", "listed", "of"]


def find(name: str) -> Study:
    """The study called `name`; RequestError with the nearest known one, MachineError without the extra `studies`."""
    if name not in _STUDIES:
        raise RequestError(f'unknown study "{name}"; {nearest(name, _STUDIES)}')
    try:
        module = importlib.import_module(_STUDIES[name])
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "") or error from None
    if not hasattr(module, "STUDY"):
        raise RequestError(f"{module.__file__} has no STUDY; write STUDY = k.DeclaredStudy(...)")
    study: Study = module.STUDY
    return study


def listed() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and study.toml of every study, in the registry's order. None is imported."""
    for name in _STUDIES:
        yield name, declared(Path(__file__).parent / name.replace("-", "_"))


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
