"""UK homes: gain and cost of larger initial windows for every home of two broadband panels."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from firstflight.populations import uk_homes
from firstflight.records import Run
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity, Sample, Sampled
from firstflight.studies.uk_homes import claims as c
from firstflight.studies.uk_homes import report

PACKET_BYTES = 1500
RESPONSES, PERCENTILES = ("10kB", "30kB", "100kB", "300kB", "1MB", c.PAGE), tuple(range(1, 100))
CELL = ["year", "extra_rtt_ms", "iw"]
COUNTS = ("segments_sent", "retransmissions", "timeouts", "first_flight_segments", "first_flight_lost_segments")
MAP_BYTES = sorted({round(size) for size in np.geomspace(2000, 2_000_000, 400).tolist()})


def homes(run: Run, cells: Mapping[str, Any], weighted: bool = False) -> pl.LazyFrame:
    """One row a home and response: its `time_ms`, from opening the connection to the last byte (infinite if it did not
    finish), the sender's counts (not of a page), its path and the panel's data on it. `weighted`: of the country,
    without the homes that have no weight.
    """
    time_ms = pl.when(pl.col("completed") == 1).then(1e3 * pl.col("completion_time_s")).otherwise(float("inf"))
    user = [*CELL, "replicate", "client"]
    name = pl.col("application").cast(pl.String).alias("response")
    responses = run.table("transfers", **cells).select(*user, name, time_ms.alias("time_ms"), *COUNTS)
    pages = run.table("pages", **cells).select(*user, name, time_ms.alias("time_ms"))
    # The objects of a page are transfers as well.
    rows = pl.concat([responses.filter(pl.col("response") != c.PAGE), pages], how="diagonal")
    users = run.table("users", **cells).select(
        *user, "weight", "rtt_s", "down_bps", "buffer_bytes", home=pl.col("row").cast(pl.UInt32)
    )
    panel = pl.concat(
        uk_homes.homes(year).select("home", "technology", "web_page_s", year=pl.lit(year, pl.Int64))
        for year in uk_homes.YEARS
    )
    rows = rows.join(users, on=user, maintain_order="left").with_columns(pl.col("year").cast(pl.Int64))
    rows = rows.join(panel.lazy(), on=["year", "home"], how="left", maintain_order="left")
    return rows.filter(pl.col("weight") > 0) if weighted else rows


def ranked(run: Run, cells: Mapping[str, Any]) -> pl.LazyFrame:
    """Pages with today's window: the standardized rank of each in its technology, and among all, by each measure."""
    page = (pl.col("response") == c.PAGE) & (pl.col("iw") == c.TODAY) & (pl.col("replicate") == 0)
    rows = homes(run, cells).filter(page & pl.col("time_ms").is_finite())
    rows = pl.concat([rows.with_columns(technology=pl.lit(c.ALL)), rows])
    by = {**c.GUESSES, c.MEASURED: pl.col("web_page_s")}
    ranks = {name: value.rank().over("year", "technology") for name, value in by.items()}
    return rows.with_columns(
        ((rank - rank.mean().over("year", "technology")) / rank.std(0).over("year", "technology")).alias(name)
        for name, rank in ranks.items()
    )


def pages(run: Run) -> pl.LazyFrame:
    """The same of both years, as near as the test server."""
    return ranked(run, {"experiment": "homes", "extra_rtt_ms": 0})


def by_percentile(run: Run) -> pl.LazyFrame:
    """Percentiles of the country's homes in each cell: the least time that this share of the weight does not exceed."""
    schema = {"year": pl.Int64, "extra_rtt_ms": pl.Int64, "iw": pl.Int64, "response": pl.String}
    rows: list[tuple[Any, ...]] = []
    whole = homes(run, {"experiment": "homes"}, weighted=True).sort("time_ms").collect()
    parts = whole.partition_by(*schema, as_dict=True)
    for place, part in parts.items():
        so_far = part["weight"].cum_sum().to_numpy()
        # A share that is a whole number of weights must not slip to the next value by rounding.
        least = np.searchsorted(so_far, np.array(PERCENTILES) / 100 * so_far[-1] * (1 - 1e-12))
        rows += [(*place, *pair) for pair in zip(PERCENTILES, part["time_ms"].to_numpy()[least].tolist(), strict=True)]
    schema |= {"percentile": pl.Int64, "time_ms": pl.Float64}
    return pl.LazyFrame(rows, schema, orient="row").with_columns(replicate=0)


NATIONAL = Sample(partial(homes, weighted=True), ("home",), ("iw",))
EACH = Sample(homes, ("home",), ("iw",))
RANKED = Sample(ranked, ("home",), ("iw",))
WEIGHT, TIME = pl.col("weight"), pl.col("time_ms")
SHOWN = pl.col("response") == c.RESPONSE
LOST = pl.col("first_flight_lost_segments") > 0
FLIGHT_BYTES = pl.col("first_flight_segments") * PACKET_BYTES
ROOM_BYTES = {
    "queue": pl.col("buffer_bytes"),
    "wire": pl.col("buffer_bytes") + PACKET_BYTES,
    "pipe": pl.col("buffer_bytes") + pl.col("rtt_s") * pl.col("down_bps") / 8,
}
SOME: Mapping[str, Sequence[Any]] = {"response": [c.RESPONSE, c.PAGE]}
BY_PERCENTILE: Mapping[str, Sequence[Any]] = {**SOME, "percentile": PERCENTILES}
PAGES = pl.col("response") == c.PAGE
FARTHER, LARGER = {"extra_rtt_ms": [c.FARTHER_MS]}, {"iw": [c.TODAY, 16, 32]}
TAIL = (10, 50, 90, 95, 99)


