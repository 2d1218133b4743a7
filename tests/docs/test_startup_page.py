"""docs/startup.md shows the output of docs/startup_table.py, and its pictures exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.scenario.tcp import choices

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "startup.md").read_text(encoding="utf-8")


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("startup_table", DOCS / "startup_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["schemes", "suss", "remembered", "adaptive"])
def test_the_page_shows_what_its_command_prints(name: str) -> None:
    assert getattr(_tables(), name)() in PAGE


def test_the_page_has_every_scheme_with_its_parameters_and_a_picture() -> None:
    schemes = choices()["startup"]
    assert len({scheme["scheme"] for scheme in schemes}) == len(schemes) == PAGE.count("](startup/")
    for scheme in schemes:
        name = scheme["scheme"]
        section = PAGE.split(f"## `{name}`\n")[1].split("\n## ")[0]
        assert f"(startup/{name}.svg)" in section
        for parameter in scheme.keys() - {"scheme"}:
            assert f"| `{parameter.removesuffix('_ns')}` |" in section


def test_the_page_has_every_parameter_of_the_policies_that_learn() -> None:
    policies = {policy["policy"]: policy.keys() - {"policy"} for policy in choices()["initial_window"]}
    for name in ("remembered", "adaptive"):
        section = PAGE.split(f"### `{name}`\n")[1].split("\n### ")[0]
        assert policies[name]
        assert all(f"| `{parameter.removesuffix('_ns')}` |" in section for parameter in policies[name])


def test_the_pictures_are_there() -> None:
    pictures = re.findall(r"\]\((startup/[^)]+)\)", PAGE)
    assert len(set(pictures)) == len(pictures) > 5
    for picture in pictures:
        assert (DOCS / picture).exists(), picture
