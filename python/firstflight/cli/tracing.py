"""`firstflight trace`: one transfer, segment by segment."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from firstflight.cli.settings import load_scenario, print_timing_hint, variations
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.records import output
from firstflight.report.figure import drawing, format_of
from firstflight.scenario import Cell, Scenario
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


@dataclass(frozen=True)
class Outputs:
    """The outputs and their files. `at` and `link`: where the packets of `pcap` are captured; `engine`: the engine of
    the transfer.
    """

    plot: Path | None = None
    ladder: Path | None = None
    csv: Path | None = None
    pcap: Path | None = None
    at: End | None = None
    link: str | None = None
    engine: Literal["simulate", "emulate", "both"] = "simulate"

    def check(self, file: Path) -> None:
        """RequestError for options that do not fit together, and for outputs that would destroy `file` or a user's
        file.
        """
        named = [path for path in (*self.pictures, self.csv, self.pcap) if path is not None and str(path) != "-"]
        if len({path.absolute() for path in named}) < len(named):
            raise RequestError("two of --plot, --ladder, --csv and --pcap name the same file; give each its own")
        for path in named:
            output.check(path, [file])
        for picture in self.pictures:
            format_of(picture)
        if self.pcap is not None and str(self.pcap) == "-":
            raise RequestError('--pcap "-": packets are written to a file, which then is whole or absent; name one')
        if self.pcap is None and (self.at or self.link):
            raise RequestError(f"--{'at' if self.at else 'link'} says where --pcap takes packets; add --pcap F")
        if self.at and self.link:
            raise RequestError("packets are taken either --at an end or on a --link; leave one out")
        if self.ladder is not None and self.engine != "simulate":
            raise RequestError(
                "--ladder needs both endpoints' segments, and the kernel's are captured at the server: use --plot"
            )

    def tell(self, line: str) -> None:
        """Print the names of written files, unless the output is the CSV itself."""
        if str(self.csv) != "-":
            print(line)

    @property
    def pictures(self) -> list[Path]:
        """The files that are drawn."""
        return [path for path in (self.plot, self.ladder) if path is not None]

    @property
    def only_pcap(self) -> bool:
        """Whether nothing but packets is asked for."""
        return self.pcap is not None and not self.pictures and self.csv is None


def trace_command(file: Path, outputs: Outputs, settings: list[str], vary: list[str], seed: int | None) -> None:
    """Print the table unless a plot, CSV or packets are asked for."""
    outputs.check(file)
    scenario = load_scenario(file, settings)
    engine = outputs.engine
    if engine == "simulate":
        print_timing_hint(scenario)
    if vary or engine == "both":
        if not outputs.pictures or outputs.csv is not None or outputs.pcap is not None:
            option = "--vary" if vary else "--engine both"
            raise RequestError(f"{option} draws several transfers in one picture; give it --plot F or --ladder F alone")
        cells = VariedScenario(scenario, variations(vary)).cells("simulate") if vary else [Cell({}, scenario)]
        traces = [
            _transfer(cell.scenario, seed, ", ".join(filter(None, (_label(cell.key), name))), carrier, engine == "both")
            for cell in cells
            for carrier, name in _ENGINES[engine]
        ]
        _draw(traces, outputs)
        for path in outputs.pictures:
            print(f"{path}: {', '.join(trace.label for trace in traces)}")
        return
    trace = Trace(scenario, seed, engine=engine)
    csv = outputs.csv
    if outputs.pcap is not None:
        packets = trace.pcap(outputs.pcap, at=outputs.at or "client", link=outputs.link)
        outputs.tell(f"{outputs.pcap}: {counted(packets, 'packet')}")
    if outputs.only_pcap:
        return
    events = counted(trace.segments.height, "segment event")
    if csv is not None and str(csv) == "-":
        sys.stdout.write(trace.segments.write_csv())
    elif csv is not None:
        trace.csv(csv)
    _draw([trace], outputs)
    for written in (csv, *outputs.pictures):
        if written is not None and str(written) != "-":
            outputs.tell(f"{written}: {events}")
    if csv is None and not outputs.pictures:
        _print(trace.segments)
        print("\n" + ", ".join(f"{name} {1e3 * time_s:.1f} ms" for name, time_s in trace.marks.items()))


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


def _draw(traces: list[Trace], outputs: Outputs) -> None:
    if outputs.plot is not None:
        first, *others = traces
        first.plot(outputs.plot, *others)
    if outputs.ladder is not None:
        from firstflight.explain.ladder import sheet
        from firstflight.explain.rounds import transfer

        text = sheet(traces[0].what, [transfer(trace) for trace in traces])
        output.write(outputs.ladder, drawing(text, format_of(outputs.ladder)))


def _label(key: Mapping[str, str | int | float | None]) -> str:
    """The varied key, in words: "IW 3", or "queue 20p"."""
    words = [
        f"IW {value}" if name == "initial_window" and isinstance(value, int) else f"{name.replace('_', ' ')} {value}"
        for name, value in key.items()
    ]
    return ", ".join(words)


def _print(rows: pl.DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for name in rows.columns:
        table.add_column(name, justify="left" if rows.schema[name] == pl.String else "right", no_wrap=True)
    for row in rows.iter_rows():
        table.add_row(*map(_shown, row))
    # A pipe gets whole lines; a terminal is as wide as it is.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(table)


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
