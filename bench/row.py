"""One line of the benchmark's result, and how it is printed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """The target of a measured value: `value` at least, or at most."""

    value: float
    at_least: bool = True

    def met(self, found: float) -> bool:
        """Whether `found` reaches it."""
        return found >= self.value if self.at_least else found <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {_short(self.value)}"


@dataclass(frozen=True)
class Row:
    """A piece of work and its cost, in `unit`; `ratio` is ours / peer_value.

    `peer` names the program that ours is compared with, None for none; its value is None where it is not installed.
    `spread` holds the lowest and the highest ratio of the alternating rounds. `goals` are compared with the
    ratio if `goals_of_ratio`, else against ours. `same` is set on checks that both did the same work.
    """

    work: str
    ours: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    spread: tuple[float, float] | None = None
    goals: tuple[Goal, ...] = ()
    goals_of_ratio: bool = True
    same: bool | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's; None without a peer's value, or where that is 0."""
        return self.ours / self.peer_value if self.peer_value else None

    def verdict(self) -> str:
        """How the goals fare: "must ≥ 6: reached", and so on for the aim."""
        if self.same is not None:
            return "the same" if self.same else "DIFFERS"
        found = self.ratio if self.goals_of_ratio else self.ours
        if not self.goals or found is None:
            return ""
        named = zip(("must", "aim"), self.goals, strict=False)
        return ", ".join(f"{name} {goal}: {'reached' if goal.met(found) else 'short'}" for name, goal in named)


def as_json(rows: Sequence[Row]) -> str:
    """The rows as JSON: [{work, ours, peer, peer_value, ratio, unit}]."""
    fields = ("work", "ours", "peer", "peer_value", "ratio", "unit")
    return json.dumps([{field: getattr(row, field) for field in fields} for row in rows], indent=1)


def as_text(rows: Sequence[Row]) -> str:
    """The rows as a table to read: the ratio with its lowest and highest round, then the goals."""
    lines = [("work", "ours", "peer", "unit", "ours / peer", "")]
    for row in rows:
        remark = "; ".join(filter(None, (row.verdict(), row.note)))
        lines.append((row.work, _short(row.ours), _peer(row), row.unit, _ratio(row), remark))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def _peer(row: Row) -> str:
    if row.peer is None:
        return "-"
    return row.peer if row.peer_value is None else f"{row.peer} {_short(row.peer_value)}"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return "-"
    if row.spread is None:
        return _short(row.ratio)
    return f"{_short(row.ratio)} ({_short(row.spread[0])} to {_short(row.spread[1])})"


def _short(value: float) -> str:
    """Three or four digits, thousands set apart: 12,345,678 or 0.0123."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
