"""Slices of the studies of questions that RFC 6928 left open, run from their files."""

from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import firstflight
from firstflight.scenario.cell import chosen
from firstflight.studies import find
from firstflight.studies.cellular import traces
from firstflight.studies.kernel import DeclaredStudy, Quantities
from firstflight.studies.shared_queue import larger

pytestmark = pytest.mark.slow


def measured(name: str, only: dict[str, Any], replicates: int = 1) -> Quantities:
    """The quantities of a slice."""
    study = find(name)
    assert isinstance(study, DeclaredStudy)
    return study.quantities(firstflight.run(study, replicates=replicates, only=only))


def value(array: xr.DataArray, **place: Any) -> float:
    """Of one cell."""
    return float(array.sel(place).isel(draw=0))


def test_queues_mark_only_with_ecn_and_drop_tail_drops_more_of_a_larger_first_flight() -> None:
    queues = ["drop tail 50 ms", "FQ-CoDel with ECN"]
    q = measured("queues", {"queue": queues, "iw": [3, 64], "connections": "six", "beside": "download"})
    tail, fair = ({"queue": queue, "connections": "six", "beside": "download"} for queue in queues)
    assert value(q.marked, **tail, iw=64) == 0 < value(q.marked, **fair, iw=64)
    assert value(q.premature, **fair, iw=64) == 0
    assert value(q.premature, **tail, iw=64) > 2 * value(q.premature, **tail, iw=3)


def test_a_call_behind_priority_is_undisturbed_by_pages_that_ruin_it_behind_drop_tail() -> None:
    queues = ["drop tail 1 s", "priority"]
    q = measured("real-time", {"rate": "2 Mbit/s", "queue": queues, "iw": 64, "connections": "six"})
    tail, first = ({"rate": "2 Mbit/s", "queue": queue, "iw": 64, "connections": "six"} for queue in queues)
    assert value(q.mos, **tail) < 2 < 4.3 < value(q.mos, **first)
    assert value(q.late, **first) == value(q.opus_late, **first) == value(q.game_late, **first) == 0
    assert value(q.lookup, **tail) > 2 * value(q.lookup, **first)


def test_a_receiver_that_advertises_less_takes_the_drops_of_iw_10_back() -> None:
    at = {"rate_kbit": 64, "queue": 20, "connections": 5, "beside": "nothing"}
    q = measured("slow-links", {key: str(label) for key, label in at.items()})
    few, many, small = (value(q.dropped, sender=sender, **at) for sender in ("IW 3", "IW 10", "IW 10 with rwnd 4 kB"))
    assert small < few < many


def test_the_restart_of_the_timer_spares_timeouts_and_a_detector_knows_64_kbps_from_1_mbps() -> None:
    timers = measured("slow-links", {"experiment": "timer", "rate_kbit": 64, "iw": 3, "connections": 5, "probes": "on"})
    with_restart, without = (
        value(timers.timer_timeouts, timer=timer, probes="on", rate_kbit=64, iw=3, connections=5)
        for timer in ("restarted", "not restarted")
    )
    assert 2 * with_restart < without
    own = {"queue": 20, "connections": 5, "sender": "IW 10", "beside": "nothing"}
    found = measured("slow-links", {"experiment": "links", "rate_kbit": [64, 1000], **own}).found_slow
    of = [value(found, rate_kbit=rate, detector="fastest", **own) for rate in (64, 1000)]
    assert of == [100, 0]


def test_a_lost_last_segment_takes_a_timeout_without_a_tail_loss_probe() -> None:
    q = measured("early-exit", {"size_kb": 14, "window": "16 kB", "lost": ["none", "10"]})
    at = {"size_kb": 14, "window": "16 kB", "iw": 10}
    assert value(q.timeouts, stack="rfc", lost="10", **at) == 1
    assert value(q.timeouts, stack="linux", lost="10", **at) == value(q.timeouts, stack="rfc", lost="none", **at) == 0


