"""The users with other certificates: what a longer chain costs them, and which window, chain or record size wins it
back.

Full handshakes of TLS 1.3 get the new server flight. Resumed ones have no certificates and stay as they are, and so do
handshakes of more than one exchange: TLS 1.2, which has no post-quantum signatures.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from firstflight.advise.experiment import EACH, Experiment, scenario
from firstflight.advise.measure import RESAMPLES
from firstflight.analysis.ab import Design, compare
from firstflight.analysis.intervals import Estimate
from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.observe.tables import MSS_BYTES
from firstflight.records import Run
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.tls import ALGORITHMS, segments, server_flight

_AS_SEEN = "as seen"
_RECORDS = ("16KiB", "4KiB")
"""The largest record, and nginx's `ssl_buffer_size 4k`."""
_MOST_WITHOUT_CHAIN = 1.3
"""Times the flight of a resumed handshake: a shorter one has no chain, where the data does not say."""


@dataclass(frozen=True)
class CertificateChain:
    """Certificates of `--certificates`: an algorithm and the number of intermediates."""

    algorithm: str
    intermediates: int

    @property
    def flight_bytes(self) -> int:
        """Bytes of the server's flight, with a hybrid key share."""
        return server_flight(self.algorithm, self.intermediates)

    @property
    def name(self) -> str:
        """The label in the table."""
        more = "leaf only" if self.intermediates == 0 else f"intermediates={self.intermediates}"
        return f"{self.algorithm}, {more}"


def parse(text: str) -> CertificateChain:
    """The chain of "ml-dsa-44,intermediates=2". RequestError for anything else."""
    algorithm, *more = (part.strip() for part in text.split(","))
    if algorithm not in ALGORITHMS:
        raise RequestError(f'--certificates "{text}": unknown chain "{algorithm}"; {nearest(algorithm, ALGORITHMS)}')
    number = 0 if algorithm == "merkle-tree" else 1
    for part in more:
        key, _, value = part.partition("=")
        if key.strip() != "intermediates" or not value.strip().isdigit() or not 0 <= int(value) <= 10:
            raise RequestError(
                f'--certificates "{text}": "{part}" is not intermediates=N with N from 0 to 10; write for example '
                f"--certificates {algorithm},intermediates=2"
            )
        number = int(value)
    return CertificateChain(algorithm, number)


@dataclass(frozen=True)
class Option:
    """The means over all users with one chain, window and record size, in seconds: of the handshake behind TCP's, of
    the first usable byte (the end of the first record) and of the last byte, both from SYN; `change_percent`: of the
    last byte, against the certificates as seen with the current window; `overflowing_percent`: of users whose flight
    does not fit into the window; `retransmitted_percent`: of all segments.
    """

    certificates: str
    initial_window: int
    record_size: str
    handshake_s: float
    first_usable_byte_s: float
    last_byte_s: float
    change_percent: Estimate
    overflowing_percent: float
    retransmitted_percent: float


@dataclass(frozen=True)
class Certificates:
    """`changed_percent`: of the users, whose handshake gets the new chain; `flight_bytes`: of the server then;
    `assumed`: whether that is every connection, since the data shows no handshake. The first of `options` is today.
    """

    asked: str
    flight_bytes: int
    changed_percent: float
    assumed: bool
    options: tuple[Option, ...]
    answer: tuple[str, ...]


class CertificateExperiment(Experiment):
    """The grid: `certificates`, `iw` and `record_size`, in the reference case."""

    title = "Effect of other certificates on these users"
    shows = "the flows of an operator with other certificates"

    def __init__(self, experiment: Experiment, chain: CertificateChain) -> None:
        super().__init__(experiment.population, experiment.sensitivity_cases, experiment.windows, experiment.seed)
        self.chain = chain
        rows = self.population.rows
        self.assumed = not self.population.has_handshakes
        resumed = rows["tls_resumed"].fill_null(
            (rows["tls_bytes"] < _MOST_WITHOUT_CHAIN * server_flight(None)).cast(pl.UInt8)
        )
        full = (rows["tls_bytes"] > 0) & (resumed == 0) & (rows["tls_exchanges"] == 1)
        self.changed = pl.repeat(True, rows.height, eager=True) if self.assumed else full.fill_null(False)
        """Of each user, whether the handshake has certificates that change."""

    @cached_property
    def flights(self) -> dict[str, list[int]]:
        """The server's flight of each user by certificates: as seen, the new ones, and two shorter chains of them."""
        seen = self.population.rows["tls_bytes"].fill_null(0)
        if self.assumed:
            seen = pl.repeat(server_flight("tranco-2026"), seen.len(), dtype=pl.Int64, eager=True)
        chains = [self.chain, CertificateChain(self.chain.algorithm, 0), CertificateChain("merkle-tree", 0)]
        new = {chain.name: pl.repeat(chain.flight_bytes, seen.len(), dtype=seen.dtype, eager=True) for chain in chains}
        return {_AS_SEEN: seen.to_list()} | {
            name: flight.zip_with(self.changed, seen).to_list() for name, flight in new.items()
        }

    def cells(self, engine: str) -> list[Cell]:
        """The cells, those of the current window first."""
        current = self.population.current.window
        windows = [current, *(window for window in self.windows if window != current)]
        return [
            Cell({"certificates": name, "record_size": size, "iw": window}, self._with(name, size, window))
            for size in _RECORDS
            for name in self.flights
            for window in windows
            if size == _RECORDS[0] or name == self.chain.name
        ]

    def _with(self, name: str, size: str, window: int) -> Scenario:
        population = self.users[self.sensitivity_cases[0].name].population()
        exchanges = population["columns"].get("tls_exchanges", [1] * len(self.changed))
        columns = population["columns"] | {"tls_bytes": self.flights[name], "tls_exchanges": exchanges}
        response = EACH | {"tls": {"flights": "row", "record_size": size}}
        described = f"certificates: {name}"
        return scenario("certificates", window, population | {"columns": columns}, response, description=described)

    def result(self, run: Run) -> Certificates:
        """The comparison, from the finished run."""
        users = pl.DataFrame(
            {
                "client": pl.Series(range(len(self.changed)), dtype=pl.UInt32),
                "weight": self.population.rows["weight"],
                "rest_s": self.users[self.sensitivity_cases[0].name].rest_s,
            }
        )
        cells = self.cells("simulate")
        rows = run.transfers.join(users.lazy(), on="client", how="left", maintain_order="left").collect()
        options: list[Option] = []
        today = _of(rows, cells[0])
        for cell in cells:
            responses = _of(rows, cell)
            # Each against today, whose rows are there twice for today itself.
            both = pl.concat([today.with_columns(option=pl.lit(0)), responses.with_columns(option=pl.lit(1))])
            design = Design(
                arm="option", baseline=0, treatment=1, unit=["client"], weight="weight", resamples=RESAMPLES, seed=1
            )
            change = compare(both, "time_s", design).percent
            window = int(cell.key["iw"])  # type: ignore[arg-type]
            flights = pl.Series(self.flights[str(cell.key["certificates"])])
            weights = users["weight"] / users["weight"].sum()
            options.append(
                Option(
                    str(cell.key["certificates"]),
                    window,
                    str(cell.key["record_size"]),
                    _mean(responses, pl.col("tls_handshake_time_s") - pl.col("handshake_time_s")),
                    _mean(responses, pl.col("first_usable_byte_time_s")),
                    _mean(responses, pl.col("time_s")),
                    change,
                    100 * float((weights * (segments(flights, MSS_BYTES) > window)).sum()),
                    100 * int(responses["retransmissions"].sum()) / int(responses["segments_sent"].sum()),
                )
            )
        changed = 100 * float((users["weight"] * self.changed).sum()) / float(users["weight"].sum())
        flight = self.chain.flight_bytes
        answer = tuple(_sentences(self.chain, options, changed, self.assumed))
        return Certificates(self.chain.name, flight, changed, self.assumed, tuple(options), answer)


