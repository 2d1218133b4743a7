"""QUIC's first flight over a real stack, next to TCP with TLS."""

from collections.abc import Sequence

import polars as pl
import xarray as xr

from firstflight.studies import kernel as k

RTT_MS, DATAGRAM_BYTES = 100, 1448
# RFC 9002 section 7.2 for this datagram size.
RFC_WINDOW_BYTES = min(10 * DATAGRAM_BYTES, max(14720, 2 * DATAGRAM_BYTES))
DONE = k.DONE & (pl.col("disturbed") == 0)


def _time(name: str, title: str, column: str) -> k.Quantity:
    return k.Observed(name, title, "ms", 1e3 * pl.col(column).median(), DONE, digits=0)


def _seen(name: str, title: str, unit: str, value: pl.Expr, digits: int = 0) -> k.Quantity:
    return k.Observed(name, title, unit, value, records="quic", at={"stack": ["quinn"]}, digits=digits)


QUANTITIES = (
    _time("handshake", "Handshake", "tls_handshake_time_s"),
    _time("first_byte", "First byte", "first_byte_time_s"),
    _time("last_byte", "Last byte", "completion_time_s"),
    _seen("client_bytes", "From the client before validation", "B", pl.col("client_bytes").median()),
    _seen("server_bytes", "From the server before validation", "B", pl.col("server_bytes").median()),
    _seen("amplification", "Largest ratio before validation", "", pl.col("amplification").max(), 2),
    _seen("initial", "Smallest Initial datagram of the client", "B", pl.col("min_initial_bytes").min()),
    _seen("flight", "First flight of the response", "B", pl.col("flight_bytes").median()),
    _seen("flight_ms", "Its duration", "ms", 1e3 * pl.col("flight_s").median()),
    _seen("burst", "Its longest burst", "B", pl.col("burst_bytes").median()),
)
RFC9000, RFC9002 = (k.Source(name, needs="value") for name in ("RFC 9000", "RFC 9002"))
MEASURED = k.Source("measured with quic-go 0.65 and aioquic, RTT 100 ms")
REPORT = k.Source("n0-computer/noq#806 and iroh#4534")
BEFORE = k.Source("this study, before its first full run")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The RFCs' rules, the reports, and hypotheses on QUIC next to TCP."""
    quinn, tcp = {"stack": "quinn"}, {"stack": "tcp"}
    handshake = q.handshake.sel(quinn).mean("size_kb")
    of_tcp = q.handshake.sel(tcp).mean("size_kb")
    over = ["chain", "size_kb", "iw"]
    longer = handshake - handshake.sel(chain="ecdsa", drop=True)
    later = (q.last_byte.sel(quinn) - q.last_byte.sel(tcp)).sel(iw=10, size_kb=20)
    looked = "The rule is the RFC's. A first look at the engine had shown a ratio above 3."
    return (
        RFC9000.says(
            "three-times-before-validation",
            "Before validation a server sends at most three times the bytes received (section 8.1; largest ratio).",
            q.amplification.sel(quinn).max(over),
            k.at_most(3, ""),
            looked,
        ),
        RFC9000.says(
            "initials-have-1200-bytes",
            "A client's datagrams with Initial packets have at least 1200 bytes (section 14.1; smallest).",
            q.initial.sel(quinn).min(over),
            k.at_least(1200, "B"),
            "The rule is the RFC's.",
        ),
        RFC9002.says(
            "first-flight-is-the-window",
            "With IW 10 the response's first flight is the initial window of section 7.2, after a short handshake.",
            q.flight.sel(quinn).sel(chain="ecdsa", iw=10, size_kb=60),
            k.between(RFC_WINDOW_BYTES - 2 * DATAGRAM_BYTES, RFC_WINDOW_BYTES, "B"),
            "Whole datagrams, and new connection IDs take a part of the window.",
        ),
        RFC9002.says(
            "bursts-within-the-window",
            "A sender paces or limits bursts to the initial window (section 7.7): no burst of IW 32 is longer.",
            q.burst.sel(quinn).sel(iw=32).max(["chain", "size_kb"]),
            k.at_most(RFC_WINDOW_BYTES, "B"),
            "The initial window of section 7.2 for this datagram size. A first look had shown longer bursts.",
        ),
        MEASURED.says(
            "ml-dsa-costs-a-round-trip",
            "With ML-DSA-44 the handshake takes a round trip more than with ECDSA (quic-go: 207 against 104 ms).",
            longer.sel(chain="ml-dsa-44", iw=10),
            k.near(103, "ms", 15),
            "A seventh of an RTT: the flights take up to 10 ms of this link.",
        ),
        MEASURED.says(
            "window-does-not-bound-the-handshake",
            "The 3x rule bounds the handshake: IW 32 in place of 10 makes it no shorter with ML-DSA-44.",
            (handshake.sel(iw=32) - handshake.sel(iw=10)).sel(chain="ml-dsa-44"),
            k.near(0, "ms", 10),
            "A tenth of an RTT.",
        ),
        MEASURED.says(
            "window-pays-for-the-response",
            "IW 32 in place of 10 saves 67 to 84 ms of 20 kB with ML-DSA-44.",
            (q.last_byte.sel(iw=10) - q.last_byte.sel(iw=32)).sel(quinn).sel(chain="ml-dsa-44", size_kb=20),
            k.between(67, 84, "ms"),
            "The range is the source's.",
        ),
        REPORT.says(
            "ml-dsa-65-over-ed25519",
            "ML-DSA-65 in place of a classical certificate adds 136 ms (288 against 152 ms at the same RTT).",
            longer.sel(chain="ml-dsa-65", iw=10),
            k.near(136, "ms", 20),
            "A fifth of an RTT. There both ends have a certificate.",
        ),
        BEFORE.says(
            "quic-saves-a-round-trip",
            "With ECDSA the handshake takes a round trip less than over TCP.",
            (of_tcp - handshake).sel(chain="ecdsa", iw=10),
            k.near(RTT_MS, "ms", 15),
            "TCP's handshake comes before that of TLS.",
        ),
        BEFORE.says(
            "not-with-ml-dsa-44",
            "With ML-DSA-44 and IW 10 QUIC takes as long as TCP: the flight fits into IW, not into the 3x rule.",
            (of_tcp - handshake).sel(chain="ml-dsa-44", iw=10),
            k.near(0, "ms", 15),
            "A flight of 11,774 bytes; three times a ClientHello of two datagrams are 7.9 kB.",
        ),
        BEFORE.says(
            "a-larger-window-closes-the-gap",
            "With IW 32 QUIC's handshake gains no round trip on TCP's with any ML-DSA chain (largest gain).",
            (of_tcp - handshake).sel(iw=32).sel(chain=handshake["chain"] != "ecdsa").max("chain"),
            k.near(0, "ms", 15),
            "With IW 32 every flight fits over TCP, and none fits into the 3x rule.",
        ),
        BEFORE.says(
            "quic-is-never-later",
            "With IW 10 the last byte of 20 kB is not later than over TCP with any chain (largest delay).",
            later.max("chain"),
            k.at_most(0, "ms"),
            "QUIC saves TCP's handshake, and the 3x rule costs at most as much.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The handshake's rounds, the response, and what the stack does beyond the rules."""
    at = q.handshake.isel(draw=0).mean("size_kb").sel(iw=10)
    last = q.last_byte.isel(draw=0).sel(iw=10, size_kb=20)

    def both(of: xr.DataArray, chain: str) -> str:
        return "{:.0f} ({:.0f})".format(*(float(of.sel(stack=stack, chain=chain)) for stack in ("quinn", "tcp")))

    ratio = float(q.amplification.isel(draw=0).sel(stack="quinn").max())
    flight = q.flight_ms.isel(draw=0).sel(stack="quinn", chain="ecdsa", size_kb=60)
    return (
        f"With an RTT of {RTT_MS} ms and IW 10 the handshake over QUIC (TCP) takes {both(at, 'ecdsa')} ms with ECDSA, "
        f"{both(at, 'ml-dsa-44')} ms with ML-DSA-44 and {both(at, 'ml-dsa-65')} ms with ML-DSA-65.",
        f"The last byte of 20 kB arrives after {both(last, 'ecdsa')}, {both(last, 'ml-dsa-44')} and "
        f"{both(last, 'ml-dsa-65')} ms.",
        f"Before validation quinn sends up to {ratio:.2f} times the bytes that it received; its first flight of IW 10 "
        f"takes {flight.sel(iw=10):.0f} ms and that of IW 32, which it paces, {flight.sel(iw=32):.0f} ms.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    tables=lambda q: (
        k.table(
            "times",
            "Handshake, first and last byte",
            "Medians over the transfers that no stall of the machine disturbed.",
            [q.handshake, q.first_byte, q.last_byte],
            across="stack",
        ),
        k.table(
            "first-flight",
            "Before validation, and the response's first flight, of quinn",
            "UDP payload, from the packets at the server's end of the path. Medians.",
            [
                of.sel(stack="quinn", drop=True)
                for of in (q.client_bytes, q.server_bytes, q.amplification, q.flight, q.flight_ms, q.burst)
            ],
        ),
    ),
    figures=lambda q: (
        k.lines(
            q.handshake.mean("size_kb", keep_attrs=True),
            "Time of the handshake by certificate chain and IW",
            "From the start of the connection; over TCP with the TCP handshake.",
            "iw",
            "stack",
            columns="chain",
        ),
    ),
    answer=answer,
)
