"""Users with their bandwidths, and their responses; rounds and transmission times from the captured segments."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import xarray as xr

from firstflight.records import Run

REFERENCE = Path(__file__).parent / "reference"
FEW, MANY = 3, 10
TEN = 10
ROUND_TRIP_MS = 70
PACKET_BYTES = 1500
RESPONSE = ("rate_kbps", "request", "replicate")
"""The dimensions that identify a response."""
_SENT, _RECEIVED = 0, 1


def rates_kbps(users: int) -> list[float]:
    """Bandwidths of this number of users, slowest first: user i at the quantile (i + 1/2) / users of SlowDC.

    Between the points of `reference/slowdc_bandwidth.csv` the logarithm of the rate goes in a straight line.
    """
    points = pl.read_csv((REFERENCE / "slowdc_bandwidth.csv").read_bytes(), schema_overrides={"rate_kbps": pl.Float64})
    shares, logs = points["cumulative_probability"], points["rate_kbps"].log()
    rates = np.exp(np.interp((np.arange(users) + 0.5) / users, shares, logs))
    # Whole bits a second, as a scenario writes them.
    return [round(1000 * float(rate)) / 1000 for rate in rates]


RATES_KBPS = rates_kbps(48)
EDGES_KBPS = (
    pl.read_csv((REFERENCE / "bandwidth_buckets.csv").read_bytes())["upper_edge_kbps"].cast(pl.Float64).to_list()
)
"""Upper edges of the source's bandwidth buckets; the last is infinite."""


def bucket(rate_kbps: float) -> str:
    """The label of a rate's bucket in the source's figure: by its upper edge, kbit/s, which belongs to it."""
    edge = next(edge for edge in EDGES_KBPS if rate_kbps <= edge)
    return f"> {EDGES_KBPS[-2]:g}" if math.isinf(edge) else f"<= {edge:g}"


BUCKETS = [bucket(edge) for edge in EDGES_KBPS]


def by_bucket(values: xr.DataArray) -> xr.DataArray:
    """`values` of single responses along a dimension `bandwidth_kbps` as well, NaN in each bucket but the user's."""
    buckets = xr.DataArray(BUCKETS, dims="bandwidth_kbps", attrs={"long_name": "bandwidth, kbit/s"})
    of_user = values["rate_kbps"].copy(data=[bucket(rate) for rate in values["rate_kbps"].values])
    return values.where(of_user == buckets.assign_coords(bandwidth_kbps=buckets))


def full_kbps(segments: int) -> float:
    """The rate at which this number of full segments takes one round trip to transmit; below it they do not fit one."""
    return segments * PACKET_BYTES * 8 / ROUND_TRIP_MS


def always_busy_kbps(initial_window: int) -> float:
    """The rate up to which a first flight keeps the link busy until its first acknowledgment allows more data: the part
    after the first segment takes an RTT. Below it a larger window gains nothing.
    """
    return full_kbps(initial_window - 1)


def responses(run: Run, grid: str) -> pl.LazyFrame:
    """The finished responses with the user's `rate_kbps` and the number of her `request`, from 0."""
    users = pl.LazyFrame({"client": range(len(RATES_KBPS)), "rate_kbps": RATES_KBPS}).cast({"client": pl.UInt32})
    user = [*next(iter(run.cells), ()), "replicate", "client"]
    return (
        run.table("transfers", experiment=grid)
        .sort(*user, "start_s")
        .with_columns(pl.int_range(pl.len()).over(user).alias("request"))
        .filter(pl.col("completed") == 1)
        .join(users, on="client")
    )


def flights(run: Run) -> pl.LazyFrame:
    """The responses of which segments were captured at the server, with their `rounds` and `ten_segments_ms`."""
    key = ["iw", "replicate", "connection"]
    segments = (
        run.table("segments", experiment="line")
        .filter(
            ((pl.col("event") == _SENT) & (pl.col("from_server") == 1) & (pl.col("retransmission") == 0))
            | ((pl.col("event") == _RECEIVED) & (pl.col("from_server") == 0))
        )
        .select(*key, "time_ns", "event", "seq", "length", "ack")
        .collect()
        .sort("time_ns", maintain_order=True)
    )
    records = [
        (*connection, _rounds(seen := list(rows.drop(key).iter_rows())), _ten_segments_ms(seen))
        for connection, rows in segments.partition_by(key, as_dict=True).items()
    ]
    schema = {name: segments.schema[name] for name in key} | {"rounds": pl.Int64, "ten_segments_ms": pl.Float64}
    return responses(run, "line").join(pl.LazyFrame(records, schema, orient="row"), on=key)


_Seen = list[tuple[int, int, int, int, int]]
"""Of a connection at the server, in order of time: time_ns, event, seq, length, ack."""


def _rounds(seen: _Seen) -> int:
    """The first round is the data sent before any is acknowledged. The next begins with the first new segment after an
    acknowledgment that covers the first segment of the round before.
    """
    count, start, covered = 0, -1, True
    for _, event, seq, length, ack in seen:
        if event == _SENT and length and covered:
            count, start, covered = count + 1, seq, False
        elif event == _RECEIVED and count and ack > start:
            covered = True
    return count


def _ten_segments_ms(seen: _Seen) -> float | None:
    """How long the link takes for ten full segments of a first flight, measured where they are acknowledged: ten ninths
    of the time from the first segment's acknowledgment to the tenth's. None if ten were not sent so.
    """
    ends = [seq + length for _, event, seq, length, _ in seen if event == _SENT and length][:TEN]
    acks = [(at, ack) for at, event, _, _, ack in seen if event == _RECEIVED]
    if len(ends) < TEN:
        return None
    first = next((at for at, ack in acks if ack >= ends[0]), None)
    last = next((at for at, ack in acks if ack >= ends[-1]), None)
    return None if first is None or last is None else (last - first) * TEN / (TEN - 1) / 1e6
