"""Packets of a simulation in capture files, read back by tshark, whose analysis is held against our own records."""

import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from firstflight.engines.simulate import capture, capture_packets, run_cell
from firstflight.errors import MachineError, RequestError
from firstflight.scenario import Cell, Scenario

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not here: apt-get install tshark")

SENT, RECEIVED = 0, 1
BARE_ACK = (pl.col("length") == 0) & (pl.col("flags") == 16)

LOSSY = """
name = "lossy"
duration = "60s"

[tcp]
profile = "rfc"
initial_window = 10

[network]
topology = "dumbbell"
bottleneck = { rate = "10Mbit", delay = "20ms", queue = "20p", loss = 0.01 }
left = { rate = "100Mbit", delay = "1ms", queue = "100p" }
right = { rate = "100Mbit", delay = "1ms", queue = "100p" }

[[application]]
name = "upload"
kind = "file_transfer"
direction = "upload"
size = "1MB"
count = 1
"""


WEB = (
    LOSSY[: LOSSY.index("[[application]]")].replace("lossy", "web")
    + """
[[application]]
name = "web"
kind = "web_page"
clients = 5
primary = { distribution = "lognormal", median = "4kB", sigma = 1.0 }
inline = "9kB"
think_time = "1s"
count = 4
"""
)

DELAY_NS = 20_000_000


@dataclass(frozen=True)
class Read:
    """tshark's output for a file: one row per frame, with whether it has each field and the values of some."""

    frames: pl.DataFrame

    def which(self, *fields: str) -> list[int]:
        """Numbers, from 0, of the frames with one of the fields."""
        named = pl.any_horizontal(pl.col(field) != "" for field in fields)
        return self.frames.select(pl.arg_where(named)).to_series().to_list()

    def numbers(self, field: str) -> list[int]:
        return [int(value or 0) for value in self.frames[field]]

    @property
    def times_ns(self) -> list[int]:
        """Times, digit by digit: as numbers they would lose some."""
        return [
            int(second) * 10**9 + int(rest) for second, rest in (t.split(".") for t in self.frames["frame.time_epoch"])
        ]


