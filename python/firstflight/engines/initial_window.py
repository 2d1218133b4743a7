"""Initial windows in bytes, from a profile's policy and the MSS."""

import json
from collections.abc import Mapping
from typing import Any


def initial_window_bytes(policy: Mapping[str, Any], mss_bytes: int) -> int:
    """Bytes that a sender may send before the first ACK.

    `policy` is a profile's `initial_window`. The formulas and their sources are the endpoint's, in
    `crates/tcp/src/sender/initial_window`; for a policy that learns from others, its value when nothing is known.
    """
    from firstflight import _native

    return _native.initial_window_bytes(json.dumps(dict(policy)), mss_bytes)
