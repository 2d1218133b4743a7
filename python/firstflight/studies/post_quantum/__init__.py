"""Post-quantum certificates: the handshake as the first flight, its remedies, and their cost to others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k
from firstflight.studies.post_quantum.claims import LARGE, NONE, PQ, TESTBED, added, claims, harm, largest, step

OWN = k.DONE & k.of("own")
TLS = pl.col("tls_handshake_time_s") - pl.col("handshake_time_s")
RESPONSES = {"1kB": "1kB", "20kB": "20kB", "50kB": "50kB", "200kB": "200kB"}
MUTUAL_RESPONSES = {"none": "1B", "50KiB": "50KiB", "150KiB": "150KiB", "400KiB": "400KiB"}
_OTHERS = 1505
"""Bytes of a server's flight that are not in its chain."""
WIDE = 46
SHOWN = ["ECDSA", "leaf only", "compressed", "Merkle tree", "X25519", "IW 20", "IW 46", "IW 20, paced", "IW 46, paced"]
_UK = {"row_sampling": "weighted", "extra_rtt": "30ms"}
POPULATIONS = {"AvgDC": {"name": "avgdc"}, "UK 2015": {"name": "uk-2015"} | _UK, "UK 2023": {"name": "uk-2023"} | _UK}


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The application of the grid, the bytes of a flight, how often, and the population."""
    if grid == "users":
        assert scenario.population is not None
        return scenario.with_population(users=scenario.population.users, **POPULATIONS[labels["population"]])
    if grid == "harm":
        return scenario
    transfer, page = scenario.to_dict()["application"]
    if grid == "connections":
        return scenario.replace("application", [page])
    sizes = RESPONSES
    if grid == "flights":
        transfer["tls"] = {"chain": f"{1000 * labels['flight_kb'] - _OTHERS}B"}
    elif grid == "mutual":
        sizes = MUTUAL_RESPONSES
        # s2n corks: no segment of a flight but its last one is short.
        tls = {"chain": "ml-dsa-87", "client_certificate": "ml-dsa-87", "write_size": "64KiB"}
        transfer |= {"tls": transfer["tls"] | tls | {"intermediates": 1}, "server_tcp": {"initial_window": 24}}
    elif grid == "loss":
        sizes, transfer["count"] = {"20kB": "20kB"}, 100
    elif grid == "kernel":
        scenario = scenario.replace("duration", "4s")
        return scenario.replace("application", [transfer | {"name": "20kB"}])
    elif str(labels["path"])[:2] in ("LT", "5G"):
        # The rate depends on the moment.
        transfer["count"] = 12
    transfers = [
        transfer | {"name": name, "size": size, "start": f"{100 * place}s"}
        for place, (name, size) in enumerate(sizes.items())
    ]
    return scenario.replace("application", transfers)


def times(grid: str, *names: str, responses: Iterable[str] = RESPONSES, digits: int = 0) -> Iterator[k.Quantity]:
    """Means over the transfers of a grid: the handshake from TCP's end, others from the opening of the connection."""
    of = {
        "handshake": ("TLS handshake", TLS),
        "first": ("First byte", pl.col("first_byte_time_s")),
        "usable": ("First usable byte", pl.col("first_usable_byte_time_s")),
        "last": ("Last byte", pl.col("completion_time_s")),
    }
    for name in names or of:
        title, seconds = of[name]
        yield k.Quantity(
            f"{grid}_{name}",
            title,
            "ms",
            1e3 * seconds.mean(),
            k.DONE,
            by={"application": list(responses)},
            grid=grid,
            digits=digits,
        )


def of_users(run: "Run") -> pl.LazyFrame:
    """One row per user, window and kind of certificates: what these cost the handshake and the last byte against those
    served in 2026, ms, and the part of the handshake that IW 46 saves, `window_ms`; `crosses`: half an RTT or more.
    """
    kind, user_keys = pl.col("certificates").cast(pl.String), ["population", "replicate", "client"]
    rows = run.table("transfers", experiment="users").filter(k.DONE)
    rows = rows.select(*user_keys, "iw", kind, handshake_ms=1e3 * TLS, last_ms=1e3 * pl.col("completion_time_s"))
    served = rows.filter(kind == "tranco-2026").drop("certificates")
    wide = rows.filter(pl.col("iw") == WIDE).select(*user_keys, "certificates", wide_ms="handshake_ms")
    paths = run.table("users", experiment="users").filter(pl.col("iw") == WIDE).select(*user_keys, kind, "rtt_s")
    rows = rows.join(served, on=[*user_keys, "iw"], suffix="_served")
    rows = rows.join(wide.join(paths, on=[*user_keys, "certificates"]), on=[*user_keys, "certificates"])
    rows = rows.with_columns(window_ms=pl.col("handshake_ms") - pl.col("wide_ms"))
    return rows.with_columns(
        lost_ms=pl.col("handshake_ms") - pl.col("handshake_ms_served"),
        last_lost_ms=pl.col("last_ms") - pl.col("last_ms_served"),
        crosses=pl.col("window_ms") >= 500 * pl.col("rtt_s"),
    )


