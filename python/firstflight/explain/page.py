"""The page: two ladders on one time axis, the rounds in words, each term explained where it first appears."""

import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from firstflight.counted import counted
from firstflight.explain.ladder import caption, ladders, style
from firstflight.explain.rounds import Round, Transfer
from firstflight.report.style import css

TERMS = {
    "segment": "The data that TCP sends in one packet: at most MSS bytes, 1460 on Ethernet (IPv6 1440), less options.",
    "initial window": "IW: number of segments that a sender may send before the first ACK of its data (RFC 6928: 10).",
    "ACK": "Acknowledgment: the receiver's message up to which byte it has everything.",
    "RTT": "Round-trip time: from sending a segment to receiving its ACK.",
    "round": "The segments sent within one RTT, until the ACK of the round's first segment arrives.",
    "congestion window": "cwnd: number of segments that the sender allows in flight. It starts as the initial window.",
    "slow start": "Each ACK of new data raises cwnd by the data acknowledged, so cwnd doubles each round (RFC 5681).",
    "handshake": "SYN, SYN-ACK, ACK: one RTT before the first byte of a request may be sent.",
    "retransmission": "Data transmitted once more because it was dropped, or because the sender marks it as lost.",
}


def comparison(transfers: Sequence[Transfer]) -> str:
    """The last transfer against the first, in one sentence."""
    first, last = transfers[0], transfers[-1]
    if first.completion_s is None or last.completion_s is None:
        missing = ", ".join(of.label for of in transfers if of.completion_s is None)
        return f"No comparison: the transfer with {missing} does not complete within the scenario's duration."
    before_ms, after_ms = 1e3 * first.completion_s, 1e3 * last.completion_s
    change = f"{after_ms:.1f} ms instead of {before_ms:.1f} ms ({100 * (after_ms / before_ms - 1):+.1f}%)"
    if after_ms >= before_ms:
        return f"{last.label} is no faster than {first.label}: {change}."
    fewer = first.round_trips - last.round_trips
    what = counted(fewer, "round trip") if fewer > 0 else f"{before_ms - after_ms:.1f} ms"
    return f"{last.label} instead of {first.label} saves {what}: {change}."


def cost(transfers: Sequence[Transfer]) -> str:
    """What the last transfer does to the packets of others in the same queue, against the first."""
    first, last = transfers[0], transfers[-1]
    lost = counted(last.dropped, "of its segments is", "of its segments are")
    dropped = f", and {lost} dropped" if last.dropped else ""
    return (
        f"Cost: with {last.label} data waits up to {1e3 * last.longest_wait_s:.1f} ms in queues (with {first.label} "
        f"{1e3 * first.longest_wait_s:.1f} ms){dropped}. Packets of others behind it wait as long."
    )


def first_flight(transfers: Sequence[Transfer]) -> str:
    """Whether the first flight is the TLS handshake, in one sentence; empty without TLS."""
    said = [part for of in transfers if (part := _round_trips_of_tls(of))]
    return f"The first flight is the TLS handshake: {'; '.join(said)}." if said else ""


def _round_trips_of_tls(transfer: Transfer) -> str:
    flights = [of for of in transfer.rounds if of.tls]
    if not flights:
        return ""
    trips, more = (
        sum(of.number is not None for of in flights if of.from_sender == is_sender)
        for is_sender in (transfer.sender_is_server, not transfer.sender_is_server)
    )
    segments = sum(of.kind == "tls" and of.from_sender == transfer.sender_is_server for of in transfer.crossings)
    added = f", and the client's adds {counted(more, 'round trip')}" if more else ""
    take = "takes" if segments == 1 else "take"
    flight = f"the server's {counted(segments, 'segment')} {take} {counted(trips, 'round trip')}"
    return f"with {transfer.label} {flight}{added}"


def heading(transfer: Transfer) -> str:
    """The transfer's window, rounds and time."""
    took = "not complete" if transfer.completion_s is None else f"complete after {1e3 * transfer.completion_s:.1f} ms"
    return f"{transfer.label}: {counted(transfer.round_trips, 'round')}, {took}"


def line(of: Round, transfer: Transfer) -> str:
    """The segments of a round, and its start."""
    counts = [(of.segments, "segment"), (of.retransmissions, "retransmission")]
    sent = " and ".join(counted(number, what) for number, what in counts if number)
    data = " and data" if of.tls < of.segments + of.retransmissions else ""
    what = f" (TLS handshake{data})" if of.tls else ""
    end = "" if of.from_sender else transfer.end(of.from_sender)
    name = " of the ".join(filter(None, ("" if of.number is None else f"round {of.number}", end)))
    return f"{name}{what}: {sent}, from {1e3 * of.began_s:.1f} ms"


TEMPLATE = Path(__file__).with_name("explain.html.j2")


def page(title: str, transfers: Sequence[Transfer]) -> str:
    """The page as HTML, which needs nothing else."""
    explained: set[str] = set()

    def with_terms(text: str) -> Markup:
        """The text with the first appearance of each term on the page marked."""

        def mark(match: re.Match[str]) -> str:
            term = _NAMES[match[0].lower()]
            if term in explained:
                return match[0]
            explained.add(term)
            return f'<dfn tabindex="0" title="{escape(TERMS[term])}">{match[0]}</dfn>'

        return Markup(_PATTERN.sub(mark, str(escape(text))))

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=title,
        sentences=[first_flight(transfers), comparison(transfers), cost(transfers)],
        transfers=[(heading(of), [line(round_, of) for round_ in of.rounds]) for of in transfers],
        ladders=[Markup(svg) for svg in ladders(transfers)],
        caption=caption(transfers),
        theme=Markup(css()),
        ladder_style=Markup(style("var(--{})".format)),
        terms=TERMS,
        with_terms=with_terms,
    )


_NAMES = {name.lower(): name for name in TERMS} | {"iw": "initial window", "cwnd": "congestion window"}
_ALTERNATIVES = "|".join(sorted(_NAMES, key=len, reverse=True))
_PATTERN = re.compile(rf"\b({_ALTERNATIVES})(?=s?\b)(?! trips?\b)", re.IGNORECASE)
