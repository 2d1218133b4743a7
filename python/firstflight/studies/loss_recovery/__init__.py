"""RFC 6928 section 5.3: recovery from a loss in the first flight, by initial window, and its cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.table import Table
from firstflight.counted import listed, with_unit
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

FEW, MANY = 3, 10
"""Initial windows of RFC 3390 and RFC 6928 at an MSS of 1460 bytes, segments."""
REPAIRS = ("fast retransmit", "early retransmit", "tail loss probe", "timeout")
"""The kinds of recovery, from the fastest on."""
FAST, EARLY, PROBE, TIMEOUT = range(len(REPAIRS))
RULE = "A rule without exceptions, so the tolerance is 0."
# Nothing is drawn in the matrices.
SECTION, STRICT = (k.Source(f"RFC 6928 section 5.3{how}", "rfc6928-s5.3-", "value") for how in ("", ", read strictly"))
GREATER = k.above(0, "percentage points")
CW10 = k.Source("RFC 6928, on the experiments of Chu and Wang (CW10)", "rfc6928-cw10-")
# The same comparison as RFCs of the time and as a kernel of today: without SACK, with it.
RFC, LINUX = ("new_reno", "sack"), ("linux_no_sack", "linux")
_SENDERS = {RFC: "NewReno against RFC 6675", LINUX: "profile linux"}
_FOLLOWS = {
    "nothing": ("flight", "nothing follows the first flight"),
    "data": ("response", "more data follows the first flight"),
}


def cost(q: k.Quantities) -> xr.DataArray:
    """The delay of the response compared with one without loss, ms, by position of the loss."""
    return q.time.sel(position=slice(1, None)) - q.time.sel(position=0, drop=True)


def share(q: k.Quantities, *repairs: int, **place: str | int) -> xr.DataArray:
    """Percent of the positions whose loss was repaired in one of these ways."""
    repair = q.repair.sel({"position": slice(1, None), **place})
    return 100 * repair.isin(repairs).where(repair.notnull()).mean("position")


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """Section 5.3's claims, those of the means it names, IW 10 without SACK against IW 3 with it, duplicates."""
    return [*_larger_window(q), *_rules(q), *_against_sack(q), *_duplicates(q)]


