"""`firstflight trace`: one transfer, segment by segment."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from firstflight.cli.options import Seed, Settings
from firstflight.cli.settings import load_scenario, print_timing_hint, variations
from firstflight.cli.terminal import show
from firstflight.counted import counted, listed
from firstflight.errors import RequestError
from firstflight.records import output
from firstflight.report.figure import format_of
from firstflight.scenario import Scenario
from firstflight.studies.varied import VariedScenario
from firstflight.tracing import End, Engine, Trace

# The engines for the transfers of a picture, and their names there.
_ENGINES: dict[str, list[tuple[Engine, str]]] = {
    "simulate": [("simulate", "")],
    "emulate": [("emulate", "")],
    "both": [("simulate", "simulated"), ("emulate", "kernel")],
}
# Their spread, in real time, is that of the kernel's clock and of the machine's other work.
_KERNEL_RUNS = 5


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A scenario file.")],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Draw sequence numbers, cwnd, rwnd and queue to .svg, .png or .pdf."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE[,VALUE]", help="With --plot: draw one transfer per value of a key."),
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="F", help="Write the segments as CSV. - is stdout.")] = None,
    pcap: Annotated[
        Path | None, typer.Option(metavar="F", help="Write the packets as pcapng, or pcap if F ends in .pcap.")
    ] = None,
    at: Annotated[
        Literal["client", "server"] | None, typer.Option(help="With --pcap: capture at this endpoint. Default: client.")
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --pcap: capture at the receiving side of this link, both directions."),
    ] = None,
    engine: Annotated[
        Literal["simulate", "emulate", "both"],
        typer.Option(help="Run in the simulator, over the local kernel, or, with --plot, both."),
    ] = "simulate",
    settings: Settings = None,
    seed: Seed = None,
) -> None:
    """Print each segment of one transfer: the first connection of the scenario's first application."""
    _check(file, plot, csv, pcap, at, link)
    scenario = load_scenario(file, settings or [])
    if engine == "simulate":
        print_timing_hint(scenario)
    if vary or engine == "both":
        if plot is None or csv is not None or pcap is not None:
            option = "--vary" if vary else "--engine both"
            raise RequestError(f"{option} draws several transfers in one picture; give it --plot F alone")
        traces = [
            _transfer(varied, seed, ", ".join(filter(None, (label, name))), carrier, engine == "both")
            for label, varied in labeled(scenario, vary or [], settings or [])
            for carrier, name in _ENGINES[engine]
        ]
        traces[0].plot(plot, *traces[1:])
        print(f"{plot}: {', '.join(trace.label for trace in traces)}")
        return
    trace = Trace(scenario, seed, engine=engine)
    # The output may be the CSV itself.
    to_stdout = csv is not None and str(csv) == "-"
    written = []
    if pcap is not None:
        packets = trace.pcap(pcap, at=at or "client", link=link)
        written.append(f"{pcap}: {counted(packets, 'packet')}")
        if plot is None and csv is None:
            print(*written)
            return
    events = counted(trace.segments.height, "segment event")
    if to_stdout:
        sys.stdout.write(trace.as_text().write_csv())
    elif csv is not None:
        trace.csv(csv)
        written.append(f"{csv}: {events}")
    if plot is not None:
        trace.plot(plot)
        written.append(f"{plot}: {events}")
    if not to_stdout:
        print("\n".join(written), end="\n" if written else "")
    if csv is None and plot is None:
        _print(trace.as_text())
        marks = sorted((trace.marks | trace.slow_start_end).items(), key=lambda mark: mark[1])
        show("\n" + ", ".join(f"{name} {1e3 * time_s:.1f} ms" for name, time_s in marks))


def _check(
    file: Path, plot: Path | None, csv: Path | None, pcap: Path | None, at: End | None, link: str | None
) -> None:
    """RequestError for options that do not fit together, and for outputs that would destroy `file` or a user's file."""
    named = [path for path in (plot, csv, pcap) if path is not None and str(path) != "-"]
    if len({path.absolute() for path in named}) < len(named):
        raise RequestError("two of --plot, --csv and --pcap name the same file; give each its own")
    for path in named:
        output.check(path, [file])
    if plot is not None:
        format_of(plot)
    if pcap is not None and str(pcap) == "-":
        raise RequestError('--pcap "-": packets are written to a file, which then is whole or absent; name one')
    if pcap is None and (at or link):
        raise RequestError(f"--{'at' if at else 'link'} says where --pcap takes packets; add --pcap F")
    if at and link:
        raise RequestError("packets are taken either --at an end or on a --link; leave one out")


def labeled(scenario: Scenario, vary: list[str], settings: list[str]) -> list[tuple[str, Scenario]]:
    """The scenario, which has the `settings` of --set, with each combination of the values of --vary, and these in
    words: "IW 3", or "queue 20p".
    """
    if not vary:
        return [("", scenario)]
    cells = VariedScenario(scenario, variations(vary, settings)).cells("simulate")
    return [(_label(cell.key), cell.scenario) for cell in cells]


def _transfer(scenario: Scenario, seed: int | None, label: str, carrier: Engine, compared: bool) -> Trace:
    """On the kernel times differ from run to run: beside a simulation the median of several runs is drawn, and the
    label says how far they lie apart.
    """
    if carrier == "simulate" or not compared:
        return Trace(scenario, seed, label, carrier)
    runs = [Trace(scenario, seed, label, carrier) for _ in range(_KERNEL_RUNS)]
    runs.sort(key=lambda run: run.outcome["completion_time_s"] if run.outcome["completed"] else math.inf)
    done = [1e3 * run.outcome["completion_time_s"] for run in runs if run.outcome["completed"]]
    spread = f"{done[0]:.1f} to {done[-1]:.1f} ms" if len(done) == len(runs) else f"{len(done)} complete"
    middle = runs[len(runs) // 2]
    middle.rename(f"{label}, median of {len(runs)} runs ({spread})")
    return middle


def _label(key: Mapping[str, str | int | float | None]) -> str:
    words = [
        f"IW {value}" if name == "initial_window" and isinstance(value, int) else f"{name.replace('_', ' ')} {value}"
        for name, value in key.items()
    ]
    return ", ".join(words)


# A terminal without room for all columns has the others, and of these in this order those that fit.
_AS_FIT = ("cwnd_segments", "flags", "sender_event", "mark", "handshake", "window_bytes")


def _print(rows: pl.DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table

    texts = {name: [name, *map(_shown, rows[name])] for name in rows.columns}
    # A pipe gets whole lines; a terminal is as wide as it is.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    shown = [name for name in rows.columns if name not in _AS_FIT]
    for name in _AS_FIT:
        if sum(max(map(len, texts[column])) + 2 for column in (*shown, name)) - 2 <= console.width:
            shown.append(name)
    shown.sort(key=rows.columns.index)
    table = Table(box=None, pad_edge=False, header_style="")
    for name in shown:
        table.add_column(name, justify="left" if rows.schema[name] == pl.String else "right", no_wrap=True)
    for row in zip(*(texts[name][1:] for name in shown), strict=True):
        table.add_row(*row)
    console.print(table)
    if omitted := [name for name in rows.columns if name not in shown]:
        show(f"\nNo room here for {listed(omitted)}: --csv F writes all columns.")


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