def by_user(
    name: str, title: str, unit: str, expr: pl.Expr, where: pl.Expr | None = None, digits: int = 0
) -> k.Quantity:
    """Of the users."""
    return k.Quantity(name, title, unit, expr, where, of_users, digits=digits, grid="users")


DOWN = k.of("call") & k.DOWN
QUANTITIES = (
    *times("flights", "handshake", "last"),
    *times("paths", "handshake", "first", "usable", "last"),
    *times("loss", "handshake", responses=["20kB"], digits=1),
    k.Quantity(
        "loss_late",
        "Handshakes with a timeout",
        "percent",
        100 * (pl.col("timeouts") > 0).mean(),
        None,
        lambda run: run.table("handshakes", experiment="loss"),
        grid="loss",
    ),
    k.Quantity("page", "Page", "ms", k.MEAN_MS, k.DONE, "pages", digits=0, grid="connections"),
    *times("mutual", "last", responses=MUTUAL_RESPONSES, digits=1),
    *times("remedies"),
    *times("kernel", "handshake", "last", responses=["20kB"], digits=1),
    k.Quantity("own", "Own pages", "ms", k.MEAN_MS, OWN, "pages", digits=0, grid="harm"),
    k.Quantity("beside", "Pages of others", "ms", k.MEAN_MS, k.DONE & k.of("beside"), "pages", digits=0, grid="harm"),
    k.Quantity("short", "Short responses of others", "ms", k.MEAN_MS, k.DONE & k.of("short"), digits=0, grid="harm"),
    k.Quantity("mos", "Call", "MOS", pl.col("mos").mean(), DOWN, "streams", digits=2, grid="harm"),
    by_user("crossing", "Users who lose a round trip", "percent", 100 * pl.col("crosses").mean(), digits=1),
    by_user("crossing_ms", "Its cost to them", "ms", pl.col("window_ms").mean(), pl.col("crosses")),
    by_user("crossing_p90_ms", "Its 90th percentile", "ms", pl.col("window_ms").quantile(0.9), pl.col("crosses")),
    by_user("lost_ms", "Handshake, all users", "ms", pl.col("lost_ms").mean(), digits=1),
    by_user("last_lost_ms", "Last byte of 20 kB, all users", "ms", pl.col("last_lost_ms").mean(), digits=1),
    by_user("served_ms", "Last byte as served", "ms", pl.col("last_ms_served").mean()),
)


def of_20_kb(q: k.Quantities, grid: str, *names: str) -> list[xr.DataArray]:
    """Quantities of a grid for the response of 20 kB."""
    return [getattr(q, f"{grid}_{name}").sel(application="20kB", drop=True) for name in names]


def steps(q: k.Quantities) -> xr.DataArray:
    """Handshake and last byte of 20 kB by flight and IW."""
    titles = ("TLS handshake", "Last byte of 20 kB")
    times = k.along("what", dict(zip(titles, of_20_kb(q, "flights", "handshake", "last"), strict=True)))
    return k.named(times, "steps", "time", "ms", 0)


def against_ten(q: k.Quantities) -> xr.DataArray:
    """Handshakes against IW 10's, percent."""
    chains, paths = [PQ, LARGE], ["fiber, 20 ms", "DSL, 40 ms", "2 Mbit/s, 100 packets", "2 Mbit/s, 12 packets"]
    times = q.paths_handshake.sel(application="1kB", chain=chains, path=paths, drop=True)
    times["iw"] = times["iw"].assign_attrs(titles={})
    return k.named(100 * times / times.sel(iw=10, drop=True), "against_ten", "TLS handshake", "% of IW 10's", 0)


def saved(q: k.Quantities) -> xr.DataArray:
    """By each remedy, percent of the time without one."""
    paths = {"testbed, 100 ms": "100 Mbit/s, 100 ms", "DSL, 40 ms": "DSL, 40 ms", "1 Mbit/s, 100 packets": "1 Mbit/s"}
    last = q.remedies_last
    parts = {"TLS": q.remedies_handshake.sel(application="1kB", drop=True)}
    parts |= {name: last.sel(application=name, drop=True) for name in ("1kB", "20kB", "200kB")}
    times = k.headed(k.along("what", parts).sel(path=list(paths)), what="")
    times["path"] = times["path"].assign_attrs(titles=paths)
    change = 100 * (1 - times / times.sel(remedy=NONE, drop=True))
    return k.named(change.drop_sel(remedy=NONE), "saved", "Time saved", "percent", 0)


def changes(q: k.Quantities) -> xr.DataArray:
    """Of own pages and of others."""
    parts = {"own pages": "own", "pages of others": "beside", "short responses of others": "short"}
    harms = k.along("who", {title: harm(q, name) for title, name in parts.items()})
    return k.named(harms.sel(remedy=SHOWN), "changes", "change against no remedy", "%", 1)


def paying(of: xr.DataArray) -> str:
    """The windows above 10, with their access links."""
    windows = {str(link): round(k.value(of.sel(access=link))) for link in of["access"].values}
    return "; ".join(f"IW {iw} at {link}" for link, iw in windows.items() if iw > 10) or "none above 10"


