"""`firstflight trace`: one transfer, segment by segment."""

import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from firstflight.cli.settings import load_scenario
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.records import output
from firstflight.tracing import End, Trace


@dataclass(frozen=True)
class Outputs:
    """What to write where; `at` and `link` say where the packets of `pcap` are taken."""

    plot: Path | None = None
    csv: Path | None = None
    pcap: Path | None = None
    at: End | None = None
    link: str | None = None

    def check(self, file: Path) -> None:
        """RequestError for what does not fit together, and for what would destroy `file` or somebody's."""
        named = [path for path in (self.plot, self.csv, self.pcap) if path is not None and str(path) != "-"]
        if len({path.absolute() for path in named}) < len(named):
            raise RequestError("two of --plot, --csv and --pcap name the same file; give each its own")
        for path in named:
            output.check(path, [file])
        if self.plot is not None and self.plot.suffix.lower() not in (".svg", ".png"):
            raise RequestError(f'--plot "{self.plot}": a plot is written as .svg or .png')
        if self.pcap is not None and str(self.pcap) == "-":
            raise RequestError('--pcap "-": packets are written to a file, which then is whole or absent; name one')
        if self.pcap is None and (self.at or self.link):
            raise RequestError(f"--{'at' if self.at else 'link'} says where --pcap takes packets; add --pcap F")
        if self.at and self.link:
            raise RequestError("packets are taken either --at an end or on a --link; leave one out")

    def tell(self, line: str) -> None:
        """Print what was written, unless the output is the CSV itself."""
        if str(self.csv) != "-":
            print(line)

    @property
    def only_pcap(self) -> bool:
        """Whether nothing but packets is asked for."""
        return self.pcap is not None and self.plot is None and self.csv is None


def trace_command(file: Path, outputs: Outputs, settings: list[str], seed: int | None) -> None:
    """Print the table unless a plot, CSV or packets are asked for."""
    outputs.check(file)
    trace = Trace(load_scenario(file, settings), seed)
    csv, plot = outputs.csv, outputs.plot
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
    if plot is not None:
        trace.plot(plot)
    for path in (csv, plot):
        if path is not None and str(path) != "-":
            outputs.tell(f"{path}: {events}")
    if csv is None and plot is None:
        _print(trace.segments)


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
