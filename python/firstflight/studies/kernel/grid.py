"""A study's grids: each a scenario and the keys that it varies, from `study.toml`."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from firstflight.counted import nearest
from firstflight.engines import NAMES
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.cell import whole
from firstflight.scenario.explain import shown
from firstflight.studies.study import DeclaredTable, EngineName, check_engine

Label = str | int | float
Build = Callable[[str, Mapping[str, Any], Scenario], Scenario]
"""From a grid's name, the labels of a cell and its scenario so far: the scenario, with computed values."""

EXPERIMENT = "experiment"
"""The key of a cell that names its grid, in a study with several."""


def _values(given: Any) -> Any:
    """ValueError for other values of a key than labels, or tables of settings by label."""
    if isinstance(given, dict):
        if wrong := [label for label, settings in given.items() if not isinstance(settings, dict)]:
            raise ValueError(f'{wrong[0]} is {shown(given[wrong[0]])}; write {{ "tcp.sack" = true }}, its settings')
        return given
    return _labels(given)


def _labels(given: Any) -> Any:
    if not isinstance(given, list):
        raise ValueError(f"{shown(given)} is not a list; write [ ... ]")
    for label in given:
        # Null and NaN are missing values in the records.
        if isinstance(label, bool) or not isinstance(label, Label) or label != label:
            raise ValueError(f"{shown(label)} is no label; write numbers or texts")
        if given.count(label) > 1:
            raise ValueError(f"{shown(label)} stands twice; every cell needs a label of its own")
    return given


def _replicates(given: Any) -> Any:
    by_engine = given if isinstance(given, dict) else {NAMES[0]: given}
    for name, count in by_engine.items():
        check_engine(name)
        if whole(count, 1, 2**32 - 1) is None:
            raise ValueError(f"{shown(count)} is no number of replicates; write a whole number from 1")
    return given


def _known(labels: Iterable[Label], known: Iterable[Label], what: str) -> None:
    names = list(known)
    if unknown := [label for label in labels if label not in names]:
        raise ValueError(f"{what} has {shown(unknown[0])}; {nearest(str(unknown[0]), map(str, names))}")


class Key(DeclaredTable):
    """A key of a grid; `Grid` says what its fields mean."""

    title: str
    values: Annotated[Any, BeforeValidator(_values)]
    set: str | None = None
    factor: Any = None
    write: str | None = None
    titles: dict[str, str] = Field(default_factory=dict)
    labels: Annotated[Any, BeforeValidator(_labels)] = None

    @property
    def chosen(self) -> list[Label]:
        """Its labels in the grid."""
        return list(self.values if self.labels is None else self.labels)

    def settings(self, label: Any) -> dict[str, Any]:
        """What a cell with this label sets, by path."""
        if isinstance(self.values, dict):
            return dict(self.values[label])
        if self.set is None:
            return {}
        value = label if self.factor is None else label * self.factor
        return {self.set: value if self.write is None else self.write.format(value)}

    @model_validator(mode="after")
    def _has_an_effect(self) -> "Key":
        """ValueError for labels that no cell has, and for settings that would write nothing, or one value twice."""
        if not self.chosen:
            raise ValueError("there is no label; give at least one")
        if isinstance(self.values, dict):
            _known(self.chosen, self.values, "labels")
        given = [name for name in ("set", "factor", "write") if getattr(self, name) is not None]
        if given and (isinstance(self.values, dict) or self.set is None):
            needs = "leave it out" if isinstance(self.values, dict) else "set is missing"
            raise ValueError(f"{given[0]} has no effect; {needs}")
        for number in () if self.factor is None else (self.factor, *self.chosen):
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ValueError(f"factor multiplies numbers; {shown(number)} is none")
        try:
            written = [self.settings(label) for label in self.chosen]
            if self.write is not None and any(written.count(of) > 1 for of in written):
                raise ValueError
        except (ValueError, LookupError, AttributeError):
            raise ValueError(f'write is {shown(self.write)}; write {{}} for the label, such as "{{}}ms"') from None
        return self


