"""The form of a scenario's file, read and written, whatever its keys: TOML of bounded depth, numbers of 64 bits, plain
text.
"""

import json
import re
import tomllib
from typing import Annotated, Any

from pydantic import AfterValidator

from firstflight.counted import control, escaped
from firstflight.errors import RequestError
from firstflight.scenario.units import UnitNumber

# Deeper than any key of a scenario lies, with room for tables that are written in one another.
MOST_LEVELS = 32
_MOST = 2**63
# As long as a path can be.
_MOST_CHARACTERS = 4096
# Of a key; more than any has.
_LONGEST_KEY = 100

# A value's place: that of the table or list around it, and the key or index in it.
_Place = tuple[Any, str | int] | None


def parsed(text: str) -> dict[str, Any]:
    """The table that `text` spells. TOMLDecodeError if it is not TOML, RequestError if it is more than a scenario."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise RequestError(_too_deep()) from None
    except ValueError:
        # Python reads no number of more than 4,300 digits.
        raise RequestError(_too_large("a number in it")) from None


def copied(table: dict[str, Any]) -> dict[str, Any]:
    """A copy whose tables and lists are new. `copy.deepcopy`, which looks for cycles, takes three times as long."""
    return {key: _copied(value) for key, value in table.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return copied(value)
    return [_copied(item) for item in value] if isinstance(value, list) else value


def check(document: dict[str, Any]) -> None:
    """RequestError for contents that no key can have: more levels, longer numbers, control characters."""
    # Without recursion, and with the places still in parts: tables of paths have a million numbers.
    waiting: list[tuple[_Place, Any, int]] = [(None, document, 0)]
    while waiting:
        place, item, level = waiting.pop()
        if isinstance(item, dict | list | tuple):
            if level > MOST_LEVELS:
                raise RequestError(f"{_steps(place)[0]}: {_too_deep()}")
            if not isinstance(item, dict) and set(map(type, item)) <= {float, int} and _fit(item):
                continue
            steps = item.items() if isinstance(item, dict) else enumerate(item)
            waiting += (((place, step), value, level + 1) for step, value in steps if not isinstance(value, float))
            if isinstance(item, dict):
                for key in item:
                    if len(str(key)) > _LONGEST_KEY:
                        raise RequestError(
                            f'the key "{str(key)[:20]}..." has {len(str(key))} characters; none is so long'
                        )
                    if (character := control(str(key))) is not None:
                        raise RequestError(
                            f'the key "{escaped(str(key))}" has a control character ({character}); remove it'
                        )
        elif isinstance(item, str):
            if len(item) > _MOST_CHARACTERS:
                raise RequestError(
                    f"{_written(place)}: this text has {len(item)} characters; write at most {_MOST_CHARACTERS}"
                )
            if (character := control(item)) is not None:
                raise RequestError(f"{_written(place)}: {_has_control(character)}")
        elif isinstance(item, int) and not -_MOST <= item < _MOST:
            raise RequestError(f"{_written(place)}: {_too_large('the number')}")


def _fit(numbers: list[float] | tuple[float, ...]) -> bool:
    whole = [number for number in numbers if type(number) is int]
    return not whole or (min(whole) >= -_MOST and max(whole) < _MOST)


def _steps(place: _Place) -> list[str | int]:
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return steps[::-1]


def _written(place: _Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in _steps(place)).removeprefix(".")


def _too_deep() -> str:
    return f"tables and lists lie in one another more than {MOST_LEVELS} deep; no key of a scenario needs that"


def _too_large(what: str) -> str:
    return f"{what} is too large; write one of at most {_MOST - 1}"


def _has_control(character: str) -> str:
    return f"this text has a control character ({character}), which terminals obey and figures cannot show; remove it"


def _shows(text: str) -> str:
    if (character := control(text)) is not None:
        raise ValueError(_has_control(character))
    return text


# A name or a description: it is printed and drawn.
Text = Annotated[str, AfterValidator(_shows)]


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def written(table: dict[str, Any]) -> str:
    """`table` as TOML: plain values first, then tables, then arrays of tables. None is left out."""
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if v is not None and not _is_section(v, path)}
    sections = {k: v for k, v in table.items() if _is_section(v, path)}
    lines = [f"{_key(key)} = {toml_value(item)}" for key, item in plain.items()]
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


def as_written(item: Any) -> Any:
    """A value from Python as a file gives it: NumPy's numbers as Python's, quantities as text."""
    if isinstance(item, dict):
        return {key: as_written(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [as_written(value) for value in item]
    if isinstance(item, UnitNumber):
        return str(item)
    return item.item() if getattr(item, "shape", None) == () else item


def toml_value(item: Any) -> str:
    """One TOML value on one line."""
    if isinstance(item, dict):
        inner = ", ".join(f"{_key(key)} = {toml_value(x)}" for key, x in item.items() if x is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, list | tuple):
        # A table of paths has many numbers, and Python writes a list of them as TOML does.
        if {*map(type, item)} <= {int, float}:
            return repr([*item])
        return f"[{', '.join(map(toml_value, item))}]"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    # A JSON string is a TOML basic string, DEL apart, which no name here holds.
    return json.dumps(str(item), ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)
