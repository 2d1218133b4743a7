"""RFC 2415 as an ensemble: parameters that it leaves open are drawn from ranges, and its numbers with IW 1 select."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k
from firstflight.studies import rfc2415
from firstflight.studies.rfc2415.printed import printed

# Ranges of the second wave; docs/evidence/rfc2415-ensemble.md has those of the first and why they were narrowed.
ENSEMBLE = k.Ensemble(
    {
        # The RFC says 11 for all; ns-2's default is 20.
        "ftp_window": k.Parameter("window of ftps, segments", 15, 20, 11, whole=True),
        "ftp_gap": k.Parameter("pause between two files of an ftp, s", 0, 1.2, 0),
        "median": k.Parameter("median of web files, bytes", 300, 450, 400, log=True),
        "mean": k.Parameter("mean of web files before the cut, bytes", 8700, 9700, 9103),
        "access": k.Parameter("middle of the delays of the access links, ms", 0.1, 2.5, 1, log=True),
        "header": k.Parameter("40-byte headers in addition to the 1460 bytes: 0 no, 1 yes", 0, 1, 1, whole=True),
        "queue": k.Parameter("packet in service is one of the 25: 0 no, 1 yes", 0, 1, 1, whole=True),
        "ack": k.Parameter("ACKs: 0 as baytcp, 1 every second segment", 0, 1, 0, whole=True),
        "rto": k.Parameter("first timeout, s", 3, 6, 6),
        "rto_min": k.Parameter("shortest timeout, s", 0.2, 1, 0.2),
        "tick": k.Parameter("clock of the timers, ms", 10, 100, 100, log=True),
        "page_clock": k.Parameter("part of the handshake that a page's time leaves out", 0.6, 1, 1),
    },
    64,
)
EVERY_SECOND = {"policy": "heartbeat", "segments": 2, "interval": "100ms", "every_segment": "none"}


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The member's setting, and the clients of the cell."""
    of = ENSEMBLE.member(labels[k.MEMBER])
    web, ftp = scenario.to_dict()["application"]
    web["clients"], ftp["clients"] = labels["webs"], labels["ftps"]
    sigma = math.sqrt(2 * math.log(of["mean"] / of["median"]))
    web["primary"] = web["inline"] = web["primary"] | {"median": f"{of['median']:.0f}B", "sigma": round(sigma, 4)}
    window = int(of["ftp_window"])
    ftp["idle_time"] = f"{of['ftp_gap']}s"
    ftp["tcp"] = {
        "max_send_window_segments": window,
        "initial_ssthresh_segments": window,
        "receive_window": f"{1460 * window}B",
    }
    rto = {"initial": f"{of['rto']}s", "minimum": f"{of['rto_min']}s", "granularity": f"{of['tick']}ms"}
    changes: dict[str, Any] = {
        "tcp.rto": rto,
        "header_size": f"{40 * int(of['header'])}B",
        "application": [web, ftp] if labels["ftps"] else [web],
    }
    if of["ack"]:
        changes["tcp.ack"] = EVERY_SECOND
    for link in ("bottleneck", "left[0]", "right[0]"):
        changes[f"network.{link}.queue.counts_packet_in_service"] = bool(of["queue"])
    scenario = scenario.replace_all(changes.items())
    # Member 0 has one delay for all hosts, as rfc2415.
    return rfc2415.own_delays(scenario, labels[k.MEMBER], of["access"]) if labels[k.MEMBER] else scenario


def clock(members: pl.Series) -> pl.Series:
    """The member's page clock. The list of studies does not wait for the members to be drawn."""
    values = ENSEMBLE.values.sel(parameter="page_clock")
    return members.replace_strict(values[k.MEMBER].values, values.values, return_dtype=pl.Float64)


CLOCK = pl.col(k.MEMBER).map_batches(clock, return_dtype=pl.Float64, is_elementwise=True)
PAGE_DELAY = (pl.col("completion_time_s") - CLOCK * pl.col("connect_time_s")).median()
FILE_DELAY = pl.col("completion_time_s").median()
BUSY = 100 * rfc2415.BUSY / rfc2415.INTERVAL
DONE, WEB, FTP = rfc2415.DONE, rfc2415.of("web"), rfc2415.of("ftp")
QUANTITIES = (
    k.Quantity("delay", "Median page delay", "s", PAGE_DELAY, DONE & WEB, "pages", digits=2, partial=True),
    k.Quantity("used", "Utilization", "percent", BUSY, rfc2415.BOTTLENECK, "links", partial=True),
    k.Quantity("drops", "Drop rate", "percent", k.DROPPED, rfc2415.BOTTLENECK, "links", partial=True),
    k.Quantity("goodput", "Goodput of webs", "MB", rfc2415.GOODPUT, WEB, partial=True),
    k.Quantity("ftp_goodput", "Goodput of ftps", "MB", rfc2415.GOODPUT, FTP, at={"ftps": [1, 2, 3]}, partial=True),
    k.Quantity("file", "Median file delay", "s", FILE_DELAY, DONE & FTP, at={"ftps": [1, 2, 3]}, partial=True),
)
# Standard deviations: relative, points, points (study.toml says where they are from).
DELAY, USED, DROPS = 0.08, 3.0, 1.0
SCENARIOS = ("webs", "ftps")
RFC = k.Source("RFC 2415 section 3")
WAVE = k.Source("this study, before its first wave", needs="value")


