"""From a format's data to the records' own tables, with every column: null where the format lacks it."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from firstflight.records.schema import TABLES

APPLICATION = "observed"
# Of IPv4 and TCP with time stamps: a link's rate counts them, as scenarios do, and a program's byte counts do not.
HEADER_BYTES = 52
# Of Linux with time stamps, on Ethernet.
MSS_BYTES = 1448
# IPv6 sites get a /48 (RFC 6177 lets it be longer, but no prefix is shared by two sites).
_SITE_BITS = {4: 24, 6: 48}
_IPV6 = 1 << 63
HELD_BYTES = 1 << 18
"""The most of a response that the kernel takes at once from a program, which then writes its log line: that line's time
contains nothing of the network.
"""
# Nearly all of many are of this form, and need not be looked at one by one.
_IPV4 = r"^(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})$"


def _none() -> pl.DataFrame:
    return pl.DataFrame({"client": []})


@dataclass(frozen=True)
class Parts:
    """The data from an importer. `responses` and `connections` hold those columns of `transfers` and `users` that it
    knows, `client` (number of the connection, from 0) among them; `began_s` the Unix time from which `start_s` counts,
    None where there are no times; `ignored` columns of the file that mean nothing here; `notes` sentences on
    assumptions; `networks` the name of each subnet by its number; `bounds` bounds on a path whose value is not known,
    and `handshakes` those of TLS, as `Observation` has them; `lines_apart`: which responses a connection had is not
    known, so each counts as a connection.
    """

    responses: pl.DataFrame = field(default_factory=_none)
    connections: pl.DataFrame = field(default_factory=_none)
    began_s: float | None = None
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bounds: pl.DataFrame = field(default_factory=_none)
    handshakes: pl.DataFrame = field(default_factory=_none)
    networks: tuple[str, ...] = ()
    lines_apart: bool = False


def transfers(responses: pl.DataFrame) -> pl.DataFrame:
    """The records' `transfers`, one row per response."""
    known = responses.with_columns(pl.lit(APPLICATION).alias("application"), connection=pl.col("client"))
    return _of_records(known, "transfers")


def users(connections: pl.DataFrame) -> pl.DataFrame:
    """The records' `users`, one row per connection, in the order of their numbers."""
    if "weight" not in connections.columns:
        connections = connections.with_columns(weight=pl.lit(1.0))
    return _of_records(connections, "users").sort("client")


def bounds(known: pl.DataFrame) -> pl.DataFrame:
    """Bounds on paths whose value is not known, one row per connection that has one."""
    names = ("min_down_bps", "min_buffer_bytes", "min_completion_time_s")
    frame = _complete(known, {"client": pl.UInt32} | dict.fromkeys(names, pl.Float64))
    return frame.filter(pl.any_horizontal(pl.exclude("client").is_not_null())).sort("client")


def mean_rate(size: pl.Expr, time_s: pl.Expr) -> pl.Expr:
    """The rate at which `size` bytes were delivered in `time_s`, headers of full segments included: a lower bound of
    the path's rate. Null without a time above 0.
    """
    return pl.when(time_s > 0).then(8 * size / time_s * ((MSS_BYTES + HEADER_BYTES) / MSS_BYTES))


def handshakes(known: pl.DataFrame) -> pl.DataFrame:
    """Handshakes of TLS, one row per connection that has one."""
    columns: dict[str, type[pl.DataType]] = {
        "client": pl.UInt32,
        "version": pl.UInt8,
        "bytes": pl.UInt64,
        "segments_sent": pl.UInt32,
        "retransmissions": pl.UInt32,
        "exchanges": pl.UInt8,
        "answer_flight_segments": pl.UInt32,
        "handshake_time_s": pl.Float64,
        "flight_bytes": pl.UInt64,
        "time_s": pl.Float64,
        "resumed": pl.UInt8,
        "client_hello_bytes": pl.UInt32,
        "key_share_bytes": pl.UInt32,
    }
    return _complete(known, columns)


def _of_records(known: pl.DataFrame, table: str) -> pl.DataFrame:
    names = pl.Enum([APPLICATION])
    columns = {column.name: column.dtype or names for column in TABLES[table]}
    return _complete(known.with_columns(replicate=pl.lit(0)), columns)


def _complete(known: pl.DataFrame, columns: Mapping[str, pl.DataType | type[pl.DataType]]) -> pl.DataFrame:
    """These columns alone, null where they are not known."""
    missing = [pl.lit(None).alias(name) for name in columns if name not in known.columns]
    return known.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in columns.items())


class Subnets:
    """Numbers, from 0 in order of appearance, for the /24 (IPv4) or /48 (IPv6) of addresses, which are not kept."""

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}

    def numbers(self, addresses: pl.Series) -> pl.Series:
        """The number of each address; null for other texts."""
        distinct = addresses.drop_nulls().unique(maintain_order=True)
        parts = distinct.str.extract_groups(_IPV4).struct.unnest().cast(pl.UInt32)
        first, second, third, fourth = parts.get_columns()
        whole = (pl.max_horizontal(first, second, third, fourth) < 256) & fourth.is_not_null()
        sites = pl.select(pl.when(whole).then((first * 256 + second) * 256 + third)).to_series()
        numbers: list[int | None] = []
        for address, known in zip(distinct, sites, strict=True):
            site = _site(address) if known is None else known
            numbers.append(None if site is None else self._numbers.setdefault(site, len(self._numbers)))
        return _replaced(addresses, distinct, numbers)

    def networks(self) -> tuple[str, ...]:
        """The network, or the name that was given, by number."""
        return tuple(network_of(site) if isinstance(site, int) else site for site in self._numbers)

    def numbers_of_names(self, names: pl.Series) -> pl.Series:
        """The same for networks that have a name already; null for none."""
        distinct = names.drop_nulls().unique(maintain_order=True)
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in distinct]
        return _replaced(names, distinct, numbers)


def network_of(site: int) -> str:
    """The /24 or /48 of a site's number."""
    if site & _IPV6:
        return str(ipaddress.IPv6Network((site - _IPV6 << 128 - _SITE_BITS[6], _SITE_BITS[6])))
    return str(ipaddress.IPv4Network((site << 32 - _SITE_BITS[4], _SITE_BITS[4])))


def _replaced(names: pl.Series, distinct: pl.Series, numbers: Sequence[int | None]) -> pl.Series:
    replaced = names.replace_strict(distinct, pl.Series(numbers, dtype=pl.UInt32), default=None, return_dtype=pl.UInt32)
    # Nothing but null keeps the type of the names.
    return replaced.cast(pl.UInt32)


def _site(address: str) -> int | None:
    """The number of an address without its part within a site, different for IPv6; None for other texts."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return None
    # Sockets of both families name IPv4 ends so (RFC 4291 section 2.5.5.2).
    number = getattr(number, "ipv4_mapped", None) or number
    site = int(number) >> number.max_prefixlen - _SITE_BITS[number.version]
    return site if number.version == 4 else site | _IPV6


def seconds(times: pl.Series, in_a_second: float) -> pl.Series:
    """Times in another unit, of which there is this number in a second."""
    # By a single number Polars divides many rows by way of its inverse, and the last digit is another than of one row.
    return times / pl.repeat(in_a_second, times.len(), eager=True)


def since_first(responses: pl.DataFrame) -> tuple[pl.DataFrame, float | None]:
    """`responses` with `start_s` counted from the first of them, and its value there; None without times."""
    if "start_s" not in responses.columns:
        return responses, None
    began = responses.select(pl.col("start_s").min()).item()
    return responses.with_columns(pl.col("start_s") - began), began