AGAIN = ("tcp.analysis.retransmission", "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission")
OUT_OF_ORDER = "tcp.analysis.out_of_order"
DUPLICATE = "tcp.analysis.duplicate_ack"
GAP = "tcp.analysis.lost_segment"
FIELDS = (
    *("frame.time_epoch", "tcp.stream", "tcp.srcport", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size", "tcp.flags"),
    *("_ws.malformed", "ip.checksum.status", "tcp.checksum.status", "ip.id", "frame.interface_name"),
    *("tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm", "ip.dsfield.ecn"),
    *("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"),
    *("tcp.options.sack.count", "tcp.options.sack_le", "tcp.options.sack_re"),
    *(*AGAIN, OUT_OF_ORDER, DUPLICATE, GAP, "tcp.analysis.zero_window"),
)


def read(path: Path) -> Read:
    options = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
    fields = [part for field in FIELDS for part in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", path, *options, "-T", "fields", "-E", "occurrence=f", *fields],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return Read(pl.DataFrame(rows, schema=list(FIELDS), orient="row"))


def at_end(segments: pl.DataFrame, from_server: int) -> pl.DataFrame:
    """The packets at the host of one endpoint: those sent and received, in order of time."""
    sends = (pl.col("event") == SENT) & (pl.col("from_server") == from_server)
    receives = (pl.col("event") == RECEIVED) & (pl.col("from_server") != from_server)
    return segments.filter(sends | receives)


def where(rows: pl.DataFrame, wanted: pl.Expr) -> list[int]:
    return rows.select(pl.arg_where(wanted)).to_series().to_list()


@needs_tshark
@pytest.mark.parametrize("ending", ["pcapng", "pcap"])
@pytest.mark.parametrize("at", ["client", "server"])
def test_a_capture_at_a_host_holds_every_segment_of_our_records_and_no_mistake(
    tmp_path: Path, ending: str, at: str
) -> None:
    path = tmp_path / f"x.{ending}"
    count = capture_packets(Scenario.from_toml(LOSSY), 1, path, at)
    found = read(path)
    ours = at_end(capture(Scenario.from_toml(LOSSY), 1)["segments"], int(at == "server"))
    assert found.frames.height == count == ours.height
    assert found.which("_ws.malformed") == []
    for status in ("ip.checksum.status", "tcp.checksum.status"):
        assert found.frames[status].unique().to_list() == ["1"]
    for field, column in (("tcp.seq", "seq"), ("tcp.ack", "ack"), ("tcp.len", "length")):
        assert found.numbers(field) == ours[column].to_list()
    assert found.numbers("tcp.window_size") == ours["window_bytes"].to_list()
    assert [int(flags, 16) for flags in found.frames["tcp.flags"]] == ours["flags"].to_list()
    assert found.times_ns == ours["time_ns"].to_list()


@needs_tshark
@pytest.mark.parametrize("recovery", ["reno", "new_reno", "tahoe"])
def test_at_the_sender_tshark_names_each_of_our_retransmissions_and_duplicate_acks(
    tmp_path: Path, recovery: str
) -> None:
    ours_alone = Scenario.from_toml(
        LOSSY.replace("initial_window = 10", f'initial_window = 10\nrecovery = "{recovery}"')
    )
    path = tmp_path / "x.pcapng"
    capture_packets(ours_alone, 1, path)
    found = read(path)
    ours = at_end(capture(ours_alone, 1)["segments"], 0)
    again = where(ours, (pl.col("event") == SENT) & (pl.col("length") > 0) & (pl.col("retransmission") == 1))
    assert len(again) > 20
    # tshark takes a retransmission that follows new data within a few milliseconds, or before the round trip of the
    # handshake is over, for reordering: only the timing could show it, and it guesses. It names the frame all the same.
    assert found.which(*AGAIN, OUT_OF_ORDER) == again
    # RFC 5681: bare, the same acknowledgment number and window as before, data outstanding. tshark asks for the same.
    same = pl.all_horizontal(pl.col(c) == pl.col(c).shift(1) for c in ("ack", "window_bytes"))
    acks = ours.with_row_index("frame").filter(pl.col("event") == RECEIVED).with_columns(same.alias("same"))
    duplicates = acks.filter(BARE_ACK & pl.col("same"))["frame"].to_list()
    assert len(duplicates) > 50
    assert found.which(DUPLICATE) == duplicates
    # Nothing was lost before the sender's own host.
    assert found.which(GAP) == []


@needs_tshark
def test_tshark_reads_every_option_as_our_records_have_it(tmp_path: Path) -> None:
    options = 'initial_window = 10\nsack = true\ntimestamps = true\necn = "on"'
    negotiated = Scenario.from_toml(LOSSY.replace("initial_window = 10", options))
    path = tmp_path / "x.pcapng"
    capture_packets(negotiated, 1, path)
    found = read(path)
    ours = at_end(capture(negotiated, 1)["segments"], 0)
    assert found.which("_ws.malformed") == []
    for field, column in (
        ("tcp.options.mss_val", "mss"),
        ("tcp.options.timestamp.tsval", "ts_value"),
        ("tcp.options.timestamp.tsecr", "ts_echo"),
        ("tcp.options.sack.count", "sack_count"),
        ("tcp.options.sack_le", "sack_left_0"),
        ("tcp.options.sack_re", "sack_right_0"),
        ("ip.dsfield.ecn", "ecn"),
    ):
        assert found.numbers(field) == ours[column].fill_null(0).to_list(), field
    assert found.which("tcp.options.sack_perm") == where(ours, pl.col("sack_permitted") == 1)
    assert found.which("tcp.options.wscale.shift") == where(ours, pl.col("window_scale").is_not_null())
    assert found.which("tcp.options.timestamp.tsval") == where(ours, pl.col("has_timestamps") == 1)
    assert ours["sack_count"].max() > 1
    again = where(ours, (pl.col("event") == SENT) & (pl.col("length") > 0) & (pl.col("retransmission") == 1))
    assert found.which(*AGAIN, OUT_OF_ORDER) == again


@needs_tshark
def test_at_the_receiver_tshark_sees_the_gaps_that_losses_leave_and_what_fills_them(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    capture_packets(Scenario.from_toml(LOSSY), 1, path, "server")
    found = read(path)
    arrived = (pl.col("event") == RECEIVED) & (pl.col("length") > 0)
    end = pl.when(arrived).then(pl.col("seq") + pl.col("length"))
    ours = at_end(capture(Scenario.from_toml(LOSSY), 1)["segments"], 1).with_columns(
        end.cum_max().shift(1).forward_fill().fill_null(1).alias("before")
    )
    # A retransmission whose first transmission was lost is known here by the later data that came before it, and one
    # that repairs the end of the sent data, with nothing behind it, is not known at all.
    assert found.which(*AGAIN, OUT_OF_ORDER) == where(ours, arrived & (pl.col("seq") < pl.col("before")))
    assert found.which(GAP) == where(ours, arrived & (pl.col("seq") > pl.col("before")))
    # Spurious is a retransmission below the highest acknowledgment number that this host has sent: it needed none of
    # it.
    acked = pl.when(pl.col("event") == SENT).then(pl.col("ack")).cum_max().shift(1).forward_fill().fill_null(1)
    needless = arrived & (pl.col("seq") + pl.col("length") <= acked)
    assert found.which(AGAIN[2]) == where(ours, needless)
    assert len(found.which(AGAIN[2])) > 5


@needs_tshark
@pytest.mark.parametrize("link", ["bottleneck", "bottleneck.reverse"])
def test_a_capture_on_a_link_holds_what_its_far_end_sees(tmp_path: Path, link: str) -> None:
    path = tmp_path / "x.pcapng"
    capture_packets(Scenario.from_toml(LOSSY), 1, path, link=link)
    found = read(path)
    crossings = capture(Scenario.from_toml(LOSSY), 1)["crossings"].with_columns(pl.col("link").cast(pl.String))
    back = link.removesuffix(".reverse") if link.endswith(".reverse") else f"{link}.reverse"
    # Packets from the link are seen when they have arrived; packets in the other direction when they have departed,
    # lost on the way or not.
    arrived = crossings.filter((pl.col("link") == link) & (pl.col("event") == RECEIVED))
    left = crossings.filter((pl.col("link") == back) & (pl.col("event") != 2))
    expected = pl.concat([arrived.with_columns(pl.col("end_ns") + DELAY_NS), left]).sort("end_ns", maintain_order=True)
    assert left.filter(pl.col("event") == 3).height > 0
    assert sorted(zip(found.frames["frame.interface_name"], found.times_ns, strict=True)) == sorted(
        expected.select("link", "end_ns").rows()
    )
    assert found.which("_ws.malformed") == []


@needs_tshark
def test_connections_are_told_apart_by_their_ports_and_all_of_a_hosts_are_there(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    capture_packets(Scenario.from_toml(WEB), 3, path)
    found = read(path)
    tables = capture(Scenario.from_toml(WEB), 3)
    connections = tables["segments"]["connection"].n_unique()
    assert connections > 40
    assert found.frames["tcp.stream"].n_unique() == connections
    assert found.which("_ws.malformed") == []
    assert found.frames["tcp.checksum.status"].unique().to_list() == ["1"]


CALLS = (
    LOSSY[: LOSSY.index("[[application]]")].replace("lossy", "calls").replace('"60s"', '"20s"')
    + """
[[application]]
kind = "voice"
name = "call"

[[application]]
kind = "constant_rate"
name = "film"
rate = "9Mbit"
payload = "1000B"

[[application]]
kind = "file_transfer"
name = "file"
size = "100kB"
"""
)


@needs_tshark
def test_datagrams_are_udp_and_calls_rtp_whose_losses_and_jitter_tshark_measures_as_we_do(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    count = capture_packets(Scenario.from_toml(CALLS), 1, path)
    fields = ["ip.len", "udp.port", "udp.checksum.status", "_ws.malformed", "rtp.seq", "rtp.p_type", "tcp.len"]
    options = ["-d", "udp.port==5004,rtp", "-o", "udp.check_checksum:TRUE"]
    tshark = ["tshark", "-r", str(path), *options]
    asked = [part for field in fields for part in ("-e", field)]
    done = subprocess.run([*tshark, "-T", "fields", *asked], capture_output=True, text=True, check=True)
    frames = pl.DataFrame([line.split("\t") for line in done.stdout.splitlines()], schema=fields, orient="row")
    assert frames.height == count
    assert (frames["_ws.malformed"] == "").all()
    datagrams = frames.filter(pl.col("udp.port") != "")
    assert datagrams["udp.checksum.status"].unique().to_list() == ["1"]
    assert 0 < frames.filter(pl.col("tcp.len") != "").height == count - datagrams.height
    calls = datagrams.filter(pl.col("rtp.seq") != "")
    # 160 bytes of G.711, 12 of RTP, 8 of UDP, 20 of IP; PCMU is type 0.
    assert calls["ip.len"].unique().to_list() == ["200"]
    assert calls["rtp.p_type"].unique().to_list() == ["0"]
    films = datagrams.filter(pl.col("rtp.seq") == "")
    assert films["ip.len"].unique().to_list() == ["1028"]
    streams = run_cell(Cell({}, Scenario.from_toml(CALLS)), 1, 1)["streams"].with_columns(
        pl.col("application").cast(str)
    )
    mine = {(row["application"], row["from_server"]): row for row in streams.to_dicts()}
    assert films.height == mine["film", 1]["packets_received"]
    assert calls.height == mine["call", 1]["packets_received"] + mine["call", 0]["packets_sent"]
    # Wireshark computes RFC 3550's jitter from the timestamps of RTP and the times of the capture.
    report = subprocess.run([*tshark, "-q", "-z", "rtp,streams"], capture_output=True, text=True, check=True).stdout
    line = next(line.split() for line in report.splitlines() if line.split()[2:3] == ["10.0.0.2"])
    names = ("packets", "lost", "mean_jitter_ms", "max_jitter_ms")
    found = dict(zip(names, (float(line[place]) for place in (8, 9, 15, 16)), strict=True))
    ours = mine["call", 1]
    assert (found["packets"], found["lost"]) == (ours["packets_received"], ours["packets_lost"])
    assert ours["packets_lost"] > 20
    # It prints microseconds, and its mean leaves the first packet out, whose jitter is 0.
    of_all = (ours["packets_received"] - 1) / ours["packets_received"]
    assert found["mean_jitter_ms"] * of_all == pytest.approx(1e3 * ours["jitter_mean_s"], abs=0.001)
    assert found["max_jitter_ms"] == pytest.approx(1e3 * ours["jitter_max_s"], abs=0.001)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.pcapng" for name in "abc"]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        capture_packets(Scenario.from_toml(LOSSY), seed, path)
    first, second, third = (path.read_bytes() for path in paths)
    assert first == second != third


def test_a_link_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r'there is no link "botleneck" in this network; it has "bottleneck", "bott'):
        capture_packets(Scenario.from_toml(LOSSY), 1, tmp_path / "x.pcap", link="botleneck")
    assert not list(tmp_path.iterdir())


def test_a_segment_too_large_for_ip_is_one_sentence_and_no_file(tmp_path: Path) -> None:
    huge = LOSSY.replace("initial_window = 10", 'initial_window = 10\nmss = "65510B"').replace("20p", "200p")
    with pytest.raises(RequestError, match="a packet of 65550 bytes does not fit into the Internet Protocol"):
        capture_packets(Scenario.from_toml(huge), 1, tmp_path / "x.pcap")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    path.write_text("earlier")
    # A limit on the size of files stands in for a disk without space.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(
            MachineError, match=r"there is no space left for .*x.pcapng: nothing was written; make room"
        ):
            capture_packets(Scenario.from_toml(LOSSY), 1, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "earlier"
    assert [left.name for left in tmp_path.iterdir()] == ["x.pcapng"]
