"""The identity of a run directory, and whether more cells may join it."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstflight.records import machine, schema
from firstflight.scenario import Cell
from firstflight.scenario.explain import cut

FORMAT = "firstflight run"
# A kernel or a scenario may differ in many settings; these are enough to see that it does.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Identity:
    """The identity of one directory's run. `scenario` is the effective TOML when the run came from a file, and `vary`
    the changes to it: values of keys by path. `surroundings`: the settings on which the records of each engine in real
    time depend in addition to scenario and code. `kept`: the columns of each table of which not all are stored.
    """

    study: str
    engine: str
    seed: int
    replicates: int
    scenario: str | None = None
    vary: dict[str, list[Any]] | None = None
    surroundings: dict[str, dict[str, str]] = field(default_factory=dict)
    kept: dict[str, list[str]] = field(default_factory=dict)

    def code(self, cells: Iterable[Cell]) -> dict[str, str]:
        """The version of the code of each engine that the cells need."""
        engines = dict.fromkeys(cell.engine or self.engine for cell in cells)
        return {engine: machine.code_version(engine) for engine in engines}

    def differences(self, other: dict[str, Any], cells: Iterable[Cell]) -> list[str]:
        """The differences from `other` (of a run.json), in words, if these cells are to join it."""
        if self.study != other["study"]:
            return [f'it is of "{other["study"]}", not "{self.study}"']
        sentences = []
        if self.engine != other["engine"]:
            sentences.append(f"its engine is {other['engine']}, not {self.engine}")
        if self.seed != other["seed"]:
            sentences.append(f"its seed is {other['seed']}, not {self.seed}")
        if self.replicates != other["replicates"]:
            sentences.append(f"it has {other['replicates']} replicates a cell, not {self.replicates}")
        if self.scenario != other["scenario"]:
            changes = _changes(*(dict(_leaves(tomllib.loads(of or ""))) for of in (other["scenario"], self.scenario)))
            sentences += changes or ["its scenario was another"]
        if self.vary != other.get("vary"):
            sentences.append(f"it varies {_varied(other.get('vary'))}, not {_varied(self.vary)}")
        if self.kept != (other.get("kept") or {}):
            sentences.append("it was run with another --records")
        for engine, code in self.code(cells).items():
            if code != (before := other["code"].get(engine, code)):
                sentences.append(f"it was made by another version of the code ({before}, now {code})")
        for engine, facts in self.surroundings.items():
            sentences += _changes(other["surroundings"].get(engine, facts), facts)
        return sentences

    def cell_hash(self, cell: Cell) -> str:
        """The name of a cell's records: a hash of only their inputs."""
        engine = cell.engine or self.engine
        content: dict[str, Any] = {
            "schema": schema.SCHEMA_VERSION,
            "code": machine.code_version(engine),
            "engine": engine,
            "seed": self.seed,
            "replicates": cell.replicates or self.replicates,
            "plan": cell.plan,
            "capture": cell.capture,
        }
        if self.kept:
            content["kept"] = self.kept
        if engine in self.surroundings:
            content["surroundings"] = self.surroundings[engine]
        if engine == "emulate":
            # Keys that the simulator's plan leaves out.
            content["scenario"] = cell.scenario.to_dict()
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]


def misfit(
    directory: Path,
    document: dict[str, Any],
    identity: Identity,
    cells: Sequence[Cell],
    order: Sequence[dict[str, Any]] | None,
) -> str:
    """Why the cells cannot join the run that `document` describes, as one sentence; empty if they can."""
    differences = identity.differences(document, cells)
    if not differences:
        recorded = {_text(cell["key"]): cell for cell in document["cells"]}
        grid = {_text(key) for key in order} if order is not None else None
        pairs = [(recorded[_text(cell.key)], cell) for cell in cells if _text(cell.key) in recorded]
        # A number given in the request also replaces those that single cells of a study have.
        if any(old["replicates"] != (cell.replicates or identity.replicates) for old, cell in pairs):
            differences = ["some of its cells have another number of replicates"]
        elif any(old["hash"] != identity.cell_hash(cell) for old, cell in pairs) or (
            grid is not None and not recorded.keys() <= grid
        ):
            differences = ["its study was another"]
    if not differences:
        return ""
    return (
        f'"{directory}" holds another run: {" and ".join(differences)}; choose another --out, or add --set-aside to '
        f"keep it under a new name and start afresh"
    )


