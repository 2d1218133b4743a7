"""Real nginx, curl and kernel: the first flight is as requested, losses are accounted for, idle ends restart."""

import json

import polars as pl
import pytest

from emulations import FAR, cell, download, never_early, rounds, skip_unless_possible
from firstflight import Cell
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign, self_check
from firstflight.errors import SelfCheckError
from firstflight.records.schema import conforms

WINDOWS = (1, 2, 3, 4, 10, 16, 32, 64)


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    skip_unless_possible()


def test_every_first_flight_is_as_long_as_the_initial_window_with_reno_and_with_cubic() -> None:
    cells = [
        Cell(
            {"cc": control, "iw": window},
            download(tcp__initial_window=window, tcp__congestion_control=control, link__delay=FAR),
        )
        for control in ("reno", "cubic")
        for window in WINDOWS
    ]
    assert campaign.together(cells) == [cells]
    turns: list[object] = []
    tables = campaign.run_together(cells, 1, [2] * len(cells), lambda cell, replicates: turns.append(cell.key))
    # A B A B: each cell once before any comes again.
    assert turns == [cell.key for cell in cells] * 2
    flights = [table["transfers"]["first_flight_segments"].to_list() for table in tables]
    assert flights == [[window, window] for window in WINDOWS] * 2
    for table in tables:
        assert table["transfers"]["completed"].to_list() == [1, 1]
        for name in ("transfers", "pages", "links"):
            conforms(name, table[name])
        assert {"kernel", "self_check", "hosts"} <= set(table["environment"]["name"])


def test_what_the_queue_drops_is_what_the_kernel_sends_again() -> None:
    no_probes = {"scoreboard": {"tail_loss_probe": "none"}}
    lossy = cell(link__queue="10p", tcp__initial_window=32, tcp__recovery=no_probes, capture=True)
    tables = campaign.run_cell(lossy, 1, 2)
    transfers, links = tables["transfers"], tables["links"]
    there = links.filter(links["link"].cast(str) == "links[0]")
    assert min(there["dropped_packets"]) > 5
    assert there["dropped_packets"].to_list() == transfers["retransmissions"].to_list()
    assert there["queue_max_packets"].to_list() == [10, 10]
    assert 0 < min(transfers["first_flight_lost_segments"]) <= max(transfers["retransmissions"])
    conforms("segments", tables["segments"])
    segments = tables["segments"]
    data = segments.filter(pl.col.from_server == 1, pl.col.length > 0, pl.col.event == 0)
    assert data.height == transfers["segments_sent"].sum()
    assert data["retransmission"].sum() == transfers["retransmissions"].sum()
    dropped = segments.filter(pl.col.event == 2)
    assert dropped.height == there["dropped_packets"].sum()
    assert dropped["link"].unique().to_list() == [0]


def test_the_queue_is_metered_as_in_virtual_time() -> None:
    metered = cell(stats_interval="50ms", link__rate="10Mbit", link__delay="10ms", tcp__initial_window=32)
    tables = [engine(metered, 1, 1) for engine in (campaign.run_cell, simulate.run_cell)]
    real, virtual = (each["links"].filter(pl.col.link.cast(pl.String) == "links[0]") for each in tables)
    conforms("links", real)
    # The meters begin before the applications, and they leave out the time after the last transfer.
    assert -0.5 < real["interval_start_s"][0] < 0
    assert real["interval_start_s"].diff().drop_nulls().to_list() == pytest.approx([0.05] * (real.height - 1))
    assert virtual["queue_max_packets"].max() > 20  # type: ignore[operator]
    assert abs(real["queue_max_packets"].max() - virtual["queue_max_packets"].max()) <= 3  # type: ignore[operator]
    waited = [(frame["queue_mean_packets"] * frame["interval_s"]).sum() for frame in (real, virtual)]
    assert waited[0] == pytest.approx(waited[1], rel=0.1)
    # By the applications' clock, packets wait from the request until the file is there.
    busy = real.filter(pl.col.queue_max_packets > 0)["interval_start_s"]
    ((start, took),) = tables[0]["transfers"].select("start_s", "completion_time_s").rows()
    assert start - 0.05 < busy.min() <= busy.max() < start + took  # type: ignore[operator]
    assert real["sent_packets"].sum() == virtual["sent_packets"].sum()


@pytest.mark.parametrize(("restart", "flights"), [("halving", [4, 8, 16, 7]), ("off", [35])])
def test_an_idle_connection_begins_again_with_its_initial_window_unless_it_is_told_not_to(
    restart: str, flights: list[int]
) -> None:
    application = {
        "name": "web",
        "kind": "request_response",
        "request": "80B",
        "response": "50kB",
        "think_time": "1.5s",
    }
    validation = {"cwnd_limited": {"app_limited_decay": restart == "halving"}}
    idle = {"tcp__restart_window": restart, "tcp__window_validation": validation}
    scenario = download(tcp__initial_window=4, link__delay=FAR, **idle).to_dict()
    scenario["application"] = [application | {"count": 2}]
    asked = type(download()).from_dict(scenario)
    tables = campaign.run_cell(Cell({"c": 1}, asked, capture=True), 1, 1)
    assert tables["transfers"]["connection"].to_list() == [0, 0]
    sent = rounds(tables["segments"]).group_by("round", maintain_order=True).len()["len"].to_list()
    assert sent == [4, 8, 16, 7, *flights]


