"""The study uk-homes: two panels' homes with larger initial windows, and the map of response sizes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from firstflight.records import Run
from firstflight.report.figure import Figure, svg
from firstflight.report.page import write
from firstflight.report.size_map import size_map
from firstflight.studies import find
from firstflight.studies.execute import run
from firstflight.studies.kernel import estimate
from firstflight.studies.uk_homes import STUDY as DECLARED
from firstflight.studies.uk_homes import homes
from firstflight.studies.uk_homes.claims import correlation, of, overfilled, saved
from firstflight.studies.uk_homes.report import typical_home

STUDY = find("uk-homes")
ONLY: dict[str, int | list[int] | list[str]] = {
    "year": 2023,
    "experiment": ["homes", "no loss", "map"],
    "extra_rtt_ms": [0, 30],
    "iw": [10, 32],
}
FIGURES = ["size_map", "sizes", "percentiles", "technologies", "overfill", "pages"]


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The homes of 2023 with two windows, once each."""
    return Run.open(run(STUDY, only=ONLY, replicates=1, out=tmp_path_factory.mktemp("run") / "part").directory)


@pytest.mark.slow
def test_the_grid_is_two_years_three_distances_six_windows_and_each_assumption_turned_round() -> None:
    cells = STUDY.cells("simulate")
    experiments = [cell.key["experiment"] for cell in cells]
    assert {name: experiments.count(name) for name in dict.fromkeys(experiments)} == {
        "homes": 36,
        "no loss": 12,
        "small buffers": 4,
        "large buffers": 4,
        "64 packets at least": 4,
        "map": 4,
    }
    drawn = {cell.key["experiment"]: cell.replicates for cell in cells}
    assert drawn["homes"] is None
    assert drawn["no loss"] == 1
    changed = {cell.key["experiment"]: cell.scenario.to_dict()["population"] for cell in cells if cell.key["iw"] == 10}
    assert [changed["homes"][key] for key in ("name", "extra_rtt", "min_buffer")] == ["uk-2023", "80ms", "10p"]
    assert changed["64 packets at least"]["min_buffer"] == "64p"
    assert set(changed["no loss"]["columns"]["loss"]) == {0}
    small, large = (sum(changed[f"{which} buffers"]["columns"]["buffer_s"]) for which in ("small", "large"))
    assert small < large


def test_each_home_fetches_each_response_with_each_window(part: Run) -> None:
    rows = homes(part, {"experiment": "homes", "extra_rtt_ms": 30}).collect()
    counts = rows.group_by("iw", "response").len()
    assert counts.height == 2 * 6
    assert counts["len"].unique().to_list() == [2426]
    # One home loses nearly half of its packets.
    assert rows.filter(pl.col("time_ms").is_infinite())["home"].n_unique() <= 1
    assert rows.null_count().select("technology", "weight", "buffer_bytes").row(0) == (0, 0, 0)
    weighted = homes(part, {"experiment": "homes", "extra_rtt_ms": 30}, weighted=True).collect()
    assert weighted["weight"].min() > 0  # type: ignore[operator]


def test_a_first_flight_overfills_a_path_if_and_only_if_it_is_larger_than_the_queue(part: Run) -> None:
    q = DECLARED.quantities(part)
    at = {"year": 2023, "extra_rtt_ms": 30, "draw": 0}
    assert float(of(q, "flight", "no loss").sel(at, drop=True).sel(iw=32)) == 32
    assert float(q.queue_right.sel(at).min()) > 99.9
    shares = overfilled(q).sel(year=2023, draw=0)
    assert float(shares.sel(iw=10)) == 0
    assert float(q.pipe.sel(at).sel(iw=32)) < float(shares.sel(iw=32)) == pytest.approx(4.18, abs=0.01)


def test_a_hundred_kilobytes_need_one_round_trip_less_with_32(part: Run) -> None:
    q = DECLARED.quantities(part)
    gains = saved(of(q, "time").sel(year=2023, extra_rtt_ms=30)).sel(iw=32)
    found = estimate(gains.sel(response="100kB"))
    assert 22 < found.low < found.value < found.high < 26
    by_percentile = saved(q.percentile_time.sel(year=2023, extra_rtt_ms=30, response="100kB", draw=0)).sel(iw=32)
    assert by_percentile.sizes["percentile"] == 99
    assert float(by_percentile.sel(percentile=50)) == pytest.approx(found.value, abs=1)
    # Ten kilobytes fit either window.
    assert estimate(gains.sel(response="10kB")).high == 0


def test_homes_of_one_technology_are_ranked_as_measured_but_cables_pages_are_not(part: Run) -> None:
    q = DECLARED.quantities(part)
    ours, trip = (correlation(q, name).sel(year=2023, draw=0) for name in ("ours", "round_trip"))
    counted = q.homes.sel(year=2023, extra_rtt_ms=0, iw=10, draw=0)
    assert float(counted.sel(technology="all")) == 2426
    assert float(ours.sel(technology="FTTC")) > 0.7
    assert float(ours.sel(technology="Cable")) < 0.4
    assert float(ours.sel(technology="FTTC")) > float(trip.sel(technology="FTTC"))


