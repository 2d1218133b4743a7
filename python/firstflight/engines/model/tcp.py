"""The TCP that the model computes.

Settings that act only after a loss, a mark or a duplicate do not matter to it; settings that act without one must be
known.
"""

from __future__ import annotations

from typing import Any

from firstflight.errors import RequestError

# Fields that act without a loss, and the values of them that the model knows: words stand for variants.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "initial_window": ("fixed", "rfc2581", "rfc3390", "rfc6928", "linux"),
    "ack": ("every_segment", "delayed", "heartbeat"),
    "ack.every_segment_bytes": (None,),
    # With a scoreboard, the data that the window allows is counted in segments, and a probe may leave while the
    # receiver holds its ACK back.
    "recovery": ("tahoe", "reno", "new_reno"),
    "congestion_control": ("reno",),
    "startup": ("window",),
    "slow_start_growth": ("per_ack", "abc_l1"),
    "congestion_avoidance": ("per_ack", "per_window"),
    "window_validation": ("off",),
    "pacing": (None,),
    "nagle": ("off",),
    # Its 12 bytes a segment, and the samples that it allows.
    "timestamps": (False,),
    "receive_window_growth": (None,),
    "rto.estimator": ("rfc6298",),
    "rto.samples": ("round_trip",),
    "piggyback_fin": (True,),
    "timer_tick": (None,),
}


def check(end: str, tcp: dict[str, Any]) -> None:
    """RequestError, naming the field, if the profile `tcp` of `end` ("client" or "server") is beyond the model."""
    for path, known in _KNOWN.items():
        found: Any = tcp
        for key in path.split("."):
            # Some variants of `ack` have no such key.
            found = found.get(key)
        variant = _variant(found)
        if variant not in known:
            values = " or ".join(_written(value) for value in known)
            name = path.removesuffix("_ns").removesuffix("_bytes")
            raise RequestError(
                f"{end}_tcp has {name} = {_written(variant)}, but the model engine knows only {values}; "
                "use --engine simulate"
            )


def _variant(found: Any) -> Any:
    """Of a table, the variant: its one key where that holds a table of rules, and else the value of its first."""
    if not isinstance(found, dict):
        return found
    key, value = next(iter(found.items()))
    return key if isinstance(value, dict) else value


def _written(value: Any) -> str:
    """As a scenario writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return '"none"' if value is None else f'"{value}"' if isinstance(value, str) else str(value)
