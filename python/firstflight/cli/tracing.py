"""`firstflight trace`: one transfer, segment by segment."""

import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..counted import counted
from ..engines import memory
from ..engines.simulate import capture, capture_packets
from ..errors import MachineError, RequestError
from ..records import output
from ..scenario import Scenario
from ..studies.execute import check_seed
from ..studies.single import SingleScenario
from .settings import load_scenario

_EVENTS = ("sent", "received", "dropped", "lost")
_FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"))
_BILLION = 1_000_000_000


@dataclass(frozen=True)
class Outputs:
    """What to write where; `at` and `link` say where the packets of `pcap` are taken."""

    plot: Path | None = None
    csv: Path | None = None
    pcap: Path | None = None
    at: str | None = None
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
    if seed is not None:
        check_seed(seed)
    scenario = load_scenario(file, settings)
    memory.check_together([scenario])
    seed = SingleScenario.seed if seed is None else seed
    if outputs.pcap is not None:
        packets = capture_packets(scenario, seed, outputs.pcap, outputs.at or "client", outputs.link)
        outputs.tell(f"{outputs.pcap}: {counted(packets, 'packet')}")
    if not outputs.only_pcap:
        _segments(file, outputs, scenario, seed)


def _segments(file: Path, outputs: Outputs, scenario: Scenario, seed: int) -> None:
    tables = capture(scenario, seed)
    segments = first_connection(tables)
    if segments.is_empty():
        raise RequestError(f"{file}: no connection starts within {scenario.duration}; make the duration longer")
    shown = as_columns(segments)
    csv, plot = outputs.csv, outputs.plot
    try:
        if csv is not None:
            text = shown.write_csv()
            if str(csv) == "-":
                sys.stdout.write(text)
            else:
                output.write(csv, text.encode(), [file])
        if plot is not None:
            from ..report.trace_plot import draw

            draw(segments, plot, _title(scenario), tables["crossings"])
    except OSError as error:
        raise MachineError(f"{error.filename or csv or plot} cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise RequestError(f"{file}: {error}") from None
    if csv is not None and str(csv) != "-":
        outputs.tell(f"{csv}: {counted(shown.height, 'segment event')}")
    if plot is not None:
        outputs.tell(f"{plot}: {counted(shown.height, 'segment event')}")
    if csv is None and plot is None:
        _print(shown)


def _title(scenario: Scenario) -> str:
    """The scenario's name and the initial window of the plan's first server, which sends in a download."""
    window = scenario.to_plan()["applications"][0]["server_tcp"]["initial_window"]
    policy = f"{window['segments']} segments" if window["policy"] == "fixed" else window["policy"]
    return f"{scenario.name}, initial window: {policy}"


def first_connection(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """The segments of the first connection that the first application opened."""
    transfers = tables["transfers"]
    first = transfers["application"].to_physical() == 0
    opened = transfers.filter(first).sort("start_s", "connection")
    return tables["segments"].filter(pl.col("connection").is_in(opened["connection"].head(1).to_list()))


def as_columns(segments: pl.DataFrame) -> pl.DataFrame:
    """The columns the map gives for CSV; times to 1 ns as text, so that no digit is lost."""
    flags = pl.concat_list(
        pl.when(pl.col("flags") & bit != 0).then(pl.lit(name)).otherwise(None) for bit, name in _FLAGS
    ).list.drop_nulls()
    return segments.select(
        (
            (pl.col("time_ns") // _BILLION).cast(pl.String)
            + "."
            + (pl.col("time_ns") % _BILLION).cast(pl.String).str.zfill(9)
        ).alias("time_s"),
        pl.col("event").replace_strict(dict(enumerate(_EVENTS)), return_dtype=pl.String),
        pl.when(pl.col("from_server") == 1).then(pl.lit("to_client")).otherwise(pl.lit("to_server")).alias("direction"),
        "seq",
        "length",
        "ack",
        "window_bytes",
        pl.col("cwnd_segments").fill_nan(None),
        flags.list.join("+").alias("flags"),
    )


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
