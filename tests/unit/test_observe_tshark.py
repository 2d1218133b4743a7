"""Captures read by us and by tshark, whose tcp.analysis is an account of the same packets that is not ours."""

import io
import shutil
import subprocess

import polars as pl
import pytest

from bench.captures import write_capture
from firstflight import observe
from flows import EXAMPLES

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not here: apt-get install tshark")

FIELDS = (
    "tcp.stream",
    "tcp.srcport",
    "tcp.seq",
    "tcp.len",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
)


def by_tshark(path, port):
    """One row per connection, in the order of their beginning."""
    fields = [part for field in FIELDS for part in ("-e", field)]
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "header=y", "-E", "separator=,", *fields]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    packets = pl.read_csv(io.StringIO(printed), infer_schema=False)
    from_server = pl.col("tcp.srcport") == str(port)
    # Segments that it takes for reordered were lost: the link box never changes the order.
    again = pl.any_horizontal(pl.col("tcp.analysis.retransmission", "tcp.analysis.out_of_order").is_not_null())
    sequence, length = pl.col("tcp.seq").cast(pl.Int64), pl.col("tcp.len").cast(pl.Int64)
    return (
        packets.group_by(pl.col("tcp.stream").cast(pl.Int64), maintain_order=True)
        .agg(
            initial_rtt_s=pl.col("tcp.analysis.initial_rtt").cast(pl.Float64).max(),
            # Relative, and the SYN has the first number.
            bytes=(sequence + length).filter(from_server & (length > 0)).max() - 1,
            segments_sent=(from_server & (length > 0)).sum(),
            retransmissions=(from_server & again & (length > 0)).sum(),
            most_ack_rtt_s=pl.col("tcp.analysis.ack_rtt").filter(~from_server).cast(pl.Float64).max(),
        )
        .sort("tcp.stream")
    )


def by_us(path):
    seen = observe.read(path)
    # Over TLS the handshake has a separate row.
    columns = ("client", "bytes", "segments_sent", "retransmissions", "handshake_time_s")
    sums = (
        pl.concat([seen.transfers.select(columns), seen.handshakes.select(columns)])
        .group_by("client")
        .agg(
            pl.col("bytes", "segments_sent", "retransmissions").sum().cast(pl.Int64),
            pl.col("handshake_time_s").max(),
        )
    )
    return seen.users.join(sums, on="client").sort("client")


@needs_tshark
@pytest.mark.parametrize("name", ["server.pcapng", "clients.pcapng"])
def test_tshark_sees_the_same_bytes_segments_retransmissions_and_round_trips(name):
    ours, theirs = by_us(EXAMPLES / name), by_tshark(EXAMPLES / name, 8080)

    assert ours["bytes"].to_list() == theirs["bytes"].to_list()
    assert ours["segments_sent"].to_list() == theirs["segments_sent"].to_list()
    assert ours["handshake_time_s"].to_list() == pytest.approx(theirs["initial_rtt_s"].to_list(), abs=1e-6)
    assert ours["retransmissions"].to_list() == theirs["retransmissions"].to_list()
    if name == "server.pcapng":
        # Ours leaves out the time that a client may have held back, and adds the way to the server, which is nothing
        # here.
        assert ((ours["max_rtt_s"] - theirs["most_ack_rtt_s"]) < 0.001).all()


@needs_tshark
def test_tshark_sees_the_same_over_https_where_handshakes_and_responses_are_added_up():
    ours, theirs = by_us(EXAMPLES / "https.pcapng"), by_tshark(EXAMPLES / "https.pcapng", 8443)

    # The alert with which the server closes is neither: 24 bytes in TLS 1.3, 31 in 1.2, in a separate segment.
    alerts = [theirs_ - ours_ for ours_, theirs_ in zip(ours["bytes"], theirs["bytes"], strict=True)]
    assert set(alerts) <= {0, 24, 31}
    segments = [total - (alert > 0) for total, alert in zip(theirs["segments_sent"], alerts, strict=True)]
    assert ours["segments_sent"].to_list() == segments
    assert ours["retransmissions"].to_list() == theirs["retransmissions"].to_list()
    assert ours["handshake_time_s"].to_list() == pytest.approx(theirs["initial_rtt_s"].to_list(), abs=1e-6)


@needs_tshark
def test_tshark_sees_the_same_in_a_capture_that_is_cut_to_96_bytes(tmp_path):
    path = tmp_path / "cut.pcap"
    connections = write_capture(path, 100, 96)

    ours, theirs = by_us(path), by_tshark(path, 443)

    assert ours.height == theirs.height == connections
    assert ours["bytes"].to_list() == theirs["bytes"].to_list()
    assert ours["segments_sent"].to_list() == theirs["segments_sent"].to_list()
    assert ours["rtt_s"].to_list() == pytest.approx([0.04] * connections, abs=1e-6)
