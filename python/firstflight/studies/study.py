"""A study: a grid of scenarios, and the evaluation of their records."""

import html
import shlex
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from firstflight.counted import nearest
from firstflight.engines import NAMES
from firstflight.errors import RequestError
from firstflight.scenario import Cell
from firstflight.scenario.applications import Count
from firstflight.scenario.explain import sentence, shown
from firstflight.scenario.table import ScenarioTable

if TYPE_CHECKING:
    from firstflight.analysis.claim import Claim
    from firstflight.analysis.table import Table
    from firstflight.records import Run, RunWriter
    from firstflight.report.figure import Figure
    from firstflight.studies.scorecard.case import Judged, Verdict

__all__ = ["Cell", "Study", "declared"]


def check_engine(name: str) -> str:
    """ValueError for the name of no engine."""
    if name not in NAMES:
        raise ValueError(f"{shown(name)} is no engine; {nearest(name, NAMES)}")
    return name


EngineName = Annotated[str, AfterValidator(check_engine)]


class DeclaredTable(ScenarioTable):
    """A table of a study.toml."""

    model_config = ConfigDict(strict=True)

    @classmethod
    def read(cls, said: Any, where: str) -> Self:
        """RequestError, `where` and a sentence, for a mistake in the table."""
        try:
            return cls.model_validate(said)
        except ValidationError as error:
            raise RequestError(f"{where}{sentence(error)}") from None


class _Declared(DeclaredTable):
    title: str
    shows: str
    source: str
    question: str
    limitations: list[str]
    engines: list[EngineName] = Field(min_length=1)
    replicates: Count
    grid: dict[str, Any] | None = None
    grids: dict[str, dict[str, Any]] | None = Field(None, min_length=1)
    keys: dict[str, dict[str, Any]] | None = None


class Study(ABC):
    """An experiment: its grid, tables, claims and figures.

    `tables`, `claims`, `figures` and `answer` accept a partial run: tables have its data, and a claim that needs other
    cells "cannot be checked", with the reason.
    """

    name: ClassVar[str]
    """Its name on the command line."""
    title: ClassVar[str]
    """A heading for the report."""
    source: ClassVar[str]
    """The publication."""
    engines: ClassVar[tuple[str, ...]]
    """Engines that can run it, the default one first."""
    shows: ClassVar[str]
    """One line: its main result."""
    asked: ClassVar[str] = ""
    """The question, in a few sentences, for the report."""
    limitations: ClassVar[tuple[str, ...]] = ()
    """The limitations of the study, one sentence each."""
    replicates: ClassVar[int] = 1
    """Replicates a cell unless the request says otherwise."""
    seed: ClassVar[int] = 1
    """The seed unless the request says otherwise."""

    def __repr__(self) -> str:
        """Its name, subject, source and engines."""
        source = f"\n{self.source}" if self.source else ""
        return f"{self.name}: {self.shows}{source}\nengines: {', '.join(self.engines)}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def check(self, engine: str) -> None:  # noqa: B027
        """RequestError for a mistake in the study, before any cell for `engine` is built."""

    @abstractmethod
    def cells(self, engine: str) -> list[Cell]:
        """All cells for `engine`, in the order of the tables, with the same keys."""

    def keys(self, engine: str) -> list[dict[str, str | int | float | None]]:
        """Keys of all cells, without building a cell where that takes long."""
        return [cell.key for cell in self.cells(engine)]

    def cells_at(self, engine: str, places: Sequence[int]) -> list[Cell]:
        """The cells at these ascending indices; no other cell is built where that takes long."""
        cells = self.cells(engine)
        return [cells[place] for place in places]

    @abstractmethod
    def tables(self, run: "Run") -> "list[Table]":
        """The study's tables, this run next to the published values."""

    def table_names(self, run: "Run") -> list[str]:
        """Names of the tables, without computing one where that takes long."""
        return [table.name for table in self.tables(run)]

    def table(self, run: "Run", name: str) -> "Table":
        """The table `name`, without computing tables that take long. RequestError if the study has no such table."""
        tables = {table.name: table for table in self.tables(run)}
        if name not in tables:
            raise RequestError(f'"{self.name}" has no table "{name}" of this run; {nearest(name, tables)}')
        return tables[name]

    def claims(self, run: "Run", *, listed: bool = True) -> "list[Claim]":
        """The claims with their verdicts; empty for a scenario file."""
        return []

    def figures(self, run: "Run") -> "list[Figure]":
        """The figures of the report."""
        return []

    def answer(self, run: "Run") -> list[str]:
        """The answer, in three sentences at most."""
        return []

    def keep(self, run: "RunWriter") -> None:  # noqa: B027
        """Store in the run what claims, tables and figures are made of, so that they need not read all records."""

    def cases(self, run: "Run") -> "list[Judged]":
        """Rows of the scorecard study; other studies have none."""
        return []

    def case_counts(self, run: "Run") -> "dict[str, dict[Verdict, int]]":
        """Number of cases by verdict; empty for other studies."""
        return {}

    def deciding(self, run: "Run", claims: "Sequence[Claim]") -> str:
        """The number of replicates that would decide the undecided `claims`, with the command; or an empty text."""
        from firstflight.analysis.claim import deciding

        replicates = run.provenance["replicates"]
        engine = [] if run.engine == self.engines[0] else ["--engine", run.engine]
        words = ["firstflight", *self.words, *engine, "--out", f"{run.directory}-more", "--replicates"]
        return deciding(claims, replicates, shlex.join(words))

    @property
    def kept(self) -> dict[str, list[str]]:
        """By table: the columns that a run has to keep, of tables of which it need not keep all."""
        return {}

    @property
    def words(self) -> list[str]:
        """Arguments of the command that runs it."""
        return ["run", self.name]


def declared(folder: Path) -> dict[str, Any]:
    """The document in the folder's study.toml. RequestError if it cannot be read or lacks a part of a study."""
    path = folder / "study.toml"
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"{path}: {error}") from error
    _Declared.read(said, f"{path}: ")
    if ("grid" in said) == ("grids" in said):
        wrong = "both [grid] and [grids]" if "grid" in said else "no grid"
        raise RequestError(f"{path}: it has {wrong}; write [grid], or [grids.NAME] for each of several")
    return said
