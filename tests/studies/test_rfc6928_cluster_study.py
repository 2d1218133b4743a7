"""The populations avgdc and slowdc, and RFC 6928's experiment on them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from shutil import copytree

import polars as pl
import pytest

from firstflight import populations
from firstflight.analysis.claim import counts
from firstflight.analysis.intervals import Estimate
from firstflight.errors import RequestError
from firstflight.populations import dukkipati2010, slowdc
from firstflight.records import Run
from firstflight.records.directory import write_document
from firstflight.report.figure import svg
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.rfc6928_cluster import grid, measure
from firstflight.studies.rfc6928_cluster.claims import latency
from firstflight.studies.rfc6928_cluster.claims.cost import worse_from
from firstflight.studies.rfc6928_cluster.claims.statement import mean_of
from firstflight.studies.rfc6928_cluster.fit import rate
from firstflight.studies.rfc6928_cluster.grid import (
    AVGDC,
    BLOG,
    FEW,
    INDEPENDENT,
    MANY,
    MAPS,
    PHOTOS,
    SEARCH,
    SLOWDC,
    Place,
)
from firstflight.studies.rfc6928_cluster.published import edges, figure5, labels

STUDY = find("rfc6928-cluster")
SMALL = {
    "initial_windows": [FEW, MANY],
    "resamples": 100,
    "users": {SEARCH: 1200, MAPS: 60, PHOTOS: 60, BLOG: 60},
    "users_of_assumptions": {SEARCH: 1000, MAPS: 400, PHOTOS: 60, BLOG: 60},
}
CHANGED = ("queues-100p", "kept-open", "maps-over-4")
"""Assumptions of the small run; the study has more."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setitem(grid.settings(), name, value)
        for name in set(grid.ASSUMPTIONS) - set(CHANGED):
            patch.delitem(grid.ASSUMPTIONS, name)
        return run(STUDY, out=tmp_path_factory.mktemp("run") / "small")


def test_the_laws_of_avgdc_have_the_published_shares() -> None:
    for by, law in (("rtt", dukkipati2010.rtt()), ("down", dukkipati2010.down())):
        places = [0.0, *(100 * dukkipati2010.share_below(law, edge) for edge in dukkipati2010.edges(by)), 100.0]
        found = [after - before for before, after in pairwise(places)]
        assert found == pytest.approx(list(dukkipati2010.shares(by)), abs=0.02)
    assert dukkipati2010.quantile(dukkipati2010.down(), 0.5) == pytest.approx(1.02e6, rel=0.01)


def test_slowdc_passes_through_its_published_quantiles() -> None:
    law = slowdc.down()
    assert [value for _, value in law] == sorted(value for _, value in law)
    for share, value in ((0.2, 100e3), (1 / 3, 256e3), (0.5, 500e3)):
        assert dukkipati2010.share_below(law, value) == pytest.approx(share)
    assert dukkipati2010.quantile(slowdc.rtt(), 0.5) == pytest.approx(0.07)


def test_the_product_s_published_shares_want_slow_users_far_away() -> None:
    def off(correlation: float) -> float:
        found = dukkipati2010.bdp_shares(dukkipati2010.rtt(), dukkipati2010.down(), correlation)
        assert sum(found) == pytest.approx(100)
        return dukkipati2010.distance(found, dukkipati2010.shares("bdp"))

    fitted = off(dukkipati2010.DEPENDENCE)
    assert fitted < 6
    assert off(0.0) > 3 * fitted
    assert off(0.3) > off(0.0)


def test_the_built_in_populations_are_scenarios_and_complete() -> None:
    for name in (AVGDC, SLOWDC):
        table = populations.find(name)
        assert table["dependence"]["rtt_down"] == dukkipati2010.DEPENDENCE
        points = table["loss"]["points"]
        assert points[1][0] > 0.9
        assert points[1][1] == 0


@pytest.mark.slow
def test_arms_differ_in_the_servers_initial_window_only() -> None:
    for place in grid.places():
        plans = [grid.scenario(place, iw).to_plan() for iw in (FEW, MANY)]
        assert plans[0]["applications"][-1]["server_tcp"]["initial_window"]["segments"] == FEW
        for fetched in zip(*(plan["applications"][:-1] for plan in plans), strict=True):
            windows = [application["server_tcp"].pop("initial_window") for application in fetched]
            assert [window["segments"] for window in windows] == [FEW, MANY]
        assert plans[0] == plans[1]


