"""The traffic of others on a link while a short response was sent over it."""

import numpy as np
import numpy.typing as npt
import polars as pl

PAYLOAD_BYTES, PACKET_BYTES = 1448, 1500
"""Of a full packet, with timestamps, and the packet."""


def others_share(responses: pl.DataFrame, link: pl.DataFrame, one_way_s: float) -> npt.NDArray[np.float64]:
    """Of each response: percent of the link's traffic meanwhile that was not this response's.

    From the arrival of the request at the server until the response has left the link, which lies before the server's
    `one_way_s` to the client. `responses`: rows of `transfers`. `link`: the rows of `links` of one link and replicate,
    in order of time.

    A retransmission that replaces a packet dropped by the link's queue is carried once, as the response's. One that no
    drop explains is carried in addition to its original, and is the response's as well.
    """
    ends = (link["interval_start_s"] + link["interval_s"]).to_numpy()
    start = (responses["start_s"] + responses["handshake_time_s"]).to_numpy() + one_way_s
    end = (responses["start_s"] + responses["completion_time_s"]).to_numpy() - one_way_s
    # From the beginning of the first interval on.
    at = np.concatenate([link["interval_start_s"].to_numpy()[:1], ends])
    sent = np.concatenate([[0], link["sent_bytes"].cum_sum().to_numpy()])
    carried = np.interp(end, at, sent) - np.interp(start, at, sent)
    # Of all intervals that it touches: a queue drops the packets of one flight at one moment.
    before = np.concatenate([[0], link["dropped_packets"].cum_sum().to_numpy()])
    first, last = np.searchsorted(ends, start, "right"), np.searchsorted(ends, end, "left")
    dropped = before[np.minimum(last + 1, len(ends))] - before[first]
    data = responses["bytes"].to_numpy()
    needless = np.maximum(0, responses["retransmissions"].to_numpy() - dropped.astype(np.int64))
    response_bytes = data + np.ceil(data / PAYLOAD_BYTES) * (PACKET_BYTES - PAYLOAD_BYTES) + needless * PACKET_BYTES
    return np.asarray(100 * (1 - response_bytes / carried))


def median_share(transfers: pl.LazyFrame, links: pl.LazyFrame, place: list[str], one_way_s: float) -> pl.LazyFrame:
    """`others_share` as the column `share`, its median over the responses of each `place`: columns that the rows of
    `transfers` and of `links`, those of one link, have in common.
    """
    carried = dict(links.collect().group_by(place))
    responses = transfers.collect()
    rows = [
        dict(zip(place, key, strict=True)) | {"share": float(np.median(others_share(part, carried[key], one_way_s)))}
        for key, part in responses.group_by(place, maintain_order=True)
    ]
    return pl.LazyFrame(rows, schema={**responses.select(place).schema, "share": pl.Float64})
