"""A study's grid: a scenario and the keys that it varies, from `study.toml`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario

Label = str | int | float


class Grid:
    """All combinations of the labels of each key.

    A key has a `title`, `set`, a path into the scenario, and `values`, written there
    times `factor` and with `write` (such as "{}s"); or
    `values` as a table, each label with the paths that it sets.
    """

    def __init__(self, folder: Path, declared: Mapping[str, Any]) -> None:
        self._base = Scenario.load(folder / declared["scenario"])
        self._keys: dict[str, Any] = declared["keys"]
        for name, key in self._keys.items():
            if not ("values" in key and (isinstance(key["values"], dict) or "set" in key)):
                raise RequestError(
                    f"{folder}/study.toml: grid.keys.{name} needs values, and set unless they are a table"
                )

    @property
    def coordinates(self) -> dict[str, list[Label]]:
        """Labels of each key, in the order of the grid."""
        return {name: list(key["values"]) for name, key in self._keys.items()}

    def cells(self) -> list[Cell]:
        """The first key varies slowest."""
        return [
            Cell(dict(zip(self._keys, labels, strict=True)), self._scenario(labels))
            for labels in itertools.product(*self.coordinates.values())
        ]

    def _scenario(self, labels: tuple[Label, ...]) -> Scenario:
        scenario = self._base
        for key, label in zip(self._keys.values(), labels, strict=True):
            for path, value in self._settings(key, label).items():
                scenario = scenario.replace(path, value)
        return scenario

    @staticmethod
    def _settings(key: Mapping[str, Any], label: Label) -> dict[str, Any]:
        if isinstance(key["values"], dict):
            return dict(key["values"][label])
        value = label * key["factor"] if "factor" in key else label
        return {key["set"]: key["write"].format(value) if "write" in key else value}