def test_dependence_changes_the_correlations_and_nothing_else() -> None:
    fitted, other = (
        grid.scenario(Place(AVGDC, SEARCH, *dependence), FEW).to_plan() for dependence in ((), (INDEPENDENT,))
    )
    matrices = [plan["population"]["paths"].pop("correlation") for plan in (fitted, other)]
    assert fitted == other
    assert (matrices[0][1], matrices[1][1]) == (dukkipati2010.DEPENDENCE, 0)


def test_every_assumption_changes_what_it_concerns_and_has_a_name_of_its_own() -> None:
    told = [assumption.told for assumption in grid.ASSUMPTIONS.values()]
    assert len(set(told)) == len(told)
    for name, assumption in grid.ASSUMPTIONS.items():
        service = assumption.service or SEARCH
        stated, changed = (grid.scenario(Place(AVGDC, service, assumption=one), FEW) for one in (grid.STATED, name))
        stated, changed = (one.replace("population.users", 100) for one in (stated, changed))
        assert stated.to_plan() != changed.to_plan()
        assert assumption.service is None or grid.assumed(AVGDC, PHOTOS, name) == Place(AVGDC, PHOTOS)


def test_pages_on_kept_connections_have_as_many_responses_as_three_pages_have_objects() -> None:
    applications = grid.scenario(Place(AVGDC, MAPS, assumption="kept-open"), MANY).to_dict()["application"][:-1]
    assert len(applications) == 9
    assert sum(one["count"] for one in applications) == pytest.approx(3 * 24, abs=9 * 3 / 2)


def test_the_sensitivity_sets_each_assumption_beside_the_stated_ones(small: Run) -> None:
    frame = STUDY.table(small, "sensitivity").frame
    assert frame["assumption"].unique(maintain_order=True).to_list() == [
        "as stated",
        *(grid.ASSUMPTIONS[name].told for name in CHANGED),
    ]

    def ours(told: str, metric: str) -> float:
        found = frame.filter(
            (pl.col("population") == "AvgDC") & (pl.col("assumption") == told) & (pl.col("metric") == metric)
        )
        value: float = found["ours"].item()
        return value

    larger, fewer = (grid.ASSUMPTIONS[name].told for name in ("queues-100p", "maps-over-4"))
    assert ours(larger, "rate_iw10") < ours("as stated", "rate_iw10")
    # Web search is the same there.
    assert ours(fewer, "gain_percent") == ours("as stated", "gain_percent")
    assert ours(fewer, "rate_iw10") < ours("as stated", "rate_iw10")


def test_both_windows_meet_the_same_users_and_sizes(small: Run) -> None:
    rows = measure.of_run(small).responses(Place(AVGDC, SEARCH))
    key = ["response", "subnet", "rtt", "down", "bdp", "segments"]
    few, many = (rows.filter(pl.col("iw") == iw).select(key) for iw in (FEW, MANY))
    assert few.equals(many)
    assert few.height == SMALL["users"][SEARCH]  # type: ignore[index]
    assert few["subnet"].n_unique() == few.height / 20


def test_an_edge_belongs_to_the_bucket_below_it() -> None:
    for by in ("rtt", "down", "bdp", "segments"):
        values = list(edges(by)[:-1])
        found = pl.DataFrame({"value": [*values, values[-1] + 1]}).select(measure._bucket("value", by)).to_series()
        assert found.to_list() == list(labels(by))
        if by != "segments":
            assert len(figure5(by)) == len(labels(by))


def test_latency_does_not_hold_the_handshake(small: Run) -> None:
    transfers = small.transfers.filter(
        (pl.col("service") == SEARCH)
        & (pl.col("connections") == "new")
        & (pl.col("assumption") == grid.STATED)
        & (pl.col("iw") == FEW)
    ).collect()
    shortest = transfers.filter(pl.col("application").cast(pl.String) == SEARCH).select(
        (pl.col("completion_time_s") - pl.col("handshake_time_s")).min()
    )
    # The back end alone takes 125 ms.
    assert shortest.item() > 0.125


def test_responses_that_fit_the_smaller_window_gain_nothing(small: Run) -> None:
    bucket = measure.of_run(small).buckets(Place(AVGDC, SEARCH), "segments")[0]
    assert bucket.comparison is not None
    assert bucket.comparison.difference.value == pytest.approx(0, abs=1e-9)


def test_a_bucket_without_responses_says_so(small: Run) -> None:
    found = measure.of_run(small).buckets(Place(AVGDC, SEARCH), "rtt")
    empty = [bucket for bucket in found if bucket.units == 0]
    for bucket in empty:
        assert bucket.comparison is None
        assert bucket.verdict == "no flows"
        assert bucket.reason


