"""The claims of cs244-2014 on made-up times and counts; their values are calculated by hand."""

from __future__ import annotations

import math

import pytest
import xarray as xr

from specs_by_hand import Sides, found, made_up, misjudged, put, value_decides

NAME = "cs244-2014"
USERS = 48
BUCKETS = {"56": 5, "256": 11, "512": 8, "1000": 9, "2000": 8, "3000": 3, "5000": 3, "above-5000": 1}
"""Users of each bucket: user i is at the quantile (i + 1/2) / 48 of SlowDC's bandwidths."""
GAINS_MS = [35, 63, 84.5, 105, 56, 140, 70, 77]
"""The median gain of each bucket, one round trip being 70 ms."""


def put_pairs(times: xr.DataArray, percents: list[float], more_ms: float = 0) -> None:
    """Times with which each bucket has its median gain plus `more_ms`, and each user the median percentage.

    The first request of each user gains less than the median, the third more. By the percentages of either request, or
    by the mean of the three, the users have the reverse order.
    """
    user = 0
    for users, gain_ms in zip(BUCKETS.values(), GAINS_MS, strict=True):
        for place in range(users):
            median = gain_ms + more_ms + place - (users - 1) / 2
            gains = [gain_ms + more_ms - 10 - 0.1 * place, median, gain_ms + more_ms + 300 + place]
            shares = [15 - 0.2 * user, percents[user], 300 - 3 * user]
            for request, (gain, share) in enumerate(zip(gains, shares, strict=True)):
                at = {"rate_kbps": times["rate_kbps"].values[user], "request": request}
                put(times, 100 * gain / share, iw=3, **at)
                put(times, 100 * gain / share - gain, iw=10, **at)
            user += 1
    assert user == USERS


def rising(*swapped: int) -> list[float]:
    """Percentages that rise by a point from each user to the next, those of two users swapped."""
    found = [20.0 + user for user in range(USERS)]
    if swapped:
        one, other = swapped
        found[one], found[other] = found[other], found[one]
    return found


def test_gains() -> None:
    q = made_up(NAME)
    put_pairs(q.time, rising(0, 47))
    rates = q.time["rate_kbps"].values
    # One user keeps one pair, another none. The latter gained half a millisecond more than the median.
    put(q.time, math.nan, iw=10, rate_kbps=rates[5], request=[0, 2])
    put(q.time, math.nan, iw=3, rate_kbps=rates[20])
    put_pairs(q.shaped_time.sel(path="htb-flights"), rising(1, 46), 14)
    put_pairs(q.shaped_time.sel(path="htb-pairs"), rising()[::-1], 28)
    put_pairs(q.shaped_time.sel(path="line-rto-1s"), rising(), 7)
    put_pairs(q.shaped_time.sel(path="htb-pairs-rto-1s"), rising(), 21)
    every = {of: value for of, value in found(NAME, q).items() if "gain" in of or "percentage" in of}
    assert every == pytest.approx(
        {
            "cs244-gain-56-kbps": 0.5,
            "cs244-gain-256-kbps": 0.9,
            # 84 ms: the median of the seven users left is half a millisecond below that of the eight.
            "cs244-gain-512-kbps": 1.2,
            "cs244-gain-1000-kbps": 1.5,
            "cs244-gain-2000-kbps": 0.8,
            "cs244-gain-3000-kbps": 2,
            "cs244-gain-5000-kbps": 1,
            "cs244-gain-above-5000-kbps": 1.1,
            # 35 of 140 ms.
            "cs244-gain-stable": 0.25,
            # Spearman's: 47 users, two of whom are 46 places off: 1 - 6 (2 46²) / (47 (47² - 1)).
            "cs244-percentage-rises": 0.7553191,
            "cs244-gain-56-kbps-htb-flights": 0.7,
            "cs244-gain-256-kbps-htb-flights": 1.1,
            "cs244-gain-512-kbps-htb-flights": 1.4071429,
            "cs244-gain-1000-kbps-htb-flights": 1.7,
            "cs244-gain-2000-kbps-htb-flights": 1,
            "cs244-gain-3000-kbps-htb-flights": 2.2,
            "cs244-gain-5000-kbps-htb-flights": 1.2,
            "cs244-gain-above-5000-kbps-htb-flights": 1.3,
            # 49 of 154 ms.
            "cs244-gain-stable-htb-flights": 0.3181818,
            # 48 users, two of whom are 45 places off: 1 - 6 (2 45²) / (48 (48² - 1)).
            "cs244-percentage-rises-htb-flights": 0.7801780,
            "cs244-gain-56-kbps-htb-pairs": 0.9,
            "cs244-gain-256-kbps-htb-pairs": 1.3,
            "cs244-gain-512-kbps-htb-pairs": 1.6071429,
            "cs244-gain-1000-kbps-htb-pairs": 1.9,
            "cs244-gain-2000-kbps-htb-pairs": 1.2,
            "cs244-gain-3000-kbps-htb-pairs": 2.4,
            "cs244-gain-5000-kbps-htb-pairs": 1.4,
            "cs244-gain-above-5000-kbps-htb-pairs": 1.5,
            # 63 of 168 ms.
            "cs244-gain-stable-htb-pairs": 0.375,
            "cs244-percentage-rises-htb-pairs": -1,
            # The other timer is judged where timeouts expire.
            "cs244-gain-56-kbps-line-rto-1s": 0.6,
            "cs244-gain-256-kbps-line-rto-1s": 1,
            "cs244-gain-56-kbps-htb-pairs-rto-1s": 0.8,
            "cs244-gain-256-kbps-htb-pairs-rto-1s": 1.2,
        },
        rel=1e-6,
    )


