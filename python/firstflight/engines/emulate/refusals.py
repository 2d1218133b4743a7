"""Parts of a scenario that real programs or the link box cannot do: each is refused by its key (RequestError)."""

from collections.abc import Mapping, Sequence
from typing import Any

from firstflight import _native
from firstflight.engines.emulate.layout import Layout
from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.rates import peak_bps

# IPv4 and UDP.
_DATAGRAM_HEADER_BYTES = 28


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
    if application["kind"] == "web_page" and (
        application["version"] == "2"
        or application["persistent"] == "keep_alive"
        or any(key in application for key in ("then", "dns", "think_from_start"))
    ):
        raise RequestError(
            f'{where}: the emulator fetches pages with HTTP/1.0, or 1.1 "single_response", of one level, without dns '
            "and load; write that, or use simulate"
        )
    if (
        application["kind"] == "web_page"
        and application["version"] == "1.1"
        and application["persistent"] == "pipelined"
    ):
        raise RequestError(
            f'{where}.persistent: curl cannot pipeline; set "single_response", or http_version = "1.0" for one '
            "connection per object"
        )


def refuse_datagrams(application: Mapping[str, Any], flows: Sequence[Mapping[str, Any]], where: str) -> None:
    """Look-ups of names, and headers shorter than real ones."""
    if application["kind"] == "dns":
        raise RequestError(f"{where}.kind: the emulator looks no names up; use simulate")
    for flow in flows:
        if flow["header_bytes"] < _DATAGRAM_HEADER_BYTES:
            raise RequestError(
                f"{where}.header_size: real datagrams have {_DATAGRAM_HEADER_BYTES} B of IPv4 and UDP, and this has "
                f"{flow['header_bytes']} B"
            )


def refuse_links(layout: Layout, scenario: Scenario) -> None:
    """GSO packets, and rates above those for which the link box is calibrated."""
    for link in layout.links:
        for direction in ("forward", "reverse"):
            whole = link[direction].get("burst", {}).get("gso_max_segs", 1)
            if whole > 1:
                raise RequestError(
                    f'scenario "{scenario.name}": burst.gso_max_segs of {link["name"]} is {whole}, and the link box '
                    "gets the segments of a GSO packet one by one; write 1 or leave it out, or use simulate"
                )
            rate = peak_bps(link[direction])
            if rate is not None and rate > _native.CALIBRATED_BPS:
                raise RequestError(
                    f'scenario "{scenario.name}": the rate of {link["name"]} is {rate / 1e6:g} Mbit/s, and the link '
                    f"box is calibrated up to {_native.CALIBRATED_BPS / 1e6:g} Mbit/s; write that or less, or "
                    '"unlimited", or use simulate'
                )
