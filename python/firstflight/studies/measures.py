"""The measures shown for any scenario whose keys are varied, by application."""

import polars as pl

from firstflight.studies.kernel import Quantity

DONE = pl.col("completed") == 1
TIME = pl.col("completion_time_s").mean()
RETRANSMITTED = 100 * pl.col("retransmissions").sum() / pl.col("segments_sent").sum()
HANDSHAKE = pl.col("tls_handshake_time_s").fill_nan(None).mean()
USABLE = pl.col("first_usable_byte_time_s").fill_nan(None).mean()
BY = ("application",)
MEASURES = (
    Quantity("transfer_time", "Mean completion time of transfers", "s", TIME, DONE, by=BY, digits=3),
    Quantity("tls_handshake_time", "Mean time to the end of the TLS handshake", "s", HANDSHAKE, DONE, by=BY, digits=3),
    Quantity("first_usable_byte_time", "Mean time to the first usable byte", "s", USABLE, DONE, by=BY, digits=3),
    Quantity("page_time", "Mean completion time of pages", "s", TIME, DONE, "pages", BY, 3),
    Quantity("retransmitted", "Retransmission rate", "percent", RETRANSMITTED, by=BY, digits=2),
    Quantity("mos", "Mean opinion score", "", pl.col("mos").fill_nan(None).mean(), None, "streams", BY, 2),
)