def test_rounds_are_those_of_responses_of_median_size() -> None:
    q = made_up(NAME)
    # With IW 3 the second request has the median of segments, with IW 10 the first.
    for iw, segments, rounds in ((3, [5, 7, 20], [6, 0, 9]), (10, [8, 4, 30], [0, 7, 5])):
        put(q.segments, [segments] * USERS, iw=iw)
        put(q.rounds, [rounds] * USERS, iw=iw)
    rates = q.rounds["rate_kbps"].values
    # 25 of 48 users have the first count of rounds, so it is the median.
    for iw, request, most, fewer, more in ((3, 1, 4, 2, 9), (10, 0, 3, 1, 8)):
        put(q.rounds, most, iw=iw, request=request, rate_kbps=rates[:25])
        put(q.rounds, fewer, iw=iw, request=request, rate_kbps=rates[25:37])
        put(q.rounds, more, iw=iw, request=request, rate_kbps=rates[37:])
    every = found(NAME, q)
    assert every["cs244-median-response-iw3"] == 4
    assert every["cs244-median-response-iw10"] == 3


def test_bandwidth_at_which_ten_segments_take_a_round_trip() -> None:
    q = made_up(NAME)
    rates = q.time["rate_kbps"].values
    put(q.segments, 20.0, iw=10)
    put(q.first_flight, 10.0, iw=10)
    put(q.segments, 10.0, iw=3)
    put(q.first_flight, 3.0, iw=3)
    for user in range(USERS):
        longer = 140 + 5 * (29 - user) if user < 30 else 35 - 0.5 * (user - 31)
        put(q.ten_segments, [0.4 * longer, longer, 3 * longer], iw=10, rate_kbps=rates[user])
    # The user between 140 and 35 ms was not measured.
    put(q.ten_segments, math.nan, iw=10, rate_kbps=rates[30])
    # A first flight of nine segments, and a response of ten, after which nothing follows.
    put(q.first_flight, 9.0, iw=10, rate_kbps=rates[10], request=[0, 1])
    put(q.ten_segments, 1.0, iw=10, rate_kbps=rates[10], request=[0, 1])
    put(q.segments, 10.0, iw=10, rate_kbps=rates[12], request=[0, 1])
    put(q.ten_segments, 2.0, iw=10, rate_kbps=rates[12], request=[0, 1])
    # On logarithmic axes 70 ms is half-way from 140 to 35, so it is the rate of the user who is left out. She is at
    # 30.5/48, between the median of 500 and 1000 kbit/s at 0.6855: 500 times two to the power of 0.73001.
    assert found(NAME, q)["cs244-ten-segments-fit"] == pytest.approx(829.325, abs=0.001)


def test_no_such_bandwidth_where_ten_segments_always_take_less() -> None:
    q = made_up(NAME)
    put(q.segments, 20.0)
    put(q.first_flight, 10.0)
    assert math.isnan(found(NAME, q)["cs244-ten-segments-fit"])


def test_verdicts_on_either_side_of_the_limits() -> None:
    about_one = ((0.5, 1, 1.5), (0.49, 1.51))
    limits: dict[str, Sides] = {
        "cs244-median-response-iw3": ((2,), (1, 3)),
        "cs244-median-response-iw10": ((1,), (0, 2)),
        # Ten packets of 12000 bits in 70 ms: 1714.3 kbit/s, of which 5% are 86.
        "cs244-ten-segments-fit": ((1628.1, 1714, 1799.9), (1627.9, 1800.1)),
    }
    for path in ("", "-htb-flights", "-htb-pairs"):
        limits |= {f"cs244-gain-{name}-kbps{path}": about_one for name in BUCKETS}
        limits[f"cs244-gain-stable{path}"] = (0.5, 1), (0.49,)
        limits[f"cs244-percentage-rises{path}"] = (1e-9, 1), (0, -1)
    for path in ("line-rto-1s", "htb-pairs-rto-1s"):
        limits |= {f"cs244-gain-{name}-kbps-{path}": about_one for name in (56, 256)}
    q = made_up(NAME)
    assert misjudged(NAME, q, limits) == {}
    assert value_decides(NAME, q) == {
        "cs244-median-response-iw3",
        "cs244-median-response-iw10",
        "cs244-ten-segments-fit",
    }
