"""The claims of rfc6928-cluster on made-up latencies and counts; their values are calculated by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from firstflight.studies.kernel import Quantities
from specs_by_hand import Sides, found, made_up, misjudged, put, value_decides

NAME = "rfc6928-cluster"
SEARCHED: dict[str, Any] = {"population": "avgdc", "service": "web-search", "iw": 10}


def gain(q: Quantities, name: str, few: Any, latency: Any, **place: Any) -> None:
    """Mean latencies with IW 3 and with another of the same responses."""
    put(getattr(q, f"{name}_few"), few, **place)
    put(getattr(q, f"{name}_latency"), latency, **place)


def services() -> Quantities:
    """Web search, Maps, photos and the blog: gains of 12, 15, 3 and 2% in AvgDC, of 10, 5, 12 and 3.5% in SlowDC."""
    q = made_up(NAME)
    gain(q, "stated", [500, 2000, 1000, 400], [440, 1700, 970, 392], population="avgdc", iw=10)
    gain(q, "stated", [800, 3000, 1500, 600], [720, 2850, 1320, 579], population="slowdc", iw=10)
    return q


def test_mean_gains() -> None:
    every = found(NAME, services())
    assert every["rfc6928-search-gain-avgdc"] == pytest.approx(60)
    assert every["rfc6928-search-gain-avgdc-percent"] == pytest.approx(12)
    assert every["rfc6928-search-gain-slowdc"] == pytest.approx(80)
    assert every["rfc6928-search-gain-slowdc-percent"] == pytest.approx(10)
    assert every["rfc6928-maps-gain-avgdc"] == pytest.approx(15)
    assert every["rfc6928-photos-gain-avgdc"] == pytest.approx(3)
    # 62.5 over eight.
    assert every["dukkipati-mean-gain"] == pytest.approx(7.8125)


def test_means_over_services_need_each_of_them() -> None:
    q = services()
    for of in (q.stated_few, q.stated_again):
        put(of, math.nan, population="slowdc", service="blog", iw=10)
    every = found(NAME, q)
    assert math.isnan(every["dukkipati-mean-gain"])
    assert math.isnan(every["rfc6928-retransmissions-slowdc"])
    assert math.isnan(every["dukkipati-mean-retransmissions"])
    assert not math.isnan(every["rfc6928-retransmissions-avgdc"])


def test_gains_of_subnets_and_of_few_segments() -> None:
    q = made_up(NAME)
    place = {"population": "avgdc", "service": "web-search"}
    # Percentiles 5, 10, 25, 50, 75, 90, 95 and 99: -30, 6, 9, 12, 4, 7, 8 and 40%. The claim leaves out both ends.
    put(q.subnets, [100, 200, 300, 400, 500, 600, 700, 800], **place, iw=3)
    put(q.subnets, [130, 188, 273, 352, 480, 558, 644, 480], **place, iw=10)
    gain(q, "stated_segments", 300, 288.5, **SEARCHED, segments="<= 3")
    every = found(NAME, q)
    assert every["rfc6928-subnets-least"] == pytest.approx(4)
    assert every["rfc6928-subnets-greatest"] == pytest.approx(12)
    assert every["rfc6928-few-segments"] == pytest.approx(11.5)


def test_gains_by_rtt() -> None:
    q = made_up(NAME)
    # Gains of 10, 20, 9, 60, 150, 100, 600 and 2500 ms; of 3.3, 5.7, 2.3, 10, 15, 4, 12 and 25%.
    few, latency = [300, 350, 400, 600, 1000, 2500, 5000, 10000], [290, 330, 391, 540, 850, 2400, 4400, 7500]
    gain(q, "stated_rtt", few, latency, **SEARCHED)
    put(q.stated_rtt_count, [100, 300, 50, 7, 7, 7, 7, 7], **SEARCHED)
    every = found(NAME, q)
    assert every["rfc6928-high-rtt"] == pytest.approx(25)
    # 1000 + 6000 + 450 ms of 30000 + 105000 + 20000.
    assert every["rfc6928-low-rtt"] == pytest.approx(4.8064516)
    # The published bars rise in both. Ranks 2 3 1 4 6 5 7 8 here: squares of 8 in all, 1 - 6*8 / (8*63).
    assert every["dukkipati-order-rtt-ms"] == pytest.approx(0.9047619)
    # Ranks 2 4 1 5 7 3 6 8: 24.
    assert every["dukkipati-order-rtt-percent"] == pytest.approx(0.7142857)


def test_gains_by_bandwidth() -> None:
    q = made_up(NAME)
    # Gains of 200, 300, 150, 100, 50, 40, 30 and 20 ms; of 8, 15, 10, 16, 5, 4, 6 and 2%.
    few, latency = [2500, 2000, 1500, 625, 1000, 1000, 500, 1000], [2300, 1700, 1350, 525, 950, 960, 470, 980]
    gain(q, "stated_down", few, latency, **SEARCHED)
    # Gains of 5, 12, 8, 15, 20, 18, 25 and 30%.
    few, latency = [1000, 800, 600, 500, 400, 300, 250, 200], [950, 704, 552, 425, 320, 246, 187.5, 140]
    gain(q, "dependence_down", few, latency, **SEARCHED, dependence="independent")
    every = found(NAME, q)
    assert every["rfc6928-low-bandwidth-1"] == pytest.approx(8)
    assert every["rfc6928-low-bandwidth-2"] == pytest.approx(15)
    assert every["cs244-low-bandwidth-1-independent"] == pytest.approx(5)
    assert every["cs244-low-bandwidth-2-independent"] == pytest.approx(12)
    # Published 630, 260, 51.4, 51.4, 29.3, 17.6, 15.8 and 14.3 ms: ranks 8 7 5.5 5.5 4 3 2 1, here 7 8 6 5 4 3 2 1.
    # About their means the products are 40.5 in all, and the squares 41.5 and 42.
    assert every["dukkipati-order-down-ms"] == pytest.approx(0.9700773)
    # Published 12.8, 16.1, 8.1, 10, 6.4, 4.7, 4.4 and 4.7%: 7 8 5 6 4 2.5 1 2.5, here 5 7 6 8 3 2 4 1: 30.5.
    assert every["dukkipati-order-down-percent"] == pytest.approx(0.7305521)
    # The same ranks against 1 to 8: squares of 144 in all; and 1 3 2 4 6 5 7 8: 4.
    assert every["cs244-percent-by-bandwidth-fitted"] == pytest.approx(-0.7142857)
    assert every["cs244-percent-by-bandwidth-independent"] == pytest.approx(0.9523810)


def test_gains_by_bandwidth_delay_product_of_the_buckets_with_responses() -> None:
    q = made_up(NAME)
    # Gains of 300, 60, none, 80, 200 and 900 ms; of 20, 10, none, 16, 12.5 and 30%.
    few, latency = [1500, 600, math.nan, 500, 1600, 3000], [1200, 540, math.nan, 420, 1400, 2100]
    gain(q, "stated_bdp", few, latency, **SEARCHED)
    every = found(NAME, q)
    assert every["rfc6928-high-bdp"] == pytest.approx(30)
    # Published 320, 79.4, 58.4, 390 and 790 ms: ranks 3 2 1 4 5, here 4 1 2 3 5: 1 - 6*4 / (5*24).
    assert every["dukkipati-order-bdp-ms"] == pytest.approx(0.8)
    # Published 21.8, 13.8, 10.4, 20.7 and 22.4%: ranks 4 2 1 3 5, here 4 1 3 2 5: 6.
    assert every["dukkipati-order-bdp-percent"] == pytest.approx(0.7)
    put(q.stated_bdp_few, math.nan, **SEARCHED, bdp=q.stated_bdp_few["bdp"].values[2:])
    assert math.isnan(found(NAME, q)["dukkipati-order-bdp-ms"])


def test_retransmissions() -> None:
    q = made_up(NAME)
    # Web search, Maps, photos and the blog: 2, 2.5, 1 and 2.5%, all 2%; then 2.6, 4.5, 1.4 and 2.2%, all 2.458%.
    for population, iw, again, sent in (
        ("avgdc", 3, [0.2, 0.5, 0.3, 1], [10, 20, 30, 40]),
        ("avgdc", 10, [0.273, 0.9, 0.427, 0.858], [10.5, 20, 30.5, 39]),
        # Maps 4 and 7%; all 3 and 4%.
        ("slowdc", 3, [0.3, 0.6, 0.5, 0.1], [5, 15, 25, 5]),
        ("slowdc", 10, [0.4, 1.12, 0.4, 0.08], [6, 16, 26, 2]),
    ):
        put(q.stated_again, again, population=population, iw=iw)
        put(q.stated_sent, sent, population=population, iw=iw)
    every = {of: value for of, value in found(NAME, q).items() if "retransmissions" in of}
    assert every == pytest.approx(
        {
            "rfc6928-retransmissions-avgdc": 0.458,
            "rfc6928-retransmissions-slowdc": 1,
            "rfc6928-retransmissions-maps-avgdc": 2,
            "rfc6928-retransmissions-maps-slowdc": 3,
            "rfc6928-retransmissions-web-search-avgdc": 0.6,
            "rfc6928-retransmissions-photos-avgdc": 0.4,
            "rfc6928-retransmissions-blog-avgdc": -0.3,
            "dukkipati-mean-retransmissions": 0.729,
        }
    )


def test_responses_without_and_with_retransmissions() -> None:
    q = made_up(NAME)
    for service, few, many in (("web-search", 91, 89), ("maps", 84, 78)):
        put(q.stated_clean, few, population="slowdc", service=service, iw=3)
        put(q.stated_clean, many, population="slowdc", service=service, iw=10)
    put(q.lossy_before, 30, population="slowdc")
    put(q.lossy, 80, population="slowdc")
    every = found(NAME, q)
    assert every["rfc6928-clean-web-search-slowdc-iw3"] == 91
    assert every["rfc6928-clean-web-search-slowdc-iw10"] == 89
    assert every["rfc6928-clean-maps-slowdc-iw3"] == 84
    assert every["rfc6928-clean-maps-slowdc-iw10"] == 78
    # Of 80 that retransmit with IW 10 those 30 that did with IW 3.
    assert every["rfc6928-already-lossy"] == 37.5


def test_slowest_responses_of_maps() -> None:
    q = made_up(NAME)
    put(q.tail, 4000, population="slowdc", iw=3, percentile=99)
    put(q.tail, 4100, population="slowdc", iw=10, percentile=99)
    every = found(NAME, q)
    assert every["rfc6928-maps-p99-slowdc"] == pytest.approx(100)
    assert every["rfc6928-maps-p99-slowdc-percent"] == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("greater", "lowest"),
    [
        # Equal at the 93rd, and greater at some below.
        ([*range(55, 65), *range(94, 100)], 94),
        ([*range(50, 99)], 100),
        ([99], 99),
        ([*range(50, 100)], 50),
    ],
)
def test_percentile_from_which_maps_is_slower(greater: list[int], lowest: int) -> None:
    q = made_up(NAME)
    for rank in range(50, 100):
        put(q.ranks, 10 * rank, population="slowdc", iw=3, rank=str(rank))
        later = 1 if rank in greater else 0 if rank == 93 else -1
        put(q.ranks, 10 * rank + later, population="slowdc", iw=10, rank=str(rank))
    assert found(NAME, q)["rfc6928-maps-worse-from-slowdc"] == lowest


def test_populations() -> None:
    q = made_up(NAME)
    put(q.median_down, 1.2, population="avgdc")
    put(q.below_100, 17, population="slowdc")
    put(q.below_256, 35, population="slowdc")
    put(q.median_rtt, 71, population="avgdc")
    put(q.median_rtt, 64, population="slowdc")
    every = found(NAME, q)
    assert every["rfc6928-median-bandwidth-avgdc"] == 1.2
    assert every["rfc6928-below-100-slowdc"] == 17
    assert every["rfc6928-below-256-slowdc"] == 35
    assert every["dukkipati-median-rtt-avgdc"] == 71
    assert every["dukkipati-median-rtt-slowdc"] == 64


def test_verdicts_on_either_side_of_the_limits() -> None:
    half: Sides = ((0, 0.499), (0.5, 2))
    paths: dict[str, Sides] = {
        "rfc6928-median-bandwidth-avgdc": ((1.51, 1.7, 1.89), (1.49, 1.91)),
        "rfc6928-below-100-slowdc": ((18, 22), (17.9, 22.1)),
        "rfc6928-below-256-slowdc": ((31.4, 35.2), (31.2, 35.4)),
        "dukkipati-median-rtt-avgdc": ((65, 75), (64.9, 75.1)),
        "dukkipati-median-rtt-slowdc": ((65, 75), (64.9, 75.1)),
    }
    orders: dict[str, Sides] = {
        f"dukkipati-order-{by}-{unit}": ((0.8, 1), (0.79, -1))
        for by in ("rtt", "down", "bdp")
        for unit in ("ms", "percent")
    } | {
        "cs244-percent-by-bandwidth-independent": ((0.01, 1), (0, -0.01)),
        "cs244-percent-by-bandwidth-fitted": ((-0.01, -1), (0, 0.01)),
    }
    others: dict[str, Sides] = {
        "rfc6928-already-lossy": ((50, 100), (49.9,)),
        "rfc6928-maps-worse-from-slowdc": ((93, 99), (92, 100)),
    }
    drawn: dict[str, Sides] = {
        # 35% of 68 and 72 ms are 23.8 and 25.2, of 11.7, 8.7 and 10% 4.1, 3 and 3.5.
        "rfc6928-search-gain-avgdc": ((44.3, 91.7), (44.1, 91.9)),
        "rfc6928-search-gain-avgdc-percent": ((7.7, 15.7), (7.5, 15.9)),
        "rfc6928-search-gain-slowdc": ((46.9, 97.1), (46.7, 97.3)),
        "rfc6928-search-gain-slowdc-percent": ((5.8, 11.6), (5.6, 11.8)),
        "dukkipati-mean-gain": ((6.5, 13.5), (6.4, 13.6)),
        "rfc6928-subnets-least": ((4, 12), (3.9, 12.1)),
        "rfc6928-subnets-greatest": ((4, 12), (3.9, 12.1)),
        "rfc6928-maps-gain-avgdc": ((1, 21), (0.9, 21.1)),
        "rfc6928-photos-gain-avgdc": ((1, 21), (0.9, 21.1)),
        "rfc6928-few-segments": ((0.01, 50), (0, -1)),
        "rfc6928-high-rtt": ((19.1, 60), (18.9,)),
        "rfc6928-high-bdp": ((19.1, 60), (18.9,)),
        "rfc6928-low-rtt": ((3, 7), (2.9, 7.1)),
        "rfc6928-low-bandwidth-1": ((9, 21), (8.9, 21.1)),
        "rfc6928-low-bandwidth-2": ((9, 21), (8.9, 21.1)),
        "cs244-low-bandwidth-1-independent": ((0, 9.9), (10, 20)),
        "cs244-low-bandwidth-2-independent": ((0, 9.9), (10, 20)),
        # Half of rises of 0.31, 0.67, 0.9 and 1.85 points.
        "rfc6928-retransmissions-avgdc": ((0.16, 0.46), (0.14, 0.48)),
        "rfc6928-retransmissions-slowdc": ((0.35, 0.99), (0.33, 1.01)),
        "rfc6928-retransmissions-maps-avgdc": ((0.46, 1.34), (0.44, 1.36)),
        "rfc6928-retransmissions-maps-slowdc": ((0.93, 2.77), (0.91, 2.79)),
        "rfc6928-retransmissions-web-search-avgdc": half,
        "rfc6928-retransmissions-photos-avgdc": half,
        "rfc6928-retransmissions-blog-avgdc": half,
        "dukkipati-mean-retransmissions": ((0.25, 0.75), (0.24, 0.76)),
        "rfc6928-maps-p99-slowdc": ((40, 120), (39, 121)),
        "rfc6928-maps-p99-slowdc-percent": ((1.2, 3.4), (1, 3.6)),
    } | {
        f"rfc6928-clean-{service}-slowdc-iw{iw}": ((85, 95), (84.9, 95.1))
        for service in ("web-search", "maps")
        for iw in (3, 10)
    }
    q = made_up(NAME)
    assert misjudged(NAME, q, paths | orders | others | drawn) == {}
    assert value_decides(NAME, q) == {*paths, *others}
