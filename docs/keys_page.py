"""Writes the tables of docs/keys.md from the models of a scenario: key, value, default.

    .venv/bin/python docs/keys_page.py

Between `<!-- keys: MODEL ... -->` and `<!-- end of keys -->` stands what this makes of the descriptions of the models'
fields, which are their only source; the rest of the page is written by hand. A test compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from firstflight.scenario import (
    applications,
    arms,
    datagrams,
    network,
    parts,
    population,
    queries,
    scenario,
    tls,
    tree,
)
from firstflight.scenario.document import toml_value
from firstflight.scenario.table import ScenarioTable
from firstflight.scenario.units import UnitNumber

PAGE = Path(__file__).with_name("keys.md")
MODULES = (scenario, network, tree, population, parts, applications, datagrams, queries, arms, tls)
MODELS: dict[str, type[ScenarioTable]] = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, ScenarioTable)
}
# What the native module describes; a table for each.
FAMILIES = {"queues": parts.QUEUES, "losses": parts.LOSSES}
_BLOCK = re.compile(r"(<!-- keys: ([\w ]+) -->\n)(.*?)(<!-- end of keys -->)", re.DOTALL)
# Tables of their own in a file.
_TABLES = {name: f"[{name}]" for name in ("tcp", "network", "population")}
_LISTS = {name: f"[[{name}]]" for name in ("application", "arm")}


def page(text: str) -> str:
    """The page with its tables made anew."""

    def made(found: re.Match[str]) -> str:
        family = FAMILIES.get(found[2])
        if family is None:
            tables = _table(*(MODELS[name] for name in found[2].split()))
        else:
            tables = "".join(f"\nKeys of `{kind}`:\n{_table(model)}" for kind, model in family.items())
        return found[1] + tables + "\n" + found[4]

    return _BLOCK.sub(made, text)


def _table(*models: type[ScenarioTable]) -> str:
    rows = "".join(f"{row}\n" for model in models for row in _rows(model))
    return f"\n| key | value | default |\n|---|---|---|\n{rows}"


def _rows(model: type[ScenarioTable]) -> Iterator[str]:
    """A row for each described field of the model itself; those of its bases are in their own rows."""
    for name, field in model.model_fields.items():
        if name not in model.__annotations__ or field.description is None:
            continue
        value, _, words = field.description.partition("; default: ")
        key = _TABLES.get(name, _LISTS.get(name, name)) if model is scenario.Scenario else name
        default = words or ("required" if field.is_required() else _spelled(field.default))
        yield f"| `{key}` | {value} | {default} |"


def _spelled(default: object) -> str:
    if default in (None, []):
        return "none"
    if isinstance(default, UnitNumber):
        return f'`"{default}"`'
    # As people write it: 5 for 5.0.
    return f"`{default:g}`" if isinstance(default, float) else f"`{toml_value(default)}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
