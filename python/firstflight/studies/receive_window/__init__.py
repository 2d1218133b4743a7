"""The receive window: the remaining gain of a larger initial window where the receiver advertises little at first."""

from collections.abc import Sequence

import xarray as xr

from firstflight.studies import kernel as k

QUANTITIES = (
    k.Quantity("time", "Completion time", "ms", k.MEAN_MS, k.DONE & k.of("response")),
    k.Quantity("others", "Completion time of others", "ms", k.MEAN_MS, k.DONE & k.of("others")),
)
RFC = k.Source("RFC 6928 section 3")


def gain(q: k.Quantities) -> xr.DataArray:
    """The gain of a response compared with IW 3 to the same receiver."""
    return k.named(-k.change(q.time, iw=3).sel(iw=[10, 32]), "gain", "Gain against IW 3", "percent")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """RFC 6928's ten segments, and hypotheses."""
    gains = gain(q)
    left = gains / gains.sel(window=65536, drop=True)
    return (
        RFC.says(
            "three-segments-leave-nothing",
            "With a receive window of three segments IW 10 gains nothing.",
            gains.sel(window=4380, iw=10),
            k.near(0, "percent", 0.5),
            "Half a percent: three segments of 1448 bytes fit, and 36 bytes.",
        ),
        RFC.says(
            "ten-segments-are-enough",
            "A window of ten segments leaves IW 10 all of its gain (share of what 64 KiB leave).",
            left.sel(window=14600, iw=10),
            k.near(1, "share", 0.05),
            "5% of the gain: later rounds are limited as well.",
        ),
        k.OURS.says(
            "eight-kb-leave-half",
            "A receive window of 8 KiB leaves a third to two thirds of the gain.",
            left.sel(window=8192, iw=10),
            k.between(1 / 3, 2 / 3, "share"),
            "8 KiB hold five of ten segments.",
        ),
        k.OURS.says(
            "iw32-needs-more",
            "A window of ten segments leaves IW 32 no more gain than IW 10.",
            (gains.sel(iw=32) - gains.sel(iw=10)).sel(window=14600),
            k.near(0, "pp", 0.5),
            "The tolerance is half a point.",
        ),
        k.OURS.says(
            "gain-is-worth-it",
            "With 64 KiB IW 10 makes responses at least 15% faster.",
            gains.sel(window=65536, iw=10),
            k.at_least(15, "percent"),
            "Three quarters of an RTT of about four.",
        ),
        k.OURS.says(
            "others-do-not-notice",
            "IW 10 makes others no slower than IW 3, with 64 KiB.",
            k.change(q.others, iw=3).sel(iw=10, window=65536),
            k.near(0, "percent", 2),
            k.FIXED,
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """The result with each window."""
    gains = gain(q).isel(draw=0)
    shares = 100 * gains / gains.sel(window=65536, drop=True)
    return (
        f"IW 10 makes responses {gains.sel(iw=10, window=65536):.0f}% faster than IW 3 if the receiver advertises 64 "
        f"KiB. {shares.sel(iw=10, window=14600):.0f}% of this gain remains if it advertises ten segments, and "
        f"{shares.sel(iw=10, window=8192):.0f}% with 8 KiB; with three segments the gain is "
        f"{gains.sel(iw=10, window=4380):.1f}%.",
        f"Of IW 32's gain of {gains.sel(iw=32, window=65536):.0f}%, ten segments leave "
        f"{shares.sel(iw=32, window=14600):.0f}%.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [
        k.table("times", "By receive window", "Means.", [q.time, q.others], across="iw"),
        k.table("gain", "Gain against IW 3", "Paired.", [gain(q)], across="iw"),
    ],
    lambda q: [
        k.lines(gain(q), "Gain that remains, by the receiver's initial window", "Against IW 3.", "window", "iw")
    ],
    answer,
)
