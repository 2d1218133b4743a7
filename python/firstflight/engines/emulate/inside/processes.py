"""The processes of a testbed. One that must not end and does, ends the testbed; none outlives it."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable


class Watched:
    """A process that must live as long as the testbed does, unless a command stops it."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], on_death: Callable[[str], None], said: int | None = None
    ) -> None:
        """`name` for messages ("the link box"); `on_death` is called, in a thread, with a sentence; `said`: a file that
        the process wrote its errors to, whose last line gives the reason; it is closed when the process has ended.
        """
        self.name = name
        self.process = process
        self._on_death = on_death
        self._said = said
        self._expected = threading.Event()
        threading.Thread(target=self._watch, name=f"watch {name}", daemon=True).start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask it to end, and make it end."""
        self.let_go()
        self.process.terminate()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def let_go(self) -> None:
        """From now on it may end."""
        self._expected.set()

    def _watch(self) -> None:
        status = self.process.wait()
        lines: list[str] = []
        if self._said is not None:
            lines = os.pread(self._said, 1 << 16, 0).decode(errors="replace").splitlines()
            os.close(self._said)
        if not self._expected.is_set():
            self._on_death(": ".join([f"{self.name} ended unasked", ending(status), *lines[-1:]]))


def ending(status: int) -> str:
    """The end of a process, in words, from the status that `subprocess` gives."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
