"""The JSON schema of a table `tcp`, from the native module: keys, the values of each, and the rules of each choice."""

from typing import Any

from pydantic import TypeAdapter

from firstflight.scenario.tcp import CHOSEN_STACKS, UNITS, choices, examples, friendly, profiles


def tcp_schema() -> dict[str, Any]:
    """Of a whole table; a profile, a stack, and any of the fields."""
    table = _table(next(iter(profiles().values())), "")
    heads = {"profile": {"enum": list(profiles())}, "stack": {"enum": list(CHOSEN_STACKS)}}
    return table | {"properties": heads | table["properties"]}


def _table(fields: dict[str, Any], where: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {friendly(name): _field(where + name) for name in fields},
        # A field by its native name is a plain number.
        "patternProperties": {f"({'|'.join(UNITS)})$": {"type": "integer", "minimum": 0}},
        "additionalProperties": False,
    }


def _field(path: str) -> dict[str, Any]:
    if path in choices():
        return {"anyOf": _choice(path, choices()[path])}
    values = examples()[path]
    table = next((value for value in values if isinstance(value, dict)), None)
    unit = next((unit for ending, unit in UNITS.items() if path.endswith(ending)), None)
    if table is not None:
        found = _table(table, f"{path}.")
    elif unit is not None:
        found = TypeAdapter(unit).json_schema()
    elif any(isinstance(value, bool) for value in values):
        found = {"type": "boolean"}
    else:
        found = {"type": "integer", "minimum": 0}
    return {"anyOf": [{"const": "none"}, found]} if None in values else found


def _choice(path: str, values: list[Any]) -> list[dict[str, Any]]:
    """A word; a kind with a table of rules; a variant by its name, or in a table with parameters."""
    names: list[str] = []
    kinds: dict[str, Any] = {}
    tables: list[dict[str, Any]] = []
    for value in values:
        if isinstance(value, str):
            names.append(value)
            continue
        (tag, variant), *parameters = value.items()
        if isinstance(variant, dict):
            names.append(tag)
            kinds[tag] = _table(variant, f"{path}.{tag}.")
            continue
        names.append(variant)
        if variant == "fixed":
            tables.append({"type": "integer", "minimum": 1})
        table = _table(dict(parameters), f"{path}.")
        tables.append(table | {"properties": {tag: {"const": variant}} | table["properties"], "required": [tag]})
    if kinds:
        tables.append({"type": "object", "properties": kinds, "additionalProperties": False, "maxProperties": 1})
    return [{"enum": names}, *tables]