def simulated(
    experiment: Experiment,
    chain: CertificateChain,
    directory: Path,
    jobs: int | None,
    set_aside: bool,
    watch: Callable[[Any, Run], Any],
) -> Certificates:
    """Simulate what is not in `directory` yet, and compare."""
    from firstflight.studies import execute

    study = CertificateExperiment(experiment, chain)
    request = execute.prepare(study, seed=experiment.seed, jobs=jobs)
    with execute.started(request, directory, set_aside) as run:
        with watch(request, run) as on_replicates:
            execute.carry_out(request, run, on_replicates)
        return study.result(run)


def _of(rows: pl.DataFrame, cell: Cell) -> pl.DataFrame:
    """The responses of a cell. `time_s`: from SYN to the last byte, NaN where it did not come."""
    responses = rows.filter(
        pl.all_horizontal(pl.col(name).cast(pl.String) == str(value) for name, value in cell.key.items())
    )
    last = pl.when(pl.col("completed") == 1).then("completion_time_s").otherwise(float("nan"))
    return responses.with_columns(time_s=last + pl.col("rest_s"))


def _mean(rows: pl.DataFrame, values: pl.Expr) -> float:
    """Weighted, over those that have a value."""
    known = rows.select(value=values, weight="weight").drop_nulls().filter(pl.col("value").is_not_nan())
    total = float(known["weight"].sum())
    return float((known["value"] * known["weight"]).sum()) / total if total else float("nan")


def _sentences(chain: CertificateChain, options: Sequence[Option], changed: float, assumed: bool) -> Iterator[str]:
    today, *others = options
    full = [option for option in others if option.record_size == _RECORDS[0]]
    new = next(option for option in full if option.certificates == chain.name)
    whose = (
        "of every connection (assumed: the data shows no handshakes)" if assumed else f"of {changed:.3g}% of the users"
    )
    yield (
        f"With {chain.name} the server's flight {whose} has {chain.flight_bytes / 1e3:.3g} kB: the mean time of a "
        f"response goes from {1e3 * today.last_byte_s:.0f} to {1e3 * new.last_byte_s:.0f} ms "
        f"({_percent(new.change_percent)}) with an initial window of {new.initial_window}."
    )
    remedies = [option for option in full if option is not new and option.certificates != _AS_SEEN]
    better = [option for option in remedies if option.last_byte_s < new.last_byte_s]
    if not better:
        yield "No other window and no shorter chain makes it faster."
        return
    for what, of in (
        ("window", [option for option in better if option.certificates == chain.name]),
        ("chain", [option for option in better if option.initial_window == new.initial_window]),
    ):
        if of:
            best = min(of, key=lambda option: option.last_byte_s)
            name = f"A window of {best.initial_window}" if what == "window" else f"The chain {best.certificates}"
            yield f"{name} makes it {1e3 * best.last_byte_s:.0f} ms ({_percent(best.change_percent)} against today)."
    small = next(
        option for option in others if option.record_size == _RECORDS[1] and option.initial_window == new.initial_window
    )
    yield (
        f"Records of {_RECORDS[1]} bring the first usable byte after {1e3 * small.first_usable_byte_s:.0f} in place of "
        f"{1e3 * new.first_usable_byte_s:.0f} ms."
    )


def _percent(change: Estimate) -> str:
    return f"{change.value:+.1f}%, 95% CI {change.low:+.1f} to {change.high:+.1f}"
