"""`firstflight shell`: any program inside a scenario's network."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from firstflight import observe
from firstflight.characters import escaped
from firstflight.cli.settings import load_scenario
from firstflight.counted import counted
from firstflight.engines.emulate.shell import Observed, Shell
from firstflight.errors import MachineError, RequestError
from firstflight.observe.summary import lines
from firstflight.records import output
from firstflight.report.figure import format_of
from firstflight.studies.execute import check_seed


@dataclass(frozen=True)
class Wanted:
    """The programs to run, on which host, and the files to keep."""

    program: list[str]
    host: str
    beside: list[str]
    serve: Path | None
    pcap: Path | None
    links: Path | None
    plot: Path | None

    def check(self, file: Path) -> None:
        """RequestError for requests that would fail after the programs have run."""
        for path in (self.pcap, self.links, self.plot):
            if path is not None:
                output.check(path, [file])
        for option, path in (("--pcap", self.pcap), ("--links", self.links)):
            if path is not None and path.suffix != ".pcapng":
                raise RequestError(f"{option} {path}: packets are written as .pcapng")
        if self.plot is not None:
            format_of(self.plot)
        if self.serve is not None and not self.serve.is_dir():
            raise RequestError(f"--serve {self.serve}: there is no such directory")
        for path in (self.pcap, self.links):
            if path is not None:
                output.make_directory(path)


def shell_command(file: Path, wanted: Wanted, settings: list[str], seed: int | None) -> int:
    """Run the program, or the user's shell, and report the packets that passed; the program's exit status."""
    wanted.check(file)
    if seed is not None:
        check_seed(seed)
    beside = [_beside(text) for text in wanted.beside]
    with Shell(load_scenario(file, settings), seed or 0, watch_links=wanted.links is not None) as shell:
        for host in (wanted.host, *(host for host, _ in beside)):
            shell.host(host)
        for host, names in shell.names().items():
            _tell(f"{host}: {', '.join(names)}, {shell.layout.host(host).address}")
        if wanted.serve is not None:
            _tell(f"{wanted.serve} is at {', '.join(shell.serve(wanted.serve))}")
        for host, command in beside:
            shell.start(host, ["sh", "-c", command])
        status = shell.run(wanted.host, wanted.program or [os.environ.get("SHELL", "/bin/sh")])
        seen = shell.observed(wanted.pcap, wanted.links)
    _report(seen, wanted, file)
    return status


def _report(seen: Observed, wanted: Wanted, file: Path) -> None:
    for link in seen.links:
        if link["offered"]["packets"]:
            dropped, lost = (counted(link[what]["packets"], "packet") for what in ("dropped", "lost"))
            _tell(f"{link['name']}: {counted(link['offered']['packets'], 'packet')}, {dropped} dropped, {lost} lost")
    for sentence in seen.too_fast:
        _tell(sentence)
    if seen.missed:
        _tell(f"the plot has no queue, since the log of the links lacks {counted(seen.missed, 'packet')}")
    if wanted.pcap is not None:
        with suppress(RequestError):
            _tell("\n".join(map(escaped, lines(observe.read(wanted.pcap)))))
    if wanted.links is not None:
        _tell(f"{wanted.links}: packets at the links")
    if wanted.plot is not None:
        from firstflight.report.trace_plot import draw

        title = f"{file.name}: {' '.join(wanted.program) or 'shell'}"
        try:
            draw(seen.segments, wanted.plot, title, None if seen.missed else seen.crossings)
        except OSError as error:
            raise MachineError(f"{error.filename or wanted.plot} cannot be written: {error.strerror}") from None
        except ValueError as error:
            raise RequestError(f"--plot {wanted.plot}: {error}") from None
        _tell(f"{wanted.plot}: the connection with most bytes")


def _beside(text: str) -> tuple[str, str]:
    host, equals, command = text.partition("=")
    if not (host and equals and command):
        raise RequestError(f'--beside "{text}" is not HOST=COMMAND: write for example --beside "server=iperf3 -s"')
    return host, command


def _tell(text: str) -> None:
    # The standard output is the program's.
    print(text, file=sys.stderr, flush=True)
