"""Connections of this machine's kernel, recorded as packet scripts and run through a profile."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from firstflight.conform.parameters import Parameters, simpler
from firstflight.conform.writer import write_script
from firstflight.engines.emulate.lab import TUN_FIX
from firstflight.engines.emulate.start import Inside
from firstflight.errors import MachineError
from firstflight.packet_scripts import run_script

_RECORDER = str(Path(__file__).with_name("inside") / "record.py")
_ASK_S = 20.0
# Recorded concurrently, and the time that may take; how often a mismatch is recorded that stalls may explain.
_BATCH, _BATCH_S = 500, 300.0
_ATTEMPTS = 5
_STALL_NS = 3_000_000
# Linux draws the phase in which BBR's PROBE_BW begins. Here it follows from the initial sequence number: one for each
# phase but the default's.
_SEQUENCES = (3, 6, 1, 4, 7, 2)
# Tolerances that a script's own option line does not allow already.
_TOLERANCE_NS = 1_000


@dataclass(frozen=True)
class JudgedConnection:
    """A recorded connection, and the result of its script."""

    parameters: Parameters
    script: str
    verdict: str
    """As of `firstflight script`: pass, differs, unsupported or error."""
    reason: str = ""
    line: int = 0
    details: tuple[str, ...] = ()
    stall_ns: int = 0
    """By how much the recorder was ever late."""

    @property
    def matches(self) -> bool:
        """Whether the profile behaved as the kernel did."""
        return self.verdict == "pass"

    @property
    def length(self) -> int:
        """Lines to read."""
        return self.script.count("\n")

    @property
    def part(self) -> str:
        """The kind of difference, without its numbers: fields of tcp_info, or parts of a segment."""
        asserted = dict(re.findall(r"(tcpi_\w+) == (-?\d+)", self.reason))
        actual = re.findall(r"(tcpi_\w+) is (-?\d+)", self.reason)
        fields = [name for name, value in actual if asserted.get(name) != value]
        if fields:
            return ", ".join(fields)
        sentence = re.sub(r"^line \d+: ", "", self.reason)
        return re.sub(r"<[^>]*>", "<...>", re.sub(r"\d[\d.]*", "n", sentence))


Recorder = Callable[[Sequence[Parameters]], list[JudgedConnection]]
"""Records connections and judges them, in their order. MachineError where the machine does not do it."""


class Kernel:
    """The kernel that runs here, in separate namespaces; to be used in a `with` statement."""

    def __enter__(self) -> Self:
        """MachineError, with the fix, if there are no namespaces or no TUN device."""
        self._inside = Inside(_RECORDER)
        try:
            facts = self._inside.connection.call("examine", {}, _ASK_S)
            if facts["tun_refusal"] is not None:
                raise MachineError(f"there is no TUN device ({facts['tun_refusal']})", TUN_FIX)
        except BaseException:
            self._inside.close()
            raise
        self.name: str = facts["kernel"]
        self.controls: list[str] = facts["congestion_controls"]
        return self

    def __exit__(self, *_: object) -> None:
        self._inside.close()

    def judge(self, connections: Sequence[Parameters]) -> list[JudgedConnection]:
        """Record and run each; one that does not match although the recorder was late meanwhile is recorded again."""
        judged = self._once(connections)
        for _ in range(_ATTEMPTS - 1):
            again = [
                n
                for n, connection in enumerate(judged)
                if connection.verdict == "error" or (not connection.matches and connection.stall_ns > _STALL_NS)
            ]
            for place, connection in zip(again, self._once([connections[n] for n in again]), strict=True):
                judged[place] = connection
        return judged

    def _once(self, connections: Sequence[Parameters]) -> list[JudgedConnection]:
        judged = []
        for start in range(0, len(connections), _BATCH):
            some = connections[start : start + _BATCH]
            tables = {"connections": [asdict(parameters) for parameters in some]}
            recordings = self._inside.connection.call("record", tables, _BATCH_S)
            judged += [judge(how, recording, self.name) for how, recording in zip(some, recordings, strict=True)]
        return judged


def judge(parameters: Parameters, recording: dict[str, Any], kernel: str) -> JudgedConnection:
    """Run a recording through the profile."""
    script = write_script(parameters, recording, kernel)
    stall = int(recording["stall_ns"])
    if not any(event[0] == "accept" for event in recording["events"]):
        return JudgedConnection(parameters, script, "error", "the recording has no handshake", stall_ns=stall)
    report = run_script(script, _TOLERANCE_NS)
    if parameters.cc == "bbr" and report["line"]:
        options = (script.replace("\n--", f"\n--initial_sequence={number}\n--", 1) for number in _SEQUENCES)
        tried = ((text, run_script(text, _TOLERANCE_NS)) for text in options)
        script, report = next((pair for pair in tried if pair[1]["verdict"] == "pass"), (script, report))
    if report["line"]:
        # Packets after the difference mean nothing.
        script = "\n".join(script.splitlines()[: report["line"]]) + "\n"
    return JudgedConnection(
        parameters, script, report["verdict"], report["reason"], report["line"], tuple(report["details"]), stall
    )


_ROUNDS = 12
_TRIED = 24


def shrink(mismatches: Sequence[JudgedConnection], record: Recorder) -> list[JudgedConnection]:
    """The simplest connection found for each, in their order; simpler ones of all of them are recorded together."""
    smallest = list(mismatches)
    open_places = list(range(len(smallest)))
    for _ in range(_ROUNDS):
        tried = [list(simpler(smallest[place].parameters))[:_TRIED] for place in open_places]
        judged = iter(record([parameters for some in tried for parameters in some]) if any(tried) else [])
        still_open = []
        for place, some in zip(open_places, tried, strict=True):
            answers = [next(judged) for _ in some]
            kind = smallest[place].verdict, smallest[place].part
            parts = [answer for answer in answers if (answer.verdict, answer.part) == kind]
            if parts:
                smallest[place] = min(parts, key=lambda answer: answer.length)
                still_open.append(place)
        open_places = still_open
        if not open_places:
            break
    return smallest
