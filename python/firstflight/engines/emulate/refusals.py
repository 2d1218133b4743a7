"""Parts of a scenario that real programs or the link emulator cannot do: each is refused by its key (RequestError)."""

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight.engines.emulate.layout import Layout
from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.scenario import IP_HEADER_BYTES
from firstflight.scenario.tls import Tls

_UDP_HEADER_BYTES = 8
_OPENSSL_WRITES_BYTES = 4096


def refuse_one_way_delays(profile: Mapping[str, Any], where: str) -> None:
    """RTT samples of our own TCP that need one clock at both ends."""
    if profile["rto"]["samples"] == "ack_one_way":
        raise RequestError(
            f'{where}.rto.samples: "ack_one_way" needs one clock at both ends, which only --engine simulate has; set '
            'rto.samples = "round_trip"'
        )


def refuse_what_programs_cannot(application: Mapping[str, Any], header: int | None, where: str) -> None:
    """Of an application over TCP; `header`: bytes of its response header."""
    if header == 0:
        raise RequestError(f"{where}.response_header: nginx sends a header; leave it out, or write its length")
    if application.get("direction") == "upload":
        raise RequestError(f'{where}.direction: the emulator does downloads only; write "download", or use simulate')
    if application["kind"] in ("video", "arrivals"):
        raise RequestError(f"{where}.kind: the emulator has no {application['kind']}; use simulate")
    if application["kind"] == "web_page":
        _refuse_pages(application, where)


def refuse_handshakes(tls: Tls, stacks: tuple[str, str], where: str) -> None:
    """What OpenSSL, or a certificate that is padded, cannot do."""
    if stacks != ("kernel", "kernel"):
        raise RequestError(f'{where}.tls: firstflight\'s TCP has no TLS; set stack = "kernel", or use simulate')
    for key, is_odd, reason in (
        ("flights", tls.flights is not None, "real TLS 1.3 has its own flights; name a chain"),
        ("client_certificate", tls.client_certificate is not None, "the emulator's clients have none; leave it out"),
        ("early_data", tls.early_data > 0, "the emulator's clients send none; leave it out"),
        ("tickets", tls.tickets not in (None, 0), "OpenSSL's are as long as they are; leave it out, or write 0B"),
        ("write_size", tls.write_size != _OPENSSL_WRITES_BYTES, "OpenSSL writes 4096 B at once; leave it out"),
        (
            "resumption",
            tls.resumption > 0 and tls.key_share != "x25519",
            'a flight without certificate cannot be padded to a share of X25519MLKEM768; set key_share = "x25519"',
        ),
        (
            "resumption",
            tls.resumption > 0 and tls.tickets == 0,
            "a connection is resumed by tickets; leave out tickets",
        ),
    ):
        if is_odd:
            raise RequestError(f"{where}.tls.{key}: {reason}, or use simulate")


def _refuse_pages(application: Mapping[str, Any], where: str) -> None:
    if application["version"] == "2":
        raise RequestError(
            f'{where}.http_version: the emulator fetches pages by "1.0" or "1.1"; set one, or use simulate'
        )
    # Over HTTP/1.0 each object has its own connection.
    if application["version"] == "1.1" and (persistent := application["persistent"]) != "joined":
        raise RequestError(
            f'{where}.persistent: the emulator does not fetch pages with "{persistent}"; set "single_response", or '
            'http_version = "1.0" for one connection per object, or use simulate'
        )
    for key, name in (("then", "then"), ("dns", "dns"), ("think_from_start", "load")):
        if key in application:
            raise RequestError(f"{where}.{name}: the emulator fetches pages without it; leave it out, or use simulate")


def refuse_datagrams(application: Mapping[str, Any], flows: Sequence[Mapping[str, Any]], ip: str, where: str) -> None:
    """Look-ups of names, and headers shorter than real ones."""
    if application["kind"] == "dns":
        raise RequestError(f"{where}.kind: the emulator looks no names up; use simulate")
    real = _UDP_HEADER_BYTES + IP_HEADER_BYTES[ip]
    for flow in flows:
        if flow["header_bytes"] < real:
            raise RequestError(
                f"{where}.header_size: real datagrams have {real} B of IP and UDP, and this has "
                f"{flow['header_bytes']} B"
            )


def refuse_links(layout: Layout, scenario: Scenario) -> None:
    """GSO packets."""
    for link in layout.links:
        for direction in ("forward", "reverse"):
            whole = link[direction].get("burst", {}).get("gso_max_segs", 1)
            if whole > 1:
                raise RequestError(
                    f'scenario "{scenario.name}": burst.gso_max_segs of {link["name"]} is {whole}, but the link '
                    "emulator gets the segments of a GSO packet one by one; write 1 or leave it out, or use simulate"
                )
