"""Section 3 on HTTP/1.0: Tables 1 to 3, Figures 1 and 2."""

from __future__ import annotations

from firstflight.analysis.claim import NoDataError, above, at_least, at_most, below, near
from firstflight.studies.rfc2415 import published
from firstflight.studies.rfc2415.claims import tables
from firstflight.studies.rfc2415.claims.statement import (
    DECREASE,
    DELAY,
    DROPS,
    FILE_DELAY,
    GOODPUT,
    ORDINARY,
    PATHOLOGICAL,
    POWER,
    RELATIVE_POWER,
    SCENARIOS,
    UTILIZATION,
    WITH_FTPS,
    Data,
    Statement,
    at,
    change,
    mean,
    ratio,
)

WORST = (32, 3)
"""The RFC's single most pathological overload."""
MILD = tuple(s for s in SCENARIOS if s != WORST)


def _many_near_30_percent(data: Data) -> float:
    best = [max(data(at(DECREASE, s, iw)) for iw in (2, 3, 4)) for s in SCENARIOS]
    return float(sum(decrease >= 25 for decrease in best))


def _printed_near_30_percent(data: Data) -> str:
    best = [max(published.value(1, DECREASE, *s, iw) for iw in (2, 3, 4)) for s in SCENARIOS]
    return f"In the printed table {sum(decrease >= 25 for decrease in best)} of 12 reach 25 %."


def _steepness_of_first_step(data: Data) -> float:
    two, three, four = (mean([data(at(DECREASE, s, iw)) for s in SCENARIOS]) for iw in (2, 3, 4))
    return two - max(three - two, four - three)


def _scatter_of_three_ftps(data: Data) -> float:
    return ratio(_scatter(data, 3), _scatter(data, 0), "The variation of page delays without ftps")


def _scatter(data: Data, ftps: int) -> float:
    return mean([data.variation(at(DELAY, (webs, ftps), iw)) for webs in (8, 16, 32) for iw in (1, 2, 3, 4)])


def _drop_rise(data: Data, scenario: tuple[int, int], iw: int) -> float:
    return data(at(DROPS, scenario, iw)) - data(at(DROPS, scenario, 1))


def _better_despite_drops(data: Data) -> float:
    rising = [(s, iw) for s in SCENARIOS for iw in (2, 3, 4) if _drop_rise(data, s, iw) > 0]
    if not rising:
        raise NoDataError("The drop rate rises with IW in no scenario of this run.")
    return 100 * mean([float(data(at(DECREASE, s, iw)) > 0) for s, iw in rising])


def _steady_trends(data: Data) -> float:
    count = 0
    for scenario in PATHOLOGICAL:
        steps = [data(at(POWER, scenario, iw + 1)) - data(at(POWER, scenario, iw)) for iw in (1, 2, 3)]
        count += all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return float(count)


def _file_power_change(data: Data, iw: int) -> float:
    return mean([change(data, at(POWER, s, 1, group="ftp"), at(POWER, s, iw, group="ftp")) for s in WITH_FTPS])


def _web_share(data: Data, scenario: tuple[int, int], iw: int) -> float:
    web, ftp = data(at(GOODPUT, scenario, iw)), data(at(GOODPUT, scenario, iw, group="ftp"))
    return 100 * ratio(web, web + ftp, "The goodput of webs and ftps together")


def _larger_median_size(data: Data) -> float:
    # Sizes are drawn alike in every cell, so any of these shows them.
    places = [at(f"median_{kind}_segments", (webs, 0), 1) for webs in (8, 16, 32) for kind in ("primary", "inline")]
    return max(data(place) for place in [place for place in places if place in data] or places[:2])


