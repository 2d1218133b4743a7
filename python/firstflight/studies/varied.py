"""A scenario file as a study: alone, or a grid of values of some of its keys, each compared with the first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from firstflight.counted import listed
from firstflight.errors import RequestError
from firstflight.records.schema import CAPTURED, STORED
from firstflight.scenario import BitsPerSecond, Bytes, Cell, Duration, Packets, Scenario
from firstflight.scenario.document import as_written, toml_value
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from firstflight.analysis.table import Table
    from firstflight.analysis.varied import Compared
    from firstflight.records import Run
    from firstflight.report.figure import Figure


class SingleScenario(Study):
    """The one scenario as a grid of one cell, whose key is the scenario's name."""

    engines = ("simulate", "model", "emulate")
    shows = "one scenario of your own"
    source = ""
    replicates = 10

    def __init__(self, scenario: Scenario) -> None:
        """Its name and title are the scenario's."""
        self.scenario = scenario
        self.name = scenario.name  # type: ignore[misc]
        self.title = scenario.description or scenario.name  # type: ignore[misc]

    def cells(self, engine: str) -> list[Cell]:
        """The one cell."""
        return [Cell({"scenario": self.scenario.name}, self.scenario)]

    def tables(self, run: Run) -> list[Table]:
        """Summaries of transfers, pages, links and users, and a population's buckets, with 95% intervals."""
        from firstflight.analysis.summary import summary_tables

        return [*summary_tables(run), *self._by_bucket(run)]

    def _by_bucket(self, run: Run) -> list[Table]:
        """The buckets of the scenario's population, if there is one and something in them."""
        population = self.scenario.population
        if population is None or not run.cells:
            return []
        from firstflight.analysis.buckets import bucket_table

        names = self.scenario.names()
        arms = ["", *(f".{arm.name}" for arm in self.scenario.arm or ())]
        payload = {
            f"{name}{arm}": self.scenario.full_payload_bytes(index) for index, name in enumerate(names) for arm in arms
        }
        table = bucket_table(run, population.buckets.model_dump(), payload)
        return [] if table.frame.is_empty() else [table]

    def answer(self, run: Run) -> list[str]:
        """The results of a population's users, and the share that host stalls disturbed, if any."""
        if self.scenario.population is not None:
            from firstflight.analysis.summary import in_sentences

            return in_sentences(run, self.scenario.population.users)
        disturbed = run.provenance["counts"].get("disturbed_transfers", 0)
        if not disturbed:
            return []
        count = run.transfers.select("replicate").collect().height
        return [
            f'Host stalls of more than 1 ms disturbed {disturbed} of {count} transfers (column "disturbed"); tables '
            "include them. On a busy machine compare medians, and use --jobs 1."
        ]


Vary = Mapping[str, Sequence[Any]]
# Each takes tens of kilobytes before anything runs.
_MOST_CELLS = 10_000
_FIGURES = {
    "transfer_time": ("transfers", "mean_completion_time", "Mean completion time of transfers"),
    "tls_handshake_time": ("handshakes", "mean_tls_handshake_time", "Mean time to the end of the TLS handshake"),
    "first_usable_byte_time": ("handshakes", "mean_first_usable_byte_time", "Mean time to the first usable byte"),
    "page_time": ("pages", "mean_completion_time", "Mean completion time of pages"),
    "retransmitted": ("transfers", "retransmitted", "Retransmission rate"),
    "mos": ("streams", "mos", "Mean opinion score"),
}
"""Figures of a grid: table, metric and title of each."""


