"""ns-2 and ns-3: whether they are here, and one run of each."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.process import run
from bench.work import DIRECTORY, SIZES_CSV
from firstflight.errors import MachineError

INSTALL = "sudo apt-get install ns2 ns3 libns3-dev g++"

_NS3_LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")


@dataclass(frozen=True)
class PeerRun:
    """CPU of one run in seconds, net of an empty run's, and the figures the script printed, by name."""

    cpu_s: float
    figures: dict[str, float]


class Peer(ABC):
    """A simulator that takes the same work: `bulk` runs it, `name` is the table's."""

    name: str

    @abstractmethod
    def bulk(self, access_delays_s: tuple[float, float], stop_s: float) -> PeerRun:
        """The bulk work for `stop_s` simulated seconds; access delays of the first and the last flow."""


class Ns2(Peer):
    """ns-2, driven by `bench/peers/ns2`."""

    name = "ns-2"

    def __init__(self, program: str) -> None:
        self._program = program
        empty = 'set ns [new Simulator]\n$ns at 0 "exit 0"\n$ns run\n'
        # reading its own Tcl library, before anything is simulated
        self._start_up_s = median(run([program], empty).cpu_s for _ in range(3))

    def bulk(self, access_delays_s: tuple[float, float], stop_s: float) -> PeerRun:
        """The bulk work: data_packets, ack_packets, drops, util (percent)."""
        low, high = access_delays_s
        return self._script("bulk.tcl", adelay_lo=low, adelay_hi=high, stop=stop_s)

    def lossy(self, stop_s: float, seed: int = 1) -> PeerRun:
        """The lossy work with Sack1: sent_packets, repeated_packets, data_packets, ack_packets, util (percent)."""
        return self._script("lossy.tcl", stop=stop_s, seed=seed)

    def baytcp(self, clients: int, window_segments: int) -> PeerRun:
        """Downloads with the TCP of RFC 2415's authors for 360 s: data_packets, ack_packets, drops, util (percent)."""
        return self._script("baytcp.tcl", clients=clients, wnd=window_segments)

    def rfc2415(self, webs: int, ftps: int, initial_window: int = 1, http: str = "1.0", seed: int = 1) -> PeerRun:
        """One cell of RFC 2415 for 360 s: util, drop (percent), down_packets, ..."""
        return self._script(
            "rfc2415.tcl", webs=webs, ftps=ftps, iw=initial_window, http=http, seed=seed, **RFC2415_SETTINGS
        )

    def page_delays_s(self, webs: int, ftps: int, seed: int) -> list[float]:
        """Delay of each page that one seed finished, as `rfc2415`."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "delays"
            self._script("rfc2415.tcl", webs=webs, ftps=ftps, seed=seed, delays=file, **RFC2415_SETTINGS)
            return [float(line) for line in file.read_text().split()]

    def _script(self, script: str, **settings: object) -> PeerRun:
        path = DIRECTORY / "peers" / "ns2" / script
        finished = run([self._program, str(path), *(f"{key}={value}" for key, value in settings.items())])
        return PeerRun(max(finished.cpu_s - self._start_up_s, 0.0), _figures(finished.output))


# scale: as in bench/scenarios/rfc2415.toml
RFC2415_SETTINGS: dict[str, object] = {"cdf": SIZES_CSV, "scale": 0.7}


class Ns3(Peer):
    """ns-3, by a program built from `bench/peers/ns3`."""

    name = "ns-3"

    def __init__(self, program: Path) -> None:
        self._program = program
        self._start_up_s = median(run([str(program), "--stop=0"]).cpu_s for _ in range(3))

    def bulk(self, access_delays_s: tuple[float, float], stop_s: float) -> PeerRun:
        """The bulk work: data_packets, ack_packets, drops, util (percent)."""
        low, high = access_delays_s
        finished = run([str(self._program), f"--adelayLow={low}", f"--adelayHigh={high}", f"--stop={stop_s}"])
        return PeerRun(max(finished.cpu_s - self._start_up_s, 0.0), _figures(finished.output))


def find_ns2() -> Ns2 | None:
    """ns-2, if `ns` is on the path."""
    program = shutil.which("ns")
    return Ns2(program) if program else None


@contextmanager
def build_ns3() -> Iterator[Ns3 | None]:
    """ns-3 with the benchmark's program built in a directory that goes away; None if it cannot be built."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "bulk"
        source = DIRECTORY / "peers" / "ns3" / "bulk.cc"
        libraries = [f"-lns3-{name}" for name in _NS3_LIBRARIES]
        try:
            run(["g++", "-O2", "-std=c++17", str(source), "-o", str(program), *libraries])
        except (MachineError, FileNotFoundError):
            yield None
        else:
            yield Ns3(program)


def _figures(output: str) -> dict[str, float]:
    """The key=value pairs of a script's last line."""
    pairs = (pair.split("=", 1) for pair in output.strip().splitlines()[-1].split())
    return {key: float(value) for key, value in pairs}
