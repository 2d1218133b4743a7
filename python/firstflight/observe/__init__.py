"""Your own traffic as records: access logs, socket snapshots, captures, M-Lab rows and tables.

    from firstflight import observe

    seen = observe.read("access.log")
    seen.users        # one row per connection: rtt_s, down_bps, ...
    seen.transfers    # one row per response: bytes, retransmissions, ...
    seen.problems     # skipped parts, by line or byte, with counts

A value that the format lacks is null, never guessed.
"""

from firstflight.observe.observation import Observation, TrafficSource
from firstflight.observe.problem import Problem
from firstflight.observe.reading import KINDS, read
from firstflight.observe.tables import MSS_BYTES

__all__ = ["KINDS", "MSS_BYTES", "Observation", "Problem", "TrafficSource", "read"]
