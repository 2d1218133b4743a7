"""What the run measured: responses with their users' paths, and the two windows compared pair by pair.

Latency is counted as a server sees it: from the end of the handshake, when the request leaves, to the last byte of the
response at the user; half a round trip later than a server sees each, so as long. The handshake is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from firstflight.analysis import ab
from firstflight.analysis.claim import NoDataError
from firstflight.errors import RequestError
from firstflight.studies.kept import kept
from firstflight.studies.rfc6928_cluster.assumptions import STATED
from firstflight.studies.rfc6928_cluster.grid import BACKGROUND, FEW, FITTED, MANY, NAMES, NEW, Place, assumed, settings
from firstflight.studies.rfc6928_cluster.published import DIMENSIONS, edges, labels

if TYPE_CHECKING:
    from firstflight.records import Run

T = TypeVar("T")

PAYLOAD_BYTES = 1460
"""Of a full segment."""
_RESPONSE = (
    "replicate",
    "client",
    "page",
    "object",
    "start_s",
    "handshake_time_s",
    "completion_time_s",
    "bytes",
    "segments_sent",
    "retransmissions",
)
_PATHS = ("rtt", "down", "bdp")
SLOW_LINES = 2
"""So many of the paper's buckets of bandwidth, from the lowest, are slow lines: up to 256 kbit/s."""
_HELD = 8
"""Cells whose responses are held at once: of all it would be 300 MB, and a comparison over all services takes eight."""


class Results:
    """A run as tables, claims and figures ask for it; what was computed once is kept.

    Every method raises NoDataError where the run lacks a cell that it needs. RequestError for a run of an earlier grid.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._users: dict[Place, pl.DataFrame] = {}
        self._responses: dict[tuple[Place, int], pl.DataFrame] = {}
        self._found: dict[tuple[object, ...], Any] = {}
        if any(lacking := [name for name in Place._fields if name not in key] for key in run.cells):
            raise RequestError(
                f'"{run.directory}" was made by an earlier version of this study, whose cells have no key '
                f'"{lacking[0]}"; run it again with --set-aside, which keeps the old run under a new name'
            )
        self._cells = {(Place(*(str(key[name]) for name in Place._fields)), int(key["iw"])) for key in run.cells}

    def windows(self, place: Place) -> list[int]:
        """The initial windows that the run has of a place."""
        return sorted(iw for where, iw in self._cells if where == place)

    def has(self, place: Place, *windows: int) -> bool:
        """Whether the run has the place with all of these windows (none given: with 3 and 10)."""
        return all((place, iw) in self._cells for iw in windows or (FEW, MANY))

    def services(self, population: str, assumption: str = STATED) -> list[str]:
        """Services that the run has with IW 3 and 10, in the grid's order."""
        return [name for name in settings()["users"] if self.has(assumed(population, name, assumption))]

    def users(self, place: Place) -> pl.DataFrame:
        """One row a user: `replicate, client, subnet, rtt_s, down_bps, bdp_bytes`; her buckets `rtt, down, bdp`."""
        windows = self.windows(place)
        if not windows:
            raise NoDataError(f"This run has no cell {_told(place)}.")
        if place not in self._users:
            self._users[place] = (
                self._run.table("users", **place._asdict(), iw=windows[0])
                .select(
                    "replicate",
                    "client",
                    "subnet",
                    "rtt_s",
                    "down_bps",
                    (pl.col("rtt_s") * pl.col("down_bps") / 8).alias("bdp_bytes"),
                )
                .with_columns(
                    _bucket("rtt_s", "rtt"),
                    _bucket("down_bps", "down"),
                    _bucket("bdp_bytes", "bdp"),
                )
                .collect()
            )
        return self._users[place]

    def responses(self, place: Place, *windows: int) -> pl.DataFrame:
        """One row a response of these windows (none given: 3 and 10): `iw`; `response`, the number by which a response
        is the same one with every window; `subnet`, the number of the user's; `latency_ms` (NaN: not finished),
        `segments_sent, retransmissions`, and the buckets `rtt, down, bdp, segments`. Numbers are of all services.
        """
        return pl.concat([self._of_window(place, iw) for iw in windows or (FEW, MANY)])

    def _of_window(self, place: Place, iw: int) -> pl.DataFrame:
        if not self.has(place, iw):
            raise NoDataError(f"This run has no cell {_told(place)} with IW {iw}.")
        rows = self._responses.pop((place, iw), None)
        if rows is None:
            rows = self._read(place, iw)
        self._responses[place, iw] = rows
        if len(self._responses) > _HELD:
            del self._responses[next(iter(self._responses))]
        return rows

    def _read(self, place: Place, iw: int) -> pl.DataFrame:
        return (
            self._run.table("transfers", **place._asdict(), iw=iw)
            .filter(pl.col("application").cast(pl.String) != BACKGROUND)
            .select(*_RESPONSE)
            .sort("replicate", "client", "page", "object", "start_s")
            .with_columns(
                pl.int_range(pl.len(), dtype=pl.UInt32).over("replicate", "client").alias("request"),
                (pl.col("bytes") / PAYLOAD_BYTES).ceil().alias("_segments"),
            )
            .join(
                self.users(place).lazy().select("replicate", "client", "subnet", *_PATHS),
                on=["replicate", "client"],
                how="left",
                maintain_order="left",
            )
            .select(
                pl.lit(iw, pl.Int16).alias("iw"),
                _number(place.service, "client", "request").alias("response"),
                _number(place.service, "subnet").alias(_SUBNET),
                (1000 * (pl.col("completion_time_s") - pl.col("handshake_time_s").fill_nan(0))).alias("latency_ms"),
                "segments_sent",
                "retransmissions",
                *_PATHS,
                _bucket("_segments", "segments"),
            )
            .collect()
        )

    def latency(self, place: Place, statistic: str = "mean", iw: int = MANY) -> ab.Comparison:
        """Latency (ms) with IW 3 and `iw`."""
        return self._compared(place, "latency_ms", statistic, iw)

    def clean(self, place: Place, iw: int = MANY) -> ab.Comparison:
        """Share of responses (percent) without a retransmission, with IW 3 and `iw`."""
        return self._compared(place, "clean", "mean", iw)

    def _compared(self, place: Place, value: str, statistic: str, iw: int) -> ab.Comparison:
        def compare() -> ab.Comparison:
            clean = pl.when(pl.col("retransmissions") == 0).then(100.0).otherwise(0.0).alias("clean")
            rows = self.responses(place, FEW, iw).lazy().with_columns(clean)
            return ab.compare(rows, value, statistic=statistic, **_between(iw))

        return self._once((place, value, statistic, iw), compare)

    def buckets(self, place: Place, by: str) -> list[ab.Bucket]:
        """Mean latency (ms) with IW 3 and 10 in each bucket of `by`; a bucket without responses has no comparison."""
        return self._once(
            (place, "buckets", by),
            lambda: ab.by_bucket(self.responses(place), "latency_ms", by, buckets=labels(by), **_between(MANY)),
        )

    def slow_lines(self, place: Place) -> ab.Comparison:
        """Latency (ms) of the users in the paper's two lowest buckets of bandwidth, with IW 3 and 10."""

        def compare() -> ab.Comparison:
            rows = self.responses(place).lazy().filter(pl.col("down").is_in(labels("down")[:SLOW_LINES]))
            return ab.compare(rows, "latency_ms", **_between(MANY))

        return self._once((place, "slow lines"), compare)

    def retransmitted(
        self, population: str, services: tuple[str, ...], iw: int = MANY, assumption: str = STATED
    ) -> ab.Comparison:
        """Retransmitted segments of segments sent (a share of 1), with IW 3 and `iw`, over these services; they count
        alike, each by its responses.
        """

        def compare() -> ab.Comparison:
            rows = pl.concat(
                self._of_window(assumed(population, service, assumption), window).select(
                    "iw",
                    "response",
                    _SUBNET,
                    "segments_sent",
                    "retransmissions",
                    (1 / pl.len()).cast(pl.Float64).alias("weight"),
                )
                for service in services
                for window in (FEW, iw)
            )
            return ab.compare_rate(rows, "retransmissions", "segments_sent", weight="weight", **_between(iw))

        return self._once((population, services, "retransmitted", iw, assumption), compare)

    def subnets(self, place: Place, statistic: str) -> ab.Comparison:
        """A quantile over subnets of the mean latency (ms) of a subnet's responses, with IW 3 and 10."""

        def compare() -> ab.Comparison:
            means = (
                self.responses(place)
                .group_by("iw", _SUBNET, maintain_order=True)
                .agg(pl.col("latency_ms").fill_nan(None).mean())
            )
            return ab.compare(means, "latency_ms", statistic=statistic, **_between(MANY) | {"unit": [_SUBNET]})

        return self._once((place, "subnets", statistic), compare)

    def _once(self, key: tuple[object, ...], compare: Callable[[], T]) -> T:
        if key not in self._found:
            self._found[key] = compare()
        found: T = self._found[key]
        return found


