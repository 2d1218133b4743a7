"""A capture on a server host: every segment that its device carries, with the kernel's time stamps."""

from collections.abc import Callable
from typing import Any

from firstflight.engines.emulate.inside.devices import DEVICE
from firstflight.engines.emulate.inside.driven import Driven
from firstflight.engines.emulate.inside.namespaces import Namespace


class Capture(Driven):
    """A running capture in a host's namespace. Its commands are the native module's: take, reset, pcapng, stop."""

    def __init__(self, namespace: Namespace, on_death: Callable[[str], None]) -> None:
        """Start it on the host's device. MachineError if it does not come up."""
        start = {"interface": DEVICE}
        call = "_native.run_capture(start['interface'], start['control'])"
        super().__init__(f"the capture on host {namespace.name}", call, start, [], namespace.spawn, on_death)
        self.ask("reset")

    def take(self, origin_ns: int, replicate: int) -> dict[str, Any]:
        """The packets since the last reset: `tables` with `segments`, whose times count from `origin_ns` of
        CLOCK_MONOTONIC, `connections` with the ends of each by number, and `counts`.
        """
        return self.ask("take", origin_ns=origin_ns, replicate=replicate)
