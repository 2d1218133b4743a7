"""Ensembles over the parameters that a publication leaves open, on numbers whose answers are known."""

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from firstflight.scenario.cell import chosen
from firstflight.studies import find
from firstflight.studies.kernel import MEMBER, Ensemble, Matched, Number, Parameter, Source, above, estimate, named
from firstflight.studies.kernel.ensemble import chance

ENSEMBLE = Ensemble(
    {
        "slope": Parameter("slope", 0, 1, 0.3),
        "size": Parameter("size", 1, 100, 10, log=True),
        "kind": Parameter("kind", 0, 2, 1, whole=True),
    },
    64,
)
SLOPE, SIZE = ENSEMBLE.values.sel(parameter="slope", drop=True), ENSEMBLE.values.sel(parameter="size", drop=True)


def matched(numbers: list[Number], effect: xr.DataArray = 100 * SLOPE) -> Matched:
    return Matched(ENSEMBLE, numbers, named(effect, "gain", "Gain", "percent"), 30.0)


def test_members_are_the_reference_and_one_point_in_each_part_of_every_range() -> None:
    assert ENSEMBLE.member(0) == {"slope": 0.3, "size": 10.0, "kind": 1.0}
    assert sorted(SLOPE.values[1:]) == pytest.approx((np.arange(64) + 0.5) / 64, abs=1e-6)
    assert sorted(np.log10(SIZE.values[1:]) / 2) == pytest.approx((np.arange(64) + 0.5) / 64, abs=1e-5)
    kinds = ENSEMBLE.values.sel(parameter="kind").values[1:].tolist()
    assert [kinds.count(kind) for kind in (0, 1, 2)] == [21, 22, 21]


def test_a_member_is_compatible_if_no_number_is_farther_off_than_three_deviations() -> None:
    of = matched([Number("slope", SLOPE, 0.5, 0.1), Number("constant", 0 * SLOPE, 2.0, 1.0)])
    assert of.compatible.values.tolist() == (abs(SLOPE - 0.5) <= 0.3).values.tolist()
    assert float(of.distance.sel({MEMBER: 0})) == 2.0
    ruled, alone = of.ruled_out()
    assert ruled.values.tolist() == alone.values.tolist() == [pytest.approx(100 * 26 / 65), 0]


def test_a_member_without_data_is_not_compatible_and_does_not_count() -> None:
    of = matched([Number("slope", SLOPE.where(SLOPE[MEMBER] != 0), 0.5, 1.0)])
    assert int(of.compatible.sum()) == 64
    assert not of.compatible.values[0]
    assert of.ruled_out()[0].values.tolist() == [0]


def test_a_claim_is_judged_by_the_compatible_members_and_counts_those_it_holds_for() -> None:
    of = matched([Number("slope", SLOPE, 0.5, 0.1)])
    claim = of.judged(Source("here").says("gain", "It gains.", of.effect, above(50, "percent"), "A limit."))
    kept = sorted(100 * slope for slope in SLOPE.values if abs(slope - 0.5) <= 0.3)
    found = estimate(claim.found)
    assert found.value == pytest.approx(np.median(kept))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(kept, [0.025, 0.975])))
    assert f"{sum(value > 50 for value in kept)} of {len(kept)} members" in claim.note
    undecided = claim.judge()
    assert undecided.verdict == "undecided"
    assert undecided.reason.endswith("The spread includes the limit.")


def test_where_nothing_is_compatible_a_claim_says_so() -> None:
    of = matched([Number("slope", SLOPE, 9.0, 0.1)])
    judged = of.judged(Source("here").says("gain", "It gains.", of.effect, above(50, "percent"), "A limit.")).judge()
    assert (judged.verdict, judged.reason) == ("cannot be checked", "No member is compatible with the baseline.")


def test_the_parameter_that_makes_the_effect_decides_and_another_is_within_chance() -> None:
    of = matched([Number("slope", SLOPE, 0.5, 1.0)], 50 - 20 * SIZE**0.5)
    influence = of.influence(of.distance)
    assert float(influence.sel(parameter="size")) == -1
    assert abs(float(influence.sel(parameter="slope"))) < chance(65) == pytest.approx(0.245)
    assert of.decisive().startswith('The most decisive parameter is "size"')
    assert "100% of the variance" in of.decisive()
    assert math.isnan(of.influence(of.effects.isel({MEMBER: slice(3)})).sel(parameter="size"))


def test_tables_and_the_figure_show_each_number_parameter_and_member() -> None:
    of = matched([Number("slope", SLOPE, 0.5, 0.1)])
    baseline, parameters, members = of.tables()
    assert [len(table.frame) for table in (baseline, parameters, members)] == [4, 3 * 5, 65 * 2]
    assert baseline.frame["published"].drop_nulls().to_list() == [0.5]
    figure = of.figure("Gain", "By distance.")
    assert figure
    assert figure.narrow


def test_member_0_of_the_cluster_s_ensemble_is_the_cell_that_it_varies() -> None:
    def cell(study: str, **key: str | int) -> dict[str, Any]:
        of = find(study)
        (found,) = of.cells_at("simulate", chosen(of.keys("simulate"), key)[:1])
        scenario = found.scenario.replace("population.users", 1).to_dict()
        assert scenario["tcp"]["rto"].pop("minimum", "0.2s") == "0.2s"
        return scenario

    own = cell("rfc6928-cluster-ensemble", member=0, iw=10)
    assert own == cell("rfc6928-cluster", experiment="stated", population="avgdc", service="web-search", iw=10)
