"""The rows of the connection that is drawn, separated by sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

SENT, RECEIVED, DROPPED, LOST = range(4)
"""`event` of the records' table `segments`."""

SYN, ACK = 2, 16
CONGESTION_EXPERIENCED = 3


@dataclass(frozen=True)
class Connection:
    """One connection as the end sees it that sends most data.

    `rows` is the records' table `segments` in the order of time, with `time_s`, `is_data_way`: whether the segment was
    sent by that end, and `is_tls`: whether it carries data of the TLS handshake. `marks` are those of a trace.
    """

    replicate: int
    number: int
    from_server: int
    rows: pl.DataFrame
    marks: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def busiest(cls, segments: pl.DataFrame, marks: Mapping[str, float] | None = None) -> Connection:
        """The connection with most data, but for TLS handshakes where there are others. ValueError without data."""
        place = ["replicate", "connection"]
        if "is_tls" not in segments.columns:
            segments = segments.with_columns(pl.lit(False).alias("is_tls"))
        sent = (
            segments.filter((pl.col("event") == SENT) & (pl.col("length") > 0))
            .group_by([*place, "from_server"])
            .agg(pl.col("length").filter(~pl.col("is_tls")).sum().alias("data"), pl.col("length").sum())
            .sort("data", "length", *place, descending=[True, True, False, False])
        )
        if sent.is_empty():
            raise ValueError("there is nothing to draw: no data segment was sent")
        replicate, number, from_server, *_ = sent.row(0)
        rows = (
            segments.filter((pl.col("replicate") == replicate) & (pl.col("connection") == number))
            .sort("time_ns", maintain_order=True)
            .with_columns(
                (pl.col("time_ns") / 1e9).alias("time_s"), (pl.col("from_server") == from_server).alias("is_data_way")
            )
        )
        return cls(replicate, number, from_server, rows, marks or {})

    @property
    def span(self) -> tuple[float, float]:
        """Start and end of the plot, in seconds.

        From the start of the run, so that plots of several initial windows can be compared, unless the
        connection begins late in it.
        """
        first, last = float(self.rows["time_s"][0]), float(self.rows["time_s"][-1])
        return (0.0 if first < (last - first) / 4 else first), last

    @property
    def opening(self) -> pl.DataFrame:
        """`time_s`, `until_s` and `what`: the spans before the first data segment, of handshakes and request.

        Empty where the connection began before its first row; no request where the data's sender opened it.
        """
        syn = pl.col("flags") & SYN != 0
        sent = self.rows.filter(syn & (pl.col("event") == SENT))["time_s"].min()
        answered = self.rows.filter(syn & (pl.col("flags") & ACK != 0) & (pl.col("event") == RECEIVED))["time_s"].min()
        first = self.data_sent.filter(~pl.col("is_tls"))["time_s"].min()
        schema = {"time_s": pl.Float64, "until_s": pl.Float64, "what": pl.String}
        if sent is None or answered is None or first is None:
            return pl.DataFrame(schema=schema)
        times, names = [sent, answered], ["handshake"]
        if (secured := self.marks.get("TLS handshake")) is not None:
            # Early data and their response precede its end.
            times.append(min(secured, first))
            names.append("TLS handshake")
        if not self.rows.filter(syn)["is_data_way"][0]:
            times.append(first)
            names.append("request")
        spans = zip(times, times[1:], names, strict=False)
        return pl.DataFrame(list(spans), schema=schema, orient="row").filter(pl.col("until_s") > pl.col("time_s"))

    @property
    def data(self) -> pl.DataFrame:
        """Data segments, sent, received or lost by the network."""
        return self.rows.filter(pl.col("is_data_way") & (pl.col("length") > 0))

    @property
    def data_sent(self) -> pl.DataFrame:
        """Data segments as they were sent."""
        return self.data.filter(pl.col("event") == SENT)

    @property
    def acks(self) -> pl.DataFrame:
        """Acknowledgments as they reached the sender of the data, with `is_duplicate`.

        A duplicate, as RFC 5681 section 2 defines it: no data, no SYN or FIN, the highest acknowledgment number so far
        and the window of the one before, while data is outstanding.
        """
        outstanding = pl.col("highest_sent") > pl.col("ack")
        same = (pl.col("ack") == pl.col("ack").shift(1).cum_max()) & (
            pl.col("window_bytes") == pl.col("window_bytes").shift(1)
        )
        bare = (pl.col("length") == 0) & (pl.col("flags") & 3 == 0)
        end = pl.when(pl.col("is_data_way") & (pl.col("event") == SENT)).then(pl.col("seq") + pl.col("length"))
        return (
            self.rows.with_columns(end.cum_max().forward_fill().fill_null(0).alias("highest_sent"))
            .filter(~pl.col("is_data_way") & (pl.col("event") == RECEIVED) & (pl.col("flags") & ACK != 0))
            .with_columns((bare & same & outstanding).fill_null(False).alias("is_duplicate"))
        )

    @property
    def own(self) -> pl.DataFrame:
        """The data's sender: its segments, and those that it received."""
        return self.rows.filter(
            (pl.col("is_data_way") & (pl.col("event") == SENT))
            | (~pl.col("is_data_way") & (pl.col("event") == RECEIVED))
        )
