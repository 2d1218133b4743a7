"""The experiment under an advice: every case with every initial window, on the same users.

A study like any other, so that it is stored, resumed after a kill and simulated on all processors; only that its grid
comes from the flows and not from a publication.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight import populations
from firstflight.advise.fit import FittedPopulation
from firstflight.advise.sensitivity import LEAST_BUFFER_PACKETS, SHALLOW_BUFFER_S, SensitivityCase
from firstflight.analysis.table import Table
from firstflight.records import Run
from firstflight.scenario import Cell, Scenario
from firstflight.studies import ADVICE
from firstflight.studies.study import Study

LONGEST_BYTES = 3_000_000
"""Of longer responses the beginning is simulated; the rest is added at the line's rate, the same for every window."""
LONGEST_S = 60
"""Slower lines have their responses cut to the bytes that they carry in this time."""
_MOST_BUFFER_S = 5.0
_LIKE = 0.05
"""Of all users with a known rate: how many neighbors by round trip on each side lend theirs to one without."""

_QUANTILES = 4096
"""Lines that stand for those of a built-in population."""

Values = npt.NDArray[np.float64]
# Columns of a table of paths for which a law can stand.
_LAWS = ("buffer_s", "loss")


@dataclass(frozen=True)
class CasePopulation:
    """A population as one case completes it. `columns`: a scenario's table of paths, rounded to the digits that
    matter, since it is stored with every cell; `rest_s` (users,): the time of the end of a long response, which is not
    simulated; `cut`: the number of responses that have one.
    """

    columns: dict[str, list[float]]
    rest_s: list[float] = field(repr=False)
    cut: int

    def population(self) -> dict[str, Any]:
        """The `[population]` table. A column that is the same for all is a law."""
        columns, laws = {}, {}
        for name, values in self.columns.items():
            if name in _LAWS and min(values) == max(values):
                laws[name.split("_")[0]] = f"{values[0]}s" if name == "buffer_s" else values[0]
            else:
                columns[name] = values
        return {
            "paths": "table",
            "row_sampling": "in_order",
            "min_buffer": f"{LEAST_BUFFER_PACKETS}p",
            "columns": columns,
            **laws,
        }


def complete(population: FittedPopulation, case: SensitivityCase, seed: int) -> CasePopulation:
    """The users as `case` has them. The same seed and population give the same users."""
    rows = population.rows
    random = np.random.default_rng(seed)
    down = _rates(population, case, random)
    up = rows["up_bps"].fill_null(pl.Series(np.asarray(down) * case.up_share))
    buffer = rows["buffer_s"].fill_null(_buffers(rows, down, case.buffer_s))
    if case.loss is not None:
        loss = pl.repeat(case.loss, rows.height, dtype=pl.Float64, eager=True)
    else:
        loss = rows["loss"].fill_null(rows["loss"].mean())
    most = np.floor(np.minimum(LONGEST_BYTES, down * LONGEST_S / 8))
    size = rows["bytes"].to_numpy().astype(np.float64)
    simulated = np.maximum(np.minimum(size, most), 1)
    columns = {
        "rtt_s": rows["rtt_s"].round(6),
        "down_bps": pl.Series(down).round(),
        "up_bps": up.clip(1e3).round(),
        "buffer_s": buffer.round(5),
        # A path that loses nearly all could not finish; a connection that did finish was on none.
        "loss": loss.clip(0, 0.5).round(6),
        "bytes": pl.Series(simulated),
    }
    if population.has_handshakes:
        columns |= {name: rows[name].fill_null(none) for name, none in (("tls_bytes", 0), ("tls_exchanges", 1))}
    rest = 8 * (size - simulated) / down
    made = {name: values.to_list() for name, values in columns.items()}
    return CasePopulation(made, rest.tolist(), int((size > simulated).sum()))