class _Grid(DeclaredTable):
    scenario: str
    keys: dict[str, Key] = Field(min_length=1)
    replicates: Annotated[Any, BeforeValidator(_replicates)] = None
    capture: list[dict[str, Any]] = Field(default_factory=list)
    engines: list[EngineName] | None = Field(None, min_length=1)
    engine: EngineName | None = None

    @model_validator(mode="after")
    def _captures_cells(self) -> "_Grid":
        for captured in self.capture:
            _known(captured, self.keys, "capture")
            for name, label in captured.items():
                _known([label], self.keys[name].chosen, f"capture of {name}")
        return self


class Grid:
    """All combinations of the labels of each key.

    A key has a `title`, `set`, a path into the scenario, and `values`, written there times `factor` and with `write`
    (such as "{}s"); or `values` as a table, each label with the paths that it sets; or neither `set` nor a table, where
    `build` uses the label. `titles` gives labels a name for people. A key called `engine` chooses the
    cell's engine. The settings of a key for several grids are written once, under `keys` of the study; a grid then
    chooses `labels`. The grid may have `replicates`, a number or one for each engine, and `capture`: a list of
    labels of the cells of which every segment is recorded. `engines` are the only ones whose runs have the grid;
    `engine` computes its cells in place of the run's.
    """

    def __init__(
        self, folder: Path, name: str, declared: Mapping[str, Any], shared: Mapping[str, Any], build: Build | None
    ) -> None:
        self.name, self._folder = name, folder
        keys = declared.get("keys")
        if isinstance(keys, dict):
            keys = {key: shared.get(key, {}) | said if isinstance(said, dict) else said for key, said in keys.items()}
            declared = {**declared, "keys": keys}
        self._said = _Grid.read(declared, f"{folder}/study.toml: {f'grids.{name}' if name else 'grid'}.")
        self.keys = self._said.keys
        self._base = Scenario.load(folder / self._said.scenario)
        self._build = build
        for key, of in self.keys.items():
            if not (isinstance(of.values, dict) or of.set is not None or build or key == "engine"):
                raise RequestError(f"{folder}/study.toml: key {key} needs set, unless values is a table of settings")

    def is_of(self, engine: str) -> bool:
        """Whether runs of `engine` include the grid."""
        return self._said.engines is None or engine in self._said.engines

    @property
    def coordinates(self) -> dict[str, list[Label]]:
        """Labels of each key, in the order of the grid."""
        return {name: key.chosen for name, key in self.keys.items()}

    @property
    def size(self) -> int:
        """The number of its cells."""
        return math.prod(map(len, self.coordinates.values()))

    def keys_of_cells(self, names: list[str]) -> list[dict[str, Label | None]]:
        """The first key varies slowest. `names`: keys of all grids of the study; those of others are None."""
        return [self._key(place, names) for place in self._places()]

    def cells(self, engine: str, names: list[str], at: Collection[int]) -> list[Cell]:
        """Those at these indices of `keys_of_cells`; no other scenario is made."""
        replicates = self._said.replicates
        if isinstance(replicates, dict):
            replicates = replicates.get(self._said.engine or engine)
        grid_cells = []
        made: dict[tuple[Label, ...], Scenario] = {(): self._base}
        for index, place in enumerate(self._places()):
            if index not in at:
                continue
            scenario = self._scenario(tuple(place.values()), made)
            capture = any(chosen.items() <= place.items() for chosen in self._said.capture)
            engine_of = place.get("engine", self._said.engine)
            grid_cells.append(
                Cell(
                    self._key(place, names),
                    self._build(self.name, place, scenario) if self._build else scenario,
                    replicates,
                    capture,
                    None if engine_of is None else str(engine_of),
                )
            )
        return grid_cells

    def _places(self) -> Iterator[dict[str, Label]]:
        return (dict(zip(self.keys, labels, strict=True)) for labels in itertools.product(*self.coordinates.values()))

    def _key(self, place: Mapping[str, Label], names: list[str]) -> dict[str, Label | None]:
        of_grid = {EXPERIMENT: self.name} if self.name else {}
        return {**of_grid, **{name: place.get(name) for name in names}}

    def _scenario(self, labels: tuple[Label, ...], made: dict[tuple[Label, ...], Scenario]) -> Scenario:
        """The scenario with the first keys at `labels`; `made` holds those of fewer labels, which cells share."""
        if labels not in made:
            scenario, name = self._scenario(labels[:-1], made), list(self.keys)[len(labels) - 1]
            made[labels] = scenario.replace_all(self.keys[name].settings(labels[-1]).items(), directory=self._folder)
        return made[labels]
