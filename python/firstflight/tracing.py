"""One transfer, segment by segment: the output of `firstflight trace` and the result of `firstflight.trace`."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from firstflight._native import SENDER_EVENTS
from firstflight.counted import counted
from firstflight.engines import memory
from firstflight.engines.simulate import capture, capture_packets
from firstflight.errors import MachineError, RequestError, require_linux
from firstflight.records import output
from firstflight.records.schema import first_transfers
from firstflight.scenario import Scenario
from firstflight.scenario.cell import check_seed
from firstflight.scenario.datagrams import DatagramApplication
from firstflight.studies.varied import SingleScenario

if TYPE_CHECKING:
    from firstflight.engines.emulate.campaign import Captured
    from firstflight.report.trace_plot.overlay import PlottedConnection

End = Literal["client", "server"]
Engine = Literal["simulate", "emulate"]
# `resumption` of the records' table `handshakes`.
_EARLY_DATA = 2
_EVENTS = ("sent", "received", "dropped", "lost")
SYN = 2
_FLAGS = ((SYN, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"))
_BILLION = 1_000_000_000
# Of the records' table `transfers`.
_MARKS = {
    "TCP handshake": "handshake_time_s",
    "TLS handshake": "tls_handshake_time_s",
    "first byte": "first_byte_time_s",
    "first usable byte": "first_usable_byte_time_s",
    "last byte": "completion_time_s",
}


class Trace:
    """The first connection of a scenario's first application, simulated or run on the kernel at the first access.

    On the kernel the segments are those at the server's device, and those that the path dropped or lost.
    """

    def __init__(
        self, scenario: Scenario, seed: int | None = None, label: str | None = None, engine: Engine = "simulate"
    ) -> None:
        """`label` names it in pictures of several; by default its initial window. RequestError for a seed out of range,
        an engine that makes no trace, and a scenario too large for this machine's memory; MachineError for emulation
        without Linux.
        """
        if not isinstance(scenario, Scenario):
            raise RequestError(f"{scenario!r} is no scenario; load_scenario reads one from a file")
        if engine not in get_args(Engine):
            raise RequestError(f"no trace by the engine {engine!r}; write {' or '.join(get_args(Engine))}")
        if engine == "emulate":
            require_linux("emulation")
        else:
            memory.check_together([scenario], capture=True)
        self.scenario = scenario
        self.engine = engine
        self.seed = SingleScenario.seed if seed is None else check_seed(seed)
        self._label = label

    @cached_property
    def segments(self) -> pl.DataFrame:
        """One row per segment and event (sent, received, dropped, lost).

        Columns: `time_s`, `event`, `direction`, `seq`, `length`, `ack`, `window_bytes`, `cwnd_segments`, `flags`,
        `handshake` (tcp: SYN and SYN-ACK; tls: data of the TLS handshake), `mark`, the one of `marks` that this row
        completes, and `sender_event`, what the data's sender reports then. RequestError if no connection starts.
        """
        return as_columns(self.events, self.marks, self.sender_events)

    def plot(self, path: str | Path, *others: Trace) -> None:
        """Draw sequence numbers, windows and the queue as .svg, .png or .pdf, with others in their own colors.

        RequestError without data, for more traces than colors, for equal labels, for another suffix, and for a file of
        another program; MachineError if it cannot be written.
        """
        from firstflight.report.trace_plot import draw, draw_together

        try:
            if others:
                traces = self._together(others)
                draw_together([trace._drawn() for trace in traces], Path(path), self.what)
            else:
                marks = self.marks | self.slow_start_end
                draw(self.events, Path(path), self._title, self._tables["crossings"], marks)
        except OSError as error:
            raise MachineError(f"{error.filename or path} cannot be written: {error.strerror}") from None
        except ValueError as error:
            raise RequestError(f"{self.scenario.name}: {error}") from None

    def as_text(self) -> pl.DataFrame:
        """`segments` with times as text, exact to 1 ns."""
        seconds, rest = pl.col("time_ns") // _BILLION, pl.col("time_ns") % _BILLION
        text = seconds.cast(pl.String) + "." + rest.cast(pl.String).str.zfill(9)
        return self.segments.with_columns(self.events.select(text.alias("time_s")))

    def csv(self, path: str | Path) -> None:
        """Write `segments` as CSV. RequestError for a file of another program, MachineError if it cannot be written."""
        output.write(Path(path), self.as_text().write_csv().encode())

    def pcap(self, path: str | Path, *, at: End = "client", link: str | None = None) -> int:
        """Write all packets at one endpoint, or at the far end of a link, and return their number.

        pcap if `path` ends in .pcap, else pcapng; from the kernel always pcapng, with headers and real times.
        RequestError for an unknown link, MachineError if the file cannot be written.
        """
        output.check(Path(path))
        if self.engine == "simulate":
            output.make_directory(Path(path))
            return capture_packets(self.scenario, self.seed, Path(path), at, link)
        self._check_kernel_packets(Path(path), link)
        output.make_directory(Path(path))
        captured = self._captured.packets[link or at]
        output.write(Path(path), captured.pcapng)
        return captured.packets

    def _check_kernel_packets(self, path: Path, link: str | None) -> None:
        """Before the transfer, which takes real time."""
        from firstflight.engines.emulate.layout import lay_out

        if path.suffix == ".pcap":
            raise RequestError(f"{path}: packets of the kernel are written as .pcapng")
        links = list(lay_out(self.scenario, self.seed).links)
        if link is not None and link not in links:
            raise RequestError(f'there is no link "{link}" in this network; it has {", ".join(links)}')

    def __repr__(self) -> str:
        """Its title and engine; simulates nothing."""
        return f"{self.what}: trace of its first connection, {self.engine}, seed {self.seed}"

    def _repr_html_(self) -> str:
        """The notebook view: the title, and `segments` as Polars shows it."""
        return f"<p>{html.escape(self._title)}</p>{self.segments._repr_html_()}"

    @property
    def label(self) -> str:
        """The label in a plot of several traces."""
        window = self._sender_tcp["initial_window"]
        words = f"IW {window['segments']}" if window["policy"] == "fixed" else f"IW by {window['policy']}"
        return self._label or words

    def rename(self, label: str) -> None:
        """Set the label."""
        self._label = label

    def _drawn(self) -> PlottedConnection:
        from firstflight.report.trace_plot.overlay import PlottedConnection

        outcome = self.outcome
        took = f"complete after {1e3 * outcome['completion_time_s']:.1f} ms" if outcome["completed"] else "not complete"
        return PlottedConnection(f"{self.label}: {took}", self.events, self._tables["crossings"], self.marks)

    def _together(self, others: tuple[Trace, ...]) -> list[Trace]:
        from firstflight.report.style import ORDERED

        traces = [self, *others]
        labels = [trace.label for trace in traces]
        if len(traces) > len(ORDERED):
            raise RequestError(f"{len(traces)} traces in one picture; there are colors for {len(ORDERED)}")
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise RequestError(f'two traces of one picture are called "{twice[0]}"; give each a label')
        return traces

    @property
    def _sender_tcp(self) -> dict[str, Any]:
        """The profile of the server, which sends in a download; with arms that of the arm of this connection."""
        tcp = self.scenario.to_plan()["applications"][0]
        if self.scenario.arm:
            arm = self.scenario.recorded_names().index(self.outcome["application"])
            tcp = [tcp, *tcp["arms"]][arm]
        profile: dict[str, Any] = tcp["server_tcp"]
        return profile

    @property
    def what(self) -> str:
        """The scenario's description, or its name."""
        return self.scenario.description or self.scenario.name

    @property
    def _title(self) -> str:
        window, scheme = self._sender_tcp["initial_window"], self._sender_tcp["startup"]["scheme"]
        fixed = window["policy"] == "fixed"
        how = f"of {counted(window['segments'], 'segment')}" if fixed else f"by {window['policy']}"
        kernel = ", on the kernel" if self.engine == "emulate" else ""
        startup = "" if scheme == "window" else f"start-up {scheme}, "
        return f"{self.what}: {startup}initial window {how}{kernel}"

    @property
    def outcome(self) -> dict[str, Any]:
        """The first transfer's row of the table `transfers`. RequestError if no connection starts."""
        # Refused there if no connection starts.
        _ = self.events
        return first_transfers(self._tables["transfers"], self.scenario).row(0, named=True)

    @property
    def marks(self) -> dict[str, float]:
        """Times in seconds of the run, by name, in order: end of the TCP and the TLS handshake at the client; first,
        first usable and last byte of the first transfer. Events that did not happen are omitted.
        """
        times = {name: self.outcome[column] for name, column in _MARKS.items()}
        marks = {
            name: float(self.outcome["start_s"]) + float(time)
            for name, time in times.items()
            if time is not None and not math.isnan(time)
        }
        # After early data a response may begin before the handshake ends.
        return dict(sorted(marks.items(), key=lambda mark: mark[1]))

    @property
    def sender_events(self) -> pl.DataFrame:
        """`time_s` and `event`, in words, of the data's sender: ends of slow start with their cause, recovery, undo,
        idle restart, probes. Without rows on the kernel.
        """
        return self._sender_events.select("time_s", "event")

    @property
    def slow_start_end(self) -> dict[str, float]:
        """The first end of slow start that is not undone, with its cause: words and seconds; empty without one."""
        old, new, undone = pl.col("old_state"), pl.col("new_state"), pl.col("trigger") == "undo"
        events = self._sender_events.filter(undone | (old == "slow_start") & (new != old))
        ends = events.filter(~undone.shift(-1).fill_null(False), ~undone)
        return dict(ends.select("event", "time_s").head(1).iter_rows())

    @property
    def data_from(self) -> int:
        """`from_server` of the end that sends more data, without the TLS handshake where there is other data."""
        sent = self.events.filter(pl.col("event") == 0).group_by("from_server")
        sums = sent.agg(pl.col("length").filter(~pl.col("is_tls")).sum().alias("data"), pl.col("length").sum())
        return int(sums.sort("data", "length", "from_server", descending=True)["from_server"][0])

    @cached_property
    def _sender_events(self) -> pl.DataFrame:
        if "sender_events" not in self._tables:
            columns = ("old_state", "new_state", "trigger", "event")
            return pl.DataFrame(schema={"time_s": pl.Float64} | dict.fromkeys(columns, pl.String))
        connection, end = self.events["connection"][0], self.data_from
        rows = self._tables["sender_events"].filter(pl.col("connection") == connection, pl.col("from_server") == end)
        numbers = rows.select(pl.col("old_state", "new_state", "trigger").to_physical()).iter_rows()
        words = [SENDER_EVENTS[old][new][trigger] for old, new, trigger in numbers]
        time_s = (pl.col("time_ns") / _BILLION).alias("time_s")
        return rows.with_columns(time_s, pl.Series("event", words, pl.String))

    @cached_property
    def _tables(self) -> dict[str, pl.DataFrame]:
        return capture(self.scenario, self.seed) if self.engine == "simulate" else self._captured.tables

    @cached_property
    def _captured(self) -> Captured:
        from firstflight.engines.emulate.campaign import capture

        return capture(self.scenario, self.seed)

    @cached_property
    def events(self) -> pl.DataFrame:
        """The records behind `segments`, with times in integer ns. RequestError if no connection starts."""
        segments = with_handshake(first_connection(self._tables, self.scenario), self._tables, self.scenario)
        if segments.is_empty():
            name, duration = self.scenario.name, self.scenario.duration
            if isinstance(self.scenario.application[0], DatagramApplication):
                raise RequestError(f"{name}: the first application sends datagrams; trace --pcap F writes them")
            raise RequestError(f"{name}: no connection starts within {duration}; make the duration longer")
        return segments