def baseline(q: k.Quantities) -> list[k.Number]:
    """The RFC's numbers with IW 1: Tables 1 and 2."""
    numbers = []
    for title, array, table, column, deviation in (
        ("delay", q.delay, 1, "median_page_delay", DELAY),
        ("utilization", q.used, 2, "link_utilization", USED),
        ("drop rate", q.drops, 2, "packet_drop_rate", DROPS),
    ):
        of_table = printed(table, column).sel(iw=1)
        for webs, ftps in array.isel(iw=0, draw=0, member=0).stack(at=SCENARIOS)["at"].values.tolist():
            said = float(of_table.sel(webs=webs, ftps=ftps))
            if not math.isnan(said):
                values = array.sel(webs=webs, ftps=ftps, iw=1, drop=True)
                own_deviation = deviation * said if array is q.delay else deviation
                numbers.append(k.Number(f"{title}, {webs} webs, {ftps} ftps", values, said, own_deviation))
    return numbers


def decrease(q: k.Quantities) -> xr.DataArray:
    """Of the page delay from IW 1 to 3, in percent, by scenario."""
    return 100 * (1 - q.delay.sel(iw=3, drop=True) / q.delay.sel(iw=1, drop=True))


def matched(q: k.Quantities) -> k.Matched:
    """The ensemble next to Tables 1 and 2, with the mean decrease over the scenarios as the effect."""
    said = printed(1, "median_page_delay_decrease_vs_iw1").sel(iw=3).mean(SCENARIOS)
    effect = k.named(
        decrease(q).mean(SCENARIOS, skipna=False), "gain", "Decrease of the page delay with IW 3", "percent"
    )
    return k.Matched(ENSEMBLE, baseline(q), effect.isel(draw=0, drop=True), round(float(said), 1))


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Statements of the RFC about IW 3, for the compatible members; then the expectations for the ensemble."""
    of = matched(q)
    rise = q.drops.sel(iw=3) - q.drops.sel(iw=1)
    mild = rise.where((rise["webs"] < 32) | (rise["ftps"] < 3))
    file, goodput = (100 * (array.sel(iw=3) / array.sel(iw=1) - 1) for array in (q.file, q.goodput))
    ordinary = goodput.where((goodput["webs"] < 32) | (goodput["ftps"] == 0))

    missed = 100 * abs(q.ftp_goodput / q.file / printed(3, "ftp_network_power").sel(iw=q.file["iw"]) - 1)

    def said(id: str, text: str, statistic: xr.DataArray, expected: Expectation, why: str = "") -> k.ClaimSpec:
        return of.judged(RFC.says(id, text, statistic, expected, why))

    def ours(id: str, text: str, statistic: float, expected: Expectation, why: str) -> k.ClaimSpec:
        return WAVE.says(id, text, xr.DataArray(statistic), expected, why)

    spread = of.effects.quantile([0.025, 0.975]).diff("quantile").item() if of.effects.size else math.nan
    window = float(of.influence(of.effects).sel(parameter="ftp_window"))
    return (
        said("gain", "IW 3 cuts the median page delay (mean over the twelve scenarios).", of.effect,
             k.near(of.published, "percent", 6),
             "Within 6 points, as `rfc2415` compares decreases with the printed ones."),
        said("gain-everywhere", "IW 3 cuts the median page delay in every scenario (smallest decrease).",
             decrease(q).min(SCENARIOS), k.above(0, "percent")),
        said("one-ftp-fills-the-link", "With one ftp the link is used more than 90% (lowest, IW 3).",
             q.used.sel(ftps=1, iw=3).min("webs"), k.above(90, "percent", 0.5), "Table 2 prints whole percents."),
        said("files-unchanged", "No effect on a file of 1 MB is detectable (mean change of its delay, IW 3).",
             file.mean(SCENARIOS), k.near(0, "percent", 5), "As `rfc2415` judges it."),
        said("drops-rise", "Drop rates rise with IW (least change, IW 3, the worst overload apart).",
             mild.min(SCENARIOS), k.at_least(0, "pp", 0.05), "Rounding of Table 2."),
        said("drops-rise-little", "Drop rates rise by less than one point (largest rise, IW 3, same scenarios).",
             mild.max(SCENARIOS), k.below(1, "pp", 0.05), "Rounding of Table 2."),
        said("overload-drops-fall", "In the worst overload the drop rate falls (32 webs, 3 ftps, IW 3).",
             rise.sel(webs=32, ftps=3), k.below(0, "pp")),
        said("goodput-rises", "Power gains come from goodput, too (smallest change of it, IW 3, nine scenarios).",
             ordinary.min(SCENARIOS), k.above(0, "percent"),
             "A direction only; the RFC's own Table 6 has less goodput with IW 3."),
        said("file-power", "Table 3: the network power of file transfers (median relative error, IW 1 and 3).",
             missed.median([*SCENARIOS, "iw"]), k.near(0, "percent", 12), "As `rfc2415` judges it."),
        ours("some-are-compatible", "A tenth of the members or more is compatible with the RFC's IW 1.", of.share,
             k.at_least(10, "percent"), "Fewer are no spread. In the first wave it was 0%."),
        ours("the-baseline-tells-the-gain", "IW 1's numbers fix the gain to 10 points (width of the 95% spread).",
             spread, k.at_most(10, "pp"), "Less than half of the published gain."),
        ours("the-ftp-window-decides", "The window of the ftps decides about the gain (size of its rank correlation).",
             abs(window), k.at_least(0.5), "A quarter of the variance."),
    )  # fmt: skip


def answer(q: k.Quantities) -> Sequence[str]:
    """The prediction, the deciding parameters, and the data that rule members out."""
    return matched(q).answer("RFC 2415 leaves open", "its numbers with IW 1", "IW 3 cuts the page delay by", "")


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: matched(q).tables(),
    lambda q: [
        matched(q).figure(
            "RFC 2415: the gain by IW 3 in settings that do and do not reproduce IW 1",
            "Each point is one setting of the open parameters. To the right of the line it misses one of the RFC's "
            "numbers with IW 1.",
        )
    ],
    answer,
    build,
)
