"""The post's statements, paraphrased.

Limits and tolerances were fixed before the first run; that the gain is checked bucket by bucket, after it
(docs/evidence/cs244-2014.md says why).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import xarray as xr

from firstflight.studies import kernel as k
from firstflight.studies.cs244_2014 import responses as r

SOURCE = k.Source("CS244 2014, results", "cs244-")
LATER = {
    "line-rto-1s": "With no timeout below 1 s",
    "htb-pairs-rto-1s": "Over Mininet's shaper (htb-pairs), with no timeout below 1 s",
}
"""Paths with another shortest timeout."""
_TIMED_OUT = 2
"""So many of the buckets, from the slowest, have needless timeouts."""


def gain_ms(times: xr.DataArray) -> xr.DataArray:
    """The gain of IW 10 over IW 3 per pair: the same request of the same user with either window."""
    return (times.sel(iw=r.FEW, drop=True) - times.sel(iw=r.MANY, drop=True)).rename("gain")


def gain_percent(times: xr.DataArray) -> xr.DataArray:
    """The same in percent of the time with IW 3, as RFC 6928 counts."""
    return (100 * gain_ms(times) / times.sel(iw=r.FEW, drop=True)).rename("gain_percent")


def ten_segments_ms(q: k.Quantities) -> xr.DataArray:
    """The link's time for ten full segments: median over a user's undisturbed responses with such a first flight."""
    times = q.ten_segments.sel(iw=r.MANY, drop=True)
    flights, segments = (of.sel(iw=r.MANY, drop=True) for of in (q.first_flight, q.segments))
    return times.where((flights >= r.TEN) & (segments > r.TEN)).median(r.RESPONSE[1:])


def crossing(times: xr.DataArray) -> tuple[float, float, float]:
    """The rate at which ten segments take one round trip, by logarithms, and those of the users around it; or NaN."""
    known = times.dropna("rate_kbps")
    for (slow, longer), (fast, shorter) in pairwise(zip(known["rate_kbps"].values, known.values, strict=True)):
        if longer > r.ROUND_TRIP_MS >= shorter:
            share = math.log(longer / r.ROUND_TRIP_MS) / math.log(longer / shorter)
            return float(slow * (fast / slow) ** share), float(slow), float(fast)
    return math.nan, math.nan, math.nan


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Gains by bucket; rounds, and where ten segments no longer fit; the gains over each other path."""
    specs = [*_gains(q.time), _rounds(q, r.FEW, 2), _rounds(q, r.MANY, 1), _ten_segments(q)]
    for path in q.shaped_time["path"].values if "shaped_time" in q else ():
        gains = list(_gains(q.shaped_time.sel(path=path, drop=True), str(path)))
        # Where no timeout expires the other setting changes nothing.
        specs += gains[:_TIMED_OUT] if path in LATER else gains
    return specs


def _gains(times: xr.DataArray, path: str = "") -> Iterator[k.ClaimSpec]:
    gains, percent = r.by_bucket(gain_ms(times)), gain_percent(times)
    medians = k.observed(gains, *r.RESPONSE)
    claim = replace(SOURCE, part=f"-{path}", where=f"{_where(path)}: ").says if path else SOURCE.says
    for name, pairs in zip(r.BUCKETS, gains.count(r.RESPONSE).values, strict=True):
        yield claim(
            f"gain-{name.replace('<= ', '').replace('> ', 'above-')}-kbps",
            f"At {name} kbit/s an initial window of 10 instead of 3 gains about one round trip.",
            medians.sel(bandwidth_kbps=name) / r.ROUND_TRIP_MS,
            k.near(1, "round trips", 0.5),
            '"About one" is nearer to one round trip than to none or two. Median over pairs, bootstrap interval.',
            f"{pairs} pairs.",
        )
    yield claim(
        "gain-stable",
        "The gain is stable over bandwidth (least median of a bucket as a share of the greatest).",
        medians.min("bandwidth_kbps") / medians.max("bandwidth_kbps"),
        k.at_least(0.5, "share"),
        'The post gives no number; a gain that more than doubles from one bandwidth to another is not "stable".',
    )
    by_user = k.observed(percent, *r.RESPONSE[1:])
    # A user of whom one pair was undisturbed keeps her rank.
    by_user = by_user.fillna(by_user.isel(draw=0, drop=True)).dropna("rate_kbps")
    each_bucket = k.each(r.by_bucket(percent).median(r.RESPONSE).dropna("bandwidth_kbps"), "{label}: {value:.0f}%")
    yield claim(
        "percentage-rises",
        "The gain in percent rises with bandwidth (rank correlation of the users' bandwidths and medians).",
        xr.apply_ufunc(k.rank_correlation, by_user, by_user["rate_kbps"], input_core_dims=[["rate_kbps"]] * 2),
        k.above(0, "correlation"),
        note=f"Medians by bucket, kbit/s: {each_bucket}.",
    )


def _where(path: str) -> str:
    return LATER.get(path, f"Over Mininet's shaper ({path})")


def _rounds(q: k.Quantities, iw: int, expected: int) -> k.ClaimSpec:
    """Over the responses of as many segments as the median one."""
    segments, timed_out = (of.sel(iw=iw) for of in (q.segments, q.timed_out))
    median = segments.median() // 1
    counted = q.rounds.sel(iw=iw).where(segments == median)
    odd = counted.where(counted != expected)
    times = Counter(counted.values[counted.notnull().values])
    note = (
        f"Counted from the segments at the server; of {times.total()} responses of {median:.0f}, "
        f"{', '.join(f'{count} took {number:.0f}' for number, count in sorted(times.items()))}."
    )
    if odd.notnull().any():
        fastest = odd["rate_kbps"].where(odd.notnull().any(r.RESPONSE[1:])).max()
        late = 100 * timed_out.where(odd.notnull()).mean()
        note += (
            f" The others are of users of at most {fastest:.0f} kbit/s; the retransmission timer expired in "
            f"{late:.0f}% of them."
        )
    return SOURCE.says(
        f"median-response-iw{iw}",
        f"The median response (9 kB) takes {expected} round{'' if expected == 1 else 's'} of slow start with an "
        f"initial window of {iw} (median over the responses of as many segments).",
        counted.median(),
        k.near(expected, "rounds"),
        "A count, so the tolerance is 0.",
        note=note,
        needs="value",
    )


def _ten_segments(q: k.Quantities) -> k.ClaimSpec:
    computed, times = r.full_kbps(r.TEN), ten_segments_ms(q)
    crossing_kbps, slow, fast = crossing(times)
    note = (
        f"This run has no first flights of {r.TEN} segments that take less, and others that take more, than "
        f"{r.ROUND_TRIP_MS} ms."
    )
    if crossing_kbps == crossing_kbps:
        around = k.each(times.sel(rate_kbps=[slow, fast]), "{value:.1f} ms at {label:.0f} kbit/s")
        note = f"Measured at {int(times.count())} bandwidths: {around}."
    return k.Source(f"{SOURCE.name}; the value by arithmetic", SOURCE.prefix).says(
        "ten-segments-fit",
        "Below some bandwidth ten segments no longer fit one round trip: where ten full packets of 1500 bytes take "
        "more than 70 ms on the link.",
        xr.DataArray(crossing_kbps),
        k.near(round(computed), "kbit/s", round(0.05 * computed)),
        "5%: the users' bandwidths lie 10% apart, and between them values are interpolated (logarithmic axes).",
        note,
        needs="value",
    )
