"""docs/model.md shows the output of docs/model_table.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_table", DOCS / "model_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
# The table under random loss depends on every draw of the simulator, and shows nothing that must hold.
@pytest.mark.parametrize("name", ["one_transfer", "to_the_nanosecond", "closed_forms", "gain"])
def test_the_page_shows_what_its_command_prints(name: str) -> None:
    page = (DOCS / "model.md").read_text(encoding="utf-8")
    assert getattr(_tables(), name)() in page