def trace(
    scenario: Scenario, *, seed: int | None = None, label: str | None = None, engine: Engine = "simulate"
) -> Trace:
    """One transfer of `scenario`, segment by segment: the first connection of its first application.

    `trace(scenario).segments` is a Polars frame; `plot`, `csv` and `pcap` write files; `trace(a).plot(F, trace(b))`
    draws both, each with its label. With `engine="emulate"` nginx and curl run it over the kernel. Raises RequestError
    and MachineError.
    """
    return Trace(scenario, seed, label, engine)


def first_connection(tables: dict[str, pl.DataFrame], scenario: Scenario) -> pl.DataFrame:
    """The segments of the first connection that the first application opened, in whichever arm."""
    opened = first_transfers(tables["transfers"], scenario)["connection"]
    return tables["segments"].filter(pl.col("connection").is_in(opened.head(1).to_list()))


def with_handshake(segments: pl.DataFrame, tables: dict[str, pl.DataFrame], scenario: Scenario) -> pl.DataFrame:
    """`segments` of one connection with a column more, `is_tls`: whether a segment carries data of the handshake that
    the table `handshakes` has for this connection. Of a handshake with early data, what the client sends after them
    does not count.
    """
    connection = segments["connection"].head(1).to_list()
    handshakes = tables.get("handshakes", pl.DataFrame(schema={"connection": pl.UInt32}))
    handshakes = handshakes.filter(pl.col("connection").is_in(connection))
    if handshakes.is_empty():
        return segments.with_columns(pl.lit(False).alias("is_tls"))
    row = handshakes.row(0, named=True)
    client_bytes = row["client_bytes"]
    if row["resumption"] == _EARLY_DATA:
        kinds = scenario.to_plan()["applications"][0]["handshakes"]["kinds"]
        hello = next(kind["flights"][0] for kind in kinds if kind["resumption"] == "early_data")
        client_bytes = hello["bytes"]["value"]
    # The first byte of data has sequence number 1.
    last = pl.when(pl.col("from_server") == 1).then(pl.lit(row["server_bytes"])).otherwise(pl.lit(client_bytes))
    return segments.with_columns(((pl.col("length") > 0) & (pl.col("seq") <= last).fill_null(False)).alias("is_tls"))


