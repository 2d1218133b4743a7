"""Charts of quantities: lines, small multiples, heat maps, points against points, intervals, bars."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import xarray as xr

from firstflight.counted import with_unit
from firstflight.report.figure import Figure, Spec, layer, nominal, quantitative
from firstflight.report.style import BASE, BETTER, INK, ORDERED, PAPER, SOFT, WORSE
from firstflight.report.style import color as theme
from firstflight.report.style import scale as colors
from firstflight.studies.kernel.quantity import estimates, words
from firstflight.studies.kernel.sample import DRAW

# From here on the axis is logarithmic: the largest label over the smallest.
_LOGARITHMIC = 20
# Labels that an axis can write, each one.
_FEW = 12
# Labels of a line that has a point at each.
_POINTS = 40
# Width of a letter of an axis, px.
_LETTER = 8
OURS = "this run"
_DASHES = [[1, 0], [5, 3], [1, 3]]
# Kinds, from the best to the worst.
_KINDS = list(map(theme, ("green", "sky", "yellow", "red")))


def lines(
    quantity: xr.DataArray,
    title: str,
    caption: str,
    x: str,
    color: str,
    columns: str | None = None,
    log: bool = False,
    linear_within: float | None = None,
    base: float | None = None,
    between: tuple[xr.DataArray, xr.DataArray] | None = None,
    beside: Mapping[str, xr.DataArray] | None = None,
) -> Figure | None:
    """One line per label of `color` against the dimension `x`, with the 95% CI as a band, or `between` two quantities.

    `columns` gives each label of a third dimension, or each line, a separate panel. The values' axis is logarithmic
    with `log`, or with `linear_within` beyond this value on either side of zero; a dashed line is at the `base`.
    `beside`: values of other sources, by their names, dashed. Text labels of `x` get points with bars. Titles are the
    attributes `long_name` and `titles` of the coordinates. None without data. ValueError if another dimension remains.
    """
    keys = [x, color, *([columns] if columns else [])]
    for key in map(str, quantity.dims):
        quantity = quantity.dropna(key, how="all")
    if not quantity.size:
        return None
    # As the names of the colors.
    rows = [row | {color: str(row[color])} for row in rows_of(quantity, keys)]
    for end, other in zip(("low", "high"), between or (), strict=False):
        places = {tuple(str(row[key]) for key in keys): row["value"] for row in rows_of(other, keys)}
        rows = [row | {end: places[tuple(str(row[key]) for key in keys)]} for row in rows]
    if beside:
        rows = [row | {"source": OURS} for row in rows]
    for source, other in (beside or {}).items():
        rows += [row | {color: str(row[color]), "source": source} for row in rows_of(other, keys)]
    greatest = max((abs(row["value"]) for row in rows), default=0)
    # Of values that are never negative an interval may be; its axis begins there, not at the next round number.
    is_below = any(row.get("low", 0) < 0 for row in rows) and all(row["value"] >= 0 for row in rows)
    scale = Values(log, linear_within, base, greatest, nice=not is_below)
    sources = [OURS, *beside] if beside else []
    wide, narrow = (_chart(quantity, rows, width, x, color, columns, scale, sources) for width in (560, 300))
    return Figure(str(quantity.name), title, caption, wide, narrow, extremes(quantity, keys))


class Values(NamedTuple):
    """The axis of the values."""

    log: bool
    linear_within: float | None
    base: float | None
    greatest: float
    nice: bool = True

    def channel(self, title: str) -> Spec:
        """The encoding of the field `value`."""
        if self.linear_within is None:
            if self.log:
                scale, axis = {"type": "log", "nice": False}, {"tickCount": 6, "format": "~g"}
                return quantitative("value", title=title, scale=scale, axis=axis)
            return quantitative("value", title=title, scale={"zero": True, "nice": self.nice})
        steps = [self.linear_within * 2**step for step in range(12) if self.linear_within * 2**step <= self.greatest]
        scale = {"type": "symlog", "constant": self.linear_within, "nice": False}
        axis = {"values": [*(-step for step in steps), 0, *steps], "format": "d", "labelOverlap": True}
        return quantitative("value", title=title, scale=scale, axis=axis)


def _chart(
    quantity: xr.DataArray,
    rows: list[dict[str, Any]],
    width: int,
    x: str,
    color: str,
    columns: str | None,
    values: Values,
    sources: list[str],
) -> Spec:
    names = titles(quantity[color])
    heading = quantity[color].attrs.get("long_name", color)
    shade = nominal(color, sort=names, title=heading, scale=colors(names, color))
    labels = quantity[x].values.tolist()
    numbers = all(isinstance(label, int | float) for label in labels)
    far = numbers and min(labels) > 0 and max(labels) >= _LOGARITHMIC * min(labels) and not _even(labels)
    heading = quantity[x].attrs.get("long_name", x)
    if numbers:
        axis = {"labelExpr": "'' + datum.value", "labelOverlap": "greedy", "labelSeparation": 3}
        if len(labels) <= _FEW:
            axis["values"] = labels
        scale = {"type": "log" if far else "linear", "zero": False, "nice": not far}
        across = quantitative(x, title=heading, scale=scale, axis=axis)
    else:
        room = width / min(quantity.sizes[columns] if columns else 1, 4 if width > 400 else 2) / len(labels)
        angle = 0 if max(map(len, titles(quantity[x]))) * _LETTER <= room else -40
        across = nominal(x, title=heading, sort=titles(quantity[x]), axis={"labelAngle": angle})
    value = values.channel(heading_of(quantity))
    shared = {"x": across, "color": shade}
    ends = {"y": value | {"field": "low"}, "y2": {"field": "high"}}
    if numbers:
        pointed = len(labels) <= _POINTS
        line = layer({"type": "line", "point": pointed}, **shared, y=value)
        if sources:
            # Points of a layer of their own: the legend has lines as the picture has. On a telephone it is below.
            legend = {"symbolSize": 300} | ({"orient": "bottom", "columns": 1} if width <= 400 else {})
            dashes = {"domain": sources, "range": _DASHES[: len(sources)]}
            dash = nominal("source", title=None, scale=dashes, legend=legend)
            line = layer("line", **shared, y=value, strokeDash=dash)
        drawn = [layer({"type": "area", "opacity": 0.2}, **shared, **ends), line]
        if sources and pointed:
            drawn.append(layer({"type": "point", "filled": True, "size": 30, "opacity": 1}, **shared, y=value))
    else:
        if len(names) > 1 and color != columns:
            shared["xOffset"] = nominal(color, sort=names)
        point = {"type": "point", "filled": True, "size": 60}
        drawn = [layer("rule", **shared, **ends), layer(point, **shared, y=value)]
    if values.base is not None:
        drawn.insert(0, layer({"type": "rule", "color": BASE, "strokeDash": [5, 4]}, y={"datum": values.base}))
    panels = quantity.sizes[columns] if columns else 1
    abreast = min(panels, 4 if width > 400 else 2)
    size = {"width": max(width // abreast - 40, 100), "height": 240 if width > 400 else 180}
    chart, data = {"layer": drawn, **size}, {"values": rows}
    if columns is None:
        return chart | {"data": data}
    named = quantity[columns].attrs.get("long_name") if not quantity[columns].attrs.get("titles") else None
    header = {"labelExpr": f"'{named}: ' + datum.value" if named else "datum.value"}
    facet = nominal(columns, sort=titles(quantity[columns]), title=None, header=header)
    # Lines that are not compared have an axis each.
    resolve = {"resolve": {"scale": {"y": "independent"}}} if color == columns else {}
    return {"data": data, "facet": facet, "columns": abreast, "spec": chart, **resolve}


def _even(labels: list[Any]) -> bool:
    """Whether labels are evenly spaced, as percentiles are."""
    return len(labels) > 2 and len({after - before for before, after in itertools.pairwise(labels)}) == 1


def heading_of(quantity: xr.DataArray) -> str:
    """An axis's title."""
    name, unit, _ = words(quantity)
    unit = with_unit("", unit).strip()
    return f"{name}, {unit}" if unit else name


