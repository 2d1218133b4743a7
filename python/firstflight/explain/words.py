"""The rounds in sentences, and the terms that they use."""

from collections.abc import Sequence

from firstflight.counted import counted
from firstflight.explain.rounds import Round, Transfer

TERMS = {
    "segment": "What TCP sends in one packet: at most MSS bytes of data, 1460 on Ethernet, fewer with options.",
    "initial window": "IW: how many segments a sender may send before the first ACK of its data (RFC 6928: 10).",
    "ACK": "Acknowledgment: the receiver's message up to which byte it has everything.",
    "RTT": "Round-trip time: from sending a segment to receiving its ACK.",
    "round": "What is sent within one RTT: until the ACK of the round's first segment is there.",
    "congestion window": "cwnd: how many segments the sender lets be in flight. It begins as the initial window.",
    "slow start": "Each ACK of new data enlarges cwnd by what it acknowledges, so cwnd doubles each round (RFC 5681).",
    "handshake": "SYN, SYN-ACK, ACK: one RTT before the first byte of a request may be sent.",
    "retransmission": "Data that is sent once more because it was dropped, or because the sender believes so.",
}


def comparison(transfers: Sequence[Transfer]) -> str:
    """The last transfer against the first, in one sentence."""
    first, last = transfers[0], transfers[-1]
    if first is last:
        return ""
    if first.completion_s is None or last.completion_s is None:
        missing = ", ".join(of.label for of in transfers if of.completion_s is None)
        return f"No comparison: the transfer with {missing} does not complete within the scenario's duration."
    before_ms, after_ms = 1e3 * first.completion_s, 1e3 * last.completion_s
    change = f"{after_ms:.1f} ms instead of {before_ms:.1f} ms ({100 * (after_ms / before_ms - 1):+.1f}%)"
    if after_ms >= before_ms:
        return f"{last.label} is no faster than {first.label}: {change}."
    fewer = len(first.rounds) - len(last.rounds)
    what = counted(fewer, "round trip") if fewer > 0 else f"{before_ms - after_ms:.1f} ms"
    return f"{last.label} instead of {first.label} saves {what}: {change}."


def heading(transfer: Transfer) -> str:
    """The transfer's window, rounds and time."""
    took = "not complete" if transfer.completion_s is None else f"complete after {1e3 * transfer.completion_s:.1f} ms"
    return f"{transfer.label}: {counted(len(transfer.rounds), 'round')}, {took}"


def line(of: Round) -> str:
    """What a round sent, and when it began."""
    counts = [(of.segments, "segment"), (of.retransmissions, "retransmission")]
    sent = " and ".join(counted(number, what) for number, what in counts if number)
    return f"round {of.number}: {sent}, from {1e3 * of.began_s:.1f} ms"