def test_rfc_6928_leaves_the_initial_window_after_one_syn_ack_too_many_and_timestamps_after_two() -> None:
    rtos = ["1 s", "1 s (server 1.1 s)"]
    q = measured("lost-syn", {"rtt_ms": 1200, "rto": rtos, "lost": 0, "rule": ["rfc3390", "rfc6928", "timestamps"]})
    tie, later = ({"rtt_ms": 1200, "rto": rto, "lost": 0} for rto in rtos)
    assert value(q.window, rule="rfc3390", **later) == 1
    assert value(q.window, rule="rfc6928", **later) == value(q.window, rule="timestamps", **tie) == 10
    assert value(q.window, rule="rfc6928", **tie) < 2


def test_rules_for_the_segment_size_differ_above_1460_bytes_only() -> None:
    q = measured("segment-size", {"segment": [1460, 8960], "queue": "400kB"})
    times = {
        (segment, rule): value(q.time, segment=segment, rule=rule, queue="400kB")
        for segment in (1460, 8960)
        for rule in ("rfc6928", "linux")
    }
    assert times[1460, "rfc6928"] == times[1460, "linux"]
    assert times[8960, "rfc6928"] > times[8960, "linux"] + 50


def test_a_receiver_of_ten_segments_leaves_iw_32_what_it_leaves_iw_10() -> None:
    q = measured("receive-window", {"window": [14600, 65536]})
    ten, far = (value(q.time, window=14600, iw=iw) for iw in (10, 32))
    assert abs(ten / far - 1) < 0.02
    assert value(q.time, window=65536, iw=32) < 0.9 * ten < 0.9 * value(q.time, window=14600, iw=3)


def test_behind_a_link_of_the_same_rate_a_second_one_drops_nothing() -> None:
    q = measured("bottleneck-place", {"place": ["access and Wi-Fi", "Wi-Fi"], "iw": 64})
    assert value(q.last, place="access and Wi-Fi", iw=64) == 0 < value(q.dropped, place="access and Wi-Fi", iw=64)
    assert value(q.last, place="Wi-Fi", iw=64) > 0


def test_a_loss_aware_memory_spares_slow_hosts_and_keeps_the_gain_of_fast_ones() -> None:
    q = measured("learned-window", {"experiment": "hosts", "policy": ["static 10", "ewma", "loss-aware"], "key": "/32"})
    assert value(q.lost_slow, policy="loss-aware", key="/32") < 0.5 * value(q.lost_slow, policy="ewma", key="/32")
    fast = {policy: value(q.time_fast, policy=policy, key="/32") for policy in ("static 10", "ewma", "loss-aware")}
    assert max(fast["ewma"], fast["loss-aware"]) < 0.8 * fast["static 10"]


def test_the_campaign_is_two_round_trips_of_three_with_24_segments() -> None:
    q = measured("learned-window", {"experiment": "campaign", "size_kb": "30", "rtt": "28.2"})
    few, many = (value(q.median, policy=policy, rtt=28.2, size_kb=30) for policy in ("static 10", "static 24"))
    assert abs(few - 86.2) < 4.3
    assert abs(many - 59.3) < 3


def test_a_larger_window_takes_more_of_a_shared_link_at_first_and_its_share_in_the_end() -> None:
    q = measured("shared-queue", {"experiment": "long", "queue": "100 ms", "flows": "6 flows"}, replicates=2)
    early, late = (
        {window: value(q.share, queue="100 ms", flows="6 flows", rtt=rtt, window=window) for window in (3, 32)}
        for rtt in (5, 320)
    )
    assert early[32] > 4 * early[3]
    assert late[32] < 2 * late[3]


def test_equal_signals_count_half_in_the_area_under_the_roc_curve() -> None:
    harmed = xr.DataArray([1.0, 0.0, 1.0, 0.0], dims="scene")
    for shown, expected in (([0, 0, 0, 0], 0.5), ([1, 0, 0, 0], 0.75), ([0, 1, 1, 2], 0.125), ([3, 1, 2, 0], 1)):
        assert float(larger(harmed, xr.DataArray(shown, dims="scene"))) == expected


def test_at_half_load_a_long_queue_lets_iw_10_pay() -> None:
    at = {"experiment": "load", "queue": "1 s", "load": "0.5", "users": "50", "connections": "six", "iw": ["3", "10"]}
    q = measured("shared-queue", at)
    few, many = (value(q.page, queue="1 s", load=0.5, users=50, connections="six", iw=iw) for iw in (3, 10))
    assert many < 0.9 * few


