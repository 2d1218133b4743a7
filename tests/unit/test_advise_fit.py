"""From observed connections to a population, and the values used where they lack data."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import advise_flows
from firstflight import observe
from firstflight.advise.experiment import complete
from firstflight.advise.fit import FittedPopulation, fit, shrunken
from firstflight.advise.sensitivity import SensitivityCase, assumptions, cases
from firstflight.errors import RequestError


def population(path: Path, users: int = 10_000) -> FittedPopulation:
    return fit(observe.read(path), users, seed=1)


def test_a_user_is_one_observed_connection_with_its_path_and_size_together(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    found = population(advise_flows.write(path, 200))
    seen = pl.read_csv(path)
    assert found.rows["rtt_s"].to_list() == pytest.approx((seen["rtt_ms"] / 1e3).to_list())
    assert found.rows["down_bps"].to_list() == pytest.approx((seen["down_mbps"] * 1e6).to_list())
    assert found.rows["bytes"].to_list() == seen["bytes"].to_list()


def test_more_connections_than_users_are_sampled_the_same_way_for_the_same_seed(tmp_path: Path) -> None:
    path = advise_flows.write(tmp_path / "flows.csv", 400)
    one, same = population(path, 100), population(path, 100)
    other = fit(observe.read(path), 100, seed=2)
    assert one.rows.equals(same.rows)
    assert (one.rows.height, one.usable) == (100, 400)
    assert not one.rows.equals(other.rows)


def test_the_window_in_use_is_read_off_first_flights_that_were_filled(tmp_path: Path) -> None:
    found = population(advise_flows.write(tmp_path / "flows.csv", 300, window=16)).current
    assert (found.window, found.share_percent) == (16, 100.0)
    assert 0 < found.flows < 300
    assert found.known


def test_a_window_that_the_data_does_not_show_is_linux_s_default_and_said_to_be_assumed(tmp_path: Path) -> None:
    found = population(advise_flows.write(tmp_path / "flows.csv", 300, again=False)).current
    assert (found.window, found.known) == (10, False)
    assert "assumed" in found.how


def test_connections_without_sizes_are_no_users_and_the_refusal_says_so(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,down_mbps\n" + "20,10\n" * 60)
    with pytest.raises(RequestError, match="60 without a response of at least one byte"):
        population(path)


def test_a_connection_whose_first_response_is_empty_or_rotated_away_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes,connection,object\n20,5000,a,0\n20,9000,b,3\n20,7000,b,4\n20,0,c,0\n20,8000,c,1\n")
    found = population(path)
    assert found.rows["bytes"].to_list() == [5000]
    assert found.left_out == (
        (1, "whose first response is not in the data"),
        (1, "without a response of at least one byte"),
    )


def test_only_the_first_response_of_a_connection_begins_with_the_initial_window(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    rows = "".join(f"c{i},20,10,{size},{place}\n" for i in range(60) for place, size in enumerate((5000, 70000)))
    path.write_text("connection,rtt_ms,down_mbps,bytes,object\n" + rows)
    assert population(path).rows["bytes"].to_list() == [5000] * 60


@pytest.mark.parametrize(("later", "shows"), [(200_000, True), (20_000, False)])
def test_a_later_response_shows_the_line_if_it_is_long_enough(tmp_path: Path, later: int, shows: bool) -> None:
    path = tmp_path / "flows.csv"
    rows = "".join(
        f"c{i},20,{size},{place},{size / 1000}\n" for i in range(60) for place, size in ((0, 5000), (1, later))
    )
    path.write_text("connection,rtt_ms,bytes,object,completion_time_ms\n" + rows)
    assert population(path).rows["shows_line"].to_list() == [shows] * 60


def test_a_segment_holds_1448_bytes(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes\n20,1\n20,1448\n20,1449\n20,289600\n20,289601\n")
    assert population(path).rows["segments"].to_list() == [1, 1, 2, 200, 201]


def test_rates_beyond_those_of_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes,down_mbps\n20,5000,100000\n20,5000,100001\n20,5000,0.001\n20,5000,0.0009\n")
    found = population(path)
    assert found.rows["down_bps"].to_list() == [1e11, 1e3]
    assert found.left_out == ((2, "with a rate below 1 kbit/s or above 100 Gbit/s"),)


def test_shares_of_few_trials_are_drawn_towards_the_share_of_all() -> None:
    random = np.random.default_rng(1)
    truth = np.where(random.random(4000) < 0.1, 0.1, 0.0)
    trials = random.integers(5, 40, 4000).astype(float)
    events = random.binomial(trials.astype(int), truth).astype(float)
    found = shrunken(events, trials)
    raw = events / trials
    assert np.mean((found - truth) ** 2) < np.mean((raw - truth) ** 2)
    assert (found * trials).sum() == pytest.approx(events.sum(), rel=0.1)


def test_shares_that_differ_by_chance_alone_are_all_the_same() -> None:
    trials = np.full(500, 20.0)
    assert shrunken(np.zeros(500), trials) == pytest.approx(np.zeros(500))
    assert shrunken(np.tile([0.0, 1.0], 250), trials) == pytest.approx(np.full(500, 0.025))


def test_what_is_known_is_not_bracketed(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,down_mbps,up_mbps,buffer_ms,bytes,loss\n" + "20,10,2,50,9000,0.01\n" * 60)
    names = [case.name for case in cases(population(path))]
    assert names == ["reference", "no random loss", "4 parallel connections", "cross traffic"]


def test_what_is_not_known_is_bracketed_on_both_sides_and_told(tmp_path: Path) -> None:
    found = population(advise_flows.write(tmp_path / "flows.csv", 100, rates=False, again=False))
    names = [case.name for case in cases(found)]
    pairs = ("shallow buffers", "deep buffers", "no loss", "high loss", "slow lines", "fast lines", "slow uplink")
    assert set(pairs) < set(names)
    told = {assumption.what: assumption.known_percent for assumption in assumptions(found)}
    assert told["rate of the user's access link"] == 0
    assert told["buffer before the user's access link"] == 0


def test_a_queue_that_was_seen_to_hold_more_holds_more_except_at_the_shallow_end(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,max_rtt_ms,down_mbps,bytes\n" + "20,420,10,9000\n" * 30 + "20,25,10,9000\n" * 30)
    found = population(path)
    by_name = {case.name: complete(found, case, 1).columns["buffer_s"] for case in cases(found)}
    assert by_name["reference"] == pytest.approx([0.4] * 30 + [0.13] * 30)
    assert by_name["shallow buffers"] == pytest.approx([0.02] * 60)
    assert by_name["deep buffers"] == pytest.approx([1.0] * 60)


def test_a_rate_that_is_missing_here_and_there_is_that_of_a_user_as_far_away(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    near = "".join(f"20,{'' if i % 2 else 50},9000\n" for i in range(50))
    far = "".join(f"200,{'' if i % 2 else 5},9000\n" for i in range(50))
    path.write_text("rtt_ms,down_mbps,bytes\n" + near + far)
    down = complete(population(path), cases(population(path))[0], 1).columns["down_bps"]
    assert np.mean(np.array(down[:50]) == 50e6) > 0.9
    assert np.mean(np.array(down[50:]) == 5e6) > 0.9


@pytest.mark.parametrize("rates", ["uk-2015", "uk-2023", "avgdc"])
def test_rates_that_nothing_tells_are_those_of_a_built_in_population(tmp_path: Path, rates: str) -> None:
    found = population(advise_flows.write(tmp_path / "flows.csv", 400, rates=False))
    down = np.array(complete(found, SensitivityCase("", "", rates=rates), 1).columns["down_bps"])
    low, high = {"uk-2015": (10e6, 60e6), "uk-2023": (30e6, 120e6), "avgdc": (0.5e6, 2.5e6)}[rates]
    assert low < np.median(down) < high


def test_of_long_responses_the_beginning_is_simulated_and_the_rest_is_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,down_mbps,bytes\n" + "20,8,9000\n" * 50 + "20,8,13000000\n" * 10)
    users = complete(population(path), cases(population(path))[0], 1)
    assert users.cut == 10
    assert users.columns["bytes"][-1] == 3_000_000
    assert users.rest_s[-1] == pytest.approx(10.0)
    assert users.rest_s[0] == 0


def test_a_handshake_of_tls_is_simulated_and_hides_the_window_that_the_response_shows(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    head = (
        "rtt_ms,down_mbps,bytes,segments_sent,first_flight_segments,tls_bytes,tls_exchanges,tls_answer_flight_segments"
    )
    path.write_text(f"{head}\n" + "20,8,90000,63,3,4000,2,16\n" * 60 + "20,8,90000,63,10,,,\n" * 30)
    found = population(path)
    users = complete(found, cases(found)[0], 1)
    assert users.rest_s == [0] * 90
    assert (users.columns["tls_bytes"][::89], users.columns["tls_exchanges"][::89]) == ([4000, 0], [2, 1])
    assert (found.current.window, found.current.flows) == (16, 90)


def test_a_handshake_that_may_have_raised_the_window_does_not_show_it(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    head = "rtt_ms,down_mbps,bytes,segments_sent,first_flight_segments,tls_bytes,tls_answer_flight_segments"
    path.write_text(f"{head}\n" + "20,8,90000,63,4,9000,13\n" * 60)
    assert not population(path).current.known