def extended(
    document: dict[str, Any] | None, identity: Identity, cells: Sequence[Cell], order: Sequence[dict[str, Any]] | None
) -> dict[str, Any]:
    """The run's document with `cells` in it, in the grid's order."""
    recorded = {_text(cell["key"]): cell for cell in (document["cells"] if document else [])}
    for cell in cells:
        recorded[_text(cell.key)] = {
            "key": cell.key,
            "hash": identity.cell_hash(cell),
            "replicates": cell.replicates or identity.replicates,
            "capture": cell.capture,
        }
    places = {_text(key): place for place, key in enumerate(order or [cell.key for cell in cells])}
    ordered = sorted(recorded.values(), key=lambda cell: places.get(_text(cell["key"]), len(places)))
    fresh: dict[str, Any] = {
        "format": FORMAT,
        "schema": schema.SCHEMA_VERSION,
        "study": identity.study,
        "engine": identity.engine,
        "seed": identity.seed,
        "replicates": identity.replicates,
        "scenario": identity.scenario,
        "vary": identity.vary,
        "kept": identity.kept or None,
        "code": {},
        "surroundings": {},
        "versions": machine.versions(),
        "commit": machine.commit(),
        "machine": machine.machine(),
        "profiles": [],
        "sessions": [],
        "cells": [],
    }
    merged = (document or fresh) | {"cells": ordered}
    return merged | {
        "code": merged["code"] | identity.code(cells),
        "surroundings": merged["surroundings"] | identity.surroundings,
        "profiles": _profiles(merged["profiles"], cells),
    }


def _profiles(known: list[dict[str, Any]], cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """The distinct effective TCP profiles, each with the first end that uses it."""
    profiles = list(known)
    for cell in cells:
        for application in json.loads(cell.plan)["applications"]:
            for end in ("client_tcp", "server_tcp"):
                if all(entry["effective"] != application[end] for entry in profiles):
                    first = {"cell": cell.key, "application": application["name"], "end": end.removesuffix("_tcp")}
                    profiles.append({"first_used_by": first, "effective": application[end]})
    return profiles


def check_keys(cells: Sequence[Cell]) -> None:
    """Raise ValueError unless all cells have the same keys, none of them a column of the records."""
    taken = {column.name for table in (schema.STORED | schema.CAPTURED).values() for column in table}
    names = list(cells[0].key) if cells else []
    for name in names:
        if name in taken:
            raise ValueError(f'a cell key cannot be called "{name}": the records have a column of that name')
    for cell in cells:
        if list(cell.key) != names:
            raise ValueError(f"cell keys differ: {list(cell.key)} is not {names}")


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = [name for name in before | now if before.get(name) != now.get(name)]
    return [
        f"its {name} was {cut(str(before.get(name, 'not there')))}, now {cut(str(now.get(name, 'not there')))}"
        for name in names[:_MOST_NAMED]
    ]


def _leaves(table: dict[str, Any] | list[Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document, by their paths as --set has them."""
    if isinstance(table, list):
        parts = [(f"{path}[{index}]", value) for index, value in enumerate(table)]
    else:
        parts = [(f"{path}.{name}".removeprefix("."), value) for name, value in table.items()]
    for here, value in parts:
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


def _varied(vary: dict[str, list[Any]] | None) -> str:
    if not vary:
        return "nothing"
    return " and ".join(f"{path} = {', '.join(map(str, values))}" for path, values in vary.items())


def _text(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)