def test_on_5g_one_response_saves_round_trips_and_on_edge_a_deep_buffer_outlasts_the_timer() -> None:
    at = {"radio": "no retransmissions", "size": "20 kB", "buffer_bdp": 16}
    fast = measured("cellular", {**at, "network": "5G", "connections": 1, "iw": [3, 10]})
    few, many = (value(fast.time, network="5G", connections=1, iw=iw, **at) for iw in (3, 10))
    # Four round trips of 40 ms, and three.
    assert 160 < few < 190
    assert 35 < few - many < 45
    slow = measured("cellular", {**at, "network": "EDGE", "connections": 4, "iw": [3, 10]})
    of = {"network": "EDGE", "connections": 4, **at}
    assert value(slow.timeouts, iw=3, **of) == 0 < value(slow.timeouts, iw=10, **of)
    assert value(slow.spurious, iw=10, **of) == value(slow.timeouts, iw=10, **of)


def test_the_traces_are_what_their_model_makes() -> None:
    folder = Path(traces.__file__).parent
    for seed, (name, radio) in enumerate(traces.RADIOS.items()):
        times = traces.opportunities_ms(radio, seed)
        assert (folder / f"{name}.trace").read_text().split() == [str(time) for time in times]
        assert times[-1] == radio.length_ms
        assert len(times) * 1500 * 8e3 / radio.length_ms == pytest.approx(radio.mean_bps, rel=0.01)


def test_one_http_2_connection_loads_a_page_faster_than_six_and_two_to_each_of_seven_hosts_open_for_a_third() -> None:
    q = measured("pages", {"experiment": "connections", "path": "LTE", "scheme": ["6", "HTTP/2"], "iw": ["3", "10"]})
    one, six = (value(q.page, path="LTE", scheme=scheme, iw=iw) for scheme, iw in (("HTTP/2", 10), ("6", 3)))
    assert one < 0.6 * six
    q = measured("pages", {"experiment": "reuse", "path": "LTE", "iw": "10"})
    opened = [value(q.opened, path="LTE", kept=kept, iw=10) for kept in ("never", "within a page", "between pages")]
    assert opened[0] == 100 > 35 > opened[1] > 30 > 5 > opened[2]


def test_a_larger_window_saves_round_trips_of_each_population_and_few_connections_lose() -> None:
    q = measured("why-ten", {"experiment": "windows", "population": ["AvgDC", "UK 2023"], "iw": [3, 10, 46]})
    for population in ("AvgDC", "UK 2023"):
        few, ten = (value(q.time, population=population, iw=iw, application="search") for iw in (3, 10))
        assert ten < few - 0.05
        once = value(q.retransmitted, population=population, iw=46, application="one")
        assert once < value(q.retransmitted, population=population, iw=46, application="six")
    assert value(q.above_bdp, population="AvgDC", iw=10) < 50 < value(q.above_bdp, population="UK 2023", iw=10)


def test_iw_11_is_a_win_on_rfc_2415_s_idle_link_and_drops_more_on_its_full_one() -> None:
    q = measured("rfc2415-extended", {"experiment": "load", "webs": ["4", "48"], "ftps": "0", "iw": ["1", "11"]})
    for queue in ("drop tail", "RED", "CoDel"):
        for quantity, webs in ((q.median, 4), (q.drops, 48)):
            one, eleven = (value(quantity, queue=queue, webs=webs, ftps=0, iw=iw) for iw in (1, 11))
            assert eleven < 0.8 * one if webs == 4 else eleven > one + 1


def test_a_random_loss_halves_vegas_as_it_does_reno_and_leaves_bbr_alone() -> None:
    q = measured("long-pipes", {"experiment": "radio", "rtt": "40 ms", "loss_percent": [0.0, 1.0]})
    for control, least, most in (("reno", 0.2, 0.5), ("vegas", 0.2, 0.5), ("bbr", 0.95, 1.05)):
        clean, lossy = (value(q.radio_goodput, control=control, rtt="40 ms", loss_percent=loss) for loss in (0.0, 1.0))
        assert 9 < clean < 10
        assert least < lossy / clean < most


