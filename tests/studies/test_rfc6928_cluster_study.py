"""The populations avgdc and slowdc, and RFC 6928's experiment on them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import xarray as xr

from firstflight import populations
from firstflight.analysis.claim import Claim
from firstflight.populations import dukkipati2010, slowdc
from firstflight.records import Run
from firstflight.report.figure import svg
from firstflight.scenario import Scenario
from firstflight.studies import rfc6928_cluster
from firstflight.studies.execute import run
from firstflight.studies.rfc6928_cluster.claims import claims as specs
from firstflight.studies.rfc6928_cluster.claims import worse_from
from firstflight.studies.rfc6928_cluster.measure import (
    AVGDC,
    BLOG,
    FEW,
    HERE,
    MANY,
    MAPS,
    PHOTOS,
    RANKS,
    SEARCH,
    SLOWDC,
    bucket,
    edges,
    figure5,
    labels,
    rate_of_all,
    responses,
)

STUDY = rfc6928_cluster.STUDY
USERS = {
    "USERS": {SEARCH: 1200, MAPS: 60, PHOTOS: 60, BLOG: 60},
    "USERS_BESIDE": {SEARCH: 400, MAPS: 60, PHOTOS: 60, BLOG: 60},
    "USERS_OF_ASSUMPTIONS": {SEARCH: 1000, MAPS: 400, PHOTOS: 60, BLOG: 60},
}
CHANGED = ["queues-40p", "new"]
"""Assumptions of the small run, without those that concern one service; the study has more."""


def fewer(patch: pytest.MonkeyPatch) -> None:
    for name, users in USERS.items():
        for service, count in users.items():
            patch.setitem(getattr(rfc6928_cluster, name), service, count)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        fewer(patch)
        patch.setattr(STUDY.grids["assumed"].keys["assumption"], "labels", CHANGED)
        return run(STUDY, only={"iw": [FEW, MANY]}, out=tmp_path_factory.mktemp("run") / "small")


@pytest.fixture(scope="module")
def claims(small: Run) -> dict[str, Claim]:
    """Made once: which of them depend on the windows that the run lacks takes seconds to find."""
    return {claim.id: claim for claim in STUDY.claims(small)}


def scenario(experiment: str, iw: int = FEW, population: str = AVGDC, service: str = SEARCH, **labels: str) -> Scenario:
    key = {"population": population, "service": service, "iw": iw, **labels}
    base = Scenario.load(HERE / "scenario.toml")
    return rfc6928_cluster.build(experiment, key, base)


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
    arms: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for cell in STUDY.cells("simulate"):
        place = {key: label for key, label in cell.key.items() if key != "iw"}
        if cell.key["iw"] in (FEW, MANY):
            arms.setdefault(tuple(place.items()), []).append(cell.scenario.to_plan())
    assert len(arms) == 218
    for plans in arms.values():
        assert plans[0]["applications"][-1]["server_tcp"]["initial_window"]["segments"] == FEW  # type: ignore[index]
        for fetched in zip(*(plan["applications"][:-1] for plan in plans), strict=True):  # type: ignore[index]
            windows = [application["server_tcp"].pop("initial_window") for application in fetched]
            assert [window["segments"] for window in windows] == [FEW, MANY]
        assert plans[0] == plans[1]


def test_dependence_changes_the_correlations_and_nothing_else() -> None:
    plans = [scenario("stated").to_plan(), scenario("dependence", dependence="independent").to_plan()]
    matrices = [plan["population"]["paths"].pop("correlation") for plan in plans]
    assert plans[0] == plans[1]
    assert (matrices[0][1], matrices[1][1]) == (dukkipati2010.DEPENDENCE, 0)


def test_every_assumption_changes_what_it_concerns_and_has_a_name_of_its_own() -> None:
    keys = {name: STUDY.grids[name].keys for name in ("assumed", "search_assumed", "maps_assumed")}
    titles = keys["assumed"]["assumption"].titles
    assert len(set(titles.values())) == len(titles) == 28
    for name, of in keys.items():
        for assumption in of["assumption"].labels:
            assert assumption in titles
            service = MAPS if name == "maps_assumed" else SEARCH
            plans = [scenario("stated", service=service), scenario(name, service=service, assumption=assumption)]
            stated, changed = (one.replace("population.users", 100).to_plan() for one in plans)
            assert stated != changed


def test_a_third_of_the_requests_is_on_new_connections() -> None:
    search, maps, photos = (scenario("stated", service=of).to_dict()["application"][0] for of in (SEARCH, MAPS, PHOTOS))
    assert search["count"] == 3
    # A page and its objects, over so many connections: 36 and 29%.
    assert (maps["connections"], 1 + maps["inline_count"]) == (9, 25)
    assert (photos["connections"], 1 + photos["inline_count"]) == (6, 21)
    alone = scenario("new", service=MAPS, connections="new").to_dict()["application"][0]
    assert (alone["http_version"], alone["parallel"]) == ("1.0", 9)


def test_queues_and_losses_are_those_fitted_for_the_connections() -> None:
    stated, new = (scenario(grid).to_dict()["population"] for grid in ("stated", "new"))
    assert stated["min_buffer"] == new["min_buffer"] == "100p"
    assert stated["loss"]["points"][1][0] > new["loss"]["points"][1][0]
    former = scenario("assumed", assumption="new-40p").to_dict()["population"]
    assert former["min_buffer"] == "40p"
    own, built = (list(map(tuple, of["loss"]["points"])) for of in (former, populations.find(AVGDC)))
    assert own == built


def test_the_sensitivity_sets_each_assumption_beside_the_stated_ones(small: Run) -> None:
    frame = STUDY.table(small, "sensitivity").frame
    titles = STUDY.grids["assumed"].keys["assumption"].titles
    shown = ["stated", *CHANGED, "responses-5kB", "responses-18kB", "maps-over-4"]
    assert set(frame["assumption"]) == {titles[name] for name in shown}

    def ours(assumption: str, metric: str) -> float:
        found = frame.filter(
            (pl.col("population") == "AvgDC")
            & (pl.col("assumption") == titles[assumption])
            & (pl.col("metric") == metric)
        )
        value: float = found["ours"].item()
        return value

    assert ours("stated", "rate_iw10") < ours("queues-40p", "rate_iw10")
    # Web search is the same there.
    assert ours("maps-over-4", "gain_percent") == ours("stated", "gain_percent")
    assert ours("maps-over-4", "rate_iw10") < ours("stated", "rate_iw10")


def test_both_windows_meet_the_same_users_and_sizes(small: Run) -> None:
    rows = responses(small, {"experiment": "stated", "population": AVGDC, "service": SEARCH}).collect()
    few, many = (rows.filter(pl.col("iw") == iw) for iw in (FEW, MANY))
    same = ["replicate", "subnet", "rtt", "down", "bdp", "segments"]
    assert few.select(same).equals(many.select(same))
    assert few.height == 3 * USERS["USERS"][SEARCH]
    assert few["subnet"].n_unique() == few.height / 60
    assert few["latency_ms"].equals(many["few_ms"])


def test_users_whom_only_the_larger_window_has_keep_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer(monkeypatch)
    cells = {"experiment": "stated", "population": AVGDC, "service": SEARCH}
    rows = responses(run(STUDY, only={**cells, "iw": [6, MANY]}), cells).collect()
    counts = dict(rows["iw"].value_counts().iter_rows())
    assert counts[6] < counts[MANY]
    assert rows["subnet"].null_count() == 0
    # None has a response with IW 3.
    assert rows["few_ms"].null_count() == rows.height


def test_an_edge_belongs_to_the_bucket_below_it() -> None:
    for by in ("rtt", "down", "bdp", "segments"):
        values = list(edges(by)[:-1])
        found = pl.DataFrame({"value": [*values, values[-1] + 1]}).select(bucket(pl.col("value"), by)).to_series()
        assert found.to_list() == list(labels(by))
        if by != "segments":
            assert len(figure5(by, "gain_ms")) == len(labels(by))


def test_latency_does_not_hold_the_handshake(small: Run) -> None:
    transfers = small.table("transfers", experiment="stated", service=SEARCH, iw=FEW).collect()
    shortest = transfers.filter(pl.col("application").cast(pl.String) == SEARCH).select(
        (pl.col("completion_time_s") - pl.col("handshake_time_s")).min()
    )
    # The back end alone takes 125 ms.
    assert shortest.item() > 0.125


def test_responses_that_fit_the_smaller_window_do_not_gain(claims: dict[str, Claim]) -> None:
    claim = claims["rfc6928-few-segments"]
    # On kept connections they wait behind those that do not fit.
    assert claim.found is not None
    assert claim.found <= 0
    assert claim.verdict in ("differs", "undecided")


def test_a_mean_of_few_responses_has_no_interval_and_the_table_says_why(small: Run, claims: dict[str, Claim]) -> None:
    claim = claims["rfc6928-low-bandwidth-1"]
    assert claim.low is None
    assert "pairs are too few: mean needs 400." in claim.reason
    notes = STUDY.table(small, "buckets").notes
    assert any(note.startswith("AvgDC, web-search, bandwidth <= 56 kbit/s: ") for note in notes)


def test_the_percentile_from_which_on_it_is_worse_is_found() -> None:
    few = np.array(RANKS, dtype=float)
    arms = {"iw": [FEW, MANY], "rank": list(map(str, RANKS))}

    def found(many: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(worse_from(xr.DataArray(np.stack([few, many]), arms, ["iw", "rank"])))

    assert found(np.where(few < 95, few - 1, few + 1)) == 95
    assert found(few + 1) == 50
    assert found(few) == 100


def test_services_count_alike_in_the_overall_rate() -> None:
    again, sent = (xr.DataArray(values, {"service": [MAPS, BLOG]}) for values in ([1.0, 0.0], [10.0, 10.0]))
    assert float(rate_of_all(again, sent)) == pytest.approx(5)


def test_tables_figures_and_the_answer(small: Run, claims: dict[str, Claim]) -> None:
    tables = {table.name: table for table in STUDY.tables(small)}
    assert list(tables) == [
        "latency",
        "buckets",
        "dependence",
        "connections",
        "mix",
        "subnets",
        "retransmissions",
        "sensitivity",
        "tail",
        "shares",
        "paths",
    ]
    assert tables["buckets"].frame.filter(pl.col("published").is_not_null())["metric"].n_unique() == 4
    assert len(claims) == 46
    figures = STUDY.figures(small)
    assert len(figures) == 12
    for figure in figures:
        assert figure.narrow is not None
        assert svg(figure.chart).startswith("<svg")
    assert len(STUDY.answer(small)) == 3


@pytest.mark.slow
def test_half_a_run_is_shown_and_its_claims_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer(monkeypatch)
    half = run(STUDY, only={"iw": FEW, "service": SEARCH, "experiment": "stated"})
    claims = {claim.id: claim for claim in STUDY.claims(half)}
    assert claims["rfc6928-search-gain-avgdc"].verdict == "cannot be checked"
    assert "experiment stated" in claims["rfc6928-search-gain-avgdc"].reason
    assert "10" in claims["rfc6928-search-gain-avgdc"].reason
    assert claims["rfc6928-below-100-slowdc"].verdict == "holds"
    assert STUDY.answer(half) == []
    assert {"shares", "paths"} <= {table.name for table in STUDY.tables(half)}
    assert not any(table.frame.is_empty() for table in STUDY.tables(half))


@pytest.mark.slow
def test_of_one_service_nothing_is_said_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer(monkeypatch)
    one = run(STUDY, only={"population": AVGDC, "service": SEARCH, "experiment": "stated", "iw": [FEW, MANY]})
    verdicts = {claim.id: claim.verdict for claim in STUDY.claims(one)}
    assert verdicts["rfc6928-retransmissions-avgdc"] == "cannot be checked"
    assert verdicts["rfc6928-retransmissions-web-search-avgdc"] != "cannot be checked"
    assert STUDY.table(one, "retransmissions").frame["service"].unique().to_list() == [SEARCH]


def test_every_mean_gain_has_the_same_relative_tolerance(small: Run) -> None:
    gains = {
        spec.sentence.id: spec.sentence.expectation.tolerance / spec.sentence.expectation.lowest
        for spec in specs(STUDY.quantities(small))
        if "search-gain" in spec.sentence.id or "mean-gain" in spec.sentence.id
    }
    assert len(gains) == 5
    assert list(gains.values()) == pytest.approx([0.35] * 5, abs=0.006)
