"""A study's grids: each a scenario and the keys that it varies, from `study.toml`."""

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario

Label = str | int | float
Build = Callable[[str, Mapping[str, Any], Scenario], Scenario]
"""From a grid's name, the labels of a cell and its scenario so far: the scenario, with computed values."""

EXPERIMENT = "experiment"
"""The key of a cell that names its grid, in a study with several."""


_KEYS = ("title", "set", "values", "factor", "write", "titles", "labels")


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
        self.keys: dict[str, dict[str, Any]] = {
            key: {**shared.get(key, {}), **fields} for key, fields in declared["keys"].items()
        }
        self._base = Scenario.load(folder / declared["scenario"])
        self._replicates, self._capture = declared.get("replicates"), declared.get("capture", [])
        self._engines, self._engine = declared.get("engines"), declared.get("engine")
        self._build = build
        for key, said in self.keys.items():
            if unknown := said.keys() - _KEYS:
                word = min(unknown)
                raise RequestError(f"{folder}/study.toml: key {key}: {word} is unknown; {nearest(word, _KEYS)}")
            if "title" not in said:
                raise RequestError(f"{folder}/study.toml: key {key} needs a title")
            if not ("values" in said and (isinstance(said["values"], dict) or "set" in said or build)):
                raise RequestError(
                    f"{folder}/study.toml: key {key} of grid {name or 'grid'} needs values, and set unless they are a "
                    "table"
                )

    def is_of(self, engine: str) -> bool:
        """Whether runs of `engine` include the grid."""
        return self._engines is None or engine in self._engines

    @property
    def coordinates(self) -> dict[str, list[Label]]:
        """Labels of each key, in the order of the grid."""
        return {name: list(key.get("labels", key["values"])) for name, key in self.keys.items()}

    @property
    def size(self) -> int:
        """The number of its cells."""
        return math.prod(map(len, self.coordinates.values()))

    def keys_of_cells(self, names: list[str]) -> list[dict[str, Label | None]]:
        """The first key varies slowest. `names`: keys of all grids of the study; those of others are None."""
        return [self._key(place, names) for place in self._places()]

    def cells(self, engine: str, names: list[str], at: Collection[int]) -> list[Cell]:
        """Those at these indices of `keys_of_cells`; no other scenario is made."""
        replicates = (
            self._replicates.get(self._engine or engine) if isinstance(self._replicates, dict) else self._replicates
        )
        grid_cells = []
        made: dict[tuple[Label, ...], Scenario] = {(): self._base}
        for index, place in enumerate(self._places()):
            if index not in at:
                continue
            scenario = self._scenario(tuple(place.values()), made)
            capture = any(chosen.items() <= place.items() for chosen in self._capture)
            engine_of = place.get("engine", self._engine)
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
            made[labels] = scenario.replace_all(_settings(self.keys[name], labels[-1]).items(), directory=self._folder)
        return made[labels]


def _settings(key: Mapping[str, Any], label: Label) -> dict[str, Any]:
    if isinstance(key["values"], dict):
        return dict(key["values"][label])
    if "set" not in key:
        return {}
    value = label * key["factor"] if "factor" in key else label
    return {key["set"]: key["write"].format(value) if "write" in key else value}
