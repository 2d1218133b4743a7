"""Initial windows in bytes, from a profile's policy and the MSS."""

from __future__ import annotations

from typing import Any

from firstflight.errors import RequestError


def initial_window_bytes(policy: dict[str, Any], mss_bytes: int) -> int:
    """Bytes that a sender may send before the first ACK.

    `policy` is a profile's `initial_window`. Sources: RFC 2581 section 3.1 (two segments); RFC 3390 section
    1, min(4 MSS, max(2 MSS, 4380)); RFC 6928 section 2, min(10 MSS, max(2 MSS, 14600)); Linux: ten segments
    at any MSS (TCP_INIT_CWND). Raises RequestError for an unknown policy.
    """
    match policy["policy"]:
        case "fixed":
            return int(policy["segments"]) * mss_bytes
        case "rfc2581":
            return 2 * mss_bytes
        case "rfc3390":
            return min(4 * mss_bytes, max(2 * mss_bytes, 4380))
        case "rfc6928":
            return min(10 * mss_bytes, max(2 * mss_bytes, 14600))
        case "linux":
            return 10 * mss_bytes
        case unknown:
            raise RequestError(f'the model does not know the initial-window policy "{unknown}"')
