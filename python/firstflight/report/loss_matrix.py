"""The lost segment of the first flight, the kind of recovery, and its cost: one cell for each case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from firstflight.report.figure import Figure, inline
from firstflight.report.style import INK, PAPER, color

if TYPE_CHECKING:
    import altair

REPAIRS = ("fast retransmit", "early retransmit", "tail loss probe", "timeout")
"""The kinds of recovery, from the fastest on."""

# Pale enough for numbers on them.
_COLORS, _OPACITY = tuple(map(color, ("green", "sky", "yellow", "red"))), 0.35
_CELL = {True: 34, False: 21}


def loss_matrix(cases: pl.DataFrame, name: str, title: str, caption: str) -> Figure:
    """A cell for each position of a loss (across) and initial window (down): color the repair, number its cost in ms.

    `cases` has the columns `initial_window` and `position` (segments, from 1), `repair` (one of `REPAIRS`), `cost_ms`
    (against the same transfer without loss) and, for several matrices next to each other, `panel`. Raises ValueError
    for an unknown repair, for none at all and for two cases in one cell.
    """
    unknown = sorted(set(cases["repair"]) - set(REPAIRS))
    if unknown:
        raise ValueError(f'"{unknown[0]}" is not a recovery mechanism; known: {", ".join(REPAIRS)}')
    if cases.is_empty():
        raise ValueError("there are no cases to draw")
    place = ["initial_window", "position"] + (["panel"] if "panel" in cases.columns else [])
    if cases.select(place).is_duplicated().any():
        raise ValueError(f"there are two cases with the same {', '.join(place)}")
    return Figure(name, title, caption, _chart(cases, wide=True), _chart(cases, wide=False))


def _chart(cases: pl.DataFrame, wide: bool) -> altair.TopLevelMixin:
    import altair as alt

    panels = cases["panel"].unique(maintain_order=True).to_list() if "panel" in cases.columns else [None]
    drawn = [repair for repair in REPAIRS if repair in set(cases["repair"])]
    # The numbers need room; where there is none, on a telephone, the color alone has to do.
    matrices = [
        _matrix(cases if panel is None else cases.filter(pl.col("panel") == panel), panel, drawn, wide)
        for panel in panels
    ]
    concat = alt.hconcat if wide and cases["initial_window"].max() <= 10 else alt.vconcat  # type: ignore[operator]
    picture: altair.TopLevelMixin = concat(*matrices, spacing=24).resolve_scale(color="shared")
    return picture


def _matrix(cases: pl.DataFrame, title: str | None, drawn: list[str], wide: bool) -> altair.LayerChart:
    import altair as alt

    windows = sorted(cases["initial_window"].unique())
    positions = sorted(cases["position"].unique())
    x = alt.X("position:O", title="lost segment of the first flight", sort=positions, axis=alt.Axis(labelAngle=0))
    y = alt.Y("initial_window:O", title="initial window", sort=windows)
    values = inline(cases.with_columns(pl.col("cost_ms").round(0).cast(pl.Int64).alias("cost")).to_dicts())
    colors = [_COLORS[REPAIRS.index(repair)] for repair in drawn]
    cells = (
        alt.Chart(values)
        .mark_rect(stroke=PAPER, strokeWidth=1, opacity=_OPACITY)
        .encode(
            x=x, y=y, color=alt.Color("repair:N", sort=drawn, title=None, scale=alt.Scale(domain=drawn, range=colors))
        )
    )
    layers = [cells]
    if wide:
        layers.append(alt.Chart(values).mark_text(fontSize=10, color=INK).encode(x=x, y=y, text="cost:Q"))
    heading = alt.TitleParams(title or "", anchor="start", fontSize=12)
    return alt.LayerChart(layer=layers).properties(width=alt.Step(_CELL[wide]), height=alt.Step(24), title=heading)
