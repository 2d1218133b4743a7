"""Scenarios: TOML files checked and turned into the plan that an engine runs."""

from .cell import Cell
from .scenario import Scenario
from .tcp import Tcp, profiles
from .units import BitsPerSecond, Bytes, Duration, Packets

__all__ = ["BitsPerSecond", "Bytes", "Cell", "Duration", "Packets", "Scenario", "Tcp", "profiles"]
