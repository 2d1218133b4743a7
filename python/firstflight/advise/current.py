"""The current initial window, as the data shows it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from firstflight.advise.deploy import LINUX_DEFAULT
from firstflight.observe.tables import MSS_BYTES


@dataclass(frozen=True)
class CurrentWindow:
    """`window`: the most frequent one; `share_percent`: of how many connections that show one; `flows`: how many show
    one; `how`: in words.
    """

    window: int
    share_percent: float
    flows: int
    how: str

    @property
    def known(self) -> bool:
        """Whether it was seen."""
        return self.flows > 0


def current_window(first: pl.DataFrame) -> CurrentWindow:
    """Of the first response of each connection: the format's value, else the first flights, else Linux's default.

    `first`: columns `initial_window_segments`, `first_flight_segments`, `segments_sent`, `retransmissions`,
    `tls_bytes`, `tls_flight_bytes`, `tls_exchanges`, `tls_answer_flight_segments`, null where unknown. A first flight
    shows the window only where more segments followed it: a short response does not fill it. Over TLS it is the
    handshake's, which shows the window if it is longer. After one of at most half of the window Linux leaves it as it
    was, and the response's flight shows it.
    """
    told = first["initial_window_segments"].drop_nulls()
    if told.len():
        return _most_frequent(told, "from the data")
    sent = pl.col("segments_sent") - pl.col("retransmissions").fill_null(0)
    handshake = (pl.col("tls_bytes") / MSS_BYTES).ceil()
    after_handshake = pl.when(2 * handshake <= pl.col("tls_answer_flight_segments")).then("tls_answer_flight_segments")
    full = pl.when(pl.col("tls_exchanges") == 1).then((pl.col("tls_flight_bytes") / MSS_BYTES).ceil())
    fills = full > pl.col("first_flight_segments")
    flight = pl.when(pl.col("tls_bytes").is_null() | fills).then("first_flight_segments").otherwise(after_handshake)
    sent = pl.when(fills).then(full).otherwise(sent)
    filled = first.select(flight=flight, sent=sent).filter(pl.col("flight") > 0, pl.col("sent") > pl.col("flight"))
    if filled.height:
        return _most_frequent(filled["flight"], "first flights of longer responses")
    return CurrentWindow(LINUX_DEFAULT, 0.0, 0, "assumed: Linux's default since 2.6.39; the data does not show it")


def _most_frequent(windows: pl.Series, how: str) -> CurrentWindow:
    counts = windows.cast(pl.Int64).value_counts().sort(["count", windows.name], descending=[True, False])
    window, count = counts.row(0)
    return CurrentWindow(int(window), 100 * count / windows.len(), windows.len(), how)
