"""Results from several lines of a connection, from limits, and from tables, on numbers that differ in every place."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from firstflight import observe
from firstflight.errors import MachineError, RequestError
from firstflight.observe import summary
from firstflight.observe.access_log import RowSample
from firstflight.observe.room import Room
from firstflight.observe.tables import Subnets, mean_rate, seconds, since_first
from firstflight.records import machine
from flows import EXAMPLES

HEADERS = 1500 / 1448
NGINX = (
    "msec={msec} remote_addr=203.0.113.7 connection=41 connection_requests={number} connection_time={age} "
    "request_time={took} request_completion=OK status=200 server_protocol=HTTP/1.1 request_length=83 "
    "bytes_sent={size} body_bytes_sent=17 tcpinfo_rtt={rtt} tcpinfo_rttvar=10157 tcpinfo_snd_cwnd={cwnd} "
    "tcpinfo_rcv_space=14480"
)


def nginx(path: Path, *lines: tuple[float, int, int, int]) -> observe.Observation:
    """Of (seconds that it took, size, round trip in microseconds, cwnd), one line per second."""
    text = [
        NGINX.format(
            msec=f"{1795287326 + at}.000",
            number=at + 1,
            age=f"{at}.000",
            took=f"{took:.3f}",
            size=size,
            rtt=rtt,
            cwnd=cwnd,
        )
        for at, (took, size, rtt, cwnd) in enumerate(lines)
    ]
    path.write_text("\n".join(text) + "\n")
    return observe.read(path)


def test_of_the_round_trips_of_nginx_the_least_without_a_queue_counts(tmp_path: Path) -> None:
    # Taken at once, or within the window of 10 segments; the last one waited, at 10 segments a round trip.
    seen = nginx(
        tmp_path / "a",
        (0.0, 500, 26000, 10),
        (0.03, 14480, 21000, 10),
        (0.021, 90000, 22000, 10),
        (9.0, 3 * 10**6, 60000, 20),
    )
    (user,) = seen.users.to_dicts()
    assert (user["rtt_s"], user["max_rtt_s"]) == (0.021, 0.06)


@pytest.mark.parametrize(
    ("took", "size", "rtt", "rate"),
    [
        # 20 segments in 50 ms are 579,200 bytes a second; a response of 3 MB in 10 s is slower.
        (5.0, 3_000_000, 50_000, 8 * 20 * 1448 / 0.05),
        (10.0, 3_000_000, 50_000, 8 * 300_000),
        # A round trip of a little more than 1.3 times the least one has waited, one of less has not.
        (5.0, 3_000_000, 26_100, 8 * 600_000),
        (5.0, 3_000_000, 25_900, None),
        # Ten round trips of waiting are needed.
        (0.5, 300_000, 50_000, 8 * 20 * 1448 / 0.05),
        (0.499, 300_000, 50_000, None),
    ],
)
def test_the_rate_of_a_line_is_that_of_a_window_or_of_the_response_where_a_queue_stood(
    tmp_path: Path, took: float, size: int, rtt: int, rate: float | None
) -> None:
    seen = nginx(tmp_path / "log", (0.0, 500, 20000, 10), (took, size, rtt, 20))
    assert seen.users["down_bps"].to_list() == [None if rate is None else pytest.approx(rate * HEADERS)]


def ss(path: Path, *snapshots: str) -> observe.Observation:
    path.write_text("".join(f"ESTAB 0 0 10.0.0.1:443 198.51.100.9:5000\n\t cubic {told}\n" for told in snapshots))
    return observe.read(path)


def test_of_several_snapshots_of_a_socket_the_last_counts_and_the_largest_round_trip_and_rate(tmp_path: Path) -> None:
    told = "rtt:{}/5 mss:1000 cwnd:10 bytes_sent:{} bytes_acked:{} data_segs_out:{} retrans:0/{} minrtt:{} "
    told += "delivery_rate {}bps busy:{}ms"
    seen = ss(
        tmp_path / "ss.txt",
        told.format(80, 50_000, 40_000, 50, 1, 22, 1_000_000, 400),
        told.format(100, 70_000, 60_000, 70, 2, 21, 800_000, 500),
        told.format(90, 90_000, 80_000, 90, 3, 20, 1, 900),
    )
    (user,), (bound,), (response,) = (frame.to_dicts() for frame in (seen.users, seen.bounds, seen.transfers))
    assert (user["rtt_s"], user["max_rtt_s"]) == (0.02, 0.1)
    assert user["down_bps"] == pytest.approx(1_000_000 * 1.052)
    assert bound["min_down_bps"] == pytest.approx(8 * 80_000 / 0.9)
    names = ("bytes", "delivered_bytes", "segments_sent", "retransmissions")
    assert [response[name] for name in names] == [90_000, 80_000, 90, 3]


@pytest.mark.parametrize(
    ("rtt", "least", "delivery", "acked", "known"),
    [
        # 10 segments of 1000 bytes in 80 ms are 1 Mbit/s.
        (80, 20, 1_150_000, 50_000, True),
        (80, 20, 1_150_001, 50_000, False),
        (80, 20, 850_000, 50_000, True),
        (80, 20, 849_999, 50_000, False),
        (80, 20, 1_000_000, 20_000, True),
        (80, 20, 1_000_000, 19_999, False),
        (80, 61.5, 1_000_000, 50_000, True),
        (80, 62, 1_000_000, 50_000, False),
    ],
)
def test_a_rate_of_ss_is_told_where_a_full_window_waited(
    tmp_path: Path, rtt: float, least: float, delivery: int, acked: int, known: bool
) -> None:
    told = (
        f"rtt:{rtt}/5 mss:1000 cwnd:10 bytes_sent:90000 bytes_acked:{acked} minrtt:{least} delivery_rate {delivery}bps"
    )
    rate = pytest.approx(delivery * 1.052) if known else None
    assert ss(tmp_path / "ss.txt", told).users["down_bps"].to_list() == [rate]


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("max_rtt_ms", "0", "above 0"),
        ("max_rtt_ms", "1e9", "below 1000000000"),
        ("down_mbps", "0", "above 0"),
        ("up_kbps", "-1", "above 0"),
        ("weight", "0", "above 0"),
        ("buffer_kb", "-1", "at least 0"),
        ("loss", "1", "below 1"),
        ("loss_percent", "100", "below 100"),
        ("retransmissions", "-1", "at least 0"),
        ("retransmissions", "4294967296", "below 4294967296"),
        ("completed", "2", "below 2"),
        ("completion_time_ms", "-0.5", "at least 0"),
        ("tls_exchanges", "256", "below 256"),
        ("tls_exchanges", "0", "above 0"),
        ("tls_bytes", "0", "above 0"),
        ("buffer_ms", "1e6", "below 1000000"),
    ],
)
def test_a_value_that_a_column_cannot_have_is_left_out_with_its_row(
    tmp_path: Path, name: str, wrong: str, said: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"rtt_ms,bytes,{name}\n20,5,\n30,6,{wrong}\n")
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [5]
    assert [(each.what, each.unit, each.count, each.first) for each in seen.problems] == [
        (f"{name} is not {said}", "line", 1, (3,))
    ]


def test_a_value_of_nothing_is_one_where_a_column_can_have_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("rtt_ms,bytes,loss,buffer_kb,retransmissions,start_s\n20,0,0,0,0,-5\n")
    seen = observe.read(path)
    assert (seen.problems, seen.users["loss"].to_list(), seen.users["buffer_bytes"].to_list()) == ((), [0], [0])
    assert (seen.transfers["bytes"].to_list(), seen.transfers["retransmissions"].to_list()) == ([0], [0])


def test_counts_of_a_tls_handshake_are_rounded(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("rtt_ms,bytes,tls_bytes,tls_exchanges,tls_answer_flight_segments\n20,5,2.6,1.6,9.7\n")
    (handshake,) = observe.read(path).handshakes.select("bytes", "exchanges", "answer_flight_segments").rows()
    assert handshake == (3, 2, 10)


def test_rows_of_a_plain_table_that_name_one_connection_are_its_responses(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "connection,rtt_ms,max_rtt_ms,bytes,completion_time_s,completed,down_mbps\n"
        "b,31,50,1000,1,1,\na,40,41,2000,2,1,7\nb,30,90,4000,1,1,8\n,25,26,500,4,1,\nb,35,60,9000,1,0,9\n"
    )
    seen = observe.read(path)
    assert seen.transfers.sort("client").select("client", "bytes").rows() == [
        (0, 1000),
        (0, 4000),
        (0, 9000),
        (1, 2000),
        (2, 500),
    ]
    assert seen.users["rtt_s"].to_list() == pytest.approx([0.03, 0.04, 0.025])
    assert seen.users["max_rtt_s"].to_list() == pytest.approx([0.09, 0.041, 0.026])
    assert seen.users["down_bps"].to_list() == [8e6, 7e6, None]
    # The fastest of those that finished.
    rates = [8 * 4000 / 1, 8 * 2000 / 2, 8 * 500 / 4]
    assert seen.bounds["min_down_bps"].to_list() == pytest.approx([rate * HEADERS for rate in rates])


def test_a_queue_in_a_capture_is_what_the_round_trip_grew_by_at_the_rate() -> None:
    seen = observe.read(EXAMPLES / "server.pcapng")
    rows = seen.users.join(seen.bounds, on="client").drop_nulls("down_bps")
    expected = [(row["max_rtt_s"] - row["rtt_s"]) * row["down_bps"] / 8 for row in rows.to_dicts()]
    assert len(expected) > 5
    assert rows["min_buffer_bytes"].to_list() == pytest.approx(expected)
    assert min(expected) > 1000


@pytest.mark.parametrize(("apart_s", "users"), [(0.4, 1), (0.6, 2)])
def test_a_connection_number_of_nginx_that_begins_another_time_is_another_connection(
    tmp_path: Path, apart_s: float, users: int
) -> None:
    values = {"age": "0.000", "took": "0.000", "size": 500, "rtt": 20000, "cwnd": 10}
    lines = [NGINX.format(msec=f"{1795287326 + at:.3f}", number=1, **values) for at in (0, apart_s)]
    path = tmp_path / "log"
    path.write_text("\n".join(lines) + "\n")
    assert observe.read(path).users.height == users


def test_the_segments_of_a_tls_answer_are_those_of_the_capture() -> None:
    handshakes = observe.read(EXAMPLES / "https.pcapng").handshakes
    tls_1_3, tls_1_2 = [10] * 5 + [3] * 5 + [10] * 3 + [3] * 3, [10] * 5 + [2] * 5 + [10] * 3 + [2] * 3
    assert handshakes["answer_flight_segments"].to_list() == tls_1_3 + tls_1_2


def test_a_flight_of_tls_that_the_client_did_not_answer_has_no_size(tmp_path: Path) -> None:
    content, path = (EXAMPLES / "https.pcapng").read_bytes(), tmp_path / "cut.pcapng"
    at = 0
    flights: list[int | None] = []
    while at < len(content) and len(set(flights)) < 2:
        at += int.from_bytes(content[at + 4 : at + 8], "little")
        path.write_bytes(content[:at])
        with suppress(RequestError):
            flights += observe.read(path).handshakes["flight_bytes"][:1].to_list()
    assert flights[0] is None
    assert (flights[-1] or 0) > 1000


def test_networks_are_numbered_in_the_order_of_their_appearance() -> None:
    subnets = Subnets()
    addresses = [f"10.{200 - place}.3.{place}" for place in range(200)]
    assert subnets.numbers(pl.Series(addresses)).to_list() == list(range(200))
    again = ["10.193.3.250", None, "nobody", "10.1.4.0", "2001:db8:7:1::1", "2001:db8:7:2::9", "2001:db8:8::9"]
    assert subnets.numbers(pl.Series(again)).to_list() == [7, None, None, 200, 201, 201, 202]
    assert subnets.numbers(pl.Series(["10.1.4.255", "10.1.4.256"])).to_list() == [200, None]
    assert subnets.numbers_of_names(pl.Series(["x", None, "y", "x"])).to_list() == [203, None, 204, 203]


def test_times_count_from_the_first_and_rates_have_headers_and_no_division_by_nothing() -> None:
    frame, began = since_first(pl.DataFrame({"start_s": [7.5, 3.0, None]}))
    assert (frame["start_s"].to_list(), began) == ([4.5, 0.0, None], 3.0)
    assert since_first(pl.DataFrame({"client": [1]}))[1] is None
    rates = pl.DataFrame({"size": [1448, 1448, 1448], "s": [0.5, 0.0, -1.0]}).select(
        mean_rate(pl.col("size"), pl.col("s"))
    )
    assert rates.to_series().to_list() == [pytest.approx(8 * 1500 / 0.5), None, None]
    assert seconds(pl.Series([20_500.0]), 1e6).to_list() == [0.0205]


def test_what_is_kept_of_a_file_may_take_a_sixth_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"x": range(1000)})
    size = int(frame.estimated_size())
    monkeypatch.setattr(machine, "free_memory_bytes", lambda: 12 * size)
    kept = Room(Path("a"))
    kept.add(frame)
    kept.add(frame)
    with pytest.raises(MachineError, match="more connections and responses than fit"):
        kept.add(frame[:1])
    kept.keep_only(frame)
    kept.add(frame)


def test_a_sample_says_what_it_is_of_only_where_it_left_something_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.observe.access_log.MOST_ROWS", 10)
    sample = RowSample()
    none = pl.lit(None, dtype=pl.UInt64).alias("connection")
    for first in (0, 5):
        sample.add(sample.chosen(pl.DataFrame({"line": range(first, first + 5)}).with_columns(none)))
    assert (sample.note, sample.read) == ("", 10)
    assert sample.rows is not None
    assert sample.rows["line"].to_list() == list(range(10))
    sample.add(sample.chosen(pl.DataFrame({"line": range(10, 400)}).with_columns(none)))
    kept = sample.rows["line"].to_list()
    assert 0 < len(kept) <= 10
    assert kept == sorted(kept)
    assert sample.note == f"400 responses read, of which a random sample of {len(kept)} is kept"


def test_medians_are_told_with_the_tenth_and_ninetieth_percentile_and_of_how_many(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    # 0 to 10 times 2 kB, 20 ms and 10 ms; two have no time, and one no segments.
    rows = [
        f"{20 + place},{2000 * place},{'' if place < 2 else 10 * place},{'' if place == 4 else place},{again}"
        for place, again in enumerate((0, *[1] * 9, 2))
    ]
    path.write_text("rtt_ms,bytes,completion_time_ms,segments_sent,retransmissions\n" + "\n".join(rows) + "\n")
    found = {
        line[2:30].strip(): line[30:].split() for line in summary.lines(observe.read(path)) if line.startswith("  ")
    }
    assert found["size"] == ["10", "kB", "(2,", "18)", "11", "responses"]
    assert found["RTT"] == ["25", "ms", "(21,", "29)", "11", "connections"]
    assert found["completion time"] == ["60", "ms", "(28,", "92)", "9", "responses"]
    assert "loss" not in found
    # 10 of 0 to 10 without 4.
    assert " ".join(found["retransmissions"]).endswith("10 of 51 segments")