def _buffers(rows: pl.DataFrame, down: Values, assumed_s: float) -> pl.Series:
    """Queues in seconds: `assumed_s`, or more where more was seen to wait. The shallow end of the bracket takes no
    notice of that: a round trip also grows for other reasons (radio, a busy phone), and it is to be the worst case.
    """
    if assumed_s <= SHALLOW_BUFFER_S:
        return pl.repeat(assumed_s, rows.height, dtype=pl.Float64, eager=True)
    waited = rows.select(
        pl.max_horizontal(
            pl.lit(assumed_s),
            pl.col("max_rtt_s") - pl.col("rtt_s"),
            8 * pl.col("min_buffer_bytes") / pl.Series("down", down),
        ).alias("buffer_s")
    )
    # A value observed with a wrong guess of the rate is no better than the guess.
    return waited["buffer_s"].clip(upper_bound=max(_MOST_BUFFER_S, assumed_s))


def _rates(population: FittedPopulation, case: SensitivityCase, random: np.random.Generator) -> Values:
    """Down rates: those seen, and for the others those of users with like round trips, or of a built-in population,
    never below the delivered rate.
    """
    rows = population.rows
    rates = rows["down_bps"].cast(pl.Float64).to_numpy().copy()
    missing = np.isnan(rates)
    if not missing.any():
        return rates
    least = rows["min_down_bps"].fill_null(0.0).to_numpy()
    if case.rates == "given":
        rates[missing] = population.given.down_bps
    elif case.rates == "seen":
        rates[missing] = _lent(rows["rtt_s"].to_numpy(), rates, missing, random)
    elif case.shown:
        least = _shown(population, least, random)
        if case.rates != "shown":
            rates[missing] = _above(stand_in(case.rates), least[missing], random)
        else:
            rates[missing] = least[missing]
    else:
        rates[missing] = random.choice(stand_in(case.rates), int(missing.sum()))
    rates[missing] = np.maximum(rates, least)[missing]
    return rates


def _shown(population: FittedPopulation, least: Values, random: np.random.Generator) -> Values:
    """The rate delivered to each user or, if that is more, to one with a similar RTT and a longer response."""
    rows = population.rows
    short = ~rows["shows_line"].to_numpy()
    lent = np.where(short, np.nan, least)
    if short.any():
        lent[short] = _lent(rows["rtt_s"].to_numpy(), lent, short, random)
    return np.maximum(lent, least)


def _lent(rtt_s: Values, rates: Values, missing: npt.NDArray[np.bool_], random: np.random.Generator) -> Values:
    """For each missing rate that of a user drawn from those nearest by round trip."""
    known = np.flatnonzero(~missing)
    known = known[np.argsort(rtt_s[known], kind="stable")]
    first, end = (np.searchsorted(rtt_s[known], rtt_s[missing], side) for side in ("left", "right"))
    reach = max(1, round(_LIKE * len(known)))
    middle = (first + end) // 2
    # Those exactly as far away, if they are many; else the nearest on both sides.
    low, high = np.minimum(first, middle - reach), np.maximum(end, middle + reach + 1)
    many = end - first > reach
    low, high = np.where(many, first, low).clip(0), np.where(many, end, high).clip(1, len(known))
    return rates[known[random.integers(low, high)]]


def stand_in(name: str) -> Values:
    """Rates in bit/s, equally likely and ascending, of the lines of the built-in population `name`."""
    table = populations.find(name)
    at = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    if table["paths"] == "table":
        rates, weight = np.array(table["columns"]["down_bps"]), np.array(table["columns"]["weight"])
        order = np.argsort(rates)
        cumulated = np.cumsum(weight[order]) / weight.sum()
        return np.asarray(rates[order][np.searchsorted(cumulated, at).clip(max=len(rates) - 1)], dtype=np.float64)
    shares, rates = np.array(table["down"]["points"]).T
    return np.asarray(np.exp(np.interp(at, shares, np.log(rates))))


def _above(lines: Values, least: Values, random: np.random.Generator) -> Values:
    """For each user one of the `lines`, ascending, at or above the delivered rate; without one, that rate."""
    first = np.searchsorted(lines, least)
    drawn = first + (random.random(len(least)) * (len(lines) - first)).astype(np.int64)
    return np.where(first < len(lines), lines[drawn.clip(max=len(lines) - 1)], least)


