"""The lines of `ss -tin`: which belong together, and the numbers in them."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from firstflight.observe.lines import pieces
from firstflight.observe.problem import Problems

# The kind of socket, which ss leaves out if it was asked for one only, as it does with the state; two queues, the two
# ends, and with -O the rest. Without -n ports have names.
_HEAD = (
    r"^(?:(?:mp)?tcp\s+)?(?:[A-Z][A-Z0-9-]*\s+)?\d+\s+\d+\s+(?P<own>\S+:[\w.-]+)\s+(?P<other>\S+:[\w.-]+)"
    r"(?P<info>\s.*)?$"
)
# Titles without -H; sockets that are not TCP's; output of `date +%s.%N` or `date -Ins` between snapshots.
_PASSED = (
    r"^(?:(?:State|Netid|Recv-Q|udp|raw|nl|u_\w+|p_\w+|icmp6?|v_\w+)\s|\d{9,11}(?:\.\d+)?\s*$"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d)"
)
_NUMBERS = ("minrtt", "mss", "cwnd", "bytes_sent", "bytes_retrans", "bytes_acked", "data_segs_out", "busy")
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}

# No number is as large; those that count segments have 32 bits.
_BEYOND = 1e15
_COUNTED = ("data_segs_out", "retrans")

_UNTOLD = "a socket without data"


def told(path: Path, problems: Problems) -> Iterator[pl.DataFrame]:
    """The data on sockets, one row per report, in the order of the file: `ends`, and the numbers, null where there is
    none: `rtt`, `minrtt`, `mss`, `cwnd`, `bytes_sent`, `bytes_retrans`, `bytes_acked`, `data_segs_out`, `retrans`,
    `busy` as ss has them, `delivery_bps` in bit/s.
    """
    # The first line of a socket whose second one is in the next piece.
    held = pl.Series("line", [], dtype=pl.String)
    end = 1
    for first, lines in pieces(path, problems):
        lines = pl.concat([held, lines])
        end = first - held.len() + lines.len()
        numbered = pl.DataFrame({"place": pl.int_range(end - lines.len(), end, eager=True), "line": lines})
        heads, others = _heads(numbered)
        held = lines.tail(heads.filter(~pl.col("whole") & (pl.col("place") == end - 1)).height)
        yield _told(numbered, heads.filter(pl.col("place") < end - held.len()), others, problems)
    if held.len():
        problems.add(_UNTOLD, [end - 1])


def _heads(numbered: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lines that name a socket, and those that are neither this nor indented. `whole`: the rest is on the same line."""
    outer = numbered.filter(~_indented(pl.col("line")))
    outer = outer.with_columns(pl.col("line").str.extract_groups(_HEAD).alias("of")).unnest("of")
    named = pl.col("own").is_not_null()
    whole = pl.col("info").str.contains(" cwnd:", literal=True).fill_null(False)
    heads = outer.filter(named).select("place", "info", ends=pl.format("{} {}", "own", "other"), whole=whole)
    return heads, outer.filter(~named).select("place", "line")


def _told(numbered: pl.DataFrame, heads: pl.DataFrame, others: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    start = numbered["place"][0] if numbered.height else 1
    parted = heads.filter(~pl.col("whole"))
    # The data is in the next line.
    following = numbered["line"].gather(parted["place"] - start + 1)
    parted = parted.with_columns(info=following).with_columns(answered=_indented(pl.col("info")))
    paired = parted.filter("answered").select("ends", "info", "place", at=pl.col("place") + 1)
    whole = heads.filter("whole").select("ends", "info", "place", at="place")
    found = pl.concat([whole, paired]).sort("place") if whole.height else paired
    found = found.select("place", "at", "ends", *_numbers(pl.col("info")))
    beyond = pl.max_horizontal(pl.exclude("place", "at", "ends")) >= _BEYOND
    beyond |= pl.any_horizontal(pl.col(name) >= 2**32 for name in _COUNTED)
    beyond |= pl.col("bytes_retrans") > pl.col("bytes_sent")
    found = found.with_columns(beyond=beyond.fill_null(False))
    without = ~pl.col("beyond") & pl.col("rtt").is_null()
    indented = numbered.filter(_indented(pl.col("line"))).select("place", "line")
    if indented.height > paired.height:
        others = pl.concat([others, indented.join(paired, left_on="place", right_on="at", how="anti")]).sort("place")
    odd = others.filter((pl.col("line") != "") & ~pl.col("line").str.contains(_PASSED))
    untold = parted.filter(~pl.col("answered"))["place"]
    cannot, silent = found.filter("beyond"), found.filter(without)
    _add(
        problems,
        # Noticed in the line after, before problems of that line.
        (_UNTOLD, untold, untold + 0.5),
        ("neither a socket nor its data", odd["place"], odd["place"]),
        ("a socket with a number that cannot be", cannot["place"], cannot["at"]),
        ("a socket without a round trip", silent["place"], silent["at"]),
    )
    return found.filter(~pl.col("beyond") & ~without)


def _add(problems: Problems, *found: tuple[str, pl.Series, pl.Series]) -> None:
    """The problems, each with the places where it was found, in the order of the file."""
    met = [(noticed[0], what, places) for what, places, noticed in found if places.len()]
    for _, what, places in sorted(met, key=lambda each: float(each[0])):
        problems.add(what, places)


def _indented(line: pl.Expr) -> pl.Expr:
    return line.str.starts_with(" ") | line.str.starts_with("\t")


def _numbers(info: pl.Expr) -> list[pl.Expr]:
    named = {name: info.str.extract(rf"\s{name}:([\d.]+)") for name in _NUMBERS}
    named["rtt"] = info.str.extract(r"\srtt:([\d.]+)/")
    named["retrans"] = info.str.extract(r"\sretrans:\d+/(\d+)")
    delivery = info.str.extract_groups(r"\sdelivery_rate ([\d.]+)([KMG]?)bps").struct
    named["delivery_bps"] = delivery.field("1")
    numbers = {name: text.cast(pl.Float64, strict=False) for name, text in named.items()}
    numbers["rtt"] = pl.when(numbers["rtt"] > 0).then(numbers["rtt"])
    numbers["delivery_bps"] *= delivery.field("2").replace_strict(_PREFIXES, return_dtype=pl.Float64)
    return [number.alias(name) for name, number in numbers.items()]
