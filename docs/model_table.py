"""Prints the tables of docs/model.md: the model engine beside the simulator.

    .venv/bin/python docs/model_table.py

A test compares the output with the page, so the page cannot fall behind the code.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from firstflight.engines import find
from firstflight.engines.model.loss import ShortTransfer, mathis_bps, pftk_segments_per_s
from firstflight.engines.model.slow_start import SlowStart, transfer_time_s
from firstflight.scenario import Cell, Scenario

MSS = 1460
SIZES = (1, 3, 10, 20, 50, 200, 1000)
DELAYS_MS = (5, 25, 100)
RATES_MBIT = (1, 10, 100, 1000)
WINDOWS = (1, 2, 3, 10, 32)
ACKS = {
    "every segment": "every_segment",
    "delayed, 200 ms": {"policy": "delayed", "segments": 2, "timer": "200ms"},
    "heartbeat, 200 ms": {"policy": "heartbeat", "segments": 2, "interval": "200ms"},
}


def scenario(
    segments: int,
    delay_ms: float,
    rate_mbit: float,
    iw: int,
    ack: object = "every_segment",
    loss: float = 0.0,
) -> Scenario:
    """One download over one link. `loss` strikes the data direction only."""
    return Scenario.from_dict(
        {
            "name": "transfer",
            "duration": "1000s",
            "tcp": {"profile": "rfc", "initial_window": iw, "ack": ack},
            "network": {
                "topology": "chain",
                "links": {
                    "rate": f"{rate_mbit:g}Mbit",
                    "delay": f"{delay_ms:g}ms",
                    "queue": "100000p",
                    "loss": loss,
                    "reverse": {"loss": 0.0},
                },
            },
            "application": [{"kind": "file_transfer", "count": 1, "size": f"{segments * MSS}B"}],
        }
    )


def completions(engine: str, of: Scenario, replicates: int = 1) -> list[float]:
    """Completion times in seconds, one a replicate."""
    tables = find(engine).run_cell(Cell({"name": of.name}, of), 1, replicates)
    return [float(value) for value in tables["transfers"]["completion_time_s"]]


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def to_the_nanosecond() -> str:
    """Per-segment computation against the simulator, by ACK policy."""
    rows = []
    for name, ack in ACKS.items():
        gaps = []
        for segments, delay, rate, iw in product(SIZES, DELAYS_MS, RATES_MBIT, WINDOWS):
            of = scenario(segments, delay, rate, iw, ack)
            gaps.append(abs(completions("model", of)[0] - completions("simulate", of)[0]))
        rows.append((name, len(gaps), sum(gap == 0 for gap in gaps), f"{max(gaps) * 1e9:.0f} ns"))
    return markdown(("ACKs", "transfers", "same completion time", "largest difference"), rows)


def closed_forms() -> str:
    """The closed forms against the simulator, an ACK a segment."""
    rows = []
    for rate in RATES_MBIT:
        slow_start, talk, left = [], [], []
        for segments, delay, iw in product(SIZES, DELAYS_MS, WINDOWS):
            round_trip = 2 * delay / 1e3
            simulated = completions("simulate", scenario(segments, delay, rate, iw))[0]
            closed = SlowStart(segments * MSS, MSS, iw, round_trip, rate * 1e6)
            slow_start.append(100 * (closed.completion_time_s / simulated - 1))
            talk.append(100 * (transfer_time_s(segments * MSS, MSS, iw, round_trip) / simulated - 1))
            left.append(abs(with_small_packets(closed) - simulated))
        cells = [
            text
            for errors in (slow_start, talk)
            for text in (f"{statistics.median(map(abs, errors)):.2f}%", f"{max(errors, key=abs):+.2f}%")
        ]
        rows.append((f"{rate} Mbit/s", len(talk), *cells[:2], f"{1e9 * max(left):.0f} ns", *cells[2:]))
    header = (
        "rate",
        "transfers",
        "slow start: median error",
        "worst error",
        "worst with small packets",
        "talk's rounds: median error",
        "worst error",
    )
    return markdown(header, rows)


def with_small_packets(closed: SlowStart) -> float:
    """The closed form with what it leaves out: an ACK's serialization in each round trip, and on the way to
    the first data the handshake's ACK and the request of 80 bytes with its header.
    """

    def serialization(packet_bytes: int) -> float:
        return 8 * packet_bytes / closed.rate_bps

    header = closed.header_bytes
    longer = replace(closed, round_trip_s=closed.round_trip_s + serialization(header))
    return longer.completion_time_s + serialization(header) + serialization(80 + header)


def one_transfer() -> str:
    """20 segments, 10 Mbit/s, 50 ms one way: every model beside the simulator."""
    rows = []
    for iw in (3, 10):
        of = scenario(20, 50, 10, iw)
        closed = SlowStart(20 * MSS, MSS, iw, 0.1, 10e6)
        times = (
            completions("simulate", of)[0],
            completions("model", of)[0],
            closed.completion_time_s,
            transfer_time_s(20 * MSS, MSS, iw, 0.1),
        )
        rows.append((iw, *(f"{1e3 * time:.3f} ms" for time in times), closed.stalls, closed.windows))
    header = ("IW", "simulator", "per segment", "slow start", "talk's rounds", "stalls P", "windows K")
    return markdown(header, rows)


def gain() -> str:
    """Where the gain of a larger window ends: 30 segments, 100 ms, IW 10 against IW 3."""
    rows = []
    for rate in (0.2, 0.5, 1, 2, 5, 10, 100):
        three, ten = (completions("simulate", scenario(30, 50, rate, iw))[0] for iw in (3, 10))
        small = SlowStart(30 * MSS, MSS, 3, 0.1, rate * 1e6)
        times = (three - ten, small.gain_s(10), small.stalled_s)
        shown = [f"{1e3 * time:.1f} ms" for time in times]
        rows.append((f"{rate:g} Mbit/s", f"{small.pipe_segments:.1f}", *shown, f"{100 * (1 - ten / three):.1f}%"))
    header = (
        "rate",
        "pipe, segments",
        "gain, simulator",
        "gain, slow start",
        "stalled with IW 3",
        "gain, share of the time",
    )
    return markdown(header, rows)


def under_loss() -> str:
    """Expectations from memory beside the simulator's means."""
    rows = []
    for segments, loss in product((10, 50, 5000), (0.005, 0.02, 0.05)):
        replicates = 20 if segments > 1000 else 400
        times = completions("simulate", scenario(segments, 50, 100, 10, ACKS["delayed, 200 ms"], loss), replicates)
        expected = ShortTransfer(segments, 10, 0.1, loss).completion_time_s
        rate = segments / statistics.mean(times)
        long = ("", "")
        if segments > 1000:
            long = (
                f"{mathis_bps(MSS, 0.1, loss) / 8 / MSS:.1f}",
                f"{pftk_segments_per_s(0.1, 1.0, loss, 1e9):.1f}",
            )
        error = statistics.stdev(times) / len(times) ** 0.5
        shown = f"{statistics.mean(times):.2f} ± {2 * error:.2f} s"
        rows.append((segments, f"{100 * loss:g}%", shown, f"{expected:.2f} s", f"{rate:.1f}", *long))
    header = (
        "segments",
        "loss",
        "simulator",
        "Cardwell et al.",
        "simulator, segments/s",
        "Mathis et al.",
        "PFTK",
    )
    return markdown(header, rows)


TABLES = (one_transfer, to_the_nanosecond, closed_forms, gain, under_loss)


def main() -> None:
    """All tables, each under the name of its function."""
    for table in TABLES:
        print(f"{table.__name__}\n\n{table()}\n")


if __name__ == "__main__":
    main()
