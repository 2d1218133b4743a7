"""The study kernel's numbers, calculated by hand on arrays that differ in every cell."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
import xarray as xr

from firstflight.analysis.claim import at_most, between, near
from firstflight.records import Run
from firstflight.report.figure import svg
from firstflight.studies.kernel import (
    MEMBER,
    ClaimSpec,
    DeclaredStudy,
    Ensemble,
    Matched,
    Number,
    Parameter,
    Quantities,
    Quantity,
    Sample,
    Sampled,
    Source,
    by_replicate,
    common,
    estimate,
    intervals,
    mean_of,
    named,
    resampled,
    table,
    variation_of,
)
from firstflight.studies.kernel.claim import depending
from firstflight.studies.kernel.grid import Key
from firstflight.studies.kernel.quantity import measured
from firstflight.studies.kernel.sample import _drawn, _numbered


def with_draws(value: float, draws: Sequence[float], method: str = "bootstrap") -> xr.DataArray:
    """A value with draws of it."""
    of = [value, *draws]
    return xr.DataArray(of, {"draw": np.arange(len(of)), "interval": method}, ["draw"], "time")


def test_the_interval_of_a_bootstrap_ends_where_a_fortieth_of_the_draws_is_beyond() -> None:
    # 0 to 100 squared: 2.5 and 97.5 lie half-way between squares.
    found = estimate(with_draws(30.0, [place**2 for place in range(101)]))
    assert (found.value, found.low, found.high) == pytest.approx((30, (4 + 9) / 2, (97**2 + 98**2) / 2))
    # Draws that are empty next to cells with more do not count.
    assert estimate(with_draws(30.0, [1.0, 3.0, math.nan], "jackknife")).replicates == 2
    # All draws alike say nothing, but of observations that were paired.
    assert math.isnan(estimate(with_draws(3.0, [3.0, 3.0])).low)
    assert estimate(with_draws(3.0, [3.0, 3.0], "paired")).low == 3


def claim(found: xr.DataArray, **options: Any) -> ClaimSpec:
    return Source("a book").says("x", "A sentence.", found, between(2, 5, "ms", 0.5), "Because.", **options)


def test_a_claim_keeps_value_and_both_ends_in_their_places() -> None:
    # Percentiles of 3, 3, 3, 3 and 6: the low end is below the value, the high one above.
    found = claim(with_draws(4.0, [3.0] * 39 + [5.25] * 39 + [6.0] * 2), note=lambda: "At 20 ms.").judge()
    assert (found.found, found.low, found.high) == (4.0, 3.0, pytest.approx(6.0, abs=0.75))
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.found or 0) < found.high
    assert (found.id, found.source, found.text, found.expected) == ("x", "a book", "A sentence.", "2 to 5")
    assert (found.unit, found.tolerance) == ("ms", 0.5)
    assert found.reason.startswith("At 20 ms. Because.")
    value = claim(with_draws(5.5, [9.0, 9.5]), needs="value").judge()
    assert (value.verdict, claim(with_draws(5.51, [3.0, 3.5]), needs="value").judge().verdict) == ("holds", "differs")
    assert claim(with_draws(4.0, [4.0]), note="n").judge("iw 3").reason.startswith("This run has no value for iw 3.")
    assert claim(xr.DataArray(math.nan)).judge().verdict == "cannot be checked"


def test_an_interval_that_reaches_zero_is_cut_where_a_logarithmic_axis_begins() -> None:
    ratios = xr.concat([with_draws(0.5, [-1, 2] * 40), with_draws(2.0, [1, 3] * 40)], "case").assign_coords(
        case=["a", "b"]
    )
    whole = named(ratios.expand_dims(of=["own"], panel=[""]), "ratios", "Ratio", "", 1)
    figure = intervals(whole, "Ratios", "A caption.", "case", "of", "panel", base=1)
    assert figure is not None
    domains = re.findall(r'"domain": \[([^\]]+)\], "type": "log"', json.dumps(figure.chart))
    assert [float(end) for end in domains[0].split(",")] == [0.25, 3.0]
    assert "NaN" not in svg(figure.chart)


def test_a_table_has_value_and_both_ends_of_each_quantity_in_the_order_asked_for() -> None:
    #            rtt 20, 100, 300
    values: list[list[float]] = [[1, 2, 4], [8, 16, 32]]
    draws = np.array([[[value, value - 0.5, value + 0.25] for value in row] for row in values])
    coordinates: dict[str, Any] = {"iw": [3, 10], "rtt": [20, 100, 300], "draw": range(3), "interval": "paired"}
    times = named(xr.DataArray(draws, coordinates, ["iw", "rtt", "draw"]), "time", "Time", "ms", 2)
    share = named(10 * times, "share", "Share", "percent", 0)
    made = table(
        "times",
        "Times",
        "A caption.",
        [times, share],
        published={
            "time": xr.DataArray([[7.5]], {"iw": [10], "rtt": [20]}, ["iw", "rtt"]),
            "share": xr.DataArray([[44]], {"rtt": [300], "iw": [3]}, ["rtt", "iw"]),
        },
        near={"share": ("absolute", 3)},
        misprints={"share": xr.DataArray([True], {"rtt": [300]}, ["rtt"]).expand_dims(iw=[3])},
        order=["rtt"],
    )
    assert made.keys == ("rtt", "iw")
    rows = made.frame.select("metric", "rtt", "iw", "ours", "published", "unit").rows()
    assert rows[:3] == [("time", 20, 3, 1, None, "ms"), ("time", 20, 10, 8, 7.5, "ms"), ("time", 100, 3, 2, None, "ms")]
    assert rows[6 + 4] == ("share", 300, 3, 40, 44, "percent")
    first, last = made.frame.row(0, named=True), made.frame.row(11, named=True)
    assert (first["low"], first["high"]) == (pytest.approx(0.5, abs=0.02), pytest.approx(1.25, abs=0.02))
    assert (last["ours"], last["low"] < 320 < last["high"]) == (320, True)
    assert [(of.name, of.label, of.digits, of.compare, of.near) for of in made.metrics] == [
        ("time", "Time", 2, "relative", 0.1),
        ("share", "Share", 0, "absolute", 3),
    ]
    assert made.misprints == frozenset({("share", "300", "3")})


REPLICATES = np.array([[[1.0, 2, 6], [3, 5, 13]], [[4, 8, 9], [7, 7, 10]], [[20, 22, 30], [11, 12, 19]]])
"""Of three sizes, two windows and three replicates."""


def per_replicate(values: np.ndarray[Any, Any] = REPLICATES) -> xr.DataArray:
    coordinates = {"size": range(values.shape[0]), "iw": [3, 10], "replicate": range(values.shape[-1])}
    return xr.DataArray(values, coordinates, ["size", "iw", "replicate"], "time")


def test_means_scatter_and_resamples_are_those_over_replicates() -> None:
    of = per_replicate()
    means = mean_of(of)
    assert means.sel(size=1, iw=3).values.tolist() == [7, 8.5, 6.5, 6]
    assert by_replicate(means).values == pytest.approx(REPLICATES)
    # 3, 5 and 13: mean 7, squares about it 56; without the last 3 and 5.
    scatter = variation_of(of).sel(size=0, iw=10)
    assert scatter.values[[0, 3]] == pytest.approx([math.sqrt(56 / 2) / 7, math.sqrt(2) / 4])
    again = resampled(of)
    assert again.sel(draw=0).values.tolist() == means.sel(draw=0).values.tolist()
    # The same replicates are drawn in every cell, three of them: 20, 22, 30 and 11, 12, 19 hang together.
    some = again.sel(size=2, iw=3).values[1:]
    assert {round(3 * value) for value in some} <= {
        a + b + c for a in (20, 22, 30) for b in (20, 22, 30) for c in (20, 22, 30)
    }
    assert len(set(some.tolist())) == 10
    alike = resampled(per_replicate(np.concatenate([REPLICATES[:1], 10 * REPLICATES[:1]])))
    assert alike.sel(size=1).values == pytest.approx(10 * alike.sel(size=0).values)


def test_replicates_that_agree_have_an_interval_and_one_by_itself_has_none() -> None:
    alike = estimate(resampled(per_replicate(np.full((1, 2, 3), 7.0))).sel(size=0, iw=3))
    assert (alike.value, alike.low, alike.high) == (7, 7, 7)
    assert math.isnan(estimate(resampled(per_replicate(np.full((1, 2, 1), 7.0))).sel(size=0, iw=3)).low)


def test_clusters_are_numbered_by_all_of_their_columns_whatever_is_in_them() -> None:
    clusters = pl.DataFrame({"subnet": ["b", "a", "b", "a", None], "replicate": [-1, 10**12, 10**12, 10**12, -1]})
    assert _numbered(clusters).tolist() == [2, 1, 3, 1, 0]
    assert _numbered(pl.DataFrame({"subnet": [None, None, 1]})).tolist() == [0, 0, 1]
    assert _numbered(pl.DataFrame({"subnet": []})).tolist() == []


def test_each_cluster_is_drawn_about_once_in_a_resample() -> None:
    drawn = _drawn(4)
    assert drawn[0].tolist() == [1, 1, 1, 1]
    assert set(drawn.sum(axis=1)) == {4}
    # Of 500 draws of four the mean is 1 give or take 0.04.
    assert drawn[1:].mean(axis=0) == pytest.approx([1, 1, 1, 1], abs=0.15)


@pytest.mark.parametrize(
    ("users", "clusters", "heavy", "has"),
    [(200, 60, 1.0, True), (200, 40, 1.0, False), (90, 60, 1.0, False), (200, 60, 200.0, False)],
)
def test_a_percentile_has_an_interval_of_enough_users_in_enough_clusters(
    users: int, clusters: int, heavy: float, has: bool
) -> None:
    # A median takes 100 users' worth, and 50 clusters; with one who weighs as much as all others there are fewer.
    rows = pl.DataFrame({"cluster": [place % clusters for place in range(users)], "user": range(users)}).with_columns(
        iw=pl.lit(3), time=100.0 + pl.col("user"), weight=pl.when(pl.col("user") == 0).then(heavy).otherwise(1.0)
    )
    sample = Sample(lambda run, piece: rows.lazy(), ("cluster",), ("iw",))
    of = Sampled("m", "Median", "ms", pl.col("time"), records=sample, summary=(50,), weight=pl.col("weight"), grid="g")
    run = cast(Run, SimpleNamespace(cells=[{"experiment": "g", "iw": 3}]))
    found = estimate(measured(run, [of], {"g": {"iw": [3]}})[of].sel(iw=3, percentile=50))
    assert math.isfinite(found.low) == has
    assert math.isfinite(found.value)


def test_one_replicate_stays_what_it_is() -> None:
    of = per_replicate(REPLICATES[..., :1])
    assert by_replicate(mean_of(of)).values.tolist() == REPLICATES[..., :1].tolist()
    assert resampled(of).sel(draw=0).values.tolist() == REPLICATES[..., 0].tolist()
    assert np.isnan(variation_of(of)).all()


def test_arrays_with_more_replicates_than_others_keep_their_value_and_lend_no_precision() -> None:
    many, few = mean_of(per_replicate()), mean_of(per_replicate(REPLICATES[..., :2]))
    long, short = common(many, few)
    assert long.sel(draw=0).values.tolist() == many.sel(draw=0).values.tolist()
    assert long.sel(size=1, iw=3).values[1:].tolist() == [8, 4]
    assert short.values.tolist() == few.values.tolist()


def test_a_result_that_two_grids_move_only_together_lacks_both() -> None:
    one = Quantity("one", "One", "ms", pl.col("time").mean(), grid="a")
    other = Quantity("other", "Other", "ms", pl.col("time").mean(), grid="b")
    missing = {of: of.blank({"iw": [3, 10]}) for of in (one, other)}

    def results(q: Quantities) -> list[str]:
        # Values that are filled in are about 1 or some million, of either sign.
        beyond = [bool((abs(of.isel(draw=0)) > 1e3).any()) for of in (q.one, q.other)]
        return [f"{all(beyond)}", f"{beyond[0]}", "nothing"]

    both, first, nothing = (lacking for _, lacking in depending(results, Quantities(missing), lambda a, b: a != b))
    assert both == {"a": {"iw": [3, 10]}, "b": {"iw": [3, 10]}}
    assert first == {"a": {"iw": [3, 10]}}
    assert nothing == {}


def test_an_answer_has_the_sentences_that_say_something_and_lack_nothing() -> None:
    of = Quantity("time", "Time", "ms", pl.col("time").mean())
    times = of.measure(
        of.by_replicate(pl.DataFrame({"iw": [3], "replicate": [0], "time": [7.0]}), ["iw"]), {"iw": [3, 10]}
    )

    def sentences(q: Quantities) -> list[str]:
        return [f"{float(q.time.sel(iw=3, draw=0)):g} ms", "", f"{float(q.time.sel(iw=10, draw=0)):g} ms"]

    study = cast(DeclaredStudy, SimpleNamespace(_answer=sentences))
    assert DeclaredStudy.answer_of(study, Quantities({of: times})) == ["7 ms"]
    assert DeclaredStudy.answer(study, cast(Run, SimpleNamespace(cells=[]))) == []


def test_labels_are_written_into_the_scenario_times_a_factor_and_in_words() -> None:
    def settings(values: Any, label: Any, **said: Any) -> dict[str, Any]:
        return Key.read({"title": "", "values": values, **said}, "").settings(label)

    assert settings([1, 3], 3, set="a.b") == {"a.b": 3}
    assert settings([1, 3], 3, set="a.b", factor=0.5) == {"a.b": 1.5}
    assert settings([1, 3], 3, set="a.b", factor=2, write="{}ms") == {"a.b": "6ms"}
    assert settings({"x": {"p": 1, "q": 2}, "y": {"p": 3}}, "y") == {"p": 3}
    assert settings([1, 3], 3) == {}


ENSEMBLE = Ensemble({"slope": Parameter("slope", 0, 1, 0.3), "size": Parameter("a size", 2, 64, 10, log=True)}, 4)


def matched() -> Matched:
    """Five members, 0, 3, 3.5, 1 and 2 deviations off; the last two are on the same side."""
    numbers = [
        Number("delay", xr.DataArray([10.0, 16, 3, 12, 6], {MEMBER: range(5)}, [MEMBER]), 10.0, 2.0),
        Number("share", xr.DataArray([5.0, 4, 6, 5, 7], {MEMBER: range(5)}, [MEMBER]), 5.0, 1.0),
    ]
    effect = xr.DataArray([20.0, 50, 90, 10, 30], {MEMBER: range(5)}, [MEMBER])
    return Matched(ENSEMBLE, numbers, named(effect, "gain", "Gain", "percent"), 25.0)


def test_a_member_that_is_exactly_at_the_cutoff_is_compatible_everywhere() -> None:
    of = matched()
    assert of.distance.values.tolist() == [0, 3, 3.5, 1, 2]
    assert of.distances.sel(number="delay").values.tolist() == [0, 3, -3.5, 1, -2]
    assert of.compatible.values.tolist() == [True, True, False, True, True]
    assert of.effects.values.tolist() == [20, 50, 10, 30]
    figure = of.figure("Gain", "By distance.")
    assert figure is not None
    rows = figure.chart["data"]["values"]
    assert [(row["member"], row["effect"], row["kind"]) for row in rows] == [
        (0, 20, "compatible with the baseline"),
        (1, 50, "compatible with the baseline"),
        (2, 90, "not compatible"),
        (3, 10, "compatible with the baseline"),
        (4, 30, "compatible with the baseline"),
    ]


def test_tables_of_an_ensemble_hold_ranges_and_ends_in_their_columns() -> None:
    baseline, parameters, members = matched().tables()

    def cells(of: Any, key: str) -> dict[tuple[Any, str], float]:
        return {(row[key], row["metric"]): row["ours"] for row in of.frame.to_dicts()}

    ranges = cells(parameters, "parameter")
    assert [ranges["a size", metric] for metric in ("low", "high", "reference")] == [2, 64, 10]
    assert [ranges["slope", metric] for metric in ("low", "high", "reference")] == [0, 1, 0.3]
    ends = cells(baseline, "number")
    assert [ends["delay", metric] for metric in ("least", "most", "ruled_out", "alone")] == [3, 16, 20, 20]
    assert [ends["share", metric] for metric in ("least", "most", "ruled_out", "alone")] == [4, 7, 0, 0]
    assert {row["number"]: row["published"] for row in baseline.frame.to_dicts() if row["metric"] == "least"} == {
        "delay": 10,
        "share": 5,
    }
    own = cells(members, MEMBER)
    assert (own[2, "distance"], own[2, "gain"]) == (3.5, 90)


def test_a_claim_about_an_ensemble_counts_the_ends_of_its_range() -> None:
    # 20, 50, 10 and 30 of the compatible: the median is 25.
    here, effect = Source("here", why="A limit."), matched().effect
    spec = here.says("gain", "It gains.", effect, between(15, 25, "percent", 5))
    judged = matched().judged(spec)
    assert "for 3 of 4 members" in cast(str, judged.note)
    assert estimate(judged.found).value == 25
    assert "for 1 of 4" in cast(str, matched().judged(here.says("gain", "It gains.", effect, at_most(10))).note)
    assert "for 1 of 4" in cast(str, matched().judged(here.says("gain", "It gains.", effect, near(50))).note)
