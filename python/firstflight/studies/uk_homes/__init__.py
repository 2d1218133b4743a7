"""UK homes: gain and cost of larger initial windows for every home of two broadband panels."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from firstflight.populations import uk_homes
from firstflight.scenario import Scenario
from firstflight.studies.kernel import DeclaredStudy, Quantity, Sample
from firstflight.studies.uk_homes import report
from firstflight.studies.uk_homes.claims import (
    ALL,
    ASSUMPTIONS,
    FARTHER_MS,
    GUESSES,
    MEASURED,
    NO_LOSS,
    PAGE,
    PERCENTILES,
    RESPONSE,
    RESPONSES,
    RULES,
    TECHNOLOGIES,
    TODAY,
    TOGETHER,
    claims,
)

if TYPE_CHECKING:
    from firstflight.records import Run

PACKET_BYTES = 1500
CELL = ["year", "extra_rtt_ms", "iw"]
COUNTS = ("segments_sent", "retransmissions", "timeouts", "first_flight_segments", "first_flight_lost_segments")
MAP_BYTES = sorted({round(size) for size in np.geomspace(2000, 2_000_000, 400).tolist()})


def homes(run: "Run", cells: Mapping[str, Any], weighted: bool = False) -> pl.DataFrame:
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
    found = pl.concat([responses.filter(pl.col("response") != PAGE), pages], how="diagonal")
    users = run.table("users", **cells).select(
        *user, "weight", "rtt_s", "down_bps", "buffer_bytes", home=pl.col("row").cast(pl.UInt32)
    )
    panel = pl.concat(
        uk_homes.homes(year).select("home", "technology", "web_page_s", year=pl.lit(year, pl.Int64))
        for year in uk_homes.YEARS
    )
    found = found.join(users, on=user, maintain_order="left").with_columns(pl.col("year").cast(pl.Int64))
    found = found.join(panel.lazy(), on=["year", "home"], how="left", maintain_order="left")
    return (found.filter(pl.col("weight") > 0) if weighted else found).collect()


def ranked(run: "Run", cells: Mapping[str, Any]) -> pl.DataFrame:
    """The homes' pages with today's window: how each ranks within its technology, and among all, by its time here, its
    path and the measured page, standardized.
    """
    page = (pl.col("response") == PAGE) & (pl.col("iw") == TODAY) & (pl.col("replicate") == 0)
    found = homes(run, cells).filter(page & pl.col("time_ms").is_finite())
    found = pl.concat([found.with_columns(technology=pl.lit(ALL)), found])
    by = {**GUESSES, MEASURED: pl.col("web_page_s")}
    ranks = {name: value.rank().over("year", "technology") for name, value in by.items()}
    return found.with_columns(
        ((rank - rank.mean().over("year", "technology")) / rank.std(0).over("year", "technology")).alias(name)
        for name, rank in ranks.items()
    )


def pages(run: "Run") -> pl.LazyFrame:
    """The same of both years, as near as the test server."""
    return ranked(run, {"experiment": "homes", "extra_rtt_ms": 0}).lazy()


def by_percentile(run: "Run") -> pl.LazyFrame:
    """Each percentile of the country's homes, by the times in each cell: the shortest time that this share of the
    weight does not exceed.
    """
    schema = {"year": pl.Int64, "extra_rtt_ms": pl.Int64, "iw": pl.Int64, "response": pl.String}
    rows: list[tuple[Any, ...]] = []
    whole = homes(run, {"experiment": "homes"}, weighted=True).sort("time_ms")
    parts = whole.partition_by(*schema, as_dict=True)
    for place, own in parts.items():
        so_far = own["weight"].cum_sum().to_numpy()
        # A share that is a whole number of weights must not slip to the next value by rounding.
        least = np.searchsorted(so_far, np.array(PERCENTILES) / 100 * so_far[-1] * (1 - 1e-12))
        rows += [(*place, *found) for found in zip(PERCENTILES, own["time_ms"].to_numpy()[least].tolist(), strict=True)]
    schema |= {"percentile": pl.Int64, "time_ms": pl.Float64}
    return pl.LazyFrame(rows, schema, orient="row").with_columns(replicate=0)


NATIONAL = Sample(partial(homes, weighted=True), ("home",), ("iw",))
EACH = Sample(homes, ("home",), ("iw",))
RANKED = Sample(ranked, ("home",), ("iw",))
WEIGHT, TIME = pl.col("weight"), pl.col("time_ms")
SHOWN = pl.col("response") == RESPONSE
LOST = pl.col("first_flight_lost_segments") > 0
FLIGHT_BYTES = pl.col("first_flight_segments") * PACKET_BYTES
ROOM_BYTES = {
    "queue": pl.col("buffer_bytes"),
    "wire": pl.col("buffer_bytes") + PACKET_BYTES,
    "pipe": pl.col("buffer_bytes") + pl.col("rtt_s") * pl.col("down_bps") / 8,
}
SOME: Mapping[str, Sequence[Any]] = {"response": [RESPONSE, PAGE]}
FETCHED_PAGE = pl.col("response") == PAGE
FARTHER, LARGER = {"extra_rtt_ms": [FARTHER_MS]}, {"iw": [TODAY, 16, 32]}
BY_TECHNOLOGY = {"technology": TECHNOLOGIES}


def share(name: str, title: str, condition: pl.Expr, grid: str, digits: int = 1) -> Quantity:
    """Of the country's homes, when they fetch the response that stands for all."""
    return Quantity(name, title, "percent", 100 * condition, SHOWN, NATIONAL, digits=digits, grid=grid, weight=WEIGHT)