def test_the_percentile_from_which_on_it_is_worse_is_found() -> None:
    few = [float(value) for value in range(1000)]
    many = [value - 1 if value < 950 else value + 1 for value in few]
    rows = pl.DataFrame({"iw": [FEW] * 1000 + [MANY] * 1000, "latency_ms": few + many})
    assert worse_from(rows) in (95, 96)
    assert (
        worse_from(rows.with_columns(pl.when(pl.col("iw") == FEW).then(1e6).otherwise(1.0).alias("latency_ms"))) == 100
    )


def test_services_count_alike_in_the_overall_rate() -> None:
    one = pl.DataFrame({"retransmissions": [1, 1], "segments_sent": [10, 10]})
    many = pl.DataFrame({"retransmissions": [0] * 50, "segments_sent": [10] * 50})
    assert rate([one, many]) == pytest.approx(5)


@pytest.mark.slow
def test_the_study_has_its_tables_claims_and_figures(small: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setitem(grid.settings(), name, value)
    tables = {table.name: table for table in STUDY.tables(small)}
    assert list(tables)[:2] == ["latency", "buckets"]
    assert STUDY.table_names(small) == list(tables)
    assert STUDY.table(small, "tail").text() == tables["tail"].text()
    assert tables["buckets"].frame.filter(pl.col("published").is_not_null())["metric"].n_unique() == 4
    claims = STUDY.claims(small)
    assert len({claim.id for claim in claims}) == len(claims)
    assert counts(claims)["holds"] > 0
    figures = STUDY.figures(small)
    assert "sensitivity" in [figure.name for figure in figures]
    for figure in figures:
        assert figure.narrow is not None
        assert svg(figure.chart).startswith("<svg")
    assert len(STUDY.answer(small)) == 3


@pytest.mark.slow
def test_half_a_run_is_shown_and_its_claims_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setitem(grid.settings(), name, value)
    half = run(
        STUDY, only={"iw": FEW, "service": SEARCH, "dependence": "fitted", "connections": "new", "assumption": "stated"}
    )
    verdicts = {claim.id: claim.verdict for claim in STUDY.claims(half)}
    assert verdicts["rfc6928-search-gain-avgdc"] == "cannot be checked"
    assert verdicts["rfc6928-below-100-slowdc"] == "holds"
    assert "no cell" in STUDY.answer(half)[0]
    tables = STUDY.tables(half)
    assert [table.name for table in tables] == STUDY.table_names(half) == ["shares", "paths"]
    assert not any(table.frame.is_empty() for table in tables)


@pytest.mark.slow
def test_of_one_service_nothing_is_said_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setitem(grid.settings(), name, value)
    one = run(STUDY, only={"population": AVGDC, "service": SEARCH, "connections": "new", "assumption": "stated"})
    verdicts = {claim.id: claim.verdict for claim in STUDY.claims(one)}
    assert verdicts["rfc6928-retransmissions-avgdc"] == "cannot be checked"
    assert verdicts["rfc6928-retransmissions-web-search-avgdc"] != "cannot be checked"
    assert STUDY.table(one, "retransmissions").frame["service"].unique().to_list() == [SEARCH]


@pytest.mark.slow
def test_an_assumption_is_shown_without_the_stated_ones_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setitem(grid.settings(), name, value)
    table = STUDY.table(run(STUDY, only={"population": AVGDC, "assumption": "queues-100p"}), "sensitivity")
    assert table.frame["assumption"].unique().to_list() == [grid.ASSUMPTIONS["queues-100p"].told]


def test_a_run_of_the_grid_before_assumptions_is_refused_in_one_sentence(small: Run, tmp_path: Path) -> None:
    copytree(small.directory, tmp_path / "old")
    manifest = tmp_path / "old" / "run.json"
    written = json.loads(manifest.read_text())
    for cell in written["cells"]:
        del cell["key"]["assumption"]
    write_document(tmp_path / "old", written)
    with pytest.raises(RequestError, match='earlier version of this study, whose cells have no key "assumption"'):
        STUDY.claims(Run.open(tmp_path / "old"))


def test_every_mean_gain_has_the_same_relative_tolerance() -> None:
    gains = {
        statement.id: statement.tolerance / statement.expectation.lowest
        for statement in latency.statements()
        if "search-gain" in statement.id or "mean-gain" in statement.id
    }
    assert len(gains) == 5
    assert list(gains.values()) == pytest.approx([0.35] * 5, abs=0.006)


def test_a_mean_of_estimates_is_never_surer_than_if_all_erred_together() -> None:
    found = mean_of([Estimate(10, 8, 13, 40), Estimate(2, 1, 4, 30)], [3, 1])
    assert (found.value, found.low, found.high, found.replicates) == (8, 6.25, 10.75, 30)
