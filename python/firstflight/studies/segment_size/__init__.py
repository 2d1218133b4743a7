"""Segment size: RFC 6928's rule, which counts bytes, against ten segments of any size."""

from collections.abc import Sequence

import xarray as xr

from firstflight.studies import kernel as k

RESPONSE = k.DONE & k.of("response")
QUANTITIES = (
    k.Quantity("time", "Time of 60 kB", "ms", k.MEAN_MS, RESPONSE, digits=0),
    k.Quantity("premature", "Drops in the first flight", "percent", k.FIRST_FLIGHT_LOST, RESPONSE, digits=2),
    k.Quantity("others", "Completion time of others", "ms", k.MEAN_MS, k.DONE & k.of("others"), digits=0),
)
RFC = k.Source("RFC 6928 section 2")


def against(array: xr.DataArray) -> xr.DataArray:
    """Ten segments of any size against RFC 6928's rule, percent."""
    return k.change(array, rule="rfc6928").sel(rule="linux")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """The rule, and hypotheses."""
    time, others = against(q.time), against(q.others)
    first = q.premature.sel(rule="linux") - q.premature.sel(rule="rfc6928")
    small = -k.change(q.time, rule="rfc3390").sel(rule="rfc6928", queue="400kB")
    return (
        RFC.says(
            "same-up-to-1460",
            "Up to an MSS of 1460 bytes both rules are ten segments (largest difference of times).",
            abs(time.sel(segment=slice(None, 1460))).max(["segment", "queue"]),
            k.near(0, "percent"),
            "Both rules send the same packets.",
            needs="value",
        ),
        k.OURS.says(
            "jumbo-gains-a-round-trip",
            "With 8960 bytes and a long queue ten segments make 60 kB at least 60 ms faster than RFC 6928's two.",
            (q.time.sel(rule="rfc6928") - q.time.sel(rule="linux")).sel(segment=8960, queue="400kB"),
            k.at_least(60, "ms"),
            "The limit is one round trip.",
        ),
        k.OURS.says(
            "jumbo-overflows-short-queues",
            "With a queue of 40 kB ten segments of 8960 bytes lose at least 5 pp more of the first flight.",
            first.sel(segment=8960, queue="40kB"),
            k.at_least(5, "pp"),
            "60 kB back to back do not fit into 40 kB plus what the link transmits meanwhile.",
        ),
        k.OURS.says(
            "there-they-do-not-pay",
            "With a queue of 40 kB ten segments of 8960 bytes are slower than RFC 6928's two.",
            time.sel(segment=8960, queue="40kB"),
            k.above(0, "percent"),
        ),
        k.OURS.says(
            "others-suffer-from-jumbo",
            "Ten segments of 8960 bytes make others at least 5% slower with a long queue.",
            others.sel(segment=8960, queue="400kB"),
            k.at_least(5, "percent"),
            "A user may notice 5%.",
        ),
        k.OURS.says(
            "rfc6928-spares-others",
            "With RFC 6928's rule jumbo segments make others no slower than segments of 1460 bytes (largest change).",
            k.change(q.others, segment=1460).sel(segment=8960, rule="rfc6928").max("queue"),
            k.at_most(3, "percent"),
            k.FIXED,
        ),
        k.OURS.says(
            "small-segments-gain-too",
            "With 536 bytes RFC 6928's ten segments are at least 10% faster than RFC 3390's four (long queue).",
            small.sel(segment=536),
            k.at_least(10, "percent"),
            "The larger window saves one of about six round trips.",
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Gain and harm of ten jumbo segments."""
    time, others = (against(of).isel(draw=0).sel(segment=8960) for of in (q.time, q.others))
    first = q.premature.isel(draw=0).sel(rule="linux", segment=8960, queue="40kB")
    return (
        "An IW of ten segments of 8960 bytes, instead of the two that RFC 6928 allows, changes the time of 60 kB by "
        f"{time.sel(queue='400kB'):+.0f}% with a queue of 400 kB and by {time.sel(queue='40kB'):+.0f}% with 40 kB, "
        f"where {first:.0f}% of the first flight are dropped.",
        f"The times of others change by {others.sel(queue='400kB'):+.0f}% (400 kB) and "
        f"{others.sel(queue='40kB'):+.0f}% (40 kB).",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [k.table("times", "By segment size", "Means.", [q.time, q.premature, q.others], across="rule")],
    lambda q: [
        k.lines(q.time, "Time of 60 kB", "By queue; bands are 95% CIs.", "segment", "rule", columns="queue"),
        k.lines(
            q.others, "Time of others", "With ordinary segments on the same link.", "segment", "rule", columns="queue"
        ),
    ],
    answer,
)
