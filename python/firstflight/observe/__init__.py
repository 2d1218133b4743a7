"""A user's own traffic as records: access logs, socket snapshots, captures, M-Lab rows and plain tables.

    from firstflight import observe

    seen = observe.read("access.log")
    seen.users        # one row per connection: rtt_s, down_bps, ...
    seen.transfers    # one row per response: bytes, retransmissions, ...
    seen.problems     # what could not be read, by line or byte, counted

A value that the format lacks is null: nothing is guessed here.
"""

from firstflight.observe.observation import Observation, Source
from firstflight.observe.problem import Problem
from firstflight.observe.reading import KINDS, read
from firstflight.observe.tables import MSS_BYTES

__all__ = ["KINDS", "MSS_BYTES", "Observation", "Problem", "Source", "read"]
