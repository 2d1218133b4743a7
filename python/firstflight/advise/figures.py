"""The pictures of an advice: gain by percentile, gain by kind of user, cost by case, and the users themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl

from firstflight.advise.advice import RETRANSMITTED, Advice
from firstflight.advise.experiment import EACH, Experiment, scenario
from firstflight.advise.measure import STATISTICS
from firstflight.advise.words import from_to
from firstflight.engines import simulate
from firstflight.report.figure import Figure, Spec, nominal, quantitative
from firstflight.report.size_map import size_map
from firstflight.report.style import BASE, ORDERED, scale
from firstflight.scenario import Cell

_NAMES = {"mean": "mean", "p50": "median"} | {name: f"{name[1:]}th" for name in STATISTICS[2:]}
_CHANGE = "change of the time, %"
_SHARE_PX = 42
"""Room at the right of a panel for the share of the users."""
_MOST_WINDOWS = 8
"""As many as the map of sizes has colors for."""
_MAP_SIZES = np.unique(np.round(np.geomspace(1e3, 1e6, 90))).tolist()


def all_figures(advice: Advice, experiment: Experiment) -> list[Figure]:
    """All figures, in the order of the page."""
    figures = [_percentiles(advice), _groups(advice), _cost(advice), _map(advice, experiment)]
    return [figure for figure in figures if figure is not None]


def _color(advice: Advice) -> Spec:
    windows = [str(window) for window in advice.candidates]
    # Else they are as pale as the bars.
    legend = {"symbolOpacity": 1}
    return nominal("iw", sort=windows, scale=scale(windows, "iw"), title="initial window", legend=legend)


def _instead(advice: Advice) -> str:
    return f"{advice.shown_window} instead of {advice.current.window} segments"


def _percentiles(advice: Advice) -> Figure | None:
    reference = advice.cases[0].name
    points = [
        {
            "iw": str(gain.initial_window),
            "at": _NAMES[gain.statistic],
            "change": gain.change_percent.value,
            "low": gain.change_percent.low,
            "high": gain.change_percent.high,
        }
        for gain in advice.gains
        if gain.case == reference and math.isfinite(gain.change_percent.low)
    ]
    if not points:
        return None
    shown_points = [point for point in points if point["iw"] == str(advice.shown_window)]
    ends = [f"{point['at']} {point['change']:+.1f}%".replace("th ", "th percentile ") for point in shown_points]
    order = [_NAMES[name] for name in STATISTICS]
    windows = [str(window) for window in advice.candidates]

    def chart(width: int) -> Spec:
        shared = {
            "x": nominal("at", sort=order, title="of the times of all responses", axis={"labelAngle": 0}),
            "xOffset": nominal("iw", sort=windows),
            "color": _color(advice),
        }
        ends = {"y": quantitative("low", title=_CHANGE), "y2": {"field": "high"}}
        middle = {"y": quantitative("change", title=_CHANGE)}
        layers = [
            {"mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35}, "encoding": shared | ends},
            {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": shared | middle},
        ]
        return {"layer": layers, "data": {"values": points}, "width": width, "height": 210}

    return Figure(
        "percentiles",
        f"Response time compared with {advice.current.window} segments",
        "With 95% CIs, in the reference case. Percentiles with too few connections are only in the table.",
        chart(460),
        chart(270),
        f"{_instead(advice)}: {', '.join(ends[:1] + ends[1:][-1:])}" if ends else "",
    )


def _groups(advice: Advice) -> Figure | None:
    window = advice.shown_window
    rows = [group for group in advice.groups if group.initial_window == window]
    points: list[dict[str, Any]] = []
    for group in rows:
        change = group.change_percent
        is_shown = math.isfinite(change.low)
        points.append(
            {
                "dimension": group.dimension,
                "bucket": group.bucket,
                "change": change.value if is_shown else None,
                "low": change.low if is_shown else None,
                "high": change.high if is_shown else None,
                "share": _share(group.share_percent) if group.users else "",
                "note": "no flows" if not group.users else "" if is_shown else f"too few: {group.users}",
            }
        )
    by_change = sorted((point for point in points if point["change"] is not None), key=itemgetter("change"))
    if not by_change:
        return None
    ends = [
        f"{point['change']:+.1f}% ({point['dimension']} {point['bucket']})" for point in (by_change[0], by_change[-1])
    ]

    return Figure(
        "groups",
        f"Gain by user group with {window} segments",
        f"Change of the mean time against {advice.current.window} segments, by user group; negative is faster. The "
        "intervals of one panel hold simultaneously (95%). On the right: share of the users. Groups without users, or "
        "with too few for an interval, are marked.",
        _bucket_panels(points, 1090),
        _bucket_panels(points, 330),
        f"Mean time with {window} segments: {' to '.join(dict.fromkeys(ends))}",
    )


def _share(percent: float) -> str:
    return f"{percent:.1f}%" if percent >= 0.05 else "< 0.1%"


def _bucket_panels(points: list[dict[str, Any]], width: int) -> Spec:
    dimensions = list(dict.fromkeys(point["dimension"] for point in points))
    values = [point[name] for point in points for name in ("low", "high") if point[name] is not None]
    domain = [min([0.0, *values]), max([0.0, *values])]
    across = 2 if width > 400 else 1
    inner = (width - 190 * across) / across
    panels = [
        _bucket_panel(dimension, [point for point in points if point["dimension"] == dimension], inner, domain)
        for dimension in dimensions
    ]
    return {"concat": panels, "columns": across, "align": "all", "spacing": {"row": 14, "column": 18}}


def _bucket_panel(dimension: str, buckets: list[dict[str, Any]], width: float, domain: list[float]) -> Spec:
    order, scaled = [point["bucket"] for point in buckets], {"scale": {"domain": domain, "nice": True}}

    def layer(mark: Spec, x: Spec, **others: Spec) -> Spec:
        return {"mark": mark, "encoding": {"x": x, "y": nominal("bucket", sort=order, title=None), **others}}

    ends, middle = (quantitative(name, title=_CHANGE, **scaled) for name in ("low", "change"))
    blue, small = {"opacity": 1, "color": ORDERED[0]}, {"type": "text", "fontSize": 10.5}
    layers = [
        {
            "data": {"values": [{"at": 0}]},
            "mark": {"type": "rule", "color": BASE},
            "encoding": {"x": quantitative("at", **scaled)},
        },
        layer({"type": "rule", "strokeWidth": 5} | blue | {"opacity": 0.35}, ends, x2={"field": "high"}),
        layer({"type": "point", "filled": True, "size": 55} | blue, middle),
        layer(small | {"align": "left", "fontStyle": "italic"}, {"datum": domain[0], **scaled}, text=nominal("note")),
        layer(small | {"align": "right", "color": BASE}, {"value": width + _SHARE_PX}, text=nominal("share")),
    ]
    title = {"text": dimension, "anchor": "start", "frame": "group", "fontSize": 12.5}
    height = 22 * len(order)
    return {"data": {"values": buckets}, "layer": layers, "width": width, "height": height, "title": title}


def _cost(advice: Advice) -> Figure | None:
    """One panel per case, each with the reference case's line behind it."""
    cases = [case.name for case in advice.cases]
    costs = [cost for cost in advice.costs if cost.name == RETRANSMITTED]
    # Of the current window that of the first candidate's pairs.
    percents = {(cost.case, advice.current.window): cost.current_percent.value for cost in reversed(costs)}
    percents |= {(cost.case, cost.initial_window): cost.candidate_percent.value for cost in costs}
    windows = [str(window) for window in sorted([advice.current.window, *advice.candidates])]
    shown = [cost for cost in costs if cost.initial_window == advice.shown_window]
    ends = (shown[0], max(shown, key=lambda cost: cost.change_points.value))
    texts = [f"{from_to(cost.current_percent, cost.candidate_percent)} ({cost.case})" for cost in ends]

    def line(case: str, mark: Spec) -> Spec:
        places = [
            {"case": case, "iw": str(iw), "percent": percents[case, iw], "place": windows.index(str(iw))}
            for iw in (*advice.candidates, advice.current.window)
        ]
        encoding = {
            "x": nominal("iw", sort=windows, title=None, axis={"labelAngle": 0}),
            "y": quantitative(
                "percent", title=None, scale={"domain": [0, max(percents.values())]}, axis={"tickCount": 4}
            ),
            "order": quantitative("place"),
        }
        return {"data": {"values": places}, "mark": {"type": "line"} | mark, "encoding": encoding}

    def panel(case: str, inner: int) -> Spec:
        point = {"size": 40, "color": ORDERED[0]}
        layers = [
            line(cases[0], {"color": BASE, "strokeDash": [3, 3]}),
            line(case, {"color": ORDERED[0], "strokeWidth": 2, "point": point}),
        ]
        title = {"text": case, "anchor": "start", "frame": "group", "fontSize": 12, "fontWeight": "normal"}
        return {"layer": layers, "width": inner, "height": 90, "title": title}

    def chart(across: int, inner: int) -> Spec:
        return {"concat": [panel(case, inner) for case in cases], "columns": across, "align": "all", "spacing": 14}

    return Figure(
        "cost",
        "Retransmission rate, %",
        "Share of all data segments that are retransmissions, by initial window in segments; one panel per case, on "
        f"one scale. Dashed: {cases[0]}.",
        chart(4, 230),
        chart(2, 110),
        f"Retransmission rate with {advice.shown_window} segments: {'; '.join(dict.fromkeys(texts))}",
    )


