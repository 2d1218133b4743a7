"""Tables 1 to 6 and Figures 1 to 4 next to the printed values; results that the RFC did not report; the answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.counted import with_unit
from firstflight.report.figure import Figure
from firstflight.studies.kernel import Quantities, along, by_labels, estimate, lines, named, table
from firstflight.studies.rfc2415 import printed as p
from firstflight.studies.rfc2415.claims import SCENARIOS, alike, change

# The aim set for the study before it ran; the network power is printed to 0.1 of about 2.
NEAR: Mapping[str, tuple[Literal["relative", "absolute"], float]] = {
    "delay": ("relative", 0.08),
    "decrease": ("absolute", 6),
    "utilization": ("absolute", 3),
    "drops": ("absolute", 1),
    "relative_power": ("relative", 0.08),
    "power": ("relative", 0.08),
    "ftp_power": ("relative", 0.1),
    "goodput": ("relative", 0.08),
}
AGAINST_ONE = "Seconds, and the decrease against IW 1, taken replicate by replicate."
USE = "Data direction of the bottleneck: share of time in use; packets dropped of packets offered to its queue."
SLIP = (
    "The printed drop rates of 32 webs with 0, 1 and 2 ftps repeat those of 16 webs: a slip in the RFC (its Table 6 "
    "has 3.5% and 4.3% for 32 webs, no ftp, IW 1 and 3). They are shown as printed, marked, and not compared."
)
DERIVED = "Published delays for IW 2 to 4 follow from the printed delay of IW 1 and the printed decrease."
POWER = (
    "Network power is goodput in MB (10⁶ bytes) within the run divided by the median delay in seconds; the RFC prints "
    '"Mbytes/ms", which its values contradict.'
)
FROM_TABLE_6 = (
    "The figures are not available as numbers; the published points follow from goodput and delay in the RFC's Table 6."
)
# The quantity of each printed column.
_NAMES = {
    "median_page_delay": "delay",
    "median_page_delay_decrease_vs_iw1": "decrease",
    "link_utilization": "utilization",
    "packet_drop_rate": "drops",
    "ftp_network_power": "ftp_power",
    "goodput": "goodput",
}


def _published(number: int) -> dict[str, xr.DataArray]:
    """Quantities of Table 1 to 5 as they are printed, misprints and all."""
    return {_NAMES[metric]: p.as_printed(number, metric) for metric in p.rows(number)["metric"].unique()}


def tables(q: Quantities) -> Iterator[Table]:
    """Tables 1 to 6, the data of Figures 1 to 4, then results for which the RFC reports no numbers."""
    power, relative = p.power(q), p.relative_power(q)
    delays = [q.delay, _measure(q, "decrease", "")]
    files = [p.file_power(q), q.file_delay, named(q.ftp_goodput, "ftp_goodput", "Goodput", "MB")]
    yield _printed(1, "Median web page delay", AGAINST_ONE, delays, DERIVED)
    yield _printed(2, "Link utilization and packet drop rate", USE, [q.utilization, q.drops], SLIP)
    yield _printed(3, "Network power of file transfers", POWER, files)
    yield _printed(4, "Median web page delay", AGAINST_ONE, delays, DERIVED)
    yield _printed(5, "Network power of file transfers", POWER, files)
    yield _table6(q)
    for figure, (http, of) in enumerate(product(("1.0", "1.1"), (power, relative)), 1):
        normal = of is relative
        yield table(
            f"figure{figure}",
            f"Figure {figure}. {'Normalized network' if normal else 'Network'} power of web traffic, HTTP/{http}",
            "Network power against that of IW 1, replicate by replicate." if normal else POWER,
            [of.sel(http=http, drop=True)],
            "iw",
            {str(of.name): _power_of_table6(normal)} if http == "1.0" else None,
            (FROM_TABLE_6,) if http == "1.0" else (),
            NEAR,
        )
    yield from _variants(q)
    yield from _access(q)
    yield from _hypothesis(q)


def _printed(number: int, what: str, caption: str, quantities: list[xr.DataArray], *notes: str) -> Table:
    title = f"Table {number}. {what}, HTTP/{p.HTTP[number]}"
    columns, wrong = [of.sel(http=p.HTTP[number], drop=True) for of in quantities], {"drops": p.WRONG}
    return table(f"table{number}", title, caption, columns, "iw", _published(number), notes, NEAR, wrong)


def _power_of_table6(normal: bool) -> xr.DataArray:
    """The only points of Figures 1 and 2 in print."""
    power = p.printed(6, "goodput") / p.printed(6, "median_page_delay")
    return power / power.sel(iw=1, drop=True) if normal else power


def _table6(q: Quantities) -> Table:
    """The halves of a split have delays and goodputs, the link that they share a utilization and drops."""
    quantities = []
    for base in ("delay", "goodput", "utilization", "drops"):
        whole = alike(q, base)
        columns = {f"all IW {iw}": whole.sel(iw=iw, drop=True) for iw in (1, 3)}
        if base in ("delay", "goodput"):
            columns |= {f"half IW {iw}": getattr(q, f"split{iw}_{base}") for iw in (1, 3)}
        else:
            columns["both halves"] = getattr(q, f"split_{base}")
        quantities.append(along("clients", columns))
    of_one = pl.when(pl.col("split") == "none").then(pl.lit("all IW ")).otherwise(pl.lit("half IW ")) + pl.col("iw")
    rows = p.rows(6).with_columns(clients=pl.when(pl.col("iw") == "1+3").then(pl.lit("both halves")).otherwise(of_one))
    by_metric = rows.partition_by("metric", as_dict=True)
    published = {_NAMES[metric]: by_labels(of, "webs", "clients") for (metric,), of in by_metric.items()}
    return table(
        "table6",
        "Table 6. Half the clients with IW 1, half with IW 3",
        "All clients with one window, or half of them with each window; both halves share the link.",
        quantities,
        "clients",
        published,
        (
            "The RFC labels its delays milliseconds; they are seconds. Goodput: this run's is in "
            '10⁶ bytes. The RFC does not explain its "MB".',
        ),
        NEAR,
        order=["webs"],
    )


def _variants(q: Quantities) -> Iterator[Table]:
    """A cell of the base next to the one with one difference."""
    for name, title, caption, key, variants in (
        (
            "red",
            "RED on the bottleneck, HTTP/1.0",
            'The RFC: "by adding RED to the bottleneck link, we achieved similar performance gains (with an IW of 1)" '
            "as with larger IW without RED; it reports no numbers (section 4).",
            "queue",
            {"base": "drop tail", "red": "RED"},
        ),
        (
            "reverse",
            "Data traffic in both directions, HTTP/1.0",
            'The RFC: data traffic the other way at the same time "had no effect on the results"; it reports no '
            "numbers (section 2), nor how much traffic. Here a share of the webs and ftps is mirrored.",
            "mirrored",
            {"base": "none", "reverse": ""},
        ),
        (
            "scale",
            "Links of 10 and 100 times the rate, HTTP/1.0",
            "The RFC expects its results to scale with bandwidth (section 4). Rates, clients and buffer grow together; "
            "webs and ftps are given per 1.5 Mbit/s of the bottleneck.",
            "rate",
            {"base": "1x", "rate10": "10x", "rate100": "100x"},
        ),
        (
            "longer",
            "Four times the run time, HTTP/1.0",
            "The RFC: median values remained the same for larger run times (section 2).",
            "duration",
            {"base": "360 s", "long": "1440 s"},
        ),
    ):
        measures = ("delay", "drops") if name == "longer" else ("delay", "decrease", "utilization", "drops")
        _, *others = variants
        if all(_measure(q, "delay", f"{variant}_").isnull().all() for variant in others):
            continue
        quantities = []
        for of in measures:
            base, *parts = (_measure(q, of, "" if variant == "base" else f"{variant}_") for variant in variants)
            baseline = p.beside(base, parts[0]["clients"]).sel(iw=parts[0]["iw"].values)
            arrays = dict(zip(variants.values(), [baseline, *parts], strict=True))
            if name == "reverse":
                loads = arrays.pop("")
                arrays |= {f"{load}%": loads.sel(mirrored=load, drop=True) for load in loads["mirrored"].values}
            quantities.append(along(key, arrays))
        notes = ("A decrease is against IW 1 with the same queue.",) if name == "red" else ()
        yield table(name, title, caption, quantities, "iw", notes=notes, order=("clients", key))


def _access(q: Quantities) -> Iterator[Table]:
    """The spread over draws of the access delays, which the RFC does not give."""
    if q.access_delay.isnull().all():
        return
    quantities = []
    for of in ("delay", "drops"):
        variants = getattr(q, f"access_{of}").sel(draw=0, drop=True)
        base = p.beside(getattr(q, of), variants["clients"]).sel(iw=variants["iw"].values, draw=0, drop=True)
        parts = {
            "1 ms": base,
            "least": variants.min("delays"),
            "median": variants.median("delays"),
            "greatest": variants.max("delays"),
        }
        quantities.append(along("access", parts).assign_attrs(variants.attrs))
    yield table(
        "access",
        "Access delays: one for all hosts, and one for each, HTTP/1.0",
        "The RFC gives no access delay; 1 ms is fitted. Least, median and greatest of 8 draws in which each host has "
        "half to twice that.",
        quantities,
        "iw",
        order=("clients", "access"),
    )


def _measure(q: Quantities, of: str, prefix: str) -> xr.DataArray:
    """A measure of an experiment, by all its windows."""
    delay: xr.DataArray = getattr(q, f"{prefix}delay")
    return p.decrease_of(delay).reindex(iw=delay["iw"]) if of == "decrease" else getattr(q, f"{prefix}{of}")


_WINDOWS = ["11 (the RFC's)", "20 (hypothesis)"]


def _hypothesis(q: Quantities) -> Iterator[Table]:
    if q.wide_delay.isnull().all():
        return

    def by_window(narrow: xr.DataArray, wide: xr.DataArray) -> xr.DataArray:
        return along("ftp_window", dict(zip(_WINDOWS, (narrow, wide), strict=True)))

    measures = ((_measure(q, of, ""), _measure(q, of, "wide_")) for of in ("delay", "decrease", "utilization", "drops"))
    quantities = [by_window(base.sel(ftps=[1, 2, 3]), wide) for base, wide in measures]
    yield table(
        "ftp_window",
        "A hypothesis: file transfers with a window of 20 segments",
        "The RFC says that all windows were 11 segments. One ftp with 11 cannot build the queue that the RFC's delays "
        "show. ns-2's default window is 20 segments.",
        quantities,
        "iw",
        {
            of: along("http", {p.HTTP[number]: _published(number)[of] for number in numbers})
            for numbers, names in (((1, 4), ("delay", "decrease")), ((2,), ("utilization", "drops")))
            for of in names
        },
        ("No claim and no other table uses the hypothesis.",),
        NEAR,
        {"drops": p.WRONG.expand_dims(http=["1.0"])},
        ("http", *SCENARIOS, "ftp_window"),
    )
    printed = along("http", {p.HTTP[number]: p.printed(number, "median_page_delay") for number in (1, 4)})
    delay, assumed = q.delay.sel(draw=0), q.wide_delay.sel(draw=0)
    wide = delay.where(delay["ftps"] == 0, assumed.reindex_like(delay))
    errors = by_window(*(abs(100 * (of / printed - 1)) for of in (delay, wide)))
    # Of all twelve scenarios or none.
    errors = errors.where(errors.notnull().all(SCENARIOS))
    yield table(
        "errors",
        "Errors of the page delays against the printed ones",
        "Over the twelve scenarios of 8, 16 and 32 webs with 0 to 3 ftps: median and largest difference, in percent of "
        "the printed delay.",
        [
            named(errors.median(SCENARIOS), "median_error", "Median error of the page delay", "percent"),
            named(errors.max(SCENARIOS), "worst_error", "Largest error of the page delay", "percent"),
        ],
        "iw",
        notes=(DERIVED,),
        order=("http", "iw", "ftp_window"),
    )


RFC, WIDE = "RFC 2415", "hypothesis: ftps with window 20"
_BAND = "Band: 95% CI over replicates. Dashed: printed in the RFC."
_DOTTED = "Dotted: a hypothesis, ftps with ns-2's default window of 20 segments; the RFC says 11."
_TABLE_6 = "Dashed: derived from goodput and delay in the RFC's Table 6; its figures are not available as numbers."


def figures(q: Quantities) -> Iterator[Figure | None]:
    """Page delay, drop rate and Figures 1 to 4."""
    relative = p.relative_power(q)
    for number, said in (
        (1, "The RFC's delays for IW 2 to 4 follow from its percentages."),
        (4, "All four files of a page on one connection."),
    ):
        http = p.HTTP[number]
        yield _figure(
            f"page_delay_http{http.replace('.', '')}",
            f"Median page delay, HTTP/{http} (Table {number})",
            f"{said} {_BAND} {_DOTTED}",
            q.delay.sel(http=http),
            {RFC: p.printed(number, "median_page_delay"), WIDE: q.wide_delay.sel(http=http, draw=0)},
            -p.decrease(q).sel(http=http),
        )
    drops = q.drops.sel(http="1.0")
    yield _figure(
        "drop_rate",
        "Packet drop rate at the bottleneck, HTTP/1.0 (Table 2)",
        f"32 webs: Table 2's rows for 0 to 2 ftps are misprinted and left out; for no ftp Table 6 is shown. {_BAND}",
        drops,
        {RFC: p.printed(2, "packet_drop_rate")},
        drops - drops.sel(iw=1),
        "pp",
    )
    for number, http in ((2, "1.0"), (4, "1.1")):
        yield _figure(
            f"figure{number}",
            f"Figures {number - 1} and {number}. Normalized network power of web traffic, HTTP/{http}",
            "Goodput divided by median page delay, against IW 1 of the same scenario; not divided by that it is "
            f"Figure {number - 1}. {_TABLE_6 if http == '1.0' else 'Band: 95% CI over replicates.'}",
            relative.sel(http=http),
            {RFC: _power_of_table6(True)} if http == "1.0" else {},
            100 * (relative.sel(http=http) - 1),
        )


def _figure(
    name: str,
    title: str,
    caption: str,
    of: xr.DataArray,
    beside: Mapping[str, xr.DataArray],
    changes: xr.DataArray,
    unit: str = "%",
) -> Figure | None:
    """Lines against IW; the finding is the change by IW 3, over the scenarios, unless one has no data."""
    figure = lines(of.rename(name), title, caption, "iw", "webs", "ftps", beside=beside)
    scenario_changes = changes.sel(iw=3, draw=0)
    if figure is None or scenario_changes.isnull().any():
        return figure
    ends = f"{float(scenario_changes.min()):+.1f} to {float(scenario_changes.max()):+.1f}"
    average = f"{with_unit(f'{float(scenario_changes.mean()):+.1f}', unit)} on average ({ends})"
    return replace(figure, finding=f"{of.attrs['long_name']} with IW 3 instead of 1: {average}")


def answer(q: Quantities) -> Sequence[str]:
    """The gain for users, and its cost."""
    decreases = p.decrease(q).sel(http="1.0", iw=3)
    mean = estimate(decreases.mean(SCENARIOS))
    decreases = decreases.sel(draw=0)
    said = float(p.printed(1, "median_page_delay_decrease_vs_iw1").sel(iw=3).mean())
    interval = "" if mean.low != mean.low else f", 95% CI {mean.low:.1f} to {mean.high:.1f}"
    drops = q.drops.sel(http="1.0", draw=0)
    rises = drops.sel(iw=3) - drops.sel(iw=1)
    files = float(change(q.file_delay.sel(http="1.0", draw=0), 3).mean(SCENARIOS))
    return [
        "With an initial window of 3 segments instead of 1 the median page delay "
        f"{'falls' if mean.value >= 0 else 'rises'} by {abs(mean.value):.1f}%, averaged over the RFC's twelve HTTP/1.0 "
        f"scenarios ({decreases.min():.0f} to {decreases.max():.0f}%{interval}); the RFC printed {said:.1f}%.",
        f"Cost at the bottleneck: the drop rate changes by {rises.mean():+.1f} percentage points on average "
        f"({rises.min():+.1f} to {rises.max():+.1f}), and a concurrent 1 MB transfer takes {abs(files):.1f}% "
        f"{'longer' if files >= 0 else 'less time'}.",
    ]