class VariedScenario(SingleScenario):
    """All combinations of the values that `vary` gives to keys of the scenario.

    A cell's key is the last part of the path ("initial_window" of "tcp.initial_window"), or the whole path where two
    would be called the same or the records have a column of that name.
    """

    shows = "one scenario of your own with some of its keys varied"

    def __init__(self, scenario: Scenario, vary: Vary) -> None:
        """RequestError for a key that is not there, a value that does not fit, one that is given twice."""
        super().__init__(scenario)
        for path, values in vary.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise RequestError(f"--vary {path} is {values!r}; write a list of at least two values")
        self.vary = {path: as_written(list(values)) for path, values in vary.items()}
        for path, values in self.vary.items():
            _check(path, values)
        count = math.prod(map(len, self.vary.values()))
        if count > _MOST_CELLS:
            raise RequestError(
                f"--vary makes {count:,} cells; vary fewer keys or values: at most {_MOST_CELLS:,} cells"
            )
        self._names = dict(zip(self.vary, _short(list(self.vary)), strict=True))
        self._last: tuple[Path, int, list[Compared]] | None = None
        self._cells = [
            Cell(
                {self._names[path]: _shown(item) for path, item in zip(self.vary, point, strict=True)}, self._at(point)
            )
            for point in itertools.product(*self.vary.values())
        ]

    def _at(self, point: Sequence[Any]) -> Scenario:
        scenario = self.scenario
        for path, item in zip(self.vary, point, strict=True):
            try:
                scenario = scenario.replace(path, item)
            except RequestError as error:
                raise RequestError(f"--vary {path}={toml_value(item)}: {error}") from None
        return scenario

    def cells(self, engine: str) -> list[Cell]:
        """The first key varies slowest."""
        return list(self._cells)

    def tables(self, run: Run) -> list[Table]:
        """Each value compared with the first of its key, then the summaries."""
        from firstflight.analysis.varied import comparison_tables

        return [*comparison_tables(self._compared(run), self._order()), *super().tables(run)]

    def answer(self, run: Run) -> list[str]:
        """The change of the mean time, where one key was varied."""
        from firstflight.analysis.varied import sentences

        return [*sentences(self._compared(run), self._order()), *super().answer(run)]

    def figures(self, run: Run) -> list[Figure]:
        """Each measure against the varied keys: one or two keys, a line per value of the second or per application."""
        order = self._order()
        if len(order) > 2 or not run.cells:
            return []
        from firstflight.analysis.summary import summary_tables
        from firstflight.studies.kernel import headed, lines, named

        x, *second = sorted(order, key=lambda name: not all(isinstance(item, int | float) for item in order[name]))
        tables = {table.name: table for table in summary_tables(run)}
        titles, figures = {key: key.replace("_", " ") for key in order}, []
        for name, (table, metric, title) in _FIGURES.items():
            values = tables[table].of_metric(metric, [*order, "application"]) if table in tables else None
            if values is None or not (values.ours > 0).any():
                continue
            if second and values.sizes["application"] == 1:
                values = values.isel(application=0, drop=True)
            color, *panel = [*second, *({"application"} & set(values.dims))] if second else ["application"] * 2
            about = tables[table].metric(metric)
            drawn = named(headed(values.ours, **titles), name, title, about.unit, about.digits)
            ends = None if values.low.isnull().all() else (values.low.fillna(drawn), values.high.fillna(drawn))
            caption = "All replicates together, as in the tables, with the 95% CI."
            figures.append(lines(drawn, title, caption, x, color, panel[0] if panel else None, between=ends))
        return [figure for figure in figures if figure]

    def _compared(self, run: Run) -> list[Compared]:
        from firstflight.analysis.varied import compared

        # Resampling takes a while, and tables and answer show the same.
        if self._last is None or self._last[:2] != (run.directory, len(run.cells)):
            self._last = (run.directory, len(run.cells), compared(run, self._order(), self._is_population))
        return self._last[2]

    @property
    def _is_population(self) -> bool:
        return all(cell.scenario.population is not None for cell in self._cells)

    def _order(self) -> dict[str, list[str | int | float]]:
        return {self._names[path]: [_shown(item) for item in values] for path, values in self.vary.items()}


def _check(path: str, values: list[Any]) -> None:
    if len(values) < 2:
        raise RequestError(
            f"--vary {path} has {len(values)} value; write at least two, such as tcp.initial_window=3,10"
        )
    amounts = list(map(_amount, values))
    for amount in amounts:
        equal = [toml_value(item) for item, of in zip(values, amounts, strict=True) if of == amount]
        if len(equal) > 1:
            raise RequestError(f"--vary {path}: {listed(equal)} are equal; write each value once")


def _amount(item: Any) -> Any:
    """A quantity as its number, so that 1s and 1000ms are equal; another value as TOML."""
    for unit in (Duration, BitsPerSecond, Bytes, Packets):
        with suppress(ValueError):
            return unit, int(unit(item))
    return toml_value(item)


def _short(paths: list[str]) -> list[str]:
    taken = {column.name for table in (STORED | CAPTURED).values() for column in table}
    last = [path.rpartition(".")[2] for path in paths]
    return [
        name if last.count(name) == 1 and name not in taken else path for name, path in zip(last, paths, strict=True)
    ]


def _shown(item: Any) -> str | int | float:
    """The value as a cell's key: numbers and texts as they are, tables as TOML."""
    return item if isinstance(item, str | int | float) and not isinstance(item, bool) else toml_value(item)
