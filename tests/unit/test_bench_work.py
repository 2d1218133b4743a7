"""The work itself: our scenarios, and the scripts that give the same to ns-2 and ns-3."""

import shutil
from statistics import median

import pytest

from bench import bulk, lossy, peers, work
from bench.process import simulate

needs_ns2 = pytest.mark.skipif(shutil.which("ns") is None, reason=f"ns-2 is not here: {peers.INSTALL}")


def test_the_sweep_is_twelve_cells_by_four_initial_windows_by_two_http_versions():
    cells = list(work.rfc2415_sweep())

    assert len(cells) == len(set(cells)) == 96
    assert {(webs, ftps) for webs, ftps, _, _ in cells} == {(w, f) for w in (8, 16, 32) for f in range(4)}


def test_a_cell_holds_its_clients_initial_window_and_http_version():
    base = work.plan("rfc2415")

    with_files = work.rfc2415_cell(base, 32, 3, 4, "1.1")
    web_only = work.rfc2415_cell(base, 8, 0)

    web, ftp = with_files["applications"]
    assert (web["clients"], ftp["clients"], web["version"]) == (32, 3, "1.1")
    assert {
        end["initial_window"]["segments"] for app in (web, ftp) for end in (app["client_tcp"], app["server_tcp"])
    } == {4}
    assert [app["name"] for app in web_only["applications"]] == ["web"]


def test_uneven_flows_have_ten_access_delays_from_half_to_one_and_a_half_ms():
    network = work.plan("bulk_uneven")["network"]

    for side in ("left", "right"):
        delays_ns = [pair["forward"]["delay_ns"] for pair in network[side]]
        assert (delays_ns[0], delays_ns[-1], len(set(delays_ns))) == (500_000, 1_500_000, 10)
        assert delays_ns == [pair["reverse"]["delay_ns"] for pair in network[side]]


def test_ns2_is_given_the_size_law_of_our_scenario():
    web, ftp = work.plan("rfc2415")["applications"]

    assert web["primary"] == web["inline"]
    assert web["primary"]["scale"] == peers.RFC2415_SETTINGS["scale"]
    assert (web["primary"]["minimum"], web["primary"]["maximum"]) == (50, 1_000_000)
    assert ftp["size"]["value"] == 1_000_000
    lines = work.SIZES_CSV.read_text().splitlines()[1:]
    assert web["primary"]["points"] == [[float(x) for x in line.split(",")] for line in lines]


def test_a_worker_reports_what_crossed_the_bottleneck_and_what_it_cost():
    found = simulate([work.plan("bulk_uneven", 0.3)])

    assert found.links["bottleneck"]["sent_packets"] >= found.data_packets * 0.9 > 5000
    assert found.links["bottleneck"]["dropped_packets"] == 0
    assert found.packet_hops > 3 * found.data_packets
    assert found.cpu_s > 0


def test_a_thousand_idle_connections_stay_open_to_the_end():
    found = simulate([work.connections(work.plan("connections"), 1000, 1.0)])

    # a SYN, an ACK and a request at least from each client
    assert found.links["bottleneck"]["sent_packets"] >= 3000
    assert 0 < found.memory_bytes < 50e6


@needs_ns2
def test_ns2_moves_as_many_packets_as_we_do_in_a_second_of_bulk():
    ns2 = peers.find_ns2()
    assert ns2 is not None

    for form in bulk.FORMS:
        theirs = ns2.bulk(form.access_delays_s, 1.0).figures
        ours = bulk.ours_through_bottleneck(form, 1.0)
        assert ours.data_packets == pytest.approx(theirs["data_packets"], rel=0.02)
        assert ours.drops == theirs["drops"] == 0


def test_the_lossy_work_runs_all_of_the_profile_linux():
    (bulk_transfer,) = work.plan("lossy")["applications"]
    sender = bulk_transfer["client_tcp"]

    assert sender["sack"]
    assert sender["congestion_control"]["algorithm"] == "cubic"
    assert all(sender["recovery"]["scoreboard"][rule] for rule in ("rack", "tail_loss_probe", "prr"))


@needs_ns2
def test_ns2_sends_as_much_and_as_much_again_as_we_do_when_one_packet_of_a_hundred_is_lost():
    ns2 = peers.find_ns2()
    assert ns2 is not None

    assert [row.verdict() for row in lossy.same_work_rows(ns2)] == ["the same"] * 3


@needs_ns2
def test_ns2_prints_every_page_delay():
    ns2 = peers.find_ns2()
    assert ns2 is not None

    delays_s = ns2.page_delays_s(8, 0, seed=1)

    assert len(delays_s) > 600
    assert 0.4 < median(delays_s) < 1.5
