"""The built-in populations uk-2015 and uk-2023: measured homes, and the assumptions where nothing was measured."""

from __future__ import annotations

import polars as pl
import pytest

from firstflight import populations
from firstflight.populations.uk_homes import YEARS, Year, homes, population
from firstflight.scenario import Scenario

COUNTS = {2015: 2802, 2023: 2426}
OF_A_HOME = '[[application]]\nkind = "file_transfer"\nsize = "10kB"\ncount = 1\n'


@pytest.mark.parametrize("year", YEARS)
def test_every_home_of_the_panel_has_a_whole_path(year: Year) -> None:
    found = homes(year)
    assert found.height == COUNTS[year]
    assert found["home"].to_list() == list(range(COUNTS[year]))
    assert sum(found.null_count().row(0)) == 0
    for column in ("rtt_s", "down_bps", "up_bps", "web_page_s"):
        assert (found[column] > 0).all(), column
    assert found["loss"].is_between(0, 1, closed="left").all()
    assert (found["buffer_s"] >= 0).all()


def test_a_measured_buffer_is_the_loaded_round_trip_less_the_idle_one() -> None:
    first = homes(2023).row(0, named=True)
    assert first["buffer_measured"]
    assert first["rtt_s"] == pytest.approx(0.0404832)
    assert first["buffer_s"] == pytest.approx(0.3185795 - 0.0404832)
    assert homes(2023)["buffer_measured"].sum() == COUNTS[2023] - 365
    assert not homes(2015)["buffer_measured"].any()


def test_a_buffer_that_was_not_measured_is_that_of_the_nearest_home_of_its_technology() -> None:
    cable = homes(2023).filter(pl.col("technology") == "Cable")
    missing = cable.filter(~pl.col("buffer_measured")).row(0, named=True)
    known = cable.filter("buffer_measured")
    near = known[int((known["down_bps"] / missing["down_bps"]).log().abs().arg_min() or 0)]
    assert missing["buffer_s"] == near["buffer_s"][0]
    # Every buffer of 2015 was seen in 2023.
    assert set(homes(2015)["buffer_s"]) <= set(homes(2023)["buffer_s"])


def test_smaller_and_larger_assumptions_lie_on_both_sides_and_leave_measured_homes_alone() -> None:
    small, middle, large = (homes(2023, how) for how in ("small", "nearest", "large"))
    measured = middle["buffer_measured"]
    assert small.filter(measured).equals(large.filter(measured))
    assert (small.filter(~measured)["buffer_s"] < large.filter(~measured)["buffer_s"]).all()
    assert homes(2015, "small")["buffer_s"].mean() < homes(2015, "large")["buffer_s"].mean()  # type: ignore[operator]


def test_homes_without_a_weight_count_for_nothing_in_the_countrys_figures() -> None:
    assert homes(2015).filter(pl.col("weight") == 0).height == 1163
    without = homes(2023).filter(pl.col("weight") == 0)
    assert without.height == 311
    assert {"Fixed Wireless", "Satellite"} <= set(without["technology"])


@pytest.mark.parametrize("year", YEARS)
def test_a_scenario_names_the_homes_and_each_of_them_is_a_user(year: Year) -> None:
    text = f'name = "x"\nduration = "60s"\ntcp = {{ profile = "linux" }}\n[population]\nname = "uk-{year}"\n{OF_A_HOME}'
    plan = Scenario.from_toml(text).to_plan()["population"]
    assert plan["users"] == COUNTS[year]
    assert plan["paths"]["draw"] == "each"
    assert plan["least_buffer_packets"] == 10
    assert plan["paths"]["rtt_ns"][0] == round(1e9 * homes(year)["rtt_s"][0])
    assert populations.find(f"uk-{year}") == population(year)
