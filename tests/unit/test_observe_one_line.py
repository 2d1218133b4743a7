"""One literal line of each format: every field that it has, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from firstflight import RequestError, observe

# Headers of 52 bytes on 1448; 4 MiB may still be held by the kernel.
HEADERS = 1500 / 1448
HELD = 4_194_304
AT_NINE = datetime(2026, 11, 22, 9, 0, 7, tzinfo=UTC).timestamp()
RESPONSE = {"application": "observed", "replicate": 0, "connection": 0, "client": 0}
USER = {"replicate": 0, "client": 0, "weight": 1.0}
NETWORK = {"subnet": 0}


def told(rows: Any) -> list[dict[str, Any]]:
    """The rows of a table without null values."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows.to_dicts()]


def read(path: Path, text: str) -> observe.Observation:
    path.write_text(text)
    return observe.read(path)


def timed(size: int, seconds: float) -> dict[str, Any]:
    """The bounds of a line, of a response whose last 4 MiB the kernel may still have held."""
    rate = pytest.approx(8 * (size - HELD) / seconds * HEADERS)
    return {"client": 0, "min_down_bps": rate, "min_completion_time_s": pytest.approx(seconds)}


# Text; bytes; the address' network and a round trip, if it tells them; seconds that it took; when it was done.
LOGS: dict[str, tuple[str, int, dict[str, Any], float | None, float | None]] = {
    "common": (
        '203.0.113.7 - bob [22/Nov/2026:10:00:07 +0100] "GET /1 HTTP/1.1" 200 9000123',
        9000123,
        NETWORK,
        None,
        AT_NINE,
    ),
    "combined": (
        '203.0.113.7 - - [22/Nov/2026:09:00:07 +0000] "GET / HTTP/1.1" 206 9000124 "http://a/300" "curl/8 400" 2.500',
        9000124,
        NETWORK,
        2.5,
        AT_NINE,
    ),
    "combined, Apache's of all virtual hosts": (
        'www.example.org:443 203.0.113.7 - - [22/Nov/2026:09:00:07 +0000] "GET / HTTP/1.1" 200 9000124 "-" "curl"',
        9000124,
        NETWORK,
        None,
        AT_NINE,
    ),
    "common, by syslog": (
        '<134>2026-11-22T09:00:07Z cache-fra1 log[7]: 203.0.113.7 - - [22/Nov/2026:09:00:07 +0000] "GET /" 200 9000124',
        9000124,
        NETWORK,
        None,
        AT_NINE,
    ),
    "HAProxy": (
        "Nov 22 10:00:00 lb haproxy[14389]: 203.0.113.7:33317 [22/Nov/2026:09:00:07.655] http-in static/srv1 "
        '10/20/30/69/+2600 200 +9000125 - - ---- 1/1/1/1/0 0/0 {} {} "GET / HTTP/1.1"',
        9000125,
        NETWORK,
        2.6,
        AT_NINE + 0.655,
    ),
    "Envoy": (
        '[2026-11-22T09:00:07.250Z] "POST /api/v1 HTTP/2" 200 - 154 9000126 2700 100 "10.0.35.1" "nsq2http" "a" "b" '
        '"tcp://10.0.2.1:80"',
        9000126,
        NETWORK,
        2.7,
        AT_NINE + 0.25,
    ),
    "IIS": (
        "#Software: IIS\n#Fields: date time c-ip cs-uri sc-status sc-bytes cs-bytes time-taken\n"
        "2026-11-22 09:00:07 203.0.113.7 /a 200 9000127 800 2800",
        9000127,
        NETWORK,
        2.8,
        AT_NINE,
    ),
    "CloudFront": (
        "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method time-taken\n"
        "2026-11-22\t09:00:07\tLHR62\t9000128\t203.0.113.7\tGET\t2.900",
        9000128,
        NETWORK,
        2.9,
        AT_NINE,
    ),
    "JSON": (
        '{"time": "2026-11-22T10:00:07+01:00", "remote_addr": "203.0.113.7", "bytes_sent": 9000129, "request_time": '
        '"3.100", "tcpinfo_rtt": "20500", "status": 200}',
        9000129,
        NETWORK | {"rtt_s": 0.0205},
        3.1,
        AT_NINE,
    ),
    "JSON, Akamai": (
        '{"cliIP": "203.0.113.7", "totalBytes": "9000129", "transferTimeMSec": "3100", "reqTimeSec": "1795338007.250"}',
        9000129,
        NETWORK,
        3.1,
        AT_NINE + 0.25,
    ),
    "JSON, Cloudflare": (
        '{"ClientIP": "203.0.113.7", "EdgeResponseBytes": 9000129, "EdgeStartTimestamp": 1795338007250000000}',
        9000129,
        NETWORK,
        None,
        AT_NINE + 0.25,
    ),
    "JSON, nested and in milliseconds": (
        '{"http": {"responseBytes": 1, "edgeResponseBytes": 9000130, "ClientIP": "203.0.113.7"}, "duration_ms": 3200, '
        '"ClientTCPRTTMs": 31}',
        9000130,
        NETWORK | {"rtt_s": 0.031},
        3.2,
        None,
    ),
    "tcplife": (
        "22604 nginx: wor 100.66.3.172    443   203.0.113.7     50001 8789 5 3300.50",
        8789 * 1024,
        NETWORK,
        3.3005,
        None,
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_line_of_an_access_log_tells_size_network_time_and_when(tmp_path: Path, name: str) -> None:
    text, size, path, seconds, done_s = LOGS[name]
    seen = read(tmp_path / "access.log", f"{text}\n")
    assert seen.source.kind == "log"
    # HAProxy's line has the client's port.
    first = {"object": 0} if name == "HAProxy" else {}
    assert told(seen.transfers) == [RESPONSE | first | {"bytes": size} | ({} if done_s is None else {"start_s": 0.0})]
    assert told(seen.users) == [USER | {key: pytest.approx(value) for key, value in path.items()}]
    assert told(seen.bounds) == ([] if seconds is None else [timed(size, seconds)])
    assert seen.handshakes.is_empty()
    assert (seen.source.began_s, seen.problems) == (done_s, ())


def test_a_line_of_tcplife_with_commas_tells_the_same(tmp_path: Path) -> None:
    seen = read(tmp_path / "tcplife.csv", "10:00:00,2,nginx,6,2001:db8::1,443,2001:db8::7,5,8790,1,3400.25\n")
    assert told(seen.transfers) == [RESPONSE | {"bytes": 8790 * 1024}]
    assert told(seen.users) == [USER | NETWORK]
    assert told(seen.bounds) == [timed(8790 * 1024, 3.40025)]


NGINX = (
    "msec={msec} remote_addr=203.0.113.7 connection=41 connection_requests={number} connection_time={age} "
    "request_time={took} request_completion={done} status=200 server_protocol=HTTP/1.1 request_length=83 "
    "bytes_sent={size} body_bytes_sent=17 tcpinfo_rtt={rtt} tcpinfo_rttvar=10157 tcpinfo_snd_cwnd={cwnd} "
    "tcpinfo_rcv_space=14480\n"
)


def test_lines_of_nginx_tell_the_responses_of_a_connection_and_its_path(tmp_path: Path) -> None:
    first = NGINX.format(
        msec="1795287326.500", number=1, age="0.500", took="0.010", done="OK", size=20242, rtt=20000, cwnd=10
    )
    # Twenty segments in 50 ms, 2.5 times the least round trip.
    long = NGINX.format(
        msec="1795287330.000", number=2, age="4.000", took="3.000", done="OK", size=3000000, rtt=50000, cwnd=20
    )
    cut = NGINX.format(
        msec="1795287339.000", number=3, age="13.000", took="2.000", done="", size=9000000, rtt=40000, cwnd=11
    )
    seen = read(tmp_path / "nginx.log", first + long + cut)
    assert seen.source.kind == "nginx"
    assert seen.source.began_s == pytest.approx(1795287326.49)
    assert told(seen.transfers) == [
        RESPONSE | {"object": 0, "bytes": 20242, "completed": 1, "start_s": 0.0},
        RESPONSE | {"object": 1, "bytes": 3000000, "completed": 1, "start_s": pytest.approx(0.51)},
        RESPONSE | {"object": 2, "bytes": 9000000, "completed": 0, "start_s": pytest.approx(10.51)},
    ]
    assert told(seen.users) == [
        USER | NETWORK | {"rtt_s": 0.02, "max_rtt_s": 0.05, "down_bps": pytest.approx(8 * 20 * 1500 / 0.05)}
    ]
    # Of the second the kernel may have held 256 KiB; the third one's value is not known.
    assert told(seen.bounds) == [{"client": 0, "min_down_bps": pytest.approx(8 * (3000000 - 262144) / 3 * HEADERS)}]


def test_a_socket_of_ss_tells_what_was_sent_and_its_path(tmp_path: Path) -> None:
    seen = read(
        tmp_path / "ss.txt",
        "ESTAB 0 0 10.0.0.1:443 198.51.100.9:5000\n"
        "\t cubic rtt:60/5 mss:1448 cwnd:30 bytes_sent:90000 bytes_retrans:2896 bytes_acked:60001 segs_out:70 "
        "data_segs_out:64 send 1bps delivery_rate 6Mbps busy:400ms retrans:1/2 minrtt:20.5\n",
    )
    assert seen.source.kind == "ss"
    assert told(seen.transfers) == [
        RESPONSE | {"bytes": 87104, "delivered_bytes": 60001, "segments_sent": 64, "retransmissions": 2}
    ]
    # 30 segments in 60 ms are 5.8 Mbit/s, which is near the 6 that were delivered.
    assert told(seen.users) == [
        USER | NETWORK | {"rtt_s": 0.0205, "max_rtt_s": 0.06, "down_bps": pytest.approx(6e6 * HEADERS)}
    ]
    assert told(seen.bounds) == [{"client": 0, "min_down_bps": pytest.approx(8 * 60001 / 0.4)}]


@pytest.mark.parametrize(("way", "rate"), [("Download", "down_bps"), ("Upload", "up_bps")])
def test_a_row_of_ndt7_tells_a_path(tmp_path: Path, way: str, rate: str) -> None:
    names = "id,a.CongestionControl,a.MeanThroughputMbps,a.MinRTT,a.LossRate,raw.ClientIP"
    info = f"raw.{way}.ServerMeasurements.TCPInfo"
    seen = read(
        tmp_path / "ndt7.csv", f"{names},{info}.MinRTT,{info}.RTT\nx,bbr,95.5,20.5,0.015,203.0.113.7,19,41000\n"
    )
    assert seen.source.kind == "ndt7"
    assert told(seen.users) == [
        USER | NETWORK | {"rtt_s": 0.0205, "max_rtt_s": 0.041, "loss": 0.015, rate: pytest.approx(95.5e6 * HEADERS)}
    ]
    assert seen.transfers.is_empty()
    assert seen.source.ignored == ("id", "a.CongestionControl", f"{info}.MinRTT")


def test_a_row_of_ndt7_without_the_test_s_own_round_trip_tells_the_kernel_s(tmp_path: Path) -> None:
    info = "raw.Download.ServerMeasurements.TCPInfo"
    seen = read(tmp_path / "ndt7.csv", f"a.MeanThroughputMbps,{info}.MinRTT,{info}.RTT\n4,52000,40000\n")
    # The last smoothed round trip is below the least one that was met: it cannot be the largest.
    assert told(seen.users) == [USER | {"rtt_s": 0.052, "max_rtt_s": 0.052, "down_bps": pytest.approx(4e6 * HEADERS)}]


def test_a_row_of_a_plain_table_tells_whatever_it_names(tmp_path: Path) -> None:
    row = {
        "connection": "a",
        "remote_addr": "203.0.113.7",
        "rtt_ms": 20.5,
        "max_rtt_us": 61000,
        "down_mbps": 95.5,
        "up_kbps": 870,
        "buffer_kb": 42,
        "loss_percent": 1.5,
        "weight": 2.5,
        "kib": 88,
        "delivered_bytes": 70001,
        "start_s": -3.5,
        "handshake_time_ms": 21,
        "first_byte_time_ms": 47,
        "completion_time_ms": 160,
        "segments_sent": 64,
        "retransmissions": 2,
        "timeouts": 1,
        "fast_retransmits": 3,
        "tail_loss_probes": 4,
        "first_flight_segments": 10,
        "first_flight_lost_segments": 5,
        "ecn_cwnd_reductions": 6,
        "initial_window_segments": 12,
        "object": 0,
        "completed": 1,
        "tls_bytes": 4100,
        "tls_exchanges": 2,
        "tls_answer_flight_segments": 7,
        "remark": "nothing",
    }
    seen = read(tmp_path / "table.csv", f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    same = (
        "delivered_bytes segments_sent retransmissions timeouts fast_retransmits tail_loss_probes "
        "first_flight_segments first_flight_lost_segments ecn_cwnd_reductions initial_window_segments object completed"
    )
    assert told(seen.transfers) == [
        RESPONSE
        | {name: row[name] for name in same.split()}
        | {"bytes": 90112, "start_s": 0.0, "handshake_time_s": 0.021, "first_byte_time_s": 0.047}
        | {"completion_time_s": 0.16}
    ]
    path = {"rtt_s": 0.0205, "max_rtt_s": 0.061, "down_bps": 95.5e6, "up_bps": 870e3, "loss": 0.015, "weight": 2.5}
    assert told(seen.users) == [
        USER | NETWORK | {name: pytest.approx(value) for name, value in path.items()} | {"buffer_bytes": 42000}
    ]
    assert told(seen.bounds) == [{"client": 0, "min_down_bps": pytest.approx(8 * 70001 / 0.16 * HEADERS)}]
    assert told(seen.handshakes) == [{"client": 0, "bytes": 4100, "exchanges": 2, "answer_flight_segments": 7}]
    assert (seen.source.ignored, seen.source.began_s) == (("remark",), -3.5)


@pytest.mark.parametrize(
    ("names", "values", "found"),
    [
        ("rtt_s,gb", "0.5,3", {"rtt_s": 0.5}),
        ("rtt_ns,mb", "25000000,3", {"rtt_s": 0.025, "bytes": 3_000_000}),
        ("rtt_us,mib", "25000,3", {"rtt_s": 0.025, "bytes": 3_145_728}),
        ("rtt_ms,kb,down_gbps", "30,3,0.25", {"rtt_s": 0.03, "bytes": 3000, "down_bps": 250e6}),
        ("rtt_ms,bytes,down_bps,buffer_ms", "30,7,8e6,250", {"down_bps": 8e6, "buffer_bytes": 250_000}),
        ("rtt_ms,bytes,loss,max_rtt_s", "30,7,0.25,0.5", {"loss": 0.25, "max_rtt_s": 0.5}),
        ("RTT [ms],Size (kB)", "30,7", {"rtt_s": 0.03, "bytes": 7000}),
        ("rtt_ms,response_size_mib", "30,2", {"bytes": 2_097_152}),
        ("tcpinfo_rtt,bytes_sent", "30000,7", {"rtt_s": 0.03, "bytes": 7}),
        ("sep=;\n\nrtt_ms;bytes", "30;7", {"rtt_s": 0.03, "bytes": 7}),
        ("min_rtt_ms,size_bytes,segs_out,retrans", "30,7,5,2", {"rtt_s": 0.03, "bytes": 7, "retransmissions": 2}),
    ],
)
def test_each_unit_of_a_plain_table_is_what_it_is_called(
    tmp_path: Path, names: str, values: str, found: dict[str, float]
) -> None:
    seen = read(tmp_path / "table.csv", f"{names}\n{values}\n")
    every = told(seen.users)[0] | (told(seen.transfers) or [{}])[0]
    assert {name: every[name] for name in found} == pytest.approx(found)


@pytest.mark.parametrize(
    "column",
    ["start_ms", "handshake_time_ms", "first_byte_time_ms", "completion_time_ms", "retransmissions", "completed"],
)
def test_a_column_of_responses_without_their_size_is_refused(tmp_path: Path, column: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"rtt_ms,{column}\n80,1\n")
    with pytest.raises(RequestError, match=f'column "{column}" is about responses, which need their size'):
        observe.read(path)


@pytest.mark.parametrize(("rtts", "asks"), [((0.02, 0.04, 90), False), ((20, 38, 90), True)])
def test_round_trips_that_their_unit_makes_far_too_long_are_doubted(
    tmp_path: Path, rtts: tuple[float, ...], asks: bool
) -> None:
    seen = read(tmp_path / "table.csv", "rtt_s\n" + "".join(f"{rtt}\n" for rtt in rtts))
    assert ("the median RTT is 38 s: name the column rtt_ms if it is in ms" in seen.source.notes) is asks


def test_speed_tests_out_of_all_bounds_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "ndt.csv"
    odd = ["1e300,20,0.1", "inf,20,0", "20,1e300,0", "20,inf,0", "20,30,1e300", "1e308,1e308,0", "-1,20,0", "nan,20,0"]
    path.write_text("\n".join(["a.MeanThroughputMbps,a.MinRTT,a.LossRate", *odd, "50,30,0.001", ""]))
    read = observe.read(path)
    assert read.users["rtt_s"].to_list() == [0.03]
    assert sum(problem.count for problem in read.problems) == len(odd)
