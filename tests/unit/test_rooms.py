"""The rooms of the package, its folders and top-level modules: which of them import which."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from firstflight import engines
from firstflight.records import machine

PACKAGE = Path(__file__).parents[2] / "python/firstflight"


def imported(path: Path) -> set[str]:
    """The rooms that a file imports anywhere, also for types only."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("firstflight.")}
    return rooms & {path.stem for path in PACKAGE.iterdir()}


def test_no_room_is_imported_by_one_that_it_imports() -> None:
    rooms = {
        place.stem: {room for path in ([place] if place.is_file() else place.rglob("*.py")) for room in imported(path)}
        for place in PACKAGE.iterdir()
        if place.suffix in ("", ".py") and place.stem != "__init__"
    }
    assert len(rooms) > 15
    # Raises CycleError with the rooms of the circle.
    TopologicalSorter({room: others - {room} for room, others in rooms.items()}).prepare()


def test_the_engines_of_an_identity_are_all_engines() -> None:
    assert machine.ENGINES == engines.NAMES
