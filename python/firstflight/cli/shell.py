"""`firstflight shell`: any program inside a scenario's network."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from firstflight import observe
from firstflight.cli.options import Seed, Settings
from firstflight.cli.settings import load_scenario
from firstflight.counted import counted, escaped
from firstflight.engines.emulate.shell import Shell, ShellResult
from firstflight.errors import MachineError, RequestError, require_linux
from firstflight.observe.summary import lines
from firstflight.records import output
from firstflight.report.figure import format_of
from firstflight.report.trace_plot import draw
from firstflight.scenario.cell import check_seed


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A scenario file.")],
    program: Annotated[
        list[str] | None, typer.Argument(metavar="[-- PROGRAM...]", help="Program to run. Default: your shell.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Host to run it on: client, server, node1, spokes0 ...")
    ] = "client",
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST=COMMAND", help="Also run COMMAND on HOST meanwhile. May be repeated."),
    ] = None,
    serve: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Serve the files in DIR with nginx at http://server/ and https://server/."),
    ] = None,
    pcap: Annotated[Path | None, typer.Option(metavar="F", help="Write the packets at the server as pcapng.")] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="F", help="Write the packets at the receiving side of each link as pcapng, one interface per link."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="F", help="Draw the connection with most bytes, to .svg, .png or .pdf.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
) -> None:
    """Run a shell or any program on a host of a scenario's network, over its links. TCP is the local kernel's, set as
    the scenario says. Hosts have names (server, client, node0 ...). Needs user namespaces, not root.
    """
    require_linux("firstflight shell")
    _check(file, serve, pcap, links, plot)
    if seed is not None:
        check_seed(seed)
    commands = [_beside(text) for text in beside or []]
    with Shell(load_scenario(file, settings or []), seed or 0, watch_links=links is not None) as started:
        for name in (host, *(name for name, _ in commands)):
            started.host(name)
        for name, names in started.names().items():
            _tell(f"{name}: {', '.join(names)}, {started.layout.host(name).address}")
        if serve is not None:
            _tell(f"{serve} is at {', '.join(started.serve(serve))}")
        for name, line in commands:
            started.start(name, ["sh", "-c", line])
        status = started.run(host, program or [os.environ.get("SHELL", "/bin/sh")])
        seen = started.observed(pcap, links)
    _report(seen, pcap, links)
    if plot is not None:
        _draw(seen, plot, f"{file.name}: {' '.join(program or []) or 'shell'}")
    raise typer.Exit(status)


def _check(file: Path, serve: Path | None, pcap: Path | None, links: Path | None, plot: Path | None) -> None:
    """RequestError for requests that would fail after the programs have run."""
    for path in (pcap, links, plot):
        if path is not None:
            output.check(path, [file])
    for option, path in (("--pcap", pcap), ("--links", links)):
        if path is not None and path.suffix != ".pcapng":
            raise RequestError(f"{option} {path}: packets are written as .pcapng")
    if plot is not None:
        format_of(plot)
    if serve is not None and not serve.is_dir():
        raise RequestError(f"--serve {serve}: there is no such directory")
    for path in (pcap, links):
        if path is not None:
            output.make_directory(path)


def _report(seen: ShellResult, pcap: Path | None, links: Path | None) -> None:
    for link in seen.links:
        if link["offered"]["packets"]:
            dropped, lost = (counted(link[what]["packets"], "packet") for what in ("dropped", "lost"))
            _tell(f"{link['name']}: {counted(link['offered']['packets'], 'packet')}, {dropped} dropped, {lost} lost")
    for sentence in seen.too_fast:
        _tell(sentence)
    if seen.missed:
        _tell(f"the plot has no queue, since the log of the links lacks {counted(seen.missed, 'packet')}")
    if pcap is not None:
        with suppress(RequestError):
            _tell("\n".join(map(escaped, lines(observe.read(pcap)))))
    if links is not None:
        _tell(f"{links}: packets at the links")


def _draw(seen: ShellResult, plot: Path, title: str) -> None:
    try:
        draw(seen.segments, plot, title, None if seen.missed else seen.crossings)
    except OSError as error:
        raise MachineError(f"{error.filename or plot} cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise RequestError(f"--plot {plot}: {error}") from None
    _tell(f"{plot}: the connection with most bytes")


def _beside(text: str) -> tuple[str, str]:
    host, equals, command = text.partition("=")
    if not (host and equals and command):
        raise RequestError(f'--beside "{text}" is not HOST=COMMAND: write for example --beside "server=iperf3 -s"')
    return host, command


def _tell(text: str) -> None:
    # The standard output is the program's.
    print(text, file=sys.stderr, flush=True)
