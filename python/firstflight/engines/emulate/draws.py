"""The simulator's random draws, for real programs: the same seed gives the same sizes, pauses and servers.

Every draw is a function of its purpose (replicate, application, client, purpose, number) and not of the draws
before it, so cells that differ in TCP only ask for the same bytes at the same times, and so does the simulator.
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from firstflight import _native

# Largest file that the simulator draws, 8.8 TB.
_LARGEST_BYTES = 1 << 43
_MOST_INLINE_OBJECTS = 65_535
_DRAWS_PER_HANDSHAKE = 256


class Draws:
    """The draws of one client of one application in one replicate. Purposes are those of `_native.draw`."""

    def __init__(self, seed: int, replicate: int, application: int, client: int) -> None:
        self._owner = seed, replicate, application, client
        self._laws: dict[int, tuple[Mapping[str, Any], _native.Law]] = {}

    def size(self, law: Mapping[str, Any], purpose: str, index: int) -> int:
        """Bytes: whole, at least one."""
        return min(max(_round(self._draw(law, purpose, index)), 1), _LARGEST_BYTES)

    def inline_objects(self, law: Mapping[str, Any], page: int) -> int:
        """In-line objects of a page."""
        return min(_round(self._draw(law, "inline_count", page)), _MOST_INLINE_OBJECTS)

    def seconds(self, law: Mapping[str, Any], purpose: str, index: int) -> float:
        """A time in seconds, to the nanosecond."""
        return _round(self._draw(law, purpose, index) * 1e9) / 1e9

    def server(self, choice: str, servers: int, index: int) -> int:
        """The server, out of this number, that connection `index` asks."""
        if choice == "by_client":
            return self._owner[-1] % servers
        return int(self.uniform("server", index) * servers)

    def handshake(self, kinds: Sequence[Mapping[str, Any]], opened: int) -> tuple[Mapping[str, Any], list[int]]:
        """The handshake of the client's `opened`th connection, out of a plan's, and the bytes of its flights."""
        index = opened * _DRAWS_PER_HANDSHAKE
        draw = self.uniform("handshake", index)
        ends = accumulate(kind["fraction"] for kind in kinds)
        kind = next((kind for kind, end in zip(kinds, ends, strict=True) if draw < end), kinds[-1])
        numbered = enumerate(kind["flights"], start=index + 1)
        return kind, [
            self.size(flight["bytes"], "handshake", number) + flight.get("more_bytes", 0) for number, flight in numbered
        ]

    def uniform(self, purpose: str, index: int) -> float:
        """A number in [0, 1)."""
        return _native.draw(self._owner, purpose, index)

    def _draw(self, law: Mapping[str, Any], purpose: str, index: int) -> float:
        # Read once: a measured law has a thousand points, and a page draws a hundred sizes.
        if id(law) not in self._laws:
            self._laws[id(law)] = law, _native.Law(json.dumps(law))
        return _native.draw(self._owner, purpose, index, self._laws[id(law)][1])


def arm_of_user(shares: Sequence[float], seed: int, replicate: int, user: int) -> int:
    """The arm of a user, counted from 1; 0 is none. A larger share holds all users of a smaller one."""
    draw = Draws(seed, replicate, 0, user).uniform("arm", 0)
    return next((arm for arm, shared in enumerate(accumulate(shares), start=1) if draw < shared), 0)


def _round(value: float) -> int:
    """To the nearest whole number, halves away from zero: for values that are not negative."""
    return math.floor(value + 0.5)