def count(name: str, column: str, grid: str) -> Quantity:
    """A mean over the country's homes, of which ratios are taken."""
    return Quantity(name, column, "segments", pl.col(column), SHOWN, NATIONAL, grid=grid, weight=WEIGHT)


def flight(grid: str, title: str) -> Quantity:
    """Of the country's median home."""
    name, value = f"flight_{grid}", pl.col("first_flight_segments")
    return Quantity(name, title, "segments", value, SHOWN, NATIONAL, (), 0, grid, percentiles=(50,), weight=WEIGHT)


def of_grid(grid: str) -> Iterator[Quantity]:
    """The values compared between the assumptions."""
    by = {"response": RESPONSES} if grid == "homes" else SOME
    yield Quantity(f"time_{grid}", "Time", "ms", TIME, None, NATIONAL, by, 0, grid, percentiles=(50,), weight=WEIGHT)
    yield share(f"hit_{grid}", "Homes that lose of the first flight", LOST, grid)
    yield count(f"again_{grid}", "retransmissions", grid)
    yield count(f"sent_{grid}", "segments_sent", grid)


def timed(name: str, value: pl.Expr, records: Any, by: Mapping[str, Sequence[Any]], **more: Any) -> Quantity:
    """Times in the grid of all homes."""
    return Quantity(name, "Time", "ms", value, records=records, by=by, digits=0, grid="homes", **more)


def of_rank(name: str, value: pl.Expr) -> Quantity:
    """A mean over the homes of a technology, of ranks."""
    by, at = {"technology": (ALL, *TECHNOLOGIES)}, {"extra_rtt_ms": [0], "iw": [TODAY]}
    return Quantity(name, name, "", value, None, RANKED, by, grid="homes", at=at)


def of_pages(name: str, title: str, unit: str, value: pl.Expr) -> Quantity:
    """An aggregate over the homes of a technology."""
    by, at = {"technology": (ALL, *TECHNOLOGIES)}, {"extra_rtt_ms": [0], "iw": [TODAY]}
    return Quantity(name, title, unit, value, None, pages, by, 0, "homes", at)


QUANTITIES = (
    *(quantity for grid in ("homes", *ASSUMPTIONS) for quantity in of_grid(grid)),
    timed("tail", TIME, NATIONAL, SOME, at=FARTHER, percentiles=(10, 50, 90, 95, 99), weight=WEIGHT),
    timed("percentile_time", TIME.max(), by_percentile, {**SOME, "percentile": PERCENTILES}),
    # Each home counts once: Ofcom gives some technologies no weight.
    timed(
        "technology_time", TIME, EACH, BY_TECHNOLOGY, where=FETCHED_PAGE, at={**FARTHER, **LARGER}, percentiles=(50,)
    ),
    Quantity(
        "technology_overfilled",
        "First flight overflows the queue",
        "percent",
        100 * LOST,
        SHOWN,
        EACH,
        BY_TECHNOLOGY,
        grid=NO_LOSS,
        at={"iw": [16, 32]},
    ),
    flight("homes", "First flight of the median home"),
    count("first_lost", "first_flight_lost_segments", "homes"),
    count("first_sent", "first_flight_segments", "homes"),
    share("late", "Homes with a timeout", pl.col("timeouts") > 0, "homes", 2),
    flight(NO_LOSS, "First flight"),
    *(share(rule, title, ROOM_BYTES[rule] < FLIGHT_BYTES, NO_LOSS, 2) for rule, (title, _) in RULES.items()),
    *(
        share(f"{rule}_right", title, (ROOM_BYTES[rule] < FLIGHT_BYTES) == LOST, NO_LOSS)
        for rule, (_, title) in RULES.items()
    ),
    *(
        share(f"together_{many}", f"{many} at once", pl.col("buffer_bytes") < many * FLIGHT_BYTES, NO_LOSS)
        for many in TOGETHER
    ),
    *(of_rank(name, pl.col(name)) for name in (*GUESSES, MEASURED)),
    *(of_rank(f"{name}_squared", pl.col(name) ** 2) for name in (*GUESSES, MEASURED)),
    *(of_rank(f"{name}_with_measured", pl.col(name) * pl.col(MEASURED)) for name in GUESSES),
    of_pages("homes", "Homes", "count", pl.len()),
    of_pages("measured_ms", "Median, measured", "ms", 1e3 * pl.col("web_page_s").median()),
    of_pages("ours_ms", "Median, this run", "ms", TIME.median()),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The homes of a year at a distance, with one assumption turned round; the map's path with every size."""
    changed: dict[str, Any] = {"name": f"uk-{labels['year']}"}
    if grid in ("small buffers", "large buffers"):
        changed |= uk_homes.population(labels["year"], "small" if grid == "small buffers" else "large")
    elif grid == NO_LOSS:
        own = uk_homes.population(labels["year"])
        changed |= {"columns": own["columns"] | {"loss": [0.0] * own["users"]}}
    elif grid == "64 packets at least":
        changed |= {"min_buffer": "64p"}
    elif grid == "map":
        path = {name: [value] * len(MAP_BYTES) for name, value in report.typical_home(labels["year"]).items()}
        columns = path | {"loss": [0.0] * len(MAP_BYTES), "bytes": MAP_BYTES}
        changed = scenario.to_dict()["population"] | {"columns": columns, "users": len(MAP_BYTES)}
    return scenario.replace("population", changed | {"extra_rtt": f"{labels['extra_rtt_ms']}ms"})


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, report.tables, report.figures, report.answer, build)