def extremes(quantity: xr.DataArray, keys: list[str]) -> str:
    """The least and the largest value with their places, the finding of a figure; empty if there is one value."""
    rows = rows_of(quantity, keys)
    ends = [end(rows, key=itemgetter("value")) for end in (min, max)]
    if ends[0]["value"] == ends[1]["value"]:
        return ""
    name, unit, digits = words(quantity)
    varied = [key for key in dict.fromkeys(keys) if len({str(row[key]) for row in rows}) > 1]

    def told(row: dict[str, Any]) -> str:
        number = with_unit(f"{row['value']:,.{digits}f}", unit)
        return f"{number} ({', '.join(place(quantity[key], row[key]) for key in varied)})"

    return f"{name}: {told(ends[0])} to {told(ends[1])}"


def place(coordinate: xr.DataArray, label: Any) -> str:
    """A label in words: IW 10, RTT 40 ms."""
    if not isinstance(label, int | float):
        return str(label)
    what, _, unit = str(coordinate.attrs.get("long_name", coordinate.name)).partition(", ")
    return f"{what.upper() if len(what) < 3 else what} {with_unit(f'{label:g}', unit if unit != 'segments' else '')}"


def titles(coordinate: xr.DataArray) -> list[str]:
    """The text shown for each label."""
    named = coordinate.attrs.get("titles", {})
    return [str(named.get(str(label), label)) for label in coordinate.values]