STATEMENTS = (
    Statement(
        "rfc2415-s3-01",
        "With a single ftp client the link is used more than 90 % (lowest of the cells with one ftp).",
        above(90),
        0.5,
        "percent",
        "Table 2 prints whole percents.",
        lambda data: min(data(at(UTILIZATION, (webs, 1), iw)) for webs in (8, 16, 32) for iw in (1, 2, 3, 4)),
    ),
    Statement(
        "rfc2415-s3-02",
        "With three ftp clients congestion is somewhat pathological and values are unstable (scatter of the median "
        "page delay between runs, three ftps against none).",
        above(1),
        0,
        "ratio",
        "A comparison needs no tolerance.",
        _scatter_of_three_ftps,
        lambda data: (
            'The sentence prints "stable"; the paragraph on Figure 1 says of such cases "not particularly stable", '
            "which is how it is read here."
        ),
    ),
    Statement(
        "rfc2415-s3-03",
        "The effect of IW on a transfer of 1 MB is not detectable (mean change of the median file delay "
        "from IW 1 to 3).",
        near(0),
        5,
        "percent",
        "Not detectable in print: Table 3's values of about 2 have steps of 0.1.",
        lambda data: mean([change(data, at(FILE_DELAY, s, 1), at(FILE_DELAY, s, 3)) for s in WITH_FTPS]),
        needs="absence",
    ),
    Statement(
        "rfc2415-s3-04",
        "A larger IW clearly improves the transfer delays of web connections (smallest decrease over "
        "scenarios and IW 2 to 4).",
        above(0),
        0,
        "percent",
        "A direction needs no tolerance.",
        lambda data: min(data(at(DECREASE, s, iw)) for s in SCENARIOS for iw in (2, 3, 4)),
    ),
    Statement(
        "rfc2415-s3-05",
        "In many cases the improvement is on the order of 30 % (scenarios, of 12, with a decrease of 25 % "
        "or more at some IW).",
        at_least(6),
        0,
        "scenarios",
        "Many: at least half; on the order of 30 %: rounds to 30 or above.",
        _many_near_30_percent,
        _printed_near_30_percent,
        counted=True,
    ),
    Statement(
        "rfc2415-s3-06",
        "Performance improves most steeply from IW 1 to 2 (mean gain of that step less the larger of the next two).",
        above(0),
        0,
        "percentage points",
        "A comparison needs no tolerance.",
        _steepness_of_first_step,
    ),
    Statement(
        "rfc2415-s3-07",
        "The median size of both primary and in-line files fits into two packets (the larger of the two medians).",
        at_most(2),
        0,
        "segments",
        "A limit stated exactly.",
        _larger_median_size,
        lambda data: "The sizes are an input of the simulation: this checks the fitted law, not a result.",
    ),
    *tables.delays(1, 8),
    *tables.bottleneck(),
    Statement(
        "rfc2415-s3-13",
        "Packet drop rates increase with IW (smallest change from IW 1 to 4, the worst overload apart).",
        at_least(0),
        0.05,
        "percentage points",
        "Rounding of Table 2.",
        lambda data: min(_drop_rise(data, s, 4) for s in MILD),
    ),
    Statement(
        "rfc2415-s3-14",
        "In all cases but the single most pathological overload the drop rate rises by less than 1 % (largest rise).",
        below(1),
        0.05,
        "percentage points",
        "Rounding of Table 2, which itself prints a rise of exactly 1.0 for 16 webs, 2 ftps.",
        lambda data: max(_drop_rise(data, s, iw) for s in MILD for iw in (2, 3, 4)),
    ),
    Statement(
        "rfc2415-s3-15",
        "In overload, where ftps take most of the link and many webs share the rest, the drop rate falls with IW "
        "(change from IW 1 to 4, 32 webs, 3 ftps).",
        below(0),
        0,
        "percentage points",
        "A direction needs no tolerance.",
        lambda data: _drop_rise(data, WORST, 4),
    ),
    Statement(
        "rfc2415-s3-16",
        "There some web clients with IW 4 lose several packets of one window (web transfers that lose two or more "
        "segments of their first flight, 32 webs, 3 ftps).",
        above(0),
        0,
        "percent",
        "Some: more than none.",
        lambda data: data(at("first_flight_burst_loss", WORST, 4)),
    ),
    Statement(
        "rfc2415-s3-17",
        "Figure 1: in general a larger IW is an advantage in network power (mean ratio of IW 4 to IW 1 over the nine "
        "scenarios outside the pathological ones).",
        above(1),
        0,
        "ratio",
        "A direction needs no tolerance. Pathological: 32 webs with ftps; the RFC gives no list.",
        lambda data: mean([data(at(RELATIVE_POWER, s, 4)) for s in ORDINARY]),
    ),
    Statement(
        "rfc2415-s3-18",
        "With many webs and several ftps network power follows no particular trend (pathological scenarios, of 3, in "
        "which it rises or falls at every step of IW).",
        at_most(0),
        0,
        "scenarios",
        "No trend: no scenario moves one way throughout.",
        _steady_trends,
        counted=True,
    ),
    Statement(
        "rfc2415-s3-19",
        "Figure 2: from IW 1 to 4 network power grows by at least 15 % (smallest growth of the nine scenarios).",
        at_least(15),
        0.5,
        "percent",
        "A whole number in the text.",
        lambda data: min(100 * (data(at(RELATIVE_POWER, s, 4)) - 1) for s in ORDINARY),
    ),
    Statement(
        "rfc2415-s3-20",
        "Figure 2: where web traffic dominates, network power grows by up to 60 % (largest growth of the "
        "nine scenarios).",
        near(60),
        5,
        "percent",
        "A round number read off a figure: to the nearest ten.",
        lambda data: max(100 * (data(at(RELATIVE_POWER, s, 4)) - 1) for s in ORDINARY),
    ),
    Statement(
        "rfc2415-s3-21",
        "The gain in network power comes from more throughput as well as less delay (smallest change of web goodput "
        "from IW 1 to 4 over the nine scenarios).",
        above(0),
        0,
        "percent",
        "A direction needs no tolerance. The RFC's own Table 6 has less goodput with IW 3 at 32 webs (48.9 "
        "to 44.7 MB).",
        lambda data: min(change(data, at(GOODPUT, s, 1), at(GOODPUT, s, 4)) for s in ORDINARY),
    ),
    Statement(
        "rfc2415-s3-22",
        "Drop rate is no indicator of what a user sees: slightly higher drop rates come with better performance (cells "
        "with a higher drop rate than IW 1 in which the page delay is lower).",
        at_least(100),
        0,
        "percent",
        "The sentence makes no exception.",
        _better_despite_drops,
        counted=True,
    ),
    Statement(
        "rfc2415-s3-23",
        "Table 3: the network power of file transfers essentially stays the same (mean change from IW 1 to 3).",
        near(0),
        10,
        "percent",
        "Essentially the same: Table 3's values of about 2 have steps of 0.1, in numerator and denominator.",
        lambda data: _file_power_change(data, 3),
        lambda data: f"From IW 1 to 4: {_file_power_change(data, 4):+.1f} %.",
    ),
    Statement(
        "rfc2415-s3-24",
        "With a larger IW web transfers gain slightly more bandwidth against the ftps (mean change of their share of "
        "the goodput from IW 1 to 3).",
        above(0),
        0,
        "percentage points",
        "A direction needs no tolerance.",
        lambda data: mean([_web_share(data, s, 3) - _web_share(data, s, 1) for s in WITH_FTPS]),
    ),
    tables.file_power(3, "rfc2415-s3-25"),
)