def _map(advice: Advice, experiment: Experiment) -> Figure | None:
    windows = sorted([advice.current.window, *advice.candidates])
    if len(windows) > _MOST_WINDOWS:
        return None
    reference = experiment.users[advice.cases[0].name].columns
    cloud = pl.DataFrame({name: reference[name] for name in ("rtt_s", "down_bps")}).with_columns(
        experiment.population.rows["weight"]
    )
    path = {name: float(np.median(reference[name])) for name in ("rtt_s", "down_bps", "up_bps", "buffer_s")}
    assumed = experiment.population.assumed_percent("down_bps")
    users = "the users of the data, by RTT and bandwidth-delay product"
    if assumed:
        users = f"users with the RTTs of the data and link rates that are assumed for {assumed:.3g}% of them"
    if experiment.population.given.has_paths:
        users = "users with assumed RTTs and link rates"
    times = curves(path, windows, advice.seed)
    before, after = (
        times.filter(initial_window=window)["time_s"].to_numpy()
        for window in (advice.current.window, advice.shown_window)
    )
    saved = 100 * (1 - after / before)
    best = int(np.argmax(saved))
    figure = size_map(
        times,
        cloud,
        name="size_map",
        title="Sizes that gain, and paths with room for the first flight",
        caption="Above: simulated time of a response of each size over the median path of these users, without loss, "
        f"from SYN to last byte. Dashed: end of the first flight. Below: {users}; dots at the same "
        "place are merged into a larger dot.",
        path=f"median user, {path['down_bps'] / 1e6:.3g} Mbit/s, RTT {1e3 * path['rtt_s']:.0f} ms",
        users=f"users, rate assumed for {assumed:.3g}%" if assumed else "users",
    )
    finding = f"{_instead(advice)} save at most {saved[best]:.0f}% of the time of {_MAP_SIZES[best] / 1e3:.3g} kB"
    return replace(figure, finding=finding if saved[best] > 0 else "")


def curves(path: dict[str, float], windows: list[int], seed: int) -> pl.DataFrame:
    """`initial_window`, `bytes` and `time_s` of one response of each size alone on a path without loss."""
    sizes = len(_MAP_SIZES)
    columns: dict[str, list[float]] = {name: [value] * sizes for name, value in path.items()}
    parts = []
    population = {"paths": "table", "row_sampling": "in_order", "columns": columns | {"bytes": _MAP_SIZES}, "loss": 0.0}
    for window in windows:
        alone = scenario("map", window, population, EACH, duration="3000s")
        transfers = simulate.run_cell(Cell({"iw": window}, alone), seed, 1)["transfers"]
        parts.append(
            transfers.select(
                pl.lit(window, dtype=pl.Int64).alias("initial_window"),
                pl.col("bytes").cast(pl.Float64),
                pl.col("completion_time_s").alias("time_s"),
            )
        )
    return pl.concat(parts)
