"""Scenarios: TOML files checked and turned into the plan that an engine runs."""

from firstflight.scenario.cell import Cell
from firstflight.scenario.scenario import Scenario
from firstflight.scenario.tcp import Tcp, profiles
from firstflight.scenario.units import BitsPerSecond, Bytes, Duration, Packets

__all__ = ["BitsPerSecond", "Bytes", "Cell", "Duration", "Packets", "Scenario", "Tcp", "profiles"]
