"""The simulator's random draws, for real programs: the same seed gives the same sizes, pauses and servers.

Every draw is a function of its purpose (replicate, application, client, purpose, number) and not of the draws
before it, so cells that differ in TCP only ask for the same bytes at the same times, and so does the simulator
(`crates/random` and `crates/sim/src/distribution.rs`).
"""

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import Any

_WORD = 2**32 - 1
# Largest file that the simulator draws, 8.8 TB.
_LARGEST_BYTES = 1 << 43
_MOST_INLINE_OBJECTS = 65_535
_DRAWS_PER_HANDSHAKE = 256


class Purpose(IntEnum):
    """The purpose of a draw, with the simulator's numbers."""

    START = 0
    THINK = 1
    REQUEST_SIZE = 2
    RESPONSE_SIZE = 3
    INLINE_COUNT = 4
    SERVER = 5
    SHARE = 11
    ARM = 15
    HANDSHAKE = 16


class Draws:
    """The draws of one client of one application in one replicate."""

    def __init__(self, seed: int, replicate: int, application: int, client: int) -> None:
        self._key = (seed & _WORD, seed >> 32)
        self._replicate = replicate
        self._application = application
        self._client = client

    def size(self, law: Mapping[str, Any], purpose: Purpose, index: int) -> int:
        """Bytes: whole, at least one."""
        return min(max(_round(self._draw(law, purpose, index)), 1), _LARGEST_BYTES)

    def inline_objects(self, law: Mapping[str, Any], page: int) -> int:
        """In-line objects of a page."""
        return min(_round(self._draw(law, Purpose.INLINE_COUNT, page)), _MOST_INLINE_OBJECTS)

    def seconds(self, law: Mapping[str, Any], purpose: Purpose, index: int) -> float:
        """A time in seconds, to the nanosecond."""
        return _round(self._draw(law, purpose, index) * 1e9) / 1e9

    def server(self, choice: str, servers: int, index: int) -> int:
        """The server, out of this number, that connection `index` asks."""
        if choice == "by_client":
            return self._client % servers
        return self._bits(Purpose.SERVER, index)[0] * servers >> 64

    def handshake(self, kinds: Sequence[Mapping[str, Any]], opened: int) -> tuple[Mapping[str, Any], list[int]]:
        """The handshake of the client's `opened`th connection, out of a plan's, and the bytes of its flights."""
        index = opened * _DRAWS_PER_HANDSHAKE
        draw = self.uniform(Purpose.HANDSHAKE, index)
        ends = accumulate(kind["fraction"] for kind in kinds)
        kind = next((kind for kind, end in zip(kinds, ends, strict=True) if draw < end), kinds[-1])
        numbered = enumerate(kind["flights"], start=index + 1)
        return kind, [
            self.size(flight["bytes"], Purpose.HANDSHAKE, number) + flight.get("more_bytes", 0)
            for number, flight in numbered
        ]

    def uniform(self, purpose: Purpose, index: int) -> float:
        """A number in [0, 1)."""
        return (self._bits(purpose, index)[0] >> 11) / 2**53

    def _draw(self, law: Mapping[str, Any], purpose: Purpose, index: int) -> float:
        if law["distribution"] == "constant":
            return float(law["value"])
        u, v = ((bits >> 11) / 2**53 for bits in self._bits(purpose, index))
        return drawn(law, u, v)

    def _bits(self, purpose: Purpose, index: int) -> tuple[int, int]:
        counter = (
            index & _WORD,
            (index >> 32 & 0xFFFF) | self._application << 24 | purpose << 16,
            self._client,
            self._replicate,
        )
        a, b, c, d = philox(counter, self._key)
        return a | b << 32, c | d << 32


def arm_of_user(shares: Sequence[float], seed: int, replicate: int, user: int) -> int:
    """The arm of a user, counted from 1; 0 is none. A larger share holds all users of a smaller one."""
    draw = Draws(seed, replicate, 0, user).uniform(Purpose.ARM, 0)
    return next((arm for arm, shared in enumerate(accumulate(shares), start=1) if draw < shared), 0)


def _round(value: float) -> int:
    """To the nearest whole number, halves away from zero: for values that are not negative."""
    return math.floor(value + 0.5)


def drawn(law: Mapping[str, Any], u: float, v: float) -> float:
    """The draw from a law (as in a plan) for two uniform numbers in [0, 1)."""
    match law["distribution"]:
        case "uniform":
            return float(law["low"] + (law["high"] - law["low"]) * u)
        case "exponential":
            return float(-law["mean"] * math.log(1.0 - u))
        case "lognormal":
            normal = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)
            return _clipped(law["median"] * math.exp(law["sigma"] * normal), law)
        case "pareto":
            shape, minimum, maximum = law["shape"], law["minimum"], law.get("maximum")
            beyond = 0.0 if maximum is None else (minimum / maximum) ** shape
            return float(minimum * (1.0 - u * (1.0 - beyond)) ** (-1.0 / shape))
        case "empirical":
            return _clipped(law.get("scale", 1.0) * _interpolated(law["points"], law["interpolation"], u), law)
        case other:
            raise ValueError(f'unknown law "{other}"')


def _clipped(value: float, law: Mapping[str, Any]) -> float:
    if (minimum := law.get("minimum")) is not None:
        value = max(value, minimum)
    if (maximum := law.get("maximum")) is not None:
        value = min(value, maximum)
    return float(value)


def _interpolated(points: Sequence[Sequence[float]], interpolation: str, u: float) -> float:
    upper = min(max(sum(1 for p, _ in points if p <= u), 1), len(points) - 1)
    (p0, x0), (p1, x1) = points[upper - 1], points[upper]
    share = (u - p0) / (p1 - p0)
    if interpolation == "linear":
        return x0 + (x1 - x0) * share
    low, high = math.log(max(x0, 1.0)), math.log(max(x1, 1.0))
    return math.exp(low + (high - low) * share)


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32 with ten rounds: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & _WORD, (a >> 32) ^ c3 ^ k1, a & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3
