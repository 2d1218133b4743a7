"""The common part of every table of a scenario file: known keys only, and errors that give the correct form."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.scenario.document import as_written
from firstflight.scenario.explain import cut, sentence, shown

# Keys of the scenario that a reader may look for in a link.
_OF_ALL_LINKS = ("ip", "mtu")


def unknown(key: str, known: Iterable[str]) -> str:
    """The replacement for an unknown key: the nearest of the known ones."""
    names = set(known)
    if key in _OF_ALL_LINKS:
        return f'"{key}" is one for the whole scenario; write it at the top, beside "duration"'
    return f'unknown key "{cut(key)}"; {nearest(key, names)}'


class ScenarioTable(BaseModel):
    """A table of a scenario file. Unknown keys are errors; assignment is checked like a value in the file."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, validate_default=False, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys_only(cls, data: Any, handler: ModelWrapValidatorHandler["ScenarioTable"]) -> "ScenarioTable":
        if isinstance(data, dict):
            known = cls.model_fields
            if not data.keys() <= known.keys():
                key = next(key for key in data if key not in known)
                message = unknown(key, known)
                raise PydanticCustomError("wrong_key", "{message}", {"message": message, "key": key})
            table = handler(data)
            for key, value in data.items():
                if message := _number_of_boolean(value, getattr(table, key)):
                    raise PydanticCustomError("wrong_key", "{message}", {"message": message, "key": key})
            return table
        if not isinstance(data, BaseModel):
            required = [name for name, field in cls.model_fields.items() if field.is_required()]
            keys = required or list(cls.model_fields)[:1]
            message = f"{shown(data)} is not a table: write {{ {', '.join(f'{name} = ...' for name in keys)} }}"
            raise PydanticCustomError("not_a_table", "{message}", {"message": message})
        return handler(data)

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign, checked as in a file; raises RequestError, and then the value is unchanged."""
        if name not in type(self).model_fields:
            raise RequestError(unknown(name, type(self).model_fields))
        before, value = dict(self.__dict__), as_written(value)
        try:
            super().__setattr__(name, value)
            if message := _number_of_boolean(value, getattr(self, name)):
                raise ValueError(f"{name}: {message}")
        except ValueError as error:
            # Checks that see the whole table (low against high) run when pydantic has already assigned.
            self.__dict__.update(before)
            raise RequestError(sentence(error) if isinstance(error, ValidationError) else str(error)) from None


def _number_of_boolean(given: Any, taken: Any) -> str:
    """The mistake where pydantic took true for 1, in a list too; empty without one."""
    if isinstance(given, list) and isinstance(taken, list | tuple):
        return next(filter(None, map(_number_of_boolean, given, taken)), "")
    mistaken = isinstance(given, bool) and isinstance(taken, int | float) and not isinstance(taken, bool)
    return f"{shown(given)} is not a number" if mistaken else ""


@dataclass(frozen=True)
class Made:
    """In an annotation, a type that is made when the module is read; type checkers see its base."""

    of: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.of)


def by_name(key: str, models: Iterable[Any]) -> dict[str, Any]:
    """Types of tables by the default of their `key`, which names them."""
    return {model.model_fields[key].default: model for model in models}


def choose(data: Any, kinds: Mapping[str, type[ScenarioTable]], key: str, noun: str, context: Any = None) -> Any:
    """Validate `data` as the table type that its `key` names; raises ValueError for an unknown or missing one."""
    if isinstance(data, ScenarioTable):
        return data
    if not isinstance(data, dict):
        raise ValueError(f'{shown(data)} is no {noun}: write a table such as {{ {key} = "{next(iter(kinds))}", ... }}')
    if key not in data:
        raise ValueError(f'the {noun} has no "{key}"; known: {", ".join(kinds)}')
    kind = kinds.get(data[key]) if isinstance(data[key], str) else None
    if kind is None:
        raise ValueError(f"unknown {key} {shown(data[key])}; {nearest(str(data[key]), kinds)}")
    return kind.model_validate(data, context=context)