def test_the_curves_step_up_by_what_is_left_of_a_round_trip_where_the_first_flight_ends(part: Run) -> None:
    curves = part.table("transfers", experiment="map").sort("iw", "bytes").collect()
    path = typical_home(2023)
    trip_s, packet_s = path["rtt_s"] + 0.03, 8 * 1500 / path["down_bps"]
    for iw in (10, 32):
        own = curves.filter(pl.col("iw") == iw)
        inside, beyond = own.filter(pl.col("bytes") <= 1448 * iw), own.filter(pl.col("bytes") > 1448 * iw)
        # The acknowledgment of the first segment is a round trip away, and the line busy with the others meanwhile.
        idle_s = trip_s - (iw - 1) * packet_s
        step_s = beyond["completion_time_s"][0] - inside["completion_time_s"][-1]
        assert step_s == pytest.approx(idle_s, rel=0.03)


@pytest.mark.slow
def test_what_a_part_of_the_run_lacks_cannot_be_checked(part: Run) -> None:
    claims = {claim.id: claim for claim in STUDY.claims(part)}
    assert len(claims) == 15
    for name in ("overfill-2015", "gain-16", "rank-2015"):
        assert claims[name].verdict == "cannot be checked", name
    for name in ("overfill-2023", "most-absorb-6-2023", "gain-32", "gain-near", "cost-32"):
        assert claims[name].verdict != "cannot be checked", name


@pytest.mark.slow
def test_the_report_has_every_table_and_figure(part: Run, tmp_path: Path) -> None:
    tables = {table.name: table for table in STUDY.tables(part)}
    assert list(tables) == [
        "gain",
        "percentiles",
        "technologies",
        "cost",
        "overfill",
        "connections",
        "assumptions",
        "ranking",
    ]
    cost = tables["cost"].frame.filter((pl.col("extra_rtt_ms") == 30) & (pl.col("metric") == "flight"))
    assert dict(cost.select("iw", "ours").iter_rows()) == {10: 10, 32: 32}
    assert [figure.name for figure in STUDY.figures(part)] == FIGURES
    html = write(part, STUDY, tmp_path / "report.html").read_text()
    assert "Open Government Licence" in html


def test_a_run_of_the_map_alone_shows_the_map_alone(tmp_path: Path) -> None:
    alone = Run.open(run(STUDY, only={"experiment": "map", "iw": 10}, out=tmp_path / "map").directory)
    assert [figure.name for figure in STUDY.figures(alone)] == ["size_map"]
    assert STUDY.tables(alone) == []
    assert {claim.verdict for claim in STUDY.claims(alone)} == {"cannot be checked"}
    assert STUDY.answer(alone) == []


CURVES = pl.DataFrame(
    {
        "initial_window": [3, 3, 64, 64],
        "bytes": [2000, 200_000, 2000, 200_000],
        "time_s": [0.1, 0.4, 0.1, 0.2],
        "first_flight_segments": [2, 3, 2, 44],
    }
)
# Lines that carry 1, 10, 70 and 100 kB in a round trip; the last one counts twice.
CLOUD = pl.DataFrame({"rtt_s": [0.1] * 4, "down_bps": [8e4, 8e5, 5.6e6, 8e6], "weight": [200.0, 200.0, 200.0, 400.0]})


def _map(curves: pl.DataFrame, cloud: pl.DataFrame) -> Figure:
    return size_map(curves, cloud, name="m", title="t", caption="c", path="a path", headline="What one learns")


def test_a_map_says_whose_lines_carry_more_than_what_really_left_first() -> None:
    drawn = svg(_map(CURVES, CLOUD).chart)
    # Three segments: all but the first line; 44 segments, which the receiver's window left of 64: the last two.
    for text in ("IW 3", ">64<", ">80%<", ">60%<", "What one learns"):
        assert text in drawn, text
    assert ">40%<" in svg(_map(CURVES.drop("first_flight_segments"), CLOUD).chart)


def test_a_map_says_how_many_lines_carry_more_than_it_shows() -> None:
    short = CURVES.with_columns(pl.when(pl.col("bytes") > 2000).then(50_000).otherwise("bytes").alias("bytes"))
    assert ">60% beyond" in svg(_map(short, CLOUD).chart)
    assert "beyond" not in svg(_map(CURVES, CLOUD).chart)


def test_a_map_without_curves_or_users_is_refused() -> None:
    with pytest.raises(ValueError, match="needs curves and users"):
        _map(CURVES.clear(), CLOUD)
    with pytest.raises(ValueError, match="needs curves and users"):
        _map(CURVES, CLOUD.with_columns(pl.lit(0.0).alias("weight")))
    many = pl.DataFrame({"initial_window": range(1, 10), "bytes": [1000] * 9, "time_s": [0.1] * 9})
    with pytest.raises(ValueError, match="colors for 8"):
        _map(many, CLOUD)
