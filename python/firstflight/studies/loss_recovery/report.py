"""Tables, the matrices of position and initial window, the comparison under loss, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.report.figure import Figure
from firstflight.report.loss_matrix import REPAIRS, loss_matrix
from firstflight.studies.kernel import Quantities, along, lines, named, table
from firstflight.studies.loss_recovery.claims import EARLY, FAST, FEW, MANY, PROBE, TIMEOUT, cost, share

_PAIRS = {"rfc": ("new_reno", "sack"), "early": ("new_reno_early", "sack_early"), "linux": ("linux_no_sack", "linux")}
_HEADINGS = {"nothing": "nothing follows the first flight", "data": "more data follows"}
_CAPTION = (
    "Color: how the loss was recovered. Number: added completion time in ms, compared with no loss. RTT 100 ms, 10 "
    "Mbit/s."
)
_EARLY = {
    "early": " Early: on fewer than three duplicate ACKs or SACKed segments (RFC 5827).",
    "linux": " Early: on fewer than three SACKed segments, when RACK's reordering window, a quarter of the RTT, had "
    "passed (RFC 8985).",
}


def tables(q: Quantities) -> Sequence[Table]:
    """The frequency of each kind of recovery, its cost, and completion times in the comparison."""
    costs = named(cost(q), "cost", "Cost of the loss", "ms")
    shares = [
        named(share(q, kind), f"share_{repair.replace(' ', '_')}", f"By {repair}", "percent", 0)
        for kind, repair in enumerate(REPAIRS)
    ]
    kinds = ", ".join(f"{kind} {repair}" for kind, repair in enumerate(REPAIRS))
    whole = "From the opening of the connection to the last byte."
    return [
        table(
            "repairs",
            "Recovery of a single loss in the first flight",
            "Over all positions of the loss. Cost: completion time above that of the same response without loss.",
            [
                *shares,
                named(costs.mean("position"), "mean_cost", "Mean cost of a loss", "ms", 0),
                named(costs.max("position"), "worst_cost", "Worst cost", "ms", 0),
            ],
        ),
        table(
            "positions",
            "Each single loss",
            f"Position: of the lost segment in the first flight. Recovery: {kinds}; the slowest mechanism that "
            "was needed.",
            [costs, *(of.sel(position=slice(1, None)) for of in (q.repair, q.retransmissions))],
        ),
        table("random_loss", "Responses under random loss", f"One after the other. {whole}", [q.random_loss], "iw"),
        table(
            "congested",
            "Responses over a congested link",
            f"Five in parallel; RTT 300 ms, queue of 40 packets. {whole}",
            [q.congested],
            "iw",
        ),
        table(
            "duplicates",
            "Duplicate segments",
            "Of the data segments that reach a client: the share that had arrived before. Five responses in parallel.",
            [q.duplicates],
            "iw",
        ),
    ]


def figures(q: Quantities) -> Sequence[Figure | None]:
    """The matrices, and the comparison."""
    how = (
        "Mean completion time of responses, NewReno against RFC 6675; band: 95% CI over replicates. Both axes "
        "are logarithmic."
    )
    against = f"IW {MANY} without SACK against IW {FEW} with SACK"
    return [
        *_matrices(q),
        lines(_two(q.random_loss), f"{against}, under random loss", how, *_AXES, "loss_percent", log=True),
        lines(
            _two(q.congested),
            f"{against}, five responses at once over a congested link",
            f"{how} Round trip 300 ms, queue of 40 packets, as in the testbed that RFC 6928 cites.",
            *_AXES,
            "rate_kbps",
            log=True,
        ),
        lines(
            q.duplicates.mean("size_segments", keep_attrs=True),
            "Segments that arrive twice, by IW",
            "Five responses at once over a congested link, mean of 20 and 100 segments. A panel per rate, kbit/s.",
            "iw",
            "stack",
            columns="rate_kbps",
        ),
    ]


_AXES = ("size_segments", "sender")


def _two(times: xr.DataArray) -> xr.DataArray:
    """The two senders that are compared, along `sender`."""
    parts = {f"IW {MANY} without SACK": ("new_reno", MANY), f"IW {FEW} with SACK": ("sack", FEW)}
    return along("sender", {name: times.sel(stack=stack, iw=iw, drop=True) for name, (stack, iw) in parts.items()})


def _matrices(q: Quantities) -> Iterator[Figure]:
    costs, repair = cost(q).sel(draw=0), q.repair.sel(draw=0)
    titles = repair["stack"].attrs["titles"]
    for pair, stacks in _PAIRS.items():
        for follows, words in _HEADINGS.items():
            places = {"follows": follows, "stack": list(stacks), "position": slice(1, None)}
            of, cost_ms = (array.sel(places).stack(at=["stack", "iw", "position"]) for array in (repair, costs))
            of = of.dropna("at")
            if of.size:
                cases = {
                    "initial_window": of["iw"].values,
                    "position": of["position"].values,
                    "repair": [REPAIRS[int(kind)] for kind in of.values],
                    "cost_ms": cost_ms.sel(at=of["at"]).values,
                    "panel": [titles[stack] for stack in of["stack"].values],
                }
                yield loss_matrix(
                    pl.DataFrame(cases),
                    f"{pair}_{follows}",
                    f"One loss in the first flight; {words}: {' and '.join(titles[stack] for stack in stacks)}",
                    _CAPTION + _EARLY.get(pair, ""),
                )


def answer(q: Quantities) -> Sequence[str]:
    """The gain of the larger window, its change with later mechanisms, and the comparison with SACK."""

    def percent(repair: int, stack: str, iw: int) -> float:
        return float(share(q, repair, follows="nothing", stack=stack, iw=iw).sel(draw=0))

    by = {REPAIRS[kind]: percent(kind, "linux", MANY) for kind in (FAST, EARLY, PROBE)}
    parts = ", ".join(f"{part:.0f}% by {repair}" for repair, part in by.items() if part)
    return [
        f"Where nothing follows the first flight, NewReno recovers {percent(FAST, 'new_reno', FEW):.0f}% of its "
        f"single losses by fast retransmit with an initial window of {FEW} segments and "
        f"{percent(FAST, 'new_reno', MANY):.0f}% with {MANY}; the others wait for the timeout.",
        f"Profile linux with IW {MANY} recovers {parts}; {percent(TIMEOUT, 'linux', MANY):.0f}% wait for the timeout.",
        _against_sack(q.random_loss, "under random loss"),
        _against_sack(q.congested, "over a congested link"),
    ]


def _against_sack(times: xr.DataArray, where: str) -> str:
    without, with_sack = _two(times).sel(draw=0).transpose("sender", ...)
    both = (without - with_sack).values.ravel()
    return (
        f"IW {MANY} without SACK is faster on average than IW {FEW} with SACK in {(both < 0).sum()} of {both.size} "
        f"cases {where}."
    )