def _larger_window(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    for follows, (name, words) in _FOLLOWS.items():
        for kind, stack, repairs, text in (
            (
                "fast-retransmit",
                "new_reno",
                (FAST,),
                "An initial window above 3 segments raises the probability that a loss is recovered by fast "
                f"retransmit instead of the timeout (IW {MANY} against {FEW}; {words}).",
            ),
            (
                "limited-and-early",
                "new_reno_early",
                (FAST, EARLY),
                "Senders with limited transmit and early retransmit benefit from the larger window as well "
                f"(recoveries without timeout, IW {MANY} against {FEW}; {words}).",
            ),
        ):
            of = partial(share, q, *repairs, follows=follows, stack=stack)
            costs = cost(q).sel(follows=follows, stack=stack, draw=0).mean("position")
            note = partial(_shares_and_costs, of, costs)
            yield SECTION.says(f"{kind}-{name}", text, of(iw=MANY) - of(iw=FEW), GREATER, note=note)


def _shares_and_costs(of: Callable[..., xr.DataArray], costs: xr.DataArray) -> str:
    phrases = (
        f"{k.value(of(iw=iw)):.0f}% of the positions with IW {iw}, at a mean cost of {k.value(costs.sel(iw=iw)):.0f} ms"
        for iw in (FEW, MANY)
    )
    return f"{'; '.join(phrases)}."


def _rules(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    flight = q.repair.sel(follows="nothing", stack="new_reno", position=slice(1, None))
    three_follow = flight["iw"] - flight["position"] >= 3
    needless = ((flight == FAST) & ~three_follow).where(flight.notnull())
    missed = ((flight != FAST) & three_follow).where(flight.notnull())
    cells = ["iw", "position"]
    for name, source, text, exceptions in (
        (
            "three-duplicates-needed",
            SECTION,
            "Fast retransmit needs three duplicate ACKs: it recovers no loss followed by fewer than three segments "
            "(losses that it did recover, IW 1 to 16, nothing follows the flight, NewReno).",
            needless,
        ),
        (
            "three-segments-suffice",
            STRICT,
            "Three segments after the lost one trigger three duplicate ACKs, so fast retransmit recovers every such "
            "loss (losses that it did not recover, IW 1 to 16, nothing follows the flight, NewReno).",
            missed,
        ),
    ):
        places = exceptions.sel(draw=0).stack(at=cells)
        named = [f"segment {position} of {iw}" for iw, position in places["at"].values[places.values == 1]]
        note = f"Exceptions: {', '.join(named)}." if named else ""
        yield source.says(name, text, exceptions.sum(cells), k.near(0, "losses"), RULE, note)
    costs, repair = (of.sel(stack="new_reno") for of in (cost(q), q.repair.sel(position=slice(1, None))))
    every = ["follows", *cells]
    yield SECTION.says(
        "lengthy-timeout",
        "Waiting for the timeout is the lengthy way: it costs more than fast retransmit (mean cost, NewReno).",
        costs.where(repair == TIMEOUT).mean(every) - costs.where(repair == FAST).mean(every),
        k.above(0, "ms"),
    )
    place: dict[str, str | int] = {"follows": "nothing", "iw": FEW}
    yield k.Source("RFC 5827, abstract", "rfc5827-", "value").says(
        "timeouts-avoided",
        "Early retransmit recovers losses by fast retransmit that would otherwise need a timeout (positions of a "
        f"flight of {FEW} segments that nothing follows).",
        share(q, TIMEOUT, stack="new_reno", **place) - share(q, TIMEOUT, stack="new_reno_early", **place),
        GREATER,
    )
    yield k.Source("RFC 8985 section 7", "rfc8985-s7-", "value").says(
        "no-timeouts",
        "A tail loss probe triggers ACKs that recover a tail loss without a timeout (single losses of a first flight "
        "that needed one, IW 1 to 16, profile linux).",
        (q.repair.sel(stack="linux") == TIMEOUT).sum(every),
        k.at_most(0, "losses"),
        RULE,
    )


def _against_sack(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Each size by itself under random loss, then all sizes; then each rate of the congested link, then all."""
    sizes = q.random_loss["size_segments"].values.tolist()
    for size in sizes:
        yield _comparison(q.random_loss.sel(size_segments=[size]), RFC, f"{size}-segments")
    yield _comparison(q.random_loss, RFC, "all-sizes")
    yield _comparison(q.random_loss, LINUX, "linux")
    for rate in q.congested["rate_kbps"].values.tolist():
        yield _comparison(q.congested.sel(rate_kbps=[rate]), RFC, f"{rate}-kbps")
    yield _comparison(q.congested, LINUX, "congested-linux")


def _comparison(times: xr.DataArray, stacks: tuple[str, str], what: str) -> k.ClaimSpec:
    """The time saved, in percent of the mean completion time of IW 3 with SACK."""
    key, where, unit = (
        ("loss_percent", "segments under random loss", "%")
        if times.name == "random_loss"
        else ("rate_kbps", "segments, five in parallel over a congested link", "kbit/s")
    )
    without, with_sack = (
        times.sel(stack=stack, iw=iw, drop=True) for stack, iw in zip(stacks, (MANY, FEW), strict=True)
    )

    def gain(**place: float) -> xr.DataArray:
        over = [name for name in ("size_segments", key) if name not in place]
        return 100 * (1 - without.sel(place).mean(over) / with_sack.sel(place).mean(over))

    sizes, varied = times["size_segments"].values.tolist(), times[key].values.tolist()

    def part_by_part() -> str:
        by_size = [f"{k.value(gain(size_segments=size)):+.1f}% with {size} segments" for size in sizes]
        by_key = [f"{k.value(gain(**{key: label})):+.1f}% at {with_unit(f'{label:g}', unit)}" for label in varied]
        return f"Part by part: {', '.join([*(by_size if len(sizes) > 1 else []), *by_key])}."

    return CW10.says(
        f"no-sack-{what}",
        f"IW {MANY} without SACK beats IW {FEW} with SACK (mean completion time of responses of "
        f"{listed(map(str, sizes))} {where} of {with_unit(listed(f'{label:g}' for label in varied), unit)}; "
        f"{_SENDERS[stacks]}).",
        gain(),
        k.above(0, "percent"),
        note=part_by_part,
    )


def _duplicates(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Section 7's sentence, and hypotheses fixed before the first run of their grid."""
    means, worst = q.duplicates.mean(["size_segments", "rate_kbps"]), q.duplicates.max(["size_segments", "rate_kbps"])
    section = k.Source("RFC 6928 section 7", "rfc6928-s7-")
    hypothesis = replace(section, name="this study, before the first run of this grid")
    sack = "One in a hundred; fixed before the first run."
    where = "five in parallel, 20 and 100 segments, 256 and 1024 kbit/s"
    yield section.says(
        "newreno-duplicates",
        f"With NewReno a larger window makes more segments arrive twice (IW {MANY} against {FEW}, mean; {where}).",
        means.sel(stack="new_reno", iw=MANY) - means.sel(stack="new_reno", iw=FEW),
        GREATER,
    )
    yield section.says(
        "sack-in-check",
        f"SACK keeps duplicates in check: at most one segment in a hundred, IW {FEW} to 32 (largest share; {where}).",
        worst.sel(stack="sack").max("iw"),
        k.at_most(1, "percentage points"),
        sack,
    )
    yield hypothesis.says(
        "newreno-above-sack",
        f"NewReno has more than SACK with each window from ten on (least difference of means; {where}).",
        (means.sel(stack="new_reno") - means.sel(stack="sack")).sel(iw=slice(MANY, None)).min("iw"),
        GREATER,
    )
    yield hypothesis.says(
        "newreno-grows",
        f"Duplicates with NewReno go on growing above ten (NewReno, IW 32 against {MANY}, mean; {where}).",
        means.sel(stack="new_reno", iw=32) - means.sel(stack="new_reno", iw=MANY),
        GREATER,
    )
    yield hypothesis.says(
        "linux-in-check",
        f"Linux with SACK keeps duplicates in check as well, IW {FEW} to 32 (largest share; {where}).",
        worst.sel(stack="linux").max("iw"),
        k.at_most(1, "percentage points"),
        sack,
    )


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


def tables(q: k.Quantities) -> Sequence[Table]:
    """The frequency of each kind of recovery, its cost, and completion times in the comparison."""
    costs = k.named(cost(q), "cost", "Cost of the loss", "ms")
    shares = [
        k.named(share(q, kind), f"share_{repair.replace(' ', '_')}", f"By {repair}", "percent", 0)
        for kind, repair in enumerate(REPAIRS)
    ]
    kinds = ", ".join(f"{kind} {repair}" for kind, repair in enumerate(REPAIRS))
    whole = "From the opening of the connection to the last byte."
    return [
        k.table(
            "repairs",
            "Recovery of a single loss in the first flight",
            "Over all positions of the loss. Cost: completion time above that of the same response without loss.",
            [
                *shares,
                k.named(costs.mean("position"), "mean_cost", "Mean cost of a loss", "ms", 0),
                k.named(costs.max("position"), "worst_cost", "Worst cost", "ms", 0),
            ],
        ),
        k.table(
            "positions",
            "Each single loss",
            f"Position: of the lost segment in the first flight. Recovery: {kinds}; the slowest mechanism that "
            "was needed.",
            [costs, *(of.sel(position=slice(1, None)) for of in (q.repair, q.retransmissions))],
        ),
        k.table("random_loss", "Responses under random loss", f"One after the other. {whole}", [q.random_loss], "iw"),
        k.table(
            "congested",
            "Responses over a congested link",
            f"Five in parallel; RTT 300 ms, queue of 40 packets. {whole}",
            [q.congested],
            "iw",
        ),
        k.table(
            "duplicates",
            "Duplicate segments",
            "Of the data segments that reach a client: the share that had arrived before. Five responses in parallel.",
            [q.duplicates],
            "iw",
        ),
    ]


def figures(q: k.Quantities) -> Sequence[Figure | None]:
    """The matrices, and the comparison."""
    how = (
        "Mean completion time of responses, NewReno against RFC 6675; band: 95% CI over replicates. Both axes "
        "are logarithmic."
    )
    against = f"IW {MANY} without SACK against IW {FEW} with SACK"
    return [
        *_matrices(q),
        k.lines(_two(q.random_loss), f"{against}, under random loss", how, *_AXES, "loss_percent", log=True),
        k.lines(
            _two(q.congested),
            f"{against}, five responses at once over a congested link",
            f"{how} Round trip 300 ms, queue of 40 packets, as in the testbed that RFC 6928 cites.",
            *_AXES,
            "rate_kbps",
            log=True,
        ),
        k.lines(
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
    return k.along("sender", {name: times.sel(stack=stack, iw=iw, drop=True) for name, (stack, iw) in parts.items()})


def _matrices(q: k.Quantities) -> Iterator[Figure | None]:
    titles = q.repair["stack"].attrs["titles"]
    for pair, stacks in _PAIRS.items():
        for follows, words in _HEADINGS.items():
            at = {"follows": follows, "stack": list(stacks), "draw": 0, "position": slice(1, None)}
            yield k.heat_map(
                k.headed(cost(q), iw="initial window", position="lost segment of the first flight")
                .sel(at)
                .rename(f"{pair}_{follows}"),
                f"One loss in the first flight; {words}: {' and '.join(titles[stack] for stack in stacks)}",
                _CAPTION + _EARLY.get(pair, ""),
                "position",
                "iw",
                "stack",
                (q.repair.sel(at), REPAIRS),
            )


def answer(q: k.Quantities) -> Sequence[str]:
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
        _sack_answer(q.random_loss, "under random loss"),
        _sack_answer(q.congested, "over a congested link"),
    ]


def _sack_answer(times: xr.DataArray, where: str) -> str:
    without, with_sack = _two(times).sel(draw=0).transpose("sender", ...)
    both = (without - with_sack).values.ravel()
    return (
        f"IW {MANY} without SACK is faster on average than IW {FEW} with SACK in {(both < 0).sum()} of {both.size} "
        f"cases {where}."
    )


LONG_SEGMENTS = 64
"""A response that goes on after its first flight: four times the largest window, so that every recovery ends before."""
TIMESTAMP_BYTES = 12
"""The option with its padding."""
# The slowest means that the sender needed.
REPAIR = (
    pl.when(pl.col("timeouts") > 0)
    .then(3)
    .when(pl.col("tail_loss_probes") > 0)
    .then(2)
    .when(pl.col("early_retransmits") > 0)
    .then(1)
    .when(pl.col("fast_retransmits") > 0)
    .then(0)
)


def positions(run: Run) -> pl.LazyFrame:
    """The transfers by `position`, that of the loss in the first flight; 0 lost nothing."""
    transfers = run.table("transfers", experiment="one_loss")
    return transfers.with_columns(pl.col("client").cast(pl.Int64).alias("position"))


ARRIVED = (pl.col("event") == 1) & k.DOWN & (pl.col("length") > 0)
TWICE = 100 * (1 - pl.struct("connection", "seq").n_unique() / pl.len())

# Of the transfer that lost the segment at each position.
of_position = partial(k.Quantity, where=k.DONE, records=positions, by={"position": range(17)}, grid="one_loss")
QUANTITIES = (
    of_position("time", "Completion time", "ms", (1e3 * pl.col("completion_time_s")).max()),
    of_position("repair", "Repair", "", REPAIR.max(), kinds=REPAIRS),
    of_position("retransmissions", "Retransmitted segments", "segments", pl.col("retransmissions").max()),
    k.Quantity("random_loss", "Mean completion time", "s", k.MEAN_S, k.DONE, digits=3, grid="random_loss"),
    k.Quantity("congested", "Mean completion time", "s", k.MEAN_S, k.DONE, digits=3, grid="congested"),
    k.Quantity("duplicates", "Segments that arrive twice", "percent", TWICE, ARRIVED, "segments", grid="duplicates"),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """Sizes in full segments, without timestamps (RFC 7323 appendix A); in `one_loss` a user for each lost position."""
    tcp = scenario.to_plan()["applications"][0]["server_tcp"]
    payload = int(tcp["mss_bytes"]) - (TIMESTAMP_BYTES if tcp["timestamps"] else 0)
    if grid != "one_loss":
        return scenario.replace("application.response.size", f"{labels['size_segments'] * payload}B")
    iw = labels["iw"]
    size = iw if labels["follows"] == "nothing" else LONG_SEGMENTS
    (spoke,) = scenario.to_dict()["network"]["spokes"]
    # The request is a data packet too, the first of the other direction.
    spokes = [spoke | {"loss_list": [lost] if lost else [], "reverse": {"loss_list": []}} for lost in range(iw + 1)]
    scenario = scenario.replace("network.spokes", spokes).replace("application.response.clients", iw + 1)
    return scenario.replace("application.response.size", f"{size * payload}B")


STUDY = k.DeclaredStudy(__file__, QUANTITIES, claims, tables, figures, answer, build)
