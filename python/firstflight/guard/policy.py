"""The window of a group's raised arm: one value for all, or one learned from finished connections.

The learning rules are those of the campaign `SashaLuna/tesi-ebpf-initcwnd`: an average of the largest congestion
window, with or without a reaction to losses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from firstflight.errors import RequestError
from firstflight.guard.outcome import Outcome

RFC6928_SEGMENTS = 10
MOST_SEGMENTS = 1000
"""Largest window that may be asked for: 1.4 MB at once."""
# Of Linux with timestamps, on Ethernet: turns acknowledged bytes into segments.
_MSS_BYTES = 1448
_WEIGHT = 1 / 4
# A loss at a cwnd above this multiple of the initial window is slow start's overshoot, not the first flight's.
_OVERSHOOT = 1.5


@dataclass(slots=True)
class LearnedWindow:
    """The estimate for one group: `segments` is None before the first connection that counts."""

    segments: float | None = None
    samples: int = 0

    def average(self, sample: int) -> None:
        """Add a sample; the first one replaces a value that a loss may have left."""
        old = self.segments
        self.segments = sample if old is None or self.samples == 0 else old + (sample - old) * _WEIGHT
        self.samples += 1


def _sample(outcome: Outcome) -> int:
    """The largest window, but no more than was delivered: a short response cannot prove a large window."""
    return min(outcome.largest_cwnd, math.ceil(outcome.bytes_acked / _MSS_BYTES))


def _lossaware(estimate: LearnedWindow, outcome: Outcome) -> None:
    if outcome.retransmissions == 0:
        estimate.average(_sample(outcome))
    else:
        old = outcome.initial_window if estimate.segments is None else estimate.segments
        estimate.segments = max(old / 2, RFC6928_SEGMENTS)


def _lossaware_disc(estimate: LearnedWindow, outcome: Outcome) -> None:
    overshot = outcome.largest_cwnd > _OVERSHOOT * outcome.initial_window
    if outcome.retransmissions == 0 or not overshot:
        _lossaware(estimate, outcome)


_LEARN: dict[str, Callable[[LearnedWindow, Outcome], None]] = {
    "static": lambda estimate, outcome: None,
    "ewma": lambda estimate, outcome: estimate.average(_sample(outcome)),
    "lossaware": _lossaware,
    "lossaware-disc": _lossaware_disc,
}
POLICIES = tuple(_LEARN)


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule by name, one of `POLICIES`, and its bounds.

    Raises RequestError for an unknown name and a ceiling outside ten to `MOST_SEGMENTS`.
    """

    name: str
    ceiling: int
    """Largest initial window in segments; `static` always gives it."""
    least_bytes: int = 15_000
    """Connections that acknowledged less teach nothing: ten segments carry them."""
    handshake_bytes: int = 0
    """Bytes of the server's TLS handshake before the first response, which are none of a response."""

    def __post_init__(self) -> None:
        if self.name not in _LEARN:
            raise RequestError(f'there is no policy "{self.name}"; the policies are {", ".join(POLICIES)}')
        if not RFC6928_SEGMENTS <= self.ceiling <= MOST_SEGMENTS:
            raise RequestError(
                f"the largest window is {self.ceiling}; give at least {RFC6928_SEGMENTS} segments and no more than "
                f"{MOST_SEGMENTS}"
            )

    def learn(self, estimate: LearnedWindow, outcome: Outcome) -> None:
        """Take in a finished connection."""
        response = replace(outcome, bytes_acked=outcome.bytes_acked - self.handshake_bytes)
        if response.bytes_acked >= self.least_bytes:
            _LEARN[self.name](estimate, response)

    def window(self, estimate: LearnedWindow) -> int:
        """The raised arm's window in segments: from ten up to the ceiling."""
        if self.name == "static":
            return self.ceiling
        if estimate.segments is None:
            return RFC6928_SEGMENTS
        return min(max(round(estimate.segments), RFC6928_SEGMENTS), self.ceiling)