def test_member_0_of_an_ensemble_is_the_study_that_it_varies() -> None:
    at = {"webs": 8, "ftps": 1, "iw": 3}
    member = value(measured("rfc2415-ensemble", {"member": 0, **at}).delay, member=0, **at)
    assert member == value(measured("rfc2415", {"experiment": "base", "http": "1.0", **at}).delay, http="1.0", **at)


def test_a_start_that_knows_the_path_saves_round_trips_of_it_and_a_burst_overflows_a_short_queue() -> None:
    schemes = ["IW 10", "SUSS", "Careful Resume"]
    q = measured("startup-schemes", {"experiment": "networks", "network": "GEO", "scheme": schemes, "size": "500kB"})
    ten, suss, resumed = (value(q.time, network="GEO", scheme=scheme, size="500kB") for scheme in schemes)
    assert resumed < suss - 500 < suss < ten - 500
    q = measured("startup-schemes", {"experiment": "bursts", "iw": "32", "queue": ["10", "80"]})
    burst, paced = (value(q.burst_again, iw=32, start=start, queue=10) for start in ("at once", "paced"))
    assert 20 < burst < 35
    assert paced < burst / 4
    assert value(q.burst_again, iw=32, start="at once", queue=80) < 1


def test_jump_start_delivers_more_at_first_shares_less_fairly_and_costs_a_call() -> None:
    schemes = {"scheme": ["IW 10", "Jump-Start"], "network": "LTE"}
    first = measured("startup-schemes", {"experiment": "begin", **schemes}).sent
    ten, jump = (value(first, network="LTE", scheme=scheme, rtt=1) for scheme in schemes["scheme"])
    assert 14 < ten < 16
    assert jump > 10 * ten
    for experiment in ("together", "call"):
        q = measured("startup-schemes", {"experiment": experiment, **schemes})
        of = q.jain if experiment == "together" else q.mos
        ten, jump = (value(of, network="LTE", scheme=scheme) for scheme in schemes["scheme"])
        assert jump < 0.9 * ten


def test_a_flight_of_14_kb_costs_the_handshake_a_round_trip_of_iw_10_and_one_of_13_kb_does_not() -> None:
    q = measured("post-quantum", {"experiment": "flights", "flight_kb": [2, 13, 14], "iw": [10, 16]})
    handshake = {
        (kb, iw): value(q.flights_handshake, flight_kb=kb, iw=iw, application="1kB")
        for kb in (13, 14)
        for iw in (10, 16)
    }
    assert handshake[14, 10] > handshake[13, 10] + 95
    assert abs(handshake[14, 16] - handshake[13, 10]) < 2
    small, large = (value(q.flights_last, flight_kb=kb, iw=10, application="20kB") for kb in (2, 13))
    assert large < small - 95


def test_users_whose_chain_fits_into_the_window_lose_no_round_trip() -> None:
    q = measured("post-quantum", {"experiment": "users", "population": "UK 2023", "iw": [10, 20, 46]})
    crossing = {
        (kind, iw): value(q.crossing, population="UK 2023", certificates=kind, iw=iw)
        for kind in ("tranco-2026", "tranco-2026-ml-dsa-44")
        for iw in (10, 20)
    }
    assert crossing["tranco-2026", 10] == 0 <= crossing["tranco-2026-ml-dsa-44", 20] < 5
    assert 70 < crossing["tranco-2026-ml-dsa-44", 10] < 95


def test_a_remedy_of_the_harm_grid_reaches_the_pages_of_its_own_application_alone() -> None:
    study = find("post-quantum")
    places = chosen(study.keys("simulate"), {"access": "5 Mbit/s, 100 ms"})
    cells = {str(cell.key["remedy"]): cell.scenario.to_dict() for cell in study.cells_at("simulate", places)}
    base = cells.pop("none")["application"]
    for remedy, document in cells.items():
        own, *others = document["application"]
        assert own != base[0], remedy
        assert others == base[1:], remedy