def as_columns(segments: pl.DataFrame, marks: dict[str, float], sender_events: pl.DataFrame) -> pl.DataFrame:
    """The columns of `Trace.segments`."""
    reported = sender_events.select("event", "time_s").iter_rows()
    flags = pl.concat_list(
        pl.when(pl.col("flags") & bit != 0).then(pl.lit(name)).otherwise(None) for bit, name in _FLAGS
    ).list.drop_nulls()
    return segments.select(
        (pl.col("time_ns") / _BILLION).alias("time_s"),
        pl.col("event").replace_strict(dict(enumerate(_EVENTS)), return_dtype=pl.String),
        pl.when(pl.col("from_server") == 1).then(pl.lit("to_client")).otherwise(pl.lit("to_server")).alias("direction"),
        "seq",
        "length",
        "ack",
        "window_bytes",
        pl.col("cwnd_segments").fill_nan(None),
        flags.list.join("+").alias("flags"),
        pl.when(pl.col("flags") & SYN != 0).then(pl.lit("tcp")).when("is_tls").then(pl.lit("tls")).alias("handshake"),
        _at_rows(segments, "mark", marks.items()),
        _at_rows(segments, "sender_event", reported),
    )


def _at_rows(segments: pl.DataFrame, column: str, events: Iterable[tuple[str, float]]) -> pl.Series:
    """Each name at the row of its time. In a capture of the kernel the next row is behind it."""
    rows: dict[int, list[str]] = {}
    for name, time_s in events:
        row = int((segments["time_ns"] < round(time_s * _BILLION)).sum())
        rows.setdefault(min(row, len(segments) - 1), []).append(name)
    return pl.Series(column, [", ".join(rows[row]) if row in rows else None for row in range(len(segments))], pl.String)
