"""What the gain and the cost owe to each assumption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.studies.rfc6928_cluster.assumptions import ASSUMPTIONS, STATED
from firstflight.studies.rfc6928_cluster.claims.statement import gain
from firstflight.studies.rfc6928_cluster.grid import FEW, MANY, NAMES, SEARCH, SLOWDC, assumed, settings
from firstflight.studies.rfc6928_cluster.measure import SLOW_LINES, Results
from firstflight.studies.rfc6928_cluster.published import RETRANSMITTED, SEARCH_GAIN, WITHOUT_RETRANSMISSION, figure5
from firstflight.studies.rfc6928_cluster.tables.cost import percent
from firstflight.studies.rfc6928_cluster.tables.row import row


def compared(results: Results) -> list[tuple[str, str, str]]:
    """Populations and assumptions, each also as it is told, of which the run has every service with both windows; the
    stated ones come first, and not without others.
    """
    services = list(settings()["users"])
    told = {STATED: "as stated"} | {name: assumption.told for name, assumption in ASSUMPTIONS.items()}
    found = []
    for population in settings()["populations"]:
        names = [name for name in told if results.services(population, name) == services]
        if names != [STATED]:
            found += [(population, name, told[name]) for name in names]
    return found


def sensitivity(results: Results) -> Table:
    """Web search's gains and the retransmissions of all services, with each thing assumed otherwise."""
    keys = ("population", "assumption")
    rows: list[dict[str, Any]] = []
    for population, name, told in compared(results):
        rows += _rows(results, population, name, {"population": NAMES[population], "assumption": told})
    return Table(
        "sensitivity",
        "What the gain and the cost owe to each assumption",
        "One assumption changed, all else as stated and, unless the row says so, nothing fitted anew. Gain: web "
        "search, all users and those up to 256 kbit/s. Retransmitted: segments of all services, which count alike. "
        f"Without: responses of web search with IW {MANY} that had no retransmission. Fewer users than in the other "
        "tables, but for the stated row. Looked at after the first run, to find the reasons of differences; no claim "
        "rests on it.",
        keys,
        rows_frame(keys, rows),
        metrics=(
            Metric("gain_percent", "Gain", 1, near=0.35),
            Metric("slow_gain_percent", "Gain <= 256 kbit/s", 1, near=0.35),
            Metric("rate_iw3", f"Retransmitted, IW {FEW}", 2, near=0.2),
            Metric("rate_iw10", f"Retransmitted, IW {MANY}", 2, near=0.2),
            Metric("rise", "Rise", 2, near=0.5),
            Metric("clean", "Without", 1, compare="absolute", near=5),
        ),
    )


def _rows(results: Results, population: str, name: str, at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    slow = population == SLOWDC
    search = assumed(population, SEARCH, name)
    found = results.latency(search)
    yield row(at, "gain_percent", gain(found.percent), SEARCH_GAIN[population][1])
    yield row(at, "slow_gain_percent", gain(results.slow_lines(search).percent), None if slow else _slow_gain())
    few, many = RETRANSMITTED[population]
    again = results.retransmitted(population, tuple(results.services(population, name)), assumption=name)
    yield row(at, "rate_iw3", percent(again.baseline), few)
    yield row(at, "rate_iw10", percent(again.treatment), many)
    yield row(at, "rise", percent(again.difference), round(many - few, 2))
    yield row(at, "clean", results.clean(search).treatment, WITHOUT_RETRANSMISSION if slow else None)


def _slow_gain() -> float:
    """Figure 5's gain in its lowest buckets of bandwidth together, percent."""
    bars = figure5("down")[:SLOW_LINES]
    saved = sum(bar.share_percent * bar.gain_ms for bar in bars)
    spent = sum(bar.share_percent * bar.latency_ms for bar in bars)
    return round(100 * saved / spent, 1)