def test_real_programs_ask_for_the_same_bytes_as_the_simulated_ones_in_as_many_rounds() -> None:
    drawn = cell(
        web__size={"distribution": "lognormal", "median": "20kB", "sigma": 1.0, "maximum": "200kB"},
        web__response_header="300B",
        web__count=4,
        link__rate="10Mbit",
        link__delay=FAR,
        capture=True,
    )
    real, virtual = campaign.run_cell(drawn, 3, 2), simulate.run_cell(drawn, 3, 2)
    assert real["transfers"]["bytes"].to_list() == virtual["transfers"]["bytes"].to_list()
    assert real["transfers"]["delivered_bytes"].to_list() == real["transfers"]["bytes"].to_list()
    took, expected = (
        rounds(tables["segments"])
        .group_by("replicate", "connection", maintain_order=True)
        .agg(pl.col.round.max())
        .rows()
        for tables in (real, virtual)
    )
    assert took == expected
    never_early(real["transfers"], virtual["transfers"])


def test_two_rounds_of_cubic_are_those_of_virtual_time() -> None:
    # With late acknowledgments HyStart ends slow start at a window of 16 segments, not below: the second round fits.
    keys = {"web__size": "36kB", "web__response_header": "300B", "web__count": 2, "tcp__initial_window": 10}
    asked = cell(**keys, link__delay=FAR, capture=True)
    real, virtual = campaign.run_cell(asked, 1, 1), simulate.run_cell(asked, 1, 1)
    sent, expected = (
        rounds(tables["segments"]).select("connection", "round", "seq", "length").rows() for tables in (real, virtual)
    )
    assert sent == expected
    assert [number for _, number, _, _ in sent] == 2 * ([0] * 10 + [1] * 16)
    never_early(real["transfers"], virtual["transfers"])


def test_a_page_is_fetched_object_by_object_by_one_curl_or_by_several() -> None:
    page = {"kind": "web_page", "primary": "5kB", "inline": "8kB", "inline_count": 5, "think_time": "1s", "count": 1}
    scenario = download(link__delay=FAR).to_dict()
    scenario["application"] = [page | {"name": "all"}, page | {"name": "two", "parallel": 2}]
    tables = campaign.run_cell(Cell({"c": 1}, type(download()).from_dict(scenario)), 1, 1)
    assert tables["pages"]["objects"].to_list() == [6, 6]
    assert tables["pages"]["completed"].to_list() == [1, 1]
    transfers = tables["transfers"]
    assert transfers["connection"].n_unique() == 12
    conforms("pages", tables["pages"])
    at_once = transfers.filter((transfers["application"].cast(str) == "all") & (transfers["object"] > 0))
    # The last of them begins before any has come.
    assert at_once["start_s"].max() < (at_once["start_s"] + at_once["completion_time_s"]).min()


def test_our_own_tcp_serves_real_curl_with_what_no_kernel_can_be_told() -> None:
    ours = {"stack": "firstflight", "profile": "rfc", "initial_window": 7, "receive_window": "1MB"}
    tables = campaign.run_cell(cell(web__server_tcp=ours, capture=True), 1, 2)
    transfers = tables["transfers"]
    assert transfers["completed"].to_list() == [1, 1]
    assert transfers["delivered_bytes"].to_list() == [100_000, 100_000]
    assert transfers["first_flight_segments"].to_list() == [7, 7]
    # A kernel does not report how often it undid a recovery; our TCP does.
    assert transfers["spurious_recoveries_undone"].to_list() == [0, 0]
    conforms("segments", tables["segments"])
    assert tables["segments"]["cwnd_segments"].is_nan().sum() == 0


def test_a_self_check_tries_again_where_the_path_loses_packets_and_then_says_that_it_could_not_look() -> None:
    tries = []

    def attempt(number: int) -> None:
        tries.append(number)
        raise self_check._LostError("the path lost 1 packets")

    assert self_check._tried(attempt) == {"not_checked": "the path lost 1 packets"}
    # Of the same replicate the same packets would be lost.
    assert tries == [0, 1, 2, 3, 4, 5]


def test_a_self_check_that_fails_stops_the_run_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_check, "RTT_TOLERANCE_S", -0.001)
    with pytest.raises(
        SelfCheckError, match=r"self-check of node\[1\] and node\[0\]: the round trip should be"
    ) as caught:
        campaign.run_cell(cell(), 1, 1)
    assert caught.value.exit_status == 1


def test_a_self_check_takes_no_more_than_the_first_receive_window_however_large_the_initial_one() -> None:
    growing = {"tcp__receive_window_growth": {"initial": "64KiB"}}
    tables = campaign.run_cell(cell(tcp__initial_window=60_000, link__rate="1Mbit", **growing, web__size="5kB"), 1, 1)
    environment = dict(tables["environment"].iter_rows())
    assert json.loads(environment["self_check"])["first_flight_1"]["segments"] == 44
