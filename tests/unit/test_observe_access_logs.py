"""Common access logs: recognized, used for sizes and times, with advice on how to log RTTs."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from firstflight import observe
from firstflight.advise import advise
from firstflight.advise.assume import parse, with_paths
from firstflight.advise.fit import fit
from firstflight.errors import RequestError
from firstflight.observe import access_log, lines
from firstflight.observe.room import Room

COMBINED = '203.0.113.{i} - - [22/Nov/2026:10:00:00 +0000] "GET /a{{b}} HTTP/1.1" 200 {size} "-" "curl/8 \\"x\\""'
LOGS = {
    "common or combined log": COMBINED,
    "common or combined log, common": '2001:db8::{i} - bob [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 {size}',
    "common or combined log, time": COMBINED + " 1.250",
    "HAProxy HTTP log": (
        "Nov 22 10:00:00 lb haproxy[14389]: 203.0.113.{i}:{size} [22/Nov/2026:10:00:00.655] http-in static/srv1 "
        '10/0/30/69/1250 200 {size} - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "GET /index.html HTTP/1.1"'
    ),
    "Envoy or Istio access log": (
        '[2026-11-22T10:00:00.310Z] "POST /api/v1 HTTP/2" 200 - 154 {size} 1250 100 "10.0.35.{i}" "nsq2http" '
        '"cc21d9b0" "locations" "tcp://10.0.2.1:80"'
    ),
    "W3C extended log (IIS)": "2026-11-22 10:00:00 203.0.113.{i} /a 200 {size} 1250",
    "CloudFront standard log": "2026-11-22\t10:00:00\tLHR62\t{size}\t203.0.113.{i}\tGET\t1.250",
    "JSON lines": '{{"ts": "x", "remote_addr": "203.0.113.{i}", "body_bytes_sent": "{size}", "request_time": "1.250"}}',
    "JSON lines, nested": (
        '{{"http": {{"bytes_sent": {size}, "client_ip": "203.0.113.{i}"}}, "transferTimeMSec": 1250}}'
    ),
}
HEADS = {
    "W3C extended log (IIS)": "#Software: IIS\n#Fields: date time c-ip cs-uri sc-status sc-bytes time-taken\n",
    "CloudFront standard log": "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method time-taken\n",
}


def written(path: Path, name: str, lines: int = 500, size: int = 9000) -> Path:
    rows = "\n".join(LOGS[name].format(i=i % 200, size=size + i) for i in range(lines))
    path.write_text(f"{HEADS.get(name, '')}{rows}\n")
    return path


@pytest.mark.parametrize("name", LOGS)
def test_sizes_and_networks_are_read_and_the_line_for_round_trips_is_told(tmp_path: Path, name: str) -> None:
    seen = observe.read(written(tmp_path / "access.log", name))
    assert seen.source.kind == "log"
    assert seen.source.form.startswith(name.split(",")[0])
    assert seen.transfers["bytes"].to_list() == list(range(9000, 9500))
    assert seen.users["subnet"].n_unique() in (1, 2)
    assert seen.users["rtt_s"].null_count() == 500
    assert "to log it" in seen.source.notes[1]
    assert seen.problems == ()


@pytest.mark.parametrize("name", [name for name in LOGS if name[-3:] not in ("log", "mon")])
def test_times_bound_the_lines_where_the_kernel_held_little_of_the_response(tmp_path: Path, name: str) -> None:
    seen = observe.read(written(tmp_path / "access.log", name, size=2 * (4 << 20)))
    # 4 MiB in 1.25 s, and headers.
    assert seen.bounds["min_down_bps"][0] == pytest.approx(8 * (4 << 20) / 1.25 * 1500 / 1448, rel=1e-6)


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (
            "PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS",
            "22604 nginx: wor 100.66.3.172    443   203.0.113.{i}     50001 {kib} 1 1250.38",
        ),
        (
            "TIME,PID,COMM,IP,LADDR,LPORT,RADDR,RPORT,TX_KB,RX_KB,MS",
            "10:00:00,2,nginx,6,2001:db8::1,443,::{i},5,{kib},1,1.38",
        ),
    ],
)
def test_tcplife_tells_the_kibibytes_of_connections(tmp_path: Path, head: str, line: str) -> None:
    path = tmp_path / "tcplife.txt"
    rows = [line.format(i=i, kib=i % 40) for i in range(200)]
    path.write_text("\n".join([head, *rows]) + "\n")
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [1024 * (i % 40) for i in range(200) if i % 40]
    assert seen.users["subnet"].unique().to_list() == [0]
    assert {problem.what: problem.count for problem in seen.problems} == {
        "not of the log format": 1,
        "without a size": 5,
    }


def test_round_trips_in_json_lines_are_used(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text('{"bytes_sent": 9000, "tcpinfo_rtt": "20500", "request_time": "0.001"}\n' * 20)
    assert observe.read(path).users["rtt_s"].to_list() == pytest.approx([0.0205] * 20)


def test_a_log_without_round_trips_is_refused_with_both_ways_out(tmp_path: Path) -> None:
    flows = written(tmp_path / "access.log", "common or combined log")
    with pytest.raises(RequestError, match=r"has no RTTs; assume them.*paths=uk-2023.*tcpinfo_rtt"):
        advise(flows, out=tmp_path / "out")


def test_paths_that_are_assumed_are_told_and_never_shown_as_seen(tmp_path: Path) -> None:
    seen = observe.read(written(tmp_path / "access.log", "common or combined log"))
    given = parse(["paths=uk-2023+30ms"])
    found = fit(with_paths(seen, given, 1), 10_000, 1)
    assert found.rows["rtt_s"].min() > 0.03  # type: ignore[operator]
    assert found.rows["down_bps"].null_count() == 0
    assert "--assume paths=uk-2023+30ms" in given.texts[0]
    assert fit(with_paths(seen, parse(["rtt=50ms"]), 1), 10_000, 1).rows["rtt_s"].to_list() == [0.05] * 500


def test_paths_of_flows_that_tell_them_cannot_be_assumed(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,bytes\n20,9000\n")
    with pytest.raises(RequestError, match="has RTTs, which are used"):
        with_paths(observe.read(path), parse(["rtt=50ms"]), 1)


def test_iis_without_sizes_says_which_field_to_log(tmp_path: Path) -> None:
    path = tmp_path / "ex.log"
    path.write_text("#Fields: date time c-ip time-taken\n2026-11-22 10:00:00 203.0.113.1 15\n")
    with pytest.raises(RequestError, match="lacks sc-bytes"):
        observe.read(path)


@pytest.mark.parametrize("name", ["common or combined log", "JSON lines"])
def test_rows_kept_do_not_grow_with_the_log_and_are_a_uniform_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    held: list[int] = []
    keep = Room.keep_only

    def counted(room: Room, *frames: pl.DataFrame) -> None:
        held.append(sum(frame.height for frame in frames))
        keep(room, *frames)

    monkeypatch.setattr(access_log, "MOST_ROWS", 1000)
    monkeypatch.setattr(access_log, "pieces", partial(lines.pieces, size=1 << 14))
    monkeypatch.setattr(Room, "keep_only", counted)
    for count in (900, 4_000, 12_000):
        held.clear()
        seen = observe.read(written(tmp_path / "access.log", name, lines=count, size=0))
        sizes = seen.transfers["bytes"]
        if count < 1000:
            assert sizes.to_list() == list(range(count))
            continue
        assert len(held) > 10
        assert max(held) <= 1000
        assert 400 <= sizes.len() == seen.users.height
        assert sizes.is_sorted()
        # Of a uniform sample of 400, the median is within five standard errors.
        assert abs(sizes.median() / count - 0.5) < 5 * 0.5 / 20  # type: ignore[operator]
        assert f"{count:,} responses read, of which a random sample of {sizes.len()} is kept" in seen.source.notes
        assert observe.read(tmp_path / "access.log").transfers.equals(seen.transfers)


@pytest.mark.parametrize(
    "line",
    [
        '203.0.113.{i} - - [22/Nov/2026:10:00:{i:02} +0100] "GET / HTTP/1.1" 200 9000',
        '{{"time": "2026-11-22T09:00:{i:02}Z", "client_ip": "203.0.113.{i}", "bytes": 9000}}',
        '{{"@timestamp": "2026-11-22T10:00:{i:02}.000+01:00", "bytes": 9000}}',
    ],
)
def test_times_of_lines_are_read(tmp_path: Path, line: str) -> None:
    log = tmp_path / "access.log"
    log.write_text("\n".join(line.format(i=i) for i in range(5, 60)) + "\n")
    seen = observe.read(log)
    assert seen.source.began_s == datetime(2026, 11, 22, 9, 0, 5, tzinfo=UTC).timestamp()
    assert seen.transfers["start_s"].to_list() == list(range(55))
