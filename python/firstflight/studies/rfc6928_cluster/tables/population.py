"""The populations as drawn, beside what is published of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from firstflight.analysis.intervals import Estimate
from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.populations import dukkipati2010, slowdc
from firstflight.studies.rfc6928_cluster.grid import AVGDC, FITTED, NAMES, SEARCH, SLOWDC, Place, settings
from firstflight.studies.rfc6928_cluster.measure import Results
from firstflight.studies.rfc6928_cluster.published import TITLES, UNITS, labels
from firstflight.studies.rfc6928_cluster.tables.buckets import DEPENDENCES
from firstflight.studies.rfc6928_cluster.tables.row import row

_PATHS = ("rtt", "down", "bdp")


def drawn_shares(users: pl.DataFrame, by: str) -> tuple[float, ...]:
    """Share of the users (percent) in each bucket of "rtt", "down" or "bdp"."""
    return tuple(100 * int((users[by] == label).sum()) / users.height for label in labels(by))


def shares(results: Results) -> Table:
    """Shares by bucket, AvgDC's beside Figure 5's; the product's with every dependence."""
    keys = ("population", "by", "bucket", "dependence")
    rows: list[dict[str, Any]] = []
    for population in settings()["populations"]:
        for by in _PATHS:
            for name in DEPENDENCES if by == "bdp" else (FITTED,):
                place = Place(population, SEARCH, name)
                if not results.windows(place):
                    continue
                found = drawn_shares(results.users(place), by)
                for label, ours, theirs in zip(labels(by), found, dukkipati2010.shares(by), strict=True):
                    at = {
                        "population": NAMES[population],
                        "by": f"{TITLES[by]}, {UNITS[by]}",
                        "bucket": label,
                        "dependence": name,
                    }
                    rows.append(row(at, "share", Estimate(ours), theirs if population == AVGDC else None))
    return Table(
        "shares",
        "Shares of the users by round trip, bandwidth and their product",
        "Marginals are built from the published shares. The product's shares are what the dependence of both is "
        "fitted to.",
        keys,
        rows_frame(keys, rows),
        across="dependence",
        metrics=(Metric("share", "Share of users", 2, compare="absolute", near=1),),
    )


def paths(results: Results) -> Table:
    """Medians and the published quantiles."""
    keys = ("population", "quantity")
    rows: list[dict[str, Any]] = []
    for population in settings()["populations"]:
        place = Place(population, SEARCH)
        if not results.windows(place):
            continue
        users = results.users(place)
        name = {"population": NAMES[population]}
        for quantity, column, scale, known in (
            ("median round trip, ms", "rtt_s", 1000, 70.0),
            ("median bandwidth, Mbit/s", "down_bps", 1e-6, 1.7 if population == AVGDC else 0.5),
            ("median bandwidth-delay product, kB", "bdp_bytes", 1e-3, 9.5 if population == AVGDC else None),
            ("99th percentile of the round trip, ms", "rtt_s", 1000, None),
            ("1st percentile of the bandwidth, Mbit/s", "down_bps", 1e-6, None),
        ):
            q = {"m": 0.5, "9": 0.99, "1": 0.01}[quantity[0]]
            value = scale * float(users[column].quantile(q, "linear") or 0)
            rows.append(row({**name, "quantity": quantity}, "value", Estimate(value), known, ""))
        if population == SLOWDC:
            for share, rate in slowdc.QUANTILES_BPS:
                found = 100 * int((users["down_bps"] < rate).sum()) / users.height
                told = f"share below {rate / 1000:.0f} kbit/s, %"
                rows.append(row({**name, "quantity": told}, "value", Estimate(found), 100 * share, ""))
    return Table(
        "paths",
        "Users' paths, as drawn",
        "AvgDC's median bandwidth: RFC 6928 says 1.7 Mbit/s and the 2012 reproduction 1.2; the shares of Figure 5, "
        "which ours follow, have 1.0. The product's median is that of the published shares, interpolated.",
        keys,
        rows_frame(keys, rows),
        metrics=(Metric("value", "Value", 2),),
    )
