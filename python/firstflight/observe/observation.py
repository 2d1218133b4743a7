"""The data that was read: the records' own tables, values that the format lacks, and unreadable input."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from firstflight.observe.problem import Problem

TLS = {
    "tls_bytes": "bytes",
    "tls_exchanges": "exchanges",
    "tls_answer_flight_segments": "answer_flight_segments",
    "tls_flight_bytes": "flight_bytes",
    "tls_time_s": "time_s",
    "tls_resumed": "resumed",
    "tls_client_hello_bytes": "client_hello_bytes",
    "tls_key_share_bytes": "key_share_bytes",
}
"""Names in a plain table for columns of `Observation.handshakes`."""


@dataclass(frozen=True)
class TrafficSource:
    """The origin of observed traffic. `kind`: one of `KINDS`; `began_s`: Unix time of `start_s` = 0, None if the file
    has no times; `ignored`: unused columns; `notes`: assumptions; `form`: the format in words; `lines_apart`: the log
    does not show the responses of a connection, so each counts as a connection; `networks`: the network of each subnet
    by its number, if addresses are known.
    """

    path: Path
    kind: str
    began_s: float | None
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    form: str
    lines_apart: bool = False
    networks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """Observed traffic. `transfers`: one row per response, application "observed". `users`: one row per connection;
    `client` is its number in both. Values that the format lacks are null. `bounds`: lower bounds of the path for some
    connections: `client`, `min_down_bps` (mean rate during a response, with headers), `min_buffer_bytes` (the largest
    queue observed), `min_completion_time_s` (logged time of a first response above 256 KiB, until the kernel had its
    last byte); null if unknown. `handshakes`: one row per connection with a TLS handshake: `client`, `version` (13; 12
    for TLS 1.2 and older; 0 if unknown), `bytes` from the server before its first response, `segments_sent`,
    `retransmissions`, `exchanges` (waits of the client before its request), `answer_flight_segments` (data segments
    before the first ACK of the first response, with session tickets in flight), `handshake_time_s` (TCP, from SYN),
    `flight_bytes` (the server's longest flight, without tickets), `time_s` (of the TLS handshake), `resumed` (1 if
    resumed), `client_hello_bytes`, `key_share_bytes` (of the client). `problems`: skipped rows.
    """

    transfers: pl.DataFrame
    users: pl.DataFrame
    bounds: pl.DataFrame
    handshakes: pl.DataFrame
    problems: tuple[Problem, ...]
    source: TrafficSource

    def unknown(self) -> dict[str, list[str]]:
        """Columns of each table that are null in all rows."""
        tables = {"transfers": self.transfers, "users": self.users}
        return {
            name: [column for column in frame.columns if frame[column].null_count() == frame.height]
            for name, frame in tables.items()
        }

    def flat(self) -> pl.DataFrame:
        """One row per response with its connection's path, as `read` accepts it as a table, without columns that are
        null. A connection without a response has one row with null values of the response.
        """
        paths = self.users.drop("replicate", "row")
        facts = self.transfers.drop("replicate", "application", "page", "connection", "disturbed", "stall_s")
        tls = self.handshakes.select("client", *(pl.col(column).alias(name) for name, column in TLS.items()))
        frame = (
            paths.join(facts, on="client", how="left", maintain_order="left")
            .join(tls, on="client", how="left", maintain_order="left")
            .rename({"client": "connection"})
        )
        return frame.select(name for name in frame.columns if frame[name].null_count() < frame.height)
