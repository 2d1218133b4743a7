"""The retransmission timer of RFC 6298, to find out whether it would fire; the model goes no further."""

from __future__ import annotations

from typing import Any

from firstflight.errors import RequestError


class RetransmissionTimer:
    """Smoothed round trip, its variation, and the deadline; all in ns. One segment is timed at a time."""

    def __init__(self, rules: dict[str, Any], start_ns: int) -> None:
        self.rules = rules
        self.start_ns = start_ns
        self.rto = float(rules["initial_ns"])
        self.smoothed: float | None = None
        self.variation = 0.0
        self.deadline: float | None = None
        self.timed: tuple[int, int] | None = None

    def sent(self, now: int, end: int) -> None:
        """A segment that ends before position `end` leaves."""
        if self.timed is None:
            self.timed = (now, end)
        if self.deadline is None:
            self.deadline = now + self.rto

    def acknowledged(self, now: int, position: int, outstanding: bool) -> None:
        """Everything before `position` is acknowledged at `now`; `outstanding`: something beyond it is not.

        Raises RequestError if the timer had expired before.
        """
        self.check(now)
        if self.timed is not None and position >= self.timed[1]:
            self._sample(self.timed[0], now)
            self.timed = None
        # RFC 6298 section 5.2 and 5.3: stop when all is acknowledged, else start again.
        self.deadline = now + self.rto if outstanding else None

    def stop(self) -> None:
        """Everything is acknowledged."""
        self.deadline = None

    def check(self, now: int) -> None:
        """Raises RequestError if the timer has expired by `now`."""
        if self.deadline is not None and now >= self.deadline:
            raise RequestError(
                f"outside the model's regime: a retransmission timer of {self.rto / 1e9:g} s expires "
                f"{self.deadline / 1e9:g} s after the connection was opened, before an ACK returns, and the model "
                "has no retransmission; use --engine simulate"
            )

    def _sample(self, sent: int, now: int) -> None:
        measured = float(now - sent)
        if self.rules["estimator"]["rfc6298"]["quantized_rtt"]:
            # A free-running clock: whole ticks of it that fall within the round trip.
            tick = self.rules["granularity_ns"]
            measured = float(((now + self.start_ns) // tick - (sent + self.start_ns) // tick) * tick)
            measured = max(measured, tick)
        if self.smoothed is None:
            self.smoothed, self.variation = measured, measured / 2
        else:
            self.variation += (abs(self.smoothed - measured) - self.variation) / 4
            self.smoothed += (measured - self.smoothed) / 8
        rto = self.smoothed + max(self.rules["granularity_ns"], 4 * self.variation)
        self.rto = min(max(rto, self.rules["minimum_ns"]), self.rules["maximum_ns"])