def rows_of(quantity: xr.DataArray, keys: list[str]) -> list[dict[str, Any]]:
    """Label of each key, `value` and, where there is an interval, `low` and `high`; of cells with data."""
    keys = list(dict.fromkeys(keys))
    named = {key: quantity[key].attrs.get("titles", {}) for key in keys}
    rows = []
    for place, estimate in estimates(quantity, keys):
        interval = {} if math.isnan(estimate.low) else {"low": estimate.low, "high": estimate.high}
        shown = {key: named[key].get(str(label), label) for key, label in place.items()}
        rows.append(shown | {"value": estimate.value} | interval)
    return rows


_ABREAST = 4
"""Maximum number of names per line of a legend."""
_SMALL = 9
"""Font size of the labels of small panels, px."""
_LABELS = 8
"""Labels next to each other below a panel of a wide page."""


def panels(
    quantity: xr.DataArray,
    title: str,
    caption: str,
    x: str,
    rows: str,
    columns: str,
    base: float | None,
    color: str | None = None,
    marked: Any = None,
    log: bool = False,
) -> Figure | None:
    """One panel per label of `rows` and `columns`, with lines against `x` on a logarithmic axis and a line at the
    `base`.

    A single line is shaded where it is better (less) or worse than the base; `color` has a line per label. The value at
    the label `marked` is printed. `log` is for the values. None without data.
    """
    keys = [key for key in (x, rows, columns, color) if key]
    cell_rows = rows_of(quantity, keys)
    if not cell_rows:
        return None
    for row in cell_rows:
        if base is not None:
            row |= {"below": min(row["value"], base), "above": max(row["value"], base)}
        if row[x] == marked:
            row["mark"] = f"{row['value']:.{quantity.attrs['digits']}f}"

    def chart(wide: bool) -> Spec:
        labels = quantity[x].values.tolist()
        ticks = {"values": labels, "format": "d", "labelFontSize": _SMALL, "grid": False}
        across = quantitative(
            x,
            title=None,
            scale={"type": "log", "base": 2, "nice": False, "padding": 6},
            axis=ticks | {"labelOverlap": not wide or len(labels) > _LABELS},
        )
        scale = {"type": "log", "nice": False} if log else {"zero": False}
        axis = {"tickCount": 3, "labelFontSize": _SMALL}

        def y(field: str) -> Spec:
            return quantitative(field, title=None, scale=scale, axis=axis)

        layers = [] if base is None else [layer({"type": "rule", "color": BASE, "strokeWidth": 0.7}, y={"datum": base})]
        if color is None:
            layers += [
                layer({"type": "area", "color": shade, "opacity": 0.3}, x=across, y=y(field), y2={"datum": base})
                for field, shade in (("below", BETTER), ("above", WORSE))
            ]
        shade = {"value": ORDERED[0]} if color is None else color_of(quantity[color], color)
        point = {"size": 20 if wide else 10, "filled": True, "opacity": 1}
        line = {"type": "line", "strokeWidth": 1.6, "point": point}
        layers += [
            layer("rule", x=across, y=y("low"), y2={"field": "high"}, color=shade),
            layer(line, x=across, y=y("value"), color=shade),
        ]
        if marked is not None:
            at = {"transform": [{"filter": "isValid(datum.mark)"}]}
            ring = {"type": "point", "color": ORDERED[0], "size": 70 if wide else 30}
            font = {"fontSize": 12 if wide else 8, "fontWeight": "bold"}
            text = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, **font}
            layers += [
                at | layer(ring, x=across, y=y("value")),
                at | layer(text, x={"value": 0}, y={"value": "height"}, text=nominal("mark")),
            ]
        # Letters may be wider in the reader's font than where the picture was laid out.
        room = {"labelPadding": 32 if wide else 20, "labelFontSize": 12 if wide else _SMALL}
        header = {"labelAngle": 0, "labelAlign": "left", **room}
        facet = {
            "row": nominal(rows, sort=titles(quantity[rows]), title=None, header=header),
            "column": nominal(columns, sort=titles(quantity[columns]), title=None),
        }
        # Few rows are higher.
        height = max(320 // quantity.sizes[rows], 80) if wide else 64
        size = {"width": (560 if wide else 230) // quantity.sizes[columns], "height": height}
        place = {"orient": "bottom", "anchor": "middle", "fontSize": 11, "fontWeight": "normal"}
        heading = {"text": quantity[x].attrs.get("long_name", x), **place}
        return _faceted(cell_rows, facet, {"layer": layers, **size}, 10 if wide else 6) | {"title": heading}

    return Figure(str(quantity.name), title, caption, chart(True), chart(False), extremes(quantity, keys))


def _faceted(rows: list[dict[str, Any]], facet: Spec, panel: Spec, spacing: int) -> Spec:
    return {"data": {"values": rows}, "facet": facet, "spec": panel, "spacing": spacing}


def heat_map(
    quantity: xr.DataArray,
    title: str,
    caption: str,
    x: str,
    y: str,
    columns: str,
    kinds: tuple[xr.DataArray, Sequence[str]] | None = None,
) -> Figure | None:
    """The value in each cell of `x` and `y`, greener for larger values, in one panel per label of `columns`.

    With `kinds`, an array of the same cells and the names of its values 0, 1, ... from the best to the worst, the color
    of a cell is that of its kind. None without data.
    """
    keys = [x, y, columns]
    cell_rows = rows_of(quantity, keys)
    if not cell_rows:
        return None
    digits = quantity.attrs["digits"]
    # Numbers stay legible on the darkest cell.
    deepest = 1.4 * max(row["value"] for row in cell_rows)
    names = kinds[1] if kinds else ()
    if kinds:
        cell_kinds = {tuple(row[key] for key in keys): names[int(row["value"])] for row in rows_of(kinds[0], keys)}
        cell_rows = [row | {"kind": cell_kinds[tuple(row[key] for key in keys)]} for row in cell_rows]
    many = quantity.sizes[x] > _FEW

    def chart(wide: bool) -> Spec:
        heading = quantity[x].attrs.get("long_name", x) if wide else None
        at: Spec = {
            "x": {
                "field": x,
                "type": "ordinal",
                "sort": titles(quantity[x]),
                "title": heading,
                "axis": {"labelAngle": 0},
            },
            "y": {"field": y, "type": "ordinal", "sort": titles(quantity[y]), "title": None},
        }
        if kinds:
            kind = nominal("kind", title=None, scale={"domain": list(names), "range": _KINDS[: len(names)]})
            cells = layer({"type": "rect", "stroke": PAPER, "opacity": 0.35}, **at, color=kind)
        else:
            depth = quantitative("value", legend=None, scale={"domain": [0, deepest], "range": [0.05, 1]})
            cells = layer({"type": "rect", "stroke": PAPER, "color": BETTER}, **at, opacity=depth)
        font = {"fontSize": (10 if many else 12) if wide else 9, "color": INK}
        text = layer({"type": "text", **font}, **at, text=quantitative("value", format=f".{digits}f"))
        step = (34 if many else 42) if wide else 17 if many else 22
        panel = {
            # On a telephone numbers of many columns have no room.
            "layer": [cells] if many and not wide else [cells, text],
            "width": {"step": step},
            "height": {"step": 28 if wide else 22},
        }
        facet = nominal(columns, sort=titles(quantity[columns]), title=None)
        picture = _faceted(cell_rows, facet, panel, 14 if wide else 8)
        return picture | {"columns": 1 if many else quantity.sizes[columns]}

    return Figure(str(quantity.name), title, caption, chart(True), chart(False), extremes(quantity, keys))


def scatter(
    quantity: xr.DataArray,
    against: xr.DataArray,
    title: str,
    caption: str,
    color: str,
    columns: str,
    base: float,
    linear_within: float | None = None,
) -> Figure | None:
    """One point per cell: `quantity` against the value of `against` there, on logarithmic axes.

    The axis of `quantity` is logarithmic from `linear_within` on either side of zero. A line is at the `base`; a color
    stands for a label of `color`, which `against` may lack, a panel for one of `columns`. None without data.
    """
    keys = [str(key) for key in quantity.dims if key != DRAW]
    shared_keys = [key for key in keys if key in against.dims]
    cell_rows = rows_of(quantity, keys)
    if not cell_rows:
        return None
    places = {tuple(row[key] for key in shared_keys): row["value"] for row in rows_of(against, shared_keys)}
    for row in cell_rows:
        row["against"] = places[tuple(row[key] for key in shared_keys)]

    values = Values(True, linear_within, base, max(abs(row["value"]) for row in cell_rows))

    scale, few = {"type": "log", "nice": False}, {"tickCount": 4, "format": "~g", "grid": False, "labelSeparation": 6}
    layers = [
        layer({"type": "rule", "color": BASE, "strokeDash": [4, 3]}, y={"datum": base}),
        layer(
            {"type": "circle", "size": 20, "opacity": 0.55},
            x=quantitative("against", title=heading_of(against), scale=scale, axis=few),
            y=values.channel(heading_of(quantity)),
            color=color_of(quantity[color], color),
        ),
    ]
    facet = {"column": nominal(columns, sort=titles(quantity[columns]), title=None)}

    def chart(wide: bool) -> Spec:
        size = {"width": (570 if wide else 250) // quantity.sizes[columns], "height": 220 if wide else 190}
        return _faceted(cell_rows, facet, {"layer": layers, **size}, 14)

    return Figure(str(quantity.name), title, caption, chart(True), chart(False), extremes(quantity, keys))


def color_of(coordinate: xr.DataArray, key: str) -> Spec:
    """A color per label, in their order."""
    names = titles(coordinate)
    legend = {"columns": _ABREAST} if len(names) > _ABREAST else {}
    title = coordinate.attrs.get("long_name")
    return nominal(key, sort=names, title=title, scale=colors(names, key), legend=legend)


def intervals(
    quantity: xr.DataArray, title: str, caption: str, y: str, color: str, rows: str, base: float = 0
) -> Figure | None:
    """The value and 95% CI of each label of `y`, in a color per label of `color` and a panel per label of `rows`.

    A line is at the `base`; a base of 1 has a logarithmic axis, which begins at half of the least value: intervals that
    reach zero are cut there. Labels without an interval are omitted. None without data.
    """
    keys = [y, color, rows]
    cell_rows = [row for row in rows_of(quantity, keys) if "low" in row]
    if not cell_rows:
        return None
    if base:
        least = min(row["value"] for row in cell_rows if row["value"] > 0) / 2
        cell_rows = [row | {"low": max(row["low"], least)} for row in cell_rows]

    ends = [base, *(row[end] for row in cell_rows for end in ("low", "high"))]
    scale = {"domain": [min(ends), max(ends)], "type": "log" if base else "linear", "nice": not base}

    def chart(wide: bool) -> Spec:
        shared = {
            "y": nominal(y, sort=titles(quantity[y]), title=None, axis={"labelLimit": 260 if wide else 150}),
            "yOffset": nominal(color, sort=titles(quantity[color])),
            "color": color_of(quantity[color], color),
        }

        def one(panel: str) -> Spec:
            # A label that is a number would be no member of the offset's scale.
            panel_rows = [row | {color: str(row[color])} for row in cell_rows if str(row[rows]) == panel]
            low, middle = (quantitative(of, title=heading_of(quantity)) for of in ("low", "value"))
            spread = {"type": "rule", "strokeWidth": 4, "opacity": 0.35}
            point = {"type": "point", "size": 50, "filled": True, "opacity": 1}
            layers = [
                layer({"type": "rule", "color": BASE}, [{}], x={"datum": base}),
                layer(spread, panel_rows, **shared, x=low, x2={"field": "high"}),
                layer(point, panel_rows, **shared, x=middle | {"scale": scale}),
            ]
            return {"layer": layers, "width": 480 if wide else 190, "height": {"step": 13}, "title": panel}

        here = {str(row[rows]) for row in cell_rows}
        return {"vconcat": [one(panel) for panel in titles(quantity[rows]) if panel in here]}

    return Figure(str(quantity.name), title, caption, chart(True), chart(False), extremes(quantity, keys))


_MS_AXIS = [0, 10, 30, 100, 300, 1000, 3000]
_STRETCHED = 200
"""Bars of more ms than that get an axis that is stretched towards zero."""
_LABEL = "replace(datum.label, '<= ', '\u2264 ')"
"""The name of a bucket as an axis shows it."""


def bars(
    quantity: xr.DataArray,
    by: str,
    sources: Sequence[str],
    step: int,
    above: Sequence[str] | None = None,
    height: int = 150,
) -> Spec:
    """A bar per bucket, a label of `by`, and `source`; the last is gray. `above`: texts over the buckets of ms."""
    rows, order = rows_of(quantity, [by, "source"]), titles(quantity[by])
    there = [source for source in sources if any(row["source"] == source for row in rows)]
    in_ms = quantity.attrs["units"] == "ms"
    x = nominal(
        by,
        sort=order,
        scale={"domain": order},
        title=None if in_ms else quantity[by].attrs["long_name"],
        axis={"labelAngle": -45, "labels": not in_ms, "labelExpr": _LABEL},
    )
    scale: Spec = {"nice": True}
    axis: Spec = {"format": "d"}
    if in_ms and max(row["value"] for row in rows) > _STRETCHED:
        scale, axis = {"type": "symlog", "constant": 10}, axis | {"values": _MS_AXIS}
    legend = {"values": list(sources if above is None else there)} if len(there) > 1 else None
    shades = {"domain": list(sources), "range": [ORDERED[0], ORDERED[1], BASE]}
    shared = {"x": x, "xOffset": nominal("source", sort=there)}
    value, low = (
        quantitative("value", title=heading_of(quantity), scale=scale, axis=axis),
        quantitative("low", scale=scale),
    )
    layers = [
        layer("bar", rows, **shared, y=value, color=nominal("source", title=None, scale=shades, legend=legend)),
        {"transform": [{"filter": "isValid(datum.low)"}]}
        | layer({"type": "rule", "color": INK}, rows, **shared, y=low, y2={"field": "high"}),
    ]
    if in_ms and above is not None:
        written = [{by: label, "share": share} for label, share in zip(order, above, strict=True)]
        text = {"type": "text", "fontSize": 8.5, "color": SOFT, "baseline": "bottom"}
        layers.append(layer(text, written, x=x, y={"value": -3}, text=nominal("share")))
    return {"layer": layers, "width": step * len(order), "height": height}


def forest(
    quantity: xr.DataArray,
    y: str,
    color: str,
    title: str,
    ticks: Sequence[float],
    published: Mapping[str, float],
    width: int,
    step: int,
    label: int,
) -> Spec:
    """The value and interval of each label of `y`, and dashed the `published` value for a label of `color`. `ticks` go
    from end to end of the axis, logarithmic if they are all positive; intervals that go on beyond are cut. `step`:
    height of a line; `label`: letters next to it before its text continues below, 0 for none.
    """
    cell_rows = [
        row
        | {"told": "|".join(textwrap.wrap(row[y], label or 200))}
        | ({"low": max(row["low"], ticks[0]), "high": min(row["high"], ticks[-1])} if "low" in row else {})
        for row in rows_of(quantity, [color, y])
    ]
    texts, names = (list(dict.fromkeys(row[key] for row in cell_rows)) for key in ("told", color))
    theirs = [{color: of, "value": published[of]} for of in names]
    scale = {"domain": [ticks[0], ticks[-1]], "type": "log" if ticks[0] > 0 else "linear", "nice": False}
    x = quantitative("value", title=title, scale=scale, axis={"values": list(ticks), "format": ".2~f"})
    # Room for the widest fonts, which the program that measures may not have.
    room = 6.8 * max(len(line) for of in texts for line in of.split("|"))
    axis = {"labelExpr": "split(datum.label, '|')", "labelLimit": 320, "labelLineHeight": 12, "minExtent": room}
    shade = nominal(color, title=None, scale=colors(names, color))
    shared = {
        "y": nominal("told", sort=texts, title=None, axis=axis if label else None),
        "yOffset": nominal(color, sort=names),
        "color": shade,
    }
    spread = {"type": "rule", "strokeWidth": 2, "opacity": 0.5, "clip": True}
    point = {"type": "point", "filled": True, "size": 38, "opacity": 1, "clip": True}
    layers = [
        layer({"type": "rule", "strokeDash": [4, 3], "opacity": 0.7}, theirs, x=x, color=shade),
        layer(spread, cell_rows, **shared, x=quantitative("low", scale=scale), x2={"field": "high"}),
        layer(point, cell_rows, **shared, x=x),
    ]
    return {"layer": layers, "width": width, "height": {"step": step}}
