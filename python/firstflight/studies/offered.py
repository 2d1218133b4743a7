"""Tables that a study names without computing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from firstflight.analysis.table import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Offered(Generic[T]):
    """A table: whether there is anything for it in what a run measured, and how it is made. Both take the same
    argument; `exists` must be quick.
    """

    name: str
    exists: Callable[[T], bool]
    make: Callable[[T], Table]


def names(offered: Sequence[Offered[T]], measured: T) -> list[str]:
    """Those for which there is something, in their order."""
    return [one.name for one in offered if one.exists(measured)]


def table(offered: Sequence[Offered[T]], measured: T, name: str) -> Table:
    """The one called `name`."""
    return next(one for one in offered if one.name == name).make(measured)