def answer(q: k.Quantities) -> Sequence[str]:
    """Steps, users, remedies."""
    if "kernel_last" in q:
        return ()
    testbed = q.paths_last.isel(draw=0).sel(path=TESTBED, iw=10)
    pay, gain = (added(testbed).sel(application=size) for size in ("1kB", "20kB"))
    faster = -added(testbed, "ML-DSA-44").sel(application="20kB")
    users = {"certificates": "tranco-2026-ml-dsa-44", "population": "UK 2023"}
    crossing, cost, last = (of.isel(draw=0).sel(users) for of in (q.crossing, q.crossing_ms, q.last_lost_ms))
    return (
        f"With IW 10 a server flight above {k.value(step(q, 1)):.0f} kB costs the handshake a round trip. At an RTT of "
        f"100 ms, ML-DSA-44 with two intermediates delays 1 kB by {k.value(pay):.0f} ms and 20 kB by "
        f"{k.value(gain):.0f} ms. With one intermediate 20 kB arrive {k.value(faster):.0f} ms earlier than with ECDSA, "
        "because the handshake's nine segments let cwnd grow.",
        f"With ML-DSA-44 {k.value(crossing.sel(iw=10)):.0f}% of UK homes of 2023 lose a round trip with IW 10, "
        f"{k.value(cost.sel(iw=10)):.0f} ms on average, and {k.value(crossing.sel(iw=16)):.1f}% with IW 16; over all "
        f"homes, 20 kB arrive {k.value(last.sel(iw=10)):.1f} ms later on average.",
        f"Largest IW that gains within the harm budget, on four access links: {paying(largest(q))}; with a paced first "
        f"flight: {paying(largest(q, paced=True))}. On the others none above 10 does.",
    )


def tables(q: k.Quantities) -> Sequence[Table]:
    """By grid."""
    if "kernel_last" in q:
        title = "Kernel and simulator"
        return [k.table("kernel", title, "Testbed.", of_20_kb(q, "kernel", "handshake", "last"), across="engine")]
    return [
        k.table(
            "flights",
            "Steps",
            "20 kB, 100 Mbit/s, RTT 100 ms.",
            of_20_kb(q, "flights", "handshake", "last"),
            across="iw",
        ),
        k.table(
            "paths", "By path", "Without random loss.", [q.paths_handshake, q.paths_usable, q.paths_last], across="iw"
        ),
        k.table("loss", "Handshakes under random loss", "Means.", [q.loss_handshake], across="loss_percent"),
        k.table("late", "Handshakes with a timeout", "The same.", [q.loss_late], across="loss_percent"),
        k.table("connections", "A page of seven objects of 20 kB", "Times.", [q.page], across="chain"),
        k.table("mutual", "Mutual TLS", "Server's IW 24.", [q.mutual_last], across="client_iw"),
        k.table(
            "remedies",
            "Remedies",
            "20 kB.",
            of_20_kb(q, "remedies", "handshake", "first", "usable", "last"),
            across="path",
        ),
        k.table(
            "harm",
            "Gain and harm",
            "Against no remedy.",
            [harm(q, name) for name in ("own", "beside", "short", "mos")],
            across="access",
        ),
        k.table(
            "users",
            "Users",
            "Against the certificates served in 2026.",
            [q.crossing, q.crossing_ms, q.crossing_p90_ms, q.lost_ms, q.last_lost_ms],
            across="iw",
        ),
    ]


def figures(q: k.Quantities) -> Sequence[Figure | None]:
    """Of a simulated run."""
    if "kernel_last" in q:
        return []
    return [
        k.lines(
            steps(q),
            "A flight beyond IW costs the handshake a round trip, which 20 kB win back",
            "100 Mbit/s, RTT 100 ms. A flight of nine segments lets cwnd grow: the response needs a round trip less.",
            "flight_kb",
            "iw",
            columns="what",
        ),
        k.lines(
            against_ten(q),
            "A larger IW saves a round trip, and behind a queue of 12 packets it triples the handshake",
            "Against IW 10, without random loss.",
            "iw",
            "path",
            columns="chain",
            base=100,
        ),
        k.heat_map(
            saved(q),
            "Smaller chains win the handshake back; on fast links only a larger IW wins the response, too",
            "Time saved against ML-DSA-44 with two intermediates and IW 10, %: TLS handshake, last byte by response.",
            "what",
            "remedy",
            "path",
        ),
        k.intervals(
            changes(q),
            "Behind short queues small chains gain, and a larger IW does not",
            "Change of mean times against ML-DSA-44 with two intermediates and IW 10, six connections a page.",
            "remedy",
            "who",
            "access",
        ),
        k.intervals(
            q.crossing.sel(certificates=["tranco-2026-ml-dsa-44", "tranco-2026-ml-dsa-65"], iw=[10, 16, 20]),
            "ML-DSA costs most UK homes a round trip with IW 10; slow links of AvgDC need the time anyway",
            "Users whose handshake IW 46 would shorten by half an RTT or more.",
            "certificates",
            "iw",
            "population",
        ),
    ]


STUDY = k.DeclaredStudy(__file__, QUANTITIES, claims, tables, figures, answer, build)