def share(name: str, title: str, condition: pl.Expr, grid: str, digits: int = 1) -> Quantity:
    """Of the country's homes, when they fetch the response that stands for all."""
    return Sampled(name, title, "percent", 100 * condition, SHOWN, NATIONAL, digits=digits, grid=grid, weight=WEIGHT)


def count(name: str, column: str, grid: str) -> Quantity:
    """A mean over the country's homes, of which ratios are taken."""
    return Sampled(name, column, "segments", pl.col(column), SHOWN, NATIONAL, grid=grid, weight=WEIGHT)


def flight(grid: str, title: str) -> Quantity:
    """Of the country's median home."""
    name, value = f"flight_{grid}", pl.col("first_flight_segments")
    return Sampled(name, title, "segments", value, SHOWN, NATIONAL, (), 0, grid, summary=(50,), weight=WEIGHT)


def of_grid(grid: str) -> Iterator[Quantity]:
    """The values compared between the assumptions."""
    by = {"response": RESPONSES} if grid == "homes" else SOME
    yield Sampled(f"time_{grid}", "Time", "ms", TIME, None, NATIONAL, by, 0, grid, summary=(50,), weight=WEIGHT)
    yield share(f"hit_{grid}", "Homes that lose of the first flight", LOST, grid)
    yield count(f"again_{grid}", "retransmissions", grid)
    yield count(f"sent_{grid}", "segments_sent", grid)


# Each home counts once: Ofcom gives some technologies no weight.
of_technology = partial(Sampled, records=EACH, by={"technology": c.TECHNOLOGIES})
OVERFLOWS = "First flight overflows the queue"
# Of the homes of a technology, with today's window and the RTT as measured.
KIND: Mapping[str, Sequence[Any]] = {"technology": (c.ALL, *c.TECHNOLOGIES)}
TODAY: Mapping[str, Sequence[Any]] = {"extra_rtt_ms": [0], "iw": [c.TODAY]}
of_rank = partial(Sampled, records=RANKED, by=KIND, grid="homes", at=TODAY)
of_pages = partial(Quantity, records=pages, by=KIND, digits=0, grid="homes", at=TODAY)
QUANTITIES = (
    *(quantity for grid in ("homes", *c.ASSUMPTIONS) for quantity in of_grid(grid)),
    Sampled("tail", "Time", "ms", TIME, None, NATIONAL, SOME, 0, "homes", FARTHER, summary=TAIL, weight=WEIGHT),
    Quantity("percentile_time", "Time", "ms", TIME.max(), None, by_percentile, BY_PERCENTILE, 0, "homes"),
    of_technology(
        "technology_time", "Time", "ms", TIME, PAGES, digits=0, grid="homes", at=FARTHER | LARGER, summary=(50,)
    ),
    of_technology(
        "technology_overfilled", OVERFLOWS, "percent", 100 * LOST, SHOWN, grid=c.NO_LOSS, at={"iw": [16, 32]}
    ),
    flight("homes", "First flight of the median home"),
    count("first_lost", "first_flight_lost_segments", "homes"),
    count("first_sent", "first_flight_segments", "homes"),
    share("late", "Homes with a timeout", pl.col("timeouts") > 0, "homes", 2),
    flight(c.NO_LOSS, "First flight"),
    *(share(rule, title, ROOM_BYTES[rule] < FLIGHT_BYTES, c.NO_LOSS, 2) for rule, (title, _) in c.RULES.items()),
    *(
        share(f"{rule}_right", title, (ROOM_BYTES[rule] < FLIGHT_BYTES) == LOST, c.NO_LOSS)
        for rule, (_, title) in c.RULES.items()
    ),
    *(
        share(f"together_{many}", f"{many} at once", pl.col("buffer_bytes") < many * FLIGHT_BYTES, c.NO_LOSS)
        for many in c.TOGETHER
    ),
    *(of_rank(name, name, "", pl.col(name)) for name in (*c.GUESSES, c.MEASURED)),
    *(of_rank(name := f"{of}_squared", name, "", pl.col(of) ** 2) for of in (*c.GUESSES, c.MEASURED)),
    *(of_rank(name := f"{of}_with_measured", name, "", pl.col(of) * pl.col(c.MEASURED)) for of in c.GUESSES),
    of_pages("homes", "Homes", "count", pl.len()),
    of_pages("measured_ms", "Median, measured", "ms", 1e3 * pl.col("web_page_s").median()),
    of_pages("ours_ms", "Median, this run", "ms", TIME.median()),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The homes of a year at a distance, with one assumption turned round; the map's path with every size."""
    changed: dict[str, Any] = {"name": f"uk-{labels['year']}"}
    if grid in ("small buffers", "large buffers"):
        changed |= uk_homes.population(labels["year"], "small" if grid == "small buffers" else "large")
    elif grid == c.NO_LOSS:
        population = uk_homes.population(labels["year"])
        changed |= {"columns": population["columns"] | {"loss": [0.0] * population["users"]}}
    elif grid == "64 packets at least":
        changed |= {"min_buffer": "64p"}
    elif grid == "map":
        path = {name: [value] * len(MAP_BYTES) for name, value in report.typical_home(labels["year"]).items()}
        columns = path | {"loss": [0.0] * len(MAP_BYTES), "bytes": MAP_BYTES}
        changed = scenario.to_dict()["population"] | {"columns": columns, "users": len(MAP_BYTES)}
    return scenario.replace("population", changed | {"extra_rtt": f"{labels['extra_rtt_ms']}ms"})


STUDY = DeclaredStudy(__file__, QUANTITIES, c.claims, report.tables, report.figures, report.answer, build)
