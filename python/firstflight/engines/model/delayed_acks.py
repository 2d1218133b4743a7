"""Segments per round with infinite bandwidth and delayed ACKs: the recursion of RFC 6928 section 5.1.

Each round the receiver acknowledges every `segments_per_ack`-th segment in order of arrival and holds the
rest until the next round (a delayed-ACK timer longer than any round); the congestion window grows by one
segment per ACK; the sender fills the window. The counts are exact integers and equal all 26 values of the RFC's table.
"""

from collections.abc import Iterator
from itertools import islice

from firstflight.errors import RequestError


def cumulative_segments(initial_window: int, segments_per_ack: int = 2) -> Iterator[int]:
    """Segments at the receiver after each round trip of data, without end.

    `initial_window` is in segments. `segments_per_ack`: 1 without delayed ACKs, 2 with. Valid without loss, with links
    of infinite rate, and while neither rwnd nor ssthresh limits. With IW 1 and an ACK per two segments no ACK returns,
    and the count never rises; `round_trips` refuses this case.

    Source: RFC 6928 section 5.1; RFC 5681 sections 3.1 and 4.2. RequestError for a window below one segment or an ACK
    policy that is not 1 or 2.
    """
    if initial_window < 1:
        raise RequestError(f"an initial window of {initial_window} segments sends nothing: give at least 1")
    if segments_per_ack not in (1, 2):
        raise RequestError(f"an ACK for every {segments_per_ack} segments breaks RFC 5681: give 1 or 2")
    return _rounds(initial_window, segments_per_ack)


def _rounds(window: int, segments_per_ack: int) -> Iterator[int]:
    sent = window
    held = 0
    arriving = window
    while True:
        yield sent
        acks, held = divmod(held + arriving, segments_per_ack)
        window += acks
        # Held segments are still unacknowledged, so they take up window.
        arriving = window - held
        sent += arriving


def round_trips(segments: int, initial_window: int, segments_per_ack: int = 2) -> int:
    """Round trips to deliver `segments`, without the handshake, as RFC 6928 section 5.1 counts.

    RequestError for fewer than one segment, or a transfer that stalls (see `cumulative_segments`).
    """
    if segments < 1:
        raise RequestError(f"a transfer of {segments} segments takes no round trip: give at least 1")
    before = 0
    for count, delivered in enumerate(cumulative_segments(initial_window, segments_per_ack), start=1):
        if delivered >= segments:
            return count
        if delivered == before:
            raise RequestError(
                f"{segments} segments never arrive with an initial window of {initial_window} and one ACK "
                f"for {segments_per_ack} segments: the receiver waits for its delayed-ACK timer, which this "
                "rule leaves out"
            )
        before = delivered
    raise AssertionError("the iterator of rounds has no end")


def first_rounds(initial_window: int, rounds: int, segments_per_ack: int = 2) -> list[int]:
    """The first `rounds` values of `cumulative_segments`."""
    return list(islice(cumulative_segments(initial_window, segments_per_ack), rounds))
