"""`firstflight bench`: the cost of the simulator, next to ns-2 and ns-3 where they are installed.

Benchmarks, not timed tests: a speed that falls short is printed as such and fails nothing. Only one check can fail,
that both simulators did the same work (exit status 1).
"""

from firstflight.bench.command import main

__all__ = ["main"]
