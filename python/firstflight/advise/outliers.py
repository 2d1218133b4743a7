"""Records on which a result hinges: one response of 4 GB whose time outweighs those of thousands of others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.advise.budget import Term
from firstflight.advise.decide import Decision, Evidence, best_of
from firstflight.advise.measure import Measurements, holds
from firstflight.analysis.intervals import Estimate

SHARE, TIMES_FAIR = 0.01, 20.0
"""A record is an outlier if more than a hundredth of all time is its own, and twenty times its equal share."""
MOST = 5
"""Records that are looked at: the advice is to hinge on a few, not on the tail of the distribution."""


@dataclass(frozen=True)
class Outliers:
    """`records`: in words, with their numbers in the data, of `of` users; `share_percent`: of all time, in the
    reference case with the current window. `initial_window`: what would be recommended without them. `shown`: a window,
    with the change of the mean time that it makes `with_them` and `without`, in percent.
    """

    records: tuple[str, ...]
    of: int
    share_percent: float
    initial_window: int
    shown: int
    with_them: Estimate
    without: Estimate

    def sentence(self, decision: Decision) -> str:
        """The result with and without the outliers."""
        single = len(self.records) == 1
        what = "1 response makes" if single else f"{len(self.records)} responses make"
        without = "Without it" if single else "Without them"
        if self.initial_window == decision.initial_window:
            result = f"the recommendation is the same, and {self.shown}"
        elif self.initial_window == decision.current:
            result = f"the recommendation would be to keep {decision.current}, and {self.shown}"
        else:
            result = f"{self.initial_window} would be recommended, and {self.shown}"
        return (
            f"Outliers: of {self.of:,} users, {what} up {self.share_percent:.0f}% of all time "
            f"({'; '.join(self.records)}). {without} {result} changes the mean time by {_change(self.without)} "
            f"instead of {_change(self.with_them)}."
        )


def hinging(contributions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Places of the outliers among the contributions of all users to a sum; NaN contributes nothing."""
    part = np.nan_to_num(contributions) / max(float(np.nansum(contributions)), 1e-300)
    largest = np.argsort(-part, kind="stable")[:MOST]
    return largest[part[largest] > max(SHARE, TIMES_FAIR / len(contributions))]


def described(row: dict[str, float | None]) -> str:
    """A record of the data by its size and path."""
    size, rtt_s, down_bps = (float(row[name] or 0) for name in ("bytes", "rtt_s", "down_bps"))
    parts = [f"{size / 1e6:,.3g} MB" if size < 1e9 else f"{size / 1e9:,.3g} GB"]
    parts += [f"RTT {1e3 * rtt_s:.3g} ms"] if rtt_s else []
    parts += [f"{down_bps / 1e6:.3g} Mbit/s"] if down_bps else []
    return ", ".join(parts)


def outliers(
    measured: Measurements, evidence: Evidence, decision: Decision, budget: Sequence[Term], users: pl.DataFrame
) -> Outliers | None:
    """The outliers among `users`, the population's rows, and the decision without them; None if there are none."""
    reference = evidence.cases[0]
    rows = measured.responses(reference).filter(pl.col("iw") == measured.current)
    times = (
        rows.group_by("client").agg((pl.col("time_s").mean() * pl.col("weight").first()).alias("own")).sort("client")
    )
    contributions = times["own"].to_numpy()
    places = hinging(contributions)
    if not len(places):
        return None
    clients = times["client"].gather(places)
    kept = times["client"].filter(~times["client"].is_in(clients.implode()))
    rest = measured.among(kept)
    other = rest.evidence(())
    fit = [window for window in other.candidates if holds(rest, budget, window, other.cases)]
    without, *_ = best_of(other, reference, fit)
    best = min(other.candidates, key=lambda window: other.changes[reference, window].value)
    shown = next((window for window in (without, decision.initial_window) if window != decision.current), best)
    return Outliers(
        tuple(
            f"connection {users['client'][at] + 1:,}: {described(users.row(at, named=True))}"
            for at in clients.to_list()
        ),
        len(contributions),
        100 * float(contributions[places].sum() / np.nansum(contributions)),
        without,
        shown,
        evidence.changes[reference, shown],
        other.changes[reference, shown],
    )


def _change(change: Estimate) -> str:
    # Without an interval where the baseline's own includes 0.
    interval = "no CI" if math.isnan(change.low) else f"{change.low:+.1f} to {change.high:+.1f}"
    return f"{change.value:+.1f}% ({interval})"
