"""Captures, pcap and pcapng, read by the native module: connections and responses from the packets that were seen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from firstflight import _native
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import Parts, network_of

# Of pcap in microseconds, in nanoseconds and as Kuznetzov modified it, in both orders of bytes; of pcapng.
_PCAP = (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d", b"\xa1\xb2\xcd\x34")
_MAGIC = (*_PCAP, *(magic[::-1] for magic in _PCAP), b"\x0a\x0d\x0d\x0a")
_HTTPS = 443
# Taken from the native module at once.
_ROWS = 1 << 16
_UNKNOWN = 2**32 - 1


def recognizes(beginning: bytes) -> bool:
    """Whether a file begins as a capture does."""
    return beginning.startswith(_MAGIC)


def read(path: Path, problems: Problems) -> Parts:
    """The parts of a capture. RequestError for a file that is none."""
    connections, responses, handshakes = [], [], []
    room = Room(path)
    try:
        reader = _native.CaptureReader(path)
        while (tables := reader.read(_ROWS)) is not None:
            connections.append(_frame(tables["connections"]))
            responses.append(_frame(tables["responses"]))
            handshakes.append(_frame(tables["handshakes"]))
            room.add(connections[-1], responses[-1], handshakes[-1])
    except (ValueError, OSError) as error:
        raise RequestError(str(error)) from None
    for what, count, first in reader.problems():
        problems.add_counted(what, count, first, "byte")
    packets, segments = reader.counts()
    read = f"{counted(packets, 'packet')}, {segments:,} of them TCP's"
    if others := reader.others():
        read += f"; others: {', '.join(f'{count:,} of {name}' for name, count in others[:4])}"
    if not segments and any("encrypted" in name for name, _ in others):
        read += "; capture on the tunnel's own interface, where it is not encrypted"
    return _parts(pl.concat(connections), pl.concat(responses), pl.concat(handshakes), read)


def _frame(columns: dict[str, tuple[str, bytes]]) -> pl.DataFrame:
    arrays: dict[str, Any] = {name: np.frombuffer(content, dtype) for name, (dtype, content) in columns.items()}
    return pl.DataFrame(arrays).with_columns(pl.col(pl.Float64).fill_nan(None))


def _parts(connections: pl.DataFrame, responses: pl.DataFrame, handshakes: pl.DataFrame, read: str) -> Parts:
    if connections.is_empty():
        return Parts(notes=(f"no server sent data in its {read}",))
    # Numbers in the order of beginning, for those that have a row.
    connections = connections.sort("start_ns", "connection").with_row_index("client")
    answer_flight = pl.col("answer_flight_segments")
    numbers = connections.select("connection", "client", pl.when(answer_flight != _UNKNOWN).then(answer_flight))
    responses = responses.join(numbers, on="connection").sort("client", "object").drop("connection")
    counts = pl.col("first_flight_segments", "first_flight_lost_segments", "ecn_cwnd_reductions")
    responses = responses.with_columns(pl.when(counts != _UNKNOWN).then(counts).name.keep())
    # Of a capture of nothing but handshakes, the first connection's.
    began_ns: int = (connections if responses.is_empty() else responses)["start_ns"].min()  # type: ignore[assignment]
    # Integers, so that no digit of a time is lost.
    responses = responses.with_columns(start_s=(pl.col("start_ns") - began_ns) / 1e9)
    seen = pl.col("flight_bytes", "key_share_bytes")
    handshakes = handshakes.join(numbers, on="connection").sort("client").drop("connection")
    handshakes = handshakes.with_columns(
        pl.when(pl.col("resumed") < 2).then("resumed").alias("resumed"),
        pl.when(seen > 0).then(seen).name.keep(),
    )
    users = connections.with_columns(pl.col("subnet").rank("dense") - 1)
    networks = tuple(network_of(site) for site in connections["subnet"].unique().sort())
    queue = (pl.col("max_rtt_s") - pl.col("rtt_s")) * pl.col("down_bps") / 8
    bounds = users.select("client", "min_down_bps", min_buffer_bytes=queue)
    notes = (read, *_notes(connections, responses))
    began_s = began_ns / 1e9
    return Parts(responses, users, began_s, notes=notes, bounds=bounds, handshakes=handshakes, networks=networks)


def _notes(connections: pl.DataFrame, responses: pl.DataFrame) -> Iterator[str]:
    if at_client := int(connections["at_client"].sum()):
        every = counted(connections.height, "connection")
        yield f"{at_client:,} of {every} captured nearer to the client than to the server"
    if cut := int((connections["from_start"] == 0).sum()):
        yield f"{counted(cut, 'connection')} had begun before the capture: the first flight is not known"
    if tls := int(connections["tls"].sum()):
        yield (
            f"{counted(tls, 'connection')} with TLS: the handshake is no response, but the first flight is that of the "
            "handshake; sizes are those after encryption"
        )
    silent = connections.filter(pl.col("tls") == 1).join(responses, on="client", how="anti").height
    if silent:
        yield f"{silent:,} of these ended after the handshake without a response"
    if early := int(connections["early_data"].sum()):
        yield (
            f"{counted(early, 'connection')} asked before the handshake was over (0-RTT): the first response has the "
            "handshake in it"
        )
    if unseen := connections.filter(pl.col("server_port") == _HTTPS, pl.col("tls") == 0).height:
        yield (
            f"{counted(unseen, 'connection')} to port {_HTTPS} that do not start like TLS, or with packets cut too "
            "short to see it: if it is TLS, the handshake counts as the first response"
        )
