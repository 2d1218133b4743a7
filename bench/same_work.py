"""Whether ours and ns-2 did the same work: bulk runs at the bottleneck, page delays of web runs."""

from statistics import median

from bench import bulk
from bench.peers import Ns2
from bench.process import simulate
from bench.row import Row
from bench.work import baytcp_cell, plan, rfc2415_cell

CELLS = ((8, 0), (16, 0), (16, 2), (8, 3), (32, 3))
SEEDS = 10

# The flows of bulk runs start within 10 ms of each other, in ns-2 at other moments than in ours.
_BULK_TOLERANCE = 0.01
_DELAY_TOLERANCE = 0.05
# Set after a first look. Where packets are dropped, which ones depends on ties.
_AUTHORS_TOLERANCE = 0.02

AUTHORS_CELLS = ((1, 11), (1, 20), (3, 11), (8, 11))
"""Concurrent downloads, and the window in segments."""


def bulk_rows(ns2: Ns2) -> list[Row]:
    """Packets through the bottleneck, its drops and its utilization in 10 simulated seconds of each form."""
    stop_s = 10.0
    made = []
    for form in bulk.FORMS:
        ours = bulk.ours_through_bottleneck(form, stop_s)
        theirs = ns2.bulk(form.access_delays_s, stop_s).figures
        for what, value, unit in (
            ("packets", ours.data_packets, "data_packets"),
            ("drops", ours.drops, "drops"),
            ("utilization", ours.util, "util"),
        ):
            peer = theirs[unit]
            made.append(
                Row(
                    f"same work, {form.title}: {what}",
                    value,
                    "%" if unit == "util" else "packets",
                    peer=ns2.name,
                    peer_value=peer,
                    same=abs(value - peer) <= _BULK_TOLERANCE * peer,
                )
            )
    return made


def authors_rows(ns2: Ns2) -> list[Row]:
    """Packets both ways at the bottleneck with the TCP of RFC 2415's authors (ns-2's BayFullTcp), which the profile
    `ns2-full-1998` follows.
    """
    base = plan("baytcp")
    made = []
    for clients, window in AUTHORS_CELLS:
        links = simulate([baytcp_cell(base, clients, window)]).links
        theirs = ns2.baytcp(clients, window).figures
        for what, link, key in (("data", "bottleneck.reverse", "data_packets"), ("ACKs", "bottleneck", "ack_packets")):
            value, peer = links[link]["sent_packets"], theirs[key]
            made.append(
                Row(
                    f"same work, authors' TCP, {clients} x window {window}: {what}",
                    value,
                    "packets",
                    peer=ns2.name,
                    peer_value=peer,
                    same=abs(value / peer - 1) <= _AUTHORS_TOLERANCE,
                )
            )
    return made


def page_rows(ns2: Ns2) -> list[Row]:
    """Median page delay over all pages of ten seeds, IW 1, HTTP/1.0, in five of RFC 2415's cells."""
    base = plan("rfc2415")
    made = []
    for webs, ftps in CELLS:
        ours = median(simulate([rfc2415_cell(base, webs, ftps)], replicates=SEEDS).page_delays_s)
        pages = [delay for seed in range(1, SEEDS + 1) for delay in ns2.page_delays_s(webs, ftps, seed)]
        theirs = median(pages)
        made.append(
            Row(
                f"same work, {webs}/{ftps}: median page delay",
                ours,
                "s",
                peer=ns2.name,
                peer_value=theirs,
                same=abs(ours / theirs - 1) <= _DELAY_TOLERANCE,
                note=f"{SEEDS} seeds",
            )
        )
    return made
