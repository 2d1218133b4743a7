"""The subject of a scorecard: a way to start or to control congestion, by name or from a file's [tcp] table."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.input_files import named_text, or_packaged
from firstflight.scenario.document import parsed
from firstflight.scenario.tcp import Tcp, choices


@dataclass(frozen=True)
class Scheme:
    """`fields` of a [tcp] table, over the profile around it; `name` is the display name."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def known() -> dict[str, dict[str, Any]]:
    """Fields by name: each start-up scheme, each congestion control, each end of slow start that one of these has."""
    schemes: dict[str, dict[str, Any]] = {}
    for key in ("startup", "congestion_control"):
        for table in choices()[key]:
            tag, name = next(iter(table.items()))
            schemes[name] = {key: name}
            for parameter in table:
                ends = choices().get(f"{key}.{parameter}", []) if parameter != tag else []
                schemes |= {end: {key: {tag: name, parameter: end}} for end in ends if end != "off"}
    return schemes


def scheme(text: str) -> Scheme:
    """The scheme called `text`, or that of the file `text`. RequestError with the nearest name."""
    path = or_packaged(text)
    if text in known():
        fields, name = known()[text], text
    elif path.suffix == ".toml" or path.is_file():
        fields, name = _of_file(path), path.name
    else:
        raise RequestError(f'unknown scheme "{text}", and no file is called so; {nearest(text, known())}')
    try:
        Tcp(**({"profile": "linux"} | fields)).over(None)
    except ValueError as error:
        raise RequestError(f"{text}: {error}; parameters go into the [tcp] table of a file") from None
    return Scheme(name, fields)


def _of_file(path: Path) -> dict[str, Any]:
    try:
        table = parsed(named_text(path)).get("tcp")
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f'"{path}" cannot be read as TOML: {error}') from None
    if not isinstance(table, dict):
        raise RequestError(f'"{path}" has no [tcp] table; write for example [tcp] and startup = "jump_start"')
    return table
