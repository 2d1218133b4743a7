"""Writes a scenario back as TOML, which the standard library can only read."""

import json
import re
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def written(table: dict[str, Any]) -> str:
    """`table` as TOML: plain values first, then tables, then arrays of tables. None is left out."""
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if v is not None and not _is_section(v, path)}
    sections = {k: v for k, v in table.items() if _is_section(v, path)}
    lines = [f"{_key(key)} = {value(item)}" for key, item in plain.items()]
    for key, item in sections.items():
        name = ".".join(map(_key, (*path, key)))
        for head, body in [(f"[{name}]", item)] if isinstance(item, dict) else [(f"[[{name}]]", x) for x in item]:
            lines += ["", head, *_lines(body, (*path, key))]
    return lines


def _is_section(item: Any, path: tuple[str, ...]) -> bool:
    # Deeper tables read better in place.
    if path:
        return False
    return isinstance(item, dict) or (isinstance(item, list) and bool(item) and isinstance(item[0], dict))


def value(item: Any) -> str:
    """One TOML value on one line."""
    if isinstance(item, dict):
        inner = ", ".join(f"{_key(key)} = {value(x)}" for key, x in item.items() if x is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, list | tuple):
        # A table of paths has many numbers, and Python writes a list of them as TOML does.
        if {*map(type, item)} <= {int, float}:
            return repr([*item])
        return f"[{', '.join(map(value, item))}]"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    # A JSON string is a TOML basic string, DEL apart, which no name here holds.
    return json.dumps(str(item), ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
