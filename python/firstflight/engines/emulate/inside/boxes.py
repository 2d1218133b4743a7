"""The link box: one process that carries every packet of the testbed over the links of the plan."""

import subprocess
from collections.abc import Callable
from typing import Any

from firstflight.engines.emulate.inside.driven import Driven

_CALL = "_native.run_box(json.dumps(start['plan']), [tuple(port) for port in start['fds']], start['control'])"


class Box(Driven):
    """A running link box. Its commands are those of the native module: take, reset, watch, pcapng, stop."""

    def __init__(self, plan: dict[str, Any], fds: list[tuple[str, int]], on_death: Callable[[str], None]) -> None:
        """Start it on these descriptors, (kind, descriptor) in the order of the plan's ports; it owns them then.

        MachineError if it does not come up.
        """
        start = {"plan": plan, "fds": fds}
        super().__init__("the link box", _CALL, start, [fd for _, fd in fds], subprocess.Popen, on_death)
        self.ask("take")
