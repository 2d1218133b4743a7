"""Synthetic records with the contract's columns, for testing the study's analysis without a simulator."""

from collections.abc import Callable

import polars as pl

from firstflight.studies.rfc2415.grid import Point, points
from firstflight.studies.rfc2415.measure import PageClocks

CONNECTED: PageClocks = {"1.0": "connected", "1.1": "connected"}
"""Page clocks that start when the first connection is up."""

Delay = Callable[[Point, int], float]
"""Median page delay of a cell in a replicate, in seconds."""


def plain_delay(point: Point, replicate: int) -> float:
    iw = 2 if point.iw == "1+3" else int(point.iw)
    return (0.5 + 0.2 * point.ftps + point.webs / 100) * (1.2 - 0.05 * iw) * (1 + replicate / 1000)


def synthetic(
    delay: Delay = plain_delay, replicates: int = 4, grid: list[Point] | None = None
) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
    """(transfers, pages, links) of three pages and a file a cell, by default for the whole grid."""
    transfers, pages, links = [], [], []
    for point in grid if grid is not None else points():
        iw = 2 if point.iw == "1+3" else int(point.iw)
        groups = ["web", "web_iw3"] if point.iw == "1+3" else ["web"]
        for replicate in range(replicates):
            key = point._asdict() | {"replicate": replicate}
            seconds = delay(point, replicate)
            for group in groups:
                for page in range(3):
                    pages.append(
                        key
                        | {
                            "application": group,
                            "page": page,
                            "connect_time_s": 0.1,
                            # The outer pages lie symmetrically around the median one.
                            "completion_time_s": 0.1 + seconds * (1 + 0.1 * (page - 1)),
                            "completed": 1,
                        }
                    )
                    for number in range(4):
                        transfers.append(_transfer(key, group, number, 2000, iw))
            if point.ftps:
                transfers.append(_transfer(key, "ftp", 0, 1_000_000, iw))
            for link in ("bottleneck", "bottleneck.reverse"):
                links.append(
                    key
                    | {
                        "link": link,
                        "interval_s": 360.0,
                        "busy_s": min(1.0, 0.3 + point.webs / 64 + 0.6 * (point.ftps > 0)) * 360,
                        "offered_packets": 10_000,
                        "dropped_packets": 10 * point.webs + 20 * iw + 5 * replicate,
                    }
                )
    return pl.LazyFrame(transfers), pl.LazyFrame(pages), pl.LazyFrame(links)


def _transfer(key: dict[str, str | int], group: str, number: int, size: int, iw: int) -> dict[str, object]:
    return key | {
        "application": group,
        "object": number,
        "bytes": size,
        "delivered_bytes": size,
        "completion_time_s": 9.0 if group == "ftp" else 0.3,
        "completed": 1,
        "first_flight_lost": 2 if iw == 4 else 0,
    }