_SUBNET = "subnet"


def _between(iw: int) -> dict[str, Any]:
    """What is asked of every comparison of IW 3 and `iw`. Users of a subnet have paths alike, so subnets are what is
    drawn again for every interval.
    """
    return {
        "arm": "iw",
        "baseline": FEW,
        "treatment": iw,
        "unit": ["response"],
        "cluster": _SUBNET,
        "resamples": settings()["resamples"],
    }


# Of the parts of a number: so many follow each other.
_BITS = {"replicate": 16, "client": 28, "request": 16, "subnet": 28}


def _number(service: str, *parts: str) -> pl.Expr:
    """One number for a service, a replicate and these columns, which is faster to match than all of them. Numbers have
    the order of what they are made of.
    """
    number = pl.lit(sorted(settings()["users"]).index(service), pl.UInt64)
    for part in ("replicate", *parts):
        number = number * 2 ** _BITS[part] + pl.col(part).cast(pl.UInt64)
    return number


def _told(place: Place) -> str:
    variants = [name for name in place[2:] if name not in (FITTED, NEW, STATED)]
    return ", ".join([f"of {NAMES[place.population]}, {place.service}", *variants])


def _bucket(column: str, by: str) -> pl.Expr:
    """The bucket's label; an edge belongs to the bucket below it."""
    place = pl.sum_horizontal((pl.col(column) > edge).cast(pl.Int32) for edge in edges(by)[:-1])
    return place.replace_strict(dict(enumerate(labels(by))), return_dtype=pl.Enum(labels(by))).alias(by)


@kept
def of_run(run: Run) -> Results:
    """The results of what the run has finished."""
    return Results(run)


__all__ = ["DIMENSIONS", "Results", "of_run"]
