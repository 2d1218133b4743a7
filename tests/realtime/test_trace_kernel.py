"""`firstflight trace --engine emulate`: one transfer over the kernel, segment by segment."""

from pathlib import Path

import polars as pl
import pytest

import firstflight
import testbeds
from firstflight.errors import RequestError

DOWNLOAD = Path(__file__).parents[2] / "examples" / "download.toml"
SIZE = 100_000


@pytest.fixture(autouse=True)
def _machine_makes_testbeds() -> None:
    if refused := testbeds.refusal():
        pytest.skip(refused)


def test_a_transfer_over_the_kernel_has_the_simulators_first_flight_and_packets_of_each_place(tmp_path: Path) -> None:
    scenario = firstflight.load_scenario(DOWNLOAD).replace("tcp.initial_window", 7)
    traces = [firstflight.trace(scenario, label=engine, engine=engine) for engine in ("simulate", "emulate")]
    flights = []
    for trace in traces:
        rows = trace.segments.with_columns(pl.col("time_s").cast(pl.Float64))
        to_client = pl.col("direction") == "to_client"
        sent = rows.filter((pl.col("event") == "sent") & to_client & (pl.col("length") > 0))
        acks = rows.filter((pl.col("event") == "received") & ~to_client & (pl.col("ack") > 1))
        flights.append(sent.filter(pl.col("time_s") < acks["time_s"][0]).select("seq", "length").rows())
        # A handshake and the way of the request, 20 ms each way.
        assert sent["time_s"][0] > 0.06
        assert sent["length"].sum() >= SIZE
    assert flights[0] == flights[1]
    assert len(flights[0]) == 7
    kernel = traces[1]
    there, back = (kernel.pcap(tmp_path / "link.pcapng", link=f"links[0]{way}") for way in ("", ".reverse"))
    # Nothing is lost: both ends of the cable see each packet.
    assert there == back == kernel.pcap(tmp_path / "server.pcapng", at="server") == kernel.pcap(tmp_path / "c.pcapng")
    assert firstflight.observe.read(tmp_path / "link.pcapng").transfers["first_flight_segments"].to_list() == [7]
    traces[0].plot(tmp_path / "both.svg", kernel)
    assert "emulate: complete after" in (tmp_path / "both.svg").read_text()
    with pytest.raises(RequestError, match=r'no link "hub" in this network; it has links\[0\], links\[0\]\.reverse'):
        kernel.pcap(tmp_path / "x.pcapng", link="hub")
    with pytest.raises(RequestError, match=r"packets of the kernel are written as \.pcapng"):
        kernel.pcap(tmp_path / "x.pcap")


@pytest.mark.parametrize("ends", ["tcp", "application.download.client_tcp", "application.download.server_tcp"])
def test_both_directions_are_captured_at_a_host_with_our_tcp(tmp_path: Path, ends: str) -> None:
    scenario = firstflight.load_scenario(DOWNLOAD).replace(f"{ends}.stack", "firstflight")
    trace = firstflight.trace(scenario, engine="emulate")
    there, back = (trace.pcap(tmp_path / "link.pcapng", link=f"links[0]{way}") for way in ("", ".reverse"))
    for end in ("server", "client"):
        # Nothing is lost, so each end of the cable sees all packets of both directions.
        assert trace.pcap(tmp_path / f"{end}.pcapng", at=end) == there == back
        found = firstflight.observe.read(tmp_path / f"{end}.pcapng").transfers
        assert (found["bytes"].item(), found["first_flight_segments"].item()) == (SIZE + 240, 10)


def test_the_flight_of_a_tls_handshake_over_the_kernel_is_labeled_and_marked() -> None:
    scenario = firstflight.load_scenario(DOWNLOAD.with_name("handshake.toml"))
    trace = firstflight.trace(scenario, engine="emulate")
    sent = trace.segments.filter(pl.col("event") == "sent", pl.col("direction") == "to_client", pl.col("length") > 0)
    # ML-DSA-65 with two intermediates: its flight is padded to the byte, and behind it are tickets and response.
    assert sent.filter(pl.col("handshake") == "tls")["length"].sum() == 21_234
    assert sent["handshake"].drop_nulls().to_list() == sent["handshake"].head(sent["handshake"].count()).to_list()
    marks = ["TCP handshake", "TLS handshake", "first byte", "first usable byte", "last byte"]
    assert list(trace.marks) == marks
    assert ", ".join(trace.segments["mark"].drop_nulls()) == ", ".join(marks)
