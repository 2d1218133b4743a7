"""An engine names the keys of a plan that it reads or refuses, so that it never passes over a key that came later."""

from collections.abc import Mapping
from typing import Any

from firstflight.errors import RequestError

PLAN = "applications arms arms_of duration_ns header_bytes meter_interval_ns network"
APPLICATION = (
    "arms class client_hosts client_tcp clients count handshakes kind name response_header_bytes server_choice "
    "server_hosts server_tcp service_time_ns share start"
)
OF_KIND = {
    "file_transfer": "direction gap request_bytes size",
    "request_response": "request response think",
    "web_page": (
        "connections dns frame_bytes hosts inline inline_count keep_alive_ns parallel persistent primary request_bytes "
        "then think think_from_start version"
    ),
    "voice": "bit_rate_bps codec datagram_header_bytes direction frame_ns impairment length_ns playout_ns",
    "game": "client_interval_ns client_payload datagram_header_bytes deadline_ns length_ns server_payload tick_ns",
    "constant_rate": "datagram_header_bytes deadline_ns direction length_ns payload_bytes rate_bps",
}
"""Further keys of an application of this kind."""


def check_named(engine: str, where: str, table: Mapping[str, Any], named: str) -> None:
    """RequestError for a key of `table` that is not among the words of `named`."""
    if others := sorted(table.keys() - named.split()):
        raise RequestError(
            f"{where}: the engine {engine} does not know {', '.join(others)}; leave it out, or use --engine simulate"
        )
