"""The rows of a chart."""

from __future__ import annotations

from typing import Any

import altair
from altair.utils.schemapi import debug_mode


class Rows(altair.Data):
    """A chart's data, each row a plain dictionary of what JSON holds.

    Altair checks and copies its own data row by row, again for each layer and panel that a chart joins; that took a
    third of the time of a figure. These rows are shared and not checked.
    """

    def __init__(self, values: list[dict[str, Any]]) -> None:
        with debug_mode(False):
            super().__init__(values=values)  # type: ignore[no-untyped-call]

    def __deepcopy__(self, _memo: Any) -> Rows:
        return self

    def to_dict(self, *_args: Any, **_keywords: Any) -> dict[str, Any]:
        """The data as Vega-Lite reads it."""
        return {"values": self["values"]}
