"""The bottleneck's place: server, transit, access line, Wi-Fi, or two narrow links in a row."""

from collections.abc import Sequence

import polars as pl

from firstflight.studies import kernel as k

DROPS = 100 * pl.col("dropped_packets").sum() / pl.col("offered_packets").max()
FORWARD = pl.col("link").cast(pl.String).is_in([f"links[{place}]" for place in range(4)])
LAST = pl.col("link") == "links[3]"
QUANTITIES = (
    k.Quantity("page", "Page time", "ms", k.MEAN_MS, k.DONE, "pages", digits=0),
    k.Quantity("others", "Completion time of others", "ms", k.MEAN_MS, k.DONE & k.of("others"), digits=0),
    k.Quantity("dropped", "Dropped on all links", "percent", DROPS, FORWARD, "links", digits=2),
    k.Quantity("last", "Dropped on the last link", "percent", DROPS, LAST, "links", digits=2),
)
TALK = "talk"
SINGLE = ["server", "transit", "access"]


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Hypotheses about the effect of the place."""
    page, others = k.relative(q.page, iw=3), k.relative(q.others, iw=3)
    ten = page.sel(place=SINGLE, iw=10)
    two = q.page.sel(place="access and Wi-Fi") / q.page.sel(place="access")
    share = 100 * (q.last / q.dropped).sel(place="access and Wi-Fi", iw=64)
    return (
        k.OURS.says(
            "place-does-not-matter",
            "The gain of IW 10 is the same at the server, in transit and at the access link (range of page times).",
            ten.max("place") - ten.min("place"),
            k.at_most(5, "pp of IW 3's"),
            k.FIXED,
        ),
        k.OURS.says(
            "wifi-gains-as-well",
            "Delays of Wi-Fi do not change the gain of IW 10 at the access link (difference).",
            page.sel(place="Wi-Fi", iw=10) - page.sel(place="access", iw=10),
            k.near(0, "pp of IW 3's", 5),
            k.FIXED,
        ),
        k.OURS.says(
            "second-queue-is-empty",
            "Behind a link of the same rate a second one drops almost nothing: the first has spread the burst (share "
            "of all drops, IW 64).",
            share,
            k.at_most(5, "percent"),
            k.FIXED,
        ),
        k.OURS.says(
            "two-are-as-one",
            "Two narrow links in a row cost a page at most 5% more than one (largest change).",
            100 * (two - 1).max("iw"),
            k.at_most(5, "percent"),
            k.FIXED,
        ),
        k.OURS.says(
            "gain-everywhere",
            "IW 10 makes pages at least 5% faster at every place (least gain).",
            100 - page.sel(iw=10).max("place"),
            k.at_least(5, "percent"),
            "A gain of 5% is worthwhile.",
        ),
        k.OURS.says(
            "harm-is-the-same",
            "The effect of IW 64 on others is the same at server, transit and access link (range of their times).",
            others.sel(place=SINGLE, iw=64).max("place") - others.sel(place=SINGLE, iw=64).min("place"),
            k.at_most(5, "pp of IW 3's"),
            k.FIXED,
        ),
    )


def answer(q: k.Quantities) -> Sequence[str]:
    """Whether it matters."""
    page, others = (k.relative(of, iw=3).isel(draw=0) for of in (q.page, q.others))
    last = (q.last / q.dropped).isel(draw=0).sel(place="access and Wi-Fi", iw=64)
    gains, harm = 100 - page.sel(iw=10), others.sel(iw=64) - 100
    return (
        f"IW 10 instead of 3 makes pages {gains.min():.0f} to {gains.max():.0f}% faster, wherever the bottleneck is.",
        f"IW 64 changes the times of others by {harm.min():+.0f} to {harm.max():+.0f}%.",
        f"Of two narrow links in a row the second has {100 * float(last):.1f}% of the drops.",
    )


STUDY = k.DeclaredStudy(
    __file__,
    QUANTITIES,
    claims,
    lambda q: [k.table("times", "By place", "Means.", [q.page, q.others, q.dropped, q.last], across="iw")],
    lambda q: [
        k.lines(
            k.named(k.relative(q.page, iw=3), "relative_page", "Page time", "% of IW 3's", 0),
            "Gain by the place of the bottleneck",
            "Page time in percent of IW 3's; bands are 95% CIs.",
            "iw",
            "place",
        ),
        k.lines(
            k.named(k.relative(q.others, iw=3), "relative_others", "Time of others", "% of IW 3's", 0),
            "Harm by the place of the bottleneck",
            "Completion time of others, in percent of that next to IW 3.",
            "iw",
            "place",
        ),
    ],
    answer,
)