RESPONSE = "response"
SHORT, LONG = "other-short", "other-long"
OTHERS = {SHORT: "short response (30 kB)", LONG: "long download (1 MB)"}
"""The concurrent connections of the measured one, whose IW is unchanged: the kind of each."""
SHORT_SHARE, LONG_SHARE = 0.5, 0.25
LASTS = "300s"
"""Maximum duration of a user's simulation."""
WORK = 4_000
"""Users times replicates at least, so that the chance in a user's losses is small compared with the differences
between users. Of 4,000 homes a second replicate would narrow the intervals of the retransmission rate by 14% and those
of p99 by 23%, and take half as much CPU time again.
"""
MOST_REPLICATES = 12
SERVES = {"service_time": "100us"}
"""nginx's time from request to response (docs/running-kernel.md)."""


EACH = {"name": RESPONSE, "kind": "file_transfer", "size": "row", "count": 1} | SERVES
"""The application of a user with one response."""


def scenario(name: str, window: int, population: dict[str, Any], *applications: Any, **more: str) -> Scenario:
    """Applications on the users' paths. TCP of both endpoints has the timers of a real kernel: what a short queue drops
    depends on them.
    """
    tcp = {"profile": "linux", "initial_window": window, "timer_tick": {"period": "4ms", "wheel": True}}
    document = {"name": f"advise-{name}", "duration": LASTS, "tcp": tcp, "population": population}
    return Scenario.from_dict(document | {"application": [*applications]} | more, source="the flows")


class Experiment(Study):
    """The grid: keys `case` and `iw`."""

    name = ADVICE
    title = "Effect of another initial window on these users"
    source = ""
    engines = ("simulate",)
    shows = "the flows of an operator with other initial windows"

    def __init__(
        self, population: FittedPopulation, cases: Sequence[SensitivityCase], windows: Sequence[int], seed: int
    ) -> None:
        """`windows`: the current one and the candidates. `seed` also draws the values that the cases complete."""
        self.population = population
        self.sensitivity_cases = cases
        self.windows = windows
        self.seed = seed  # type: ignore[misc]
        self.replicates = min(MOST_REPLICATES, -(-WORK // population.rows.height))  # type: ignore[misc]

    @cached_property
    def users(self) -> dict[str, CasePopulation]:
        """The users of each case, by its name."""
        return {case.name: complete(self.population, case, self.seed) for case in self.sensitivity_cases}

    def cells(self, engine: str) -> list[Cell]:
        """The reference case first, in it the current window first."""
        return self._grid

    @cached_property
    def _grid(self) -> list[Cell]:
        return [
            Cell({"case": case.name, "iw": window}, self._scenario(case, window))
            for case in self.sensitivity_cases
            for window in self.windows
        ]

    def tables(self, run: Run) -> list[Table]:
        """No tables: the page has its own."""
        return []

    def _scenario(self, case: SensitivityCase, window: int) -> Scenario:
        name, population = case.name.replace(" ", "-").replace(",", ""), self.users[case.name].population()
        return scenario(name, window, population, *self._applications(case), description=case.text)

    def _applications(self, case: SensitivityCase) -> list[dict[str, Any]]:
        response: dict[str, Any] = {**EACH}
        if self.population.has_handshakes:
            response["tls"] = {"flights": "row"}
        # When the download is in progress, and at about the time of the short response: as parts of one page are.
        near = {"distribution": "uniform", "low": "500ms", "high": "550ms"}
        if case.cross_traffic:
            response["start"] = near
        responses = [response]
        if case.parallel_connections > 1:
            responses = [
                response | {"name": f"{RESPONSE}-{number}"} for number in range(1, case.parallel_connections + 1)
            ]
        if not case.cross_traffic:
            return responses
        stays = {"initial_window": self.population.current.window}
        short = {"name": SHORT, "size": "30kB", "start": near, "user_fraction": SHORT_SHARE}
        long = {"name": LONG, "size": "1MB", "start": "0s", "user_fraction": LONG_SHARE}
        return [
            *responses,
            *({"kind": "file_transfer", "count": 1, "tcp": stays} | SERVES | other for other in (short, long)),
        ]
