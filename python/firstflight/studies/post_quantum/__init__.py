"""Post-quantum certificates: the handshake as the first flight, its remedies, and their cost to others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import xarray as xr

from firstflight.scenario import Scenario
from firstflight.studies.kernel import (
    DeclaredStudy,
    Quantities,
    Quantity,
    extreme,
    heat_map,
    intervals,
    lines,
    named,
    table,
    value,
)
from firstflight.studies.post_quantum.claims import (
    NONE,
    PQ,
    TESTBED,
    added,
    claims,
    harm,
    largest,
)

if TYPE_CHECKING:
    from firstflight.records import Run

APPLICATION, DONE = pl.col("application").cast(pl.String), pl.col("completed") == 1
OWN = DONE & (APPLICATION == "own")
TLS = pl.col("tls_handshake_time_s") - pl.col("handshake_time_s")
RESPONSES = {"1kB": "1kB", "20kB": "20kB", "50kB": "50kB", "200kB": "200kB"}
MUTUAL_RESPONSES = {"none": "1B", "50KiB": "50KiB", "150KiB": "150KiB", "400KiB": "400KiB"}
_OTHERS = 1505
"""Bytes of a server's flight that are not in its chain."""
_UK = {"row_sampling": "weighted", "extra_rtt": "30ms"}
POPULATIONS = {
    "AvgDC": {"name": "avgdc"},
    "UK 2015": {"name": "uk-2015"} | _UK,
    "UK 2023": {"name": "uk-2023"} | _UK,
}


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The application of the grid, the bytes of a flight, how often, and the population."""
    if grid == "users":
        assert scenario.population is not None
        return scenario.with_population(users=scenario.population.users, **POPULATIONS[labels["population"]])
    if grid == "harm":
        return scenario
    own, page = scenario.to_dict()["application"]
    if grid == "connections":
        return scenario.replace("application", [page])
    sizes = RESPONSES
    if grid == "flights":
        own["tls"] = {"chain": f"{1000 * labels['flight_kb'] - _OTHERS}B", "compute": own["tls"]["compute"]}
    elif grid == "mutual":
        sizes = MUTUAL_RESPONSES
        # s2n corks: no segment of a flight but its last one is short.
        tls = {"chain": "ml-dsa-87", "client_certificate": "ml-dsa-87", "write_size": "64KiB"}
        own |= {"tls": own["tls"] | tls | {"intermediates": 1}, "server_tcp": {"initial_window": 24}}
    elif grid == "loss":
        sizes, own["count"] = {"20kB": "20kB"}, 100
    elif str(labels["path"])[:2] in ("LT", "5G"):
        # The rate depends on the moment.
        own["count"] = 12
    each = [
        own | {"name": name, "size": size, "start": f"{100 * place}s"}
        for place, (name, size) in enumerate(sizes.items())
    ]
    return scenario.replace("application", each)


def times(grid: str, *names: str, responses: Iterable[str] = RESPONSES, digits: int = 0) -> Iterator[Quantity]:
    """Means over the transfers of a grid: the handshake from TCP's end, others from the opening of the connection."""
    of = {
        "handshake": ("TLS handshake", TLS),
        "first": ("First byte", pl.col("first_byte_time_s")),
        "usable": ("First usable byte", pl.col("first_usable_byte_time_s")),
        "last": ("Last byte", pl.col("completion_time_s")),
    }
    for name in names or of:
        title, seconds = of[name]
        yield Quantity(
            f"{grid}_{name}",
            title,
            "ms",
            1e3 * seconds.mean(),
            DONE,
            by={"application": list(responses)},
            grid=grid,
            digits=digits,
        )


def of_users(run: "Run") -> pl.LazyFrame:
    """One row per user, window and kind of certificates: the time that these cost in the handshake, `handshake_ms`, and
    up to the last byte, `last_ms`, against those served in 2026; `crosses`: half an RTT or more in the handshake.
    """
    user = ["population", "iw", "replicate", "client"]
    rows = run.table("transfers", experiment="users").filter(DONE)
    rows = rows.select(*user, "certificates", handshake_ms=1e3 * TLS, last_ms=1e3 * pl.col("completion_time_s"))
    served = rows.filter(pl.col("certificates").cast(pl.String) == "tranco-2026").drop("certificates")
    paths = run.table("users", experiment="users").select(*user, "certificates", "rtt_s")
    rows = rows.join(served, on=user, suffix="_served").join(paths, on=[*user, "certificates"])
    lost = {name: pl.col(name) - pl.col(f"{name}_served") for name in ("handshake_ms", "last_ms")}
    return rows.with_columns(
        handshake_lost_ms=lost["handshake_ms"],
        last_lost_ms=lost["last_ms"],
        crosses=lost["handshake_ms"] >= 500 * pl.col("rtt_s"),
    )


def by_user(name: str, title: str, unit: str, expr: pl.Expr, where: pl.Expr | None = None, digits: int = 0) -> Quantity:
    """Of the users."""
    return Quantity(name, title, unit, expr, where, of_users, digits=digits, grid="users")


DOWN, LOST_MS = (APPLICATION == "call") & (pl.col("from_server") == 1), pl.col("handshake_lost_ms")
MEAN_MS = 1e3 * pl.col("completion_time_s").mean()
QUANTITIES = (
    *times("flights", "handshake", "last"),
    *times("paths", "handshake", "first", "usable", "last"),
    *times("loss", "handshake", responses=["20kB"], digits=1),
    Quantity(
        "loss_late",
        "Handshakes with a timeout",
        "percent",
        100 * (pl.col("timeouts") > 0).mean(),
        None,
        lambda run: run.table("handshakes", experiment="loss"),
        grid="loss",
    ),
    Quantity("page", "Page", "ms", MEAN_MS, DONE, "pages", digits=0, grid="connections"),
    *times("mutual", "last", responses=MUTUAL_RESPONSES, digits=1),
    *times("remedies"),
    Quantity("own", "Own pages", "ms", MEAN_MS, OWN, "pages", digits=0, grid="harm"),
    Quantity(
        "beside", "Pages of others", "ms", MEAN_MS, DONE & (APPLICATION == "beside"), "pages", digits=0, grid="harm"
    ),
    Quantity(
        "short", "Short responses of others", "ms", MEAN_MS, DONE & (APPLICATION == "short"), digits=0, grid="harm"
    ),
    Quantity("mos", "Call", "MOS", pl.col("mos").mean(), DOWN, "streams", digits=2, grid="harm"),
    by_user("crossing", "Users who lose a round trip", "percent", 100 * pl.col("crosses").mean(), digits=1),
    by_user("crossing_ms", "What it costs them", "ms", LOST_MS.mean(), pl.col("crosses")),
    by_user("lost_ms", "Handshake, all users", "ms", LOST_MS.mean(), digits=1),
    by_user("lost_p95_ms", "Handshake, 95th percentile", "ms", LOST_MS.quantile(0.95)),
    by_user("last_lost_ms", "Last byte of 20 kB, all users", "ms", pl.col("last_lost_ms").mean(), digits=1),
    by_user("last_ms", "Last byte", "ms", pl.col("last_ms_served").mean()),
)


def answer(q: Quantities) -> Sequence[str]:
    """Steps, users, remedies."""
    return ()


STUDY = DeclaredStudy(Path(__file__).parent, QUANTITIES, claims, lambda q: [], lambda q: [], answer, build)
