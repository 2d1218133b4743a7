"""One sentence for an error from pydantic: the key's path, the value, and the correct form."""

from collections.abc import Sequence
from datetime import date, time
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from firstflight.counted import counted

# Longer values are cut in messages.
_SHOWN_CHARACTERS = 60
# Steps of pydantic's that are no keys but types.
_TYPES = ("function-", "list[", "tuple[", "literal[")


def sentence(error: ValidationError, names: Sequence[str | None] = ()) -> str:
    """The first finding, and how many more there are. `names`: those of the applications, to call them by."""
    every = error.errors(include_url=False)
    # That a value is not the word that may stand in its place is no mistake of its own.
    details = [one for one in every if not any(str(step).startswith("literal[") for step in one["loc"])] or every
    more = f" (and {counted(len(details) - 1, 'more mistake')})" if len(details) > 1 else ""
    return f"{_one(details[0], names)}{more}"


def _one(detail: ErrorDetails, names: Sequence[str | None]) -> str:
    context = detail.get("ctx", {})
    path: list[Any] = list(detail["loc"])
    if len(path) > 1 and path[0] == "application" and isinstance(path[1], int) and path[1] < len(names):
        path[1] = names[path[1]] or path[1]
    if detail["type"] == "wrong_key":
        return f"{_path([*path, context['key']])}: {detail['msg']}"
    place = _path(path)
    if detail["type"] == "tcp_field":
        return f"{place}.{detail['msg']}"
    message = _message(detail, context)
    return f"{place}: {message}" if place else message


def _message(detail: ErrorDetails, context: dict[str, Any]) -> str:
    value, kind = shown(detail["input"]), detail["type"]
    if value == "nan":
        # It is on no side of a bound.
        kind = "finite_number"
    if kind == "literal_error":
        choices = context["expected"].replace("'", '"')
        if f'"{value}"' in choices:
            return f'{value} is a number; write it in quotes, as text: "{value}"'
        return f"{value} is not known; write {choices}"
    if kind == "list_type" and isinstance(detail["input"], dict):
        return f"this is one table of a list; write [[{_path(list(detail['loc']))}]] above it"
    message = detail["msg"].removeprefix("Value error, ")
    return _SENTENCES.get(kind, "{value}: {message}").format_map(context | {"value": value, "message": message})


# By pydantic's type of an error; the bounds are the error's own.
_SENTENCES = {
    "missing": "this key is missing",
    "value_error": "{message}",
    "not_a_table": "{message}",
    "greater_than_equal": "{value} is too small; write at least {ge:g}",
    "greater_than": "{value} is too small; write more than {gt:g}",
    "less_than_equal": "{value} is too large; write at most {le:.10g}",
    "less_than": "{value} is too large; write less than {lt:g}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "{value} is not a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "{value} is not a number"),
    "int_parsing_size": "{value} is too large",
    "finite_number": "{value} is not a finite number",
    **dict.fromkeys(("list_type", "tuple_type"), "{value} is not a list; write [ ... ]"),
    "dict_type": "{value} is not a table; write {{ ... }}",
    **dict.fromkeys(("bool_type", "bool_parsing"), "{value} is not true or false"),
    "string_type": "{value} is not text; put it in quotes",
    "string_pattern_mismatch": "{value} holds characters other than letters, digits, dot, dash and underscore",
    **dict.fromkeys(("too_short", "string_too_short"), "this is empty; give at least one"),
}


def _path(steps: list[Any]) -> str:
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not str(step).startswith(_TYPES):
            text += f".{step}" if text else str(step)
    return text


def shown(value: object) -> str:
    """The value as a file spells it, cut to a length that fits a sentence."""
    if isinstance(value, date | time):
        return value.isoformat()
    try:
        text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value).replace("'", '"')
    except (ValueError, RecursionError):
        # Python writes no number of more than 4,300 digits, and nothing that lies in itself.
        text = f"this {type(value).__name__}"
    return cut(text)


def cut(text: str) -> str:
    """The text, or its first characters where it is longer than a sentence bears."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
