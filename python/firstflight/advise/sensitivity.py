"""Sensitivity cases: each assumes one value for everything that the data does not show.

The first case is the reference; each other changes one value of it. An advice must hold in all of them, or say that
it depends. A value given by `--assume` adds a case and removes none: it can make an advice more careful, not bolder.
"""

from dataclasses import dataclass, replace

from firstflight.advise.fit import CHAIN, SHOWING_BYTES, FittedPopulation
from firstflight.errors import RequestError
from firstflight.scenario.tls import server_flight

REFERENCE_BUFFER_S, SHALLOW_BUFFER_S, DEEP_BUFFER_S = 0.13, 0.02, 1.0
"""RFC 6928 section 10 and its sources: most access routers hold at least 130 ms, queues of 1 s and more are seen. 20
ms is the worst case for a burst: three of four UK homes of 2023 with 15 to 100 Mbit/s were seen to hold more."""
LEAST_BUFFER_PACKETS = 20
"""The capacity of every queue, at any line rate. The UK homes of 2023 queued at least this amount under load, at
about nine of ten lines below 45 Mbit/s (10th percentile 24, 19 and 46 packets below 5, 15 and 45 Mbit/s). The
observed value is a mean, and so a lower bound of the capacity."""
UP_SHARE, SLOW_UP_SHARE = 0.2, 0.05
"""Up rate as a part of the down rate. UK homes measured by Ofcom: median 0.17 (2015) and 0.23 (2023), lowest twentieth
0.05 and 0.07."""
UNKNOWN_LOSS, HIGH_LOSS = 0.005, 0.02
"""Where the data does not count retransmitted segments. RFC 6928 section 10: 2% of all segments at an initial window
of 3 (AvgDC), overflows included; a path's own loss is a part of it."""
PARALLEL_CONNECTIONS = 4
"""Connections of a page to one server: browsers open up to 6 (RFC 6928 section 3), and pages seldom need all."""
_COPIES_AT_LEAST = 0.2
"""Share of users with a known rate from which on they lend it to the others."""


@dataclass(frozen=True)
class SensitivityCase:
    """One set of assumptions for values that the data lacks.

    `name`: short; `text`: the assumption, a sentence; `about`: the unknown that it changes ("given" for a value of
    `--assume`); `buffer_s`: of lines whose buffer is not known; `loss`: None as seen, or one number for all;
    `up_share`; `rates`: "seen", "shown" (no more than the delivered rate), "given" (`--assume`), or the built-in
    population whose rates stand in; `shown`: whether the rate delivered to others bounds them; `parallel_connections`:
    of a user; `cross_traffic`: whether other connections share the line; `rather`: the reference's value of the unknown
    and this one, as the condition under which the case does not count, empty where there is none in words.
    """

    name: str
    text: str
    about: str = ""
    buffer_s: float = REFERENCE_BUFFER_S
    loss: float | None = None
    up_share: float = UP_SHARE
    rates: str = "seen"
    shown: bool = False
    parallel_connections: int = 1
    cross_traffic: bool = False
    rather: str = ""


@dataclass(frozen=True)
class Assumption:
    """One value that the data lacks, at least for some: `what`, `known` (of how many users, in percent), `assumed`."""

    what: str
    known_percent: float
    assumed: str


def cases(population: FittedPopulation) -> list[SensitivityCase]:
    """The reference, and one case for each bound of each unknown."""
    given = population.given
    shown = population.shows_lines
    rates = "seen" if _enough_rates(population) else "uk-2015"
    loss = None if population.known("loss") else UNKNOWN_LOSS
    plain = {"rates": rates, "loss": loss, "shown": shown}

    def case(name: str, text: str, about: str = "", rather: str = "", **changes: object) -> SensitivityCase:
        return SensitivityCase(name, text, about, rather=rather, **(plain | changes))  # type: ignore[arg-type]

    all_cases = [case("reference", _reference_text(population, SensitivityCase("", "", **plain)))]  # type: ignore[arg-type]
    open_buffers = population.known("buffer_s") < population.rows.height
    queues = "the queues before your users' access links hold {:g} rather than {:g} ms"
    shallow = queues.format(1e3 * REFERENCE_BUFFER_S, 1e3 * SHALLOW_BUFFER_S)
    if open_buffers:
        all_cases += [
            case(
                "shallow buffers",
                f"every queue before a user's access link holds {1e3 * SHALLOW_BUFFER_S:g} ms or "
                f"{LEAST_BUFFER_PACKETS} packets, whichever is more, independent of the RTTs seen",
                "buffer",
                shallow,
                buffer_s=SHALLOW_BUFFER_S,
            ),
            case(
                "deep buffers",
                f"every such queue holds {DEEP_BUFFER_S:g} s",
                "buffer",
                queues.format(1e3 * REFERENCE_BUFFER_S, 1e3 * DEEP_BUFFER_S),
                buffer_s=DEEP_BUFFER_S,
            ),
        ]
    if loss is None:
        text = "no loss on the links: all retransmissions come from queue overflow"
        rather = "the retransmissions in the data come from loss on the paths rather than from queue overflow"
        all_cases.append(case("no random loss", text, "cause of loss", rather, loss=0.0))
    else:
        paths = f"the paths to your users lose {100 * UNKNOWN_LOSS:g}% of the packets rather than "
        text = f"every path loses {100 * HIGH_LOSS:g}% of the packets"
        all_cases += [
            case("no loss", "no loss but queue overflow", "loss", f"{paths}none", loss=0.0),
            case("high loss", text, "loss", f"{paths}{100 * HIGH_LOSS:g}%", loss=HIGH_LOSS),
        ]
    if population.known("up_bps") < population.rows.height:
        text = f"uplink rates are {100 * SLOW_UP_SHARE:g}% of the downlink rates"
        rather = f"uplink rates are {100 * UP_SHARE:g}% rather than {100 * SLOW_UP_SHARE:g}% of the downlink rates"
        all_cases.append(case("slow uplink", text, "up", rather, up_share=SLOW_UP_SHARE))
    if rates != "seen":
        if shown:
            text = "every access link has the rate of the observed throughput, of the user or of one with a similar RTT"
            all_cases.append(case("slow lines", text, "lines", rates="shown"))
        else:
            all_cases.append(case("slow lines", "access links have the rates of 2010 (AvgDC)", "lines", rates="avgdc"))
        bound = ", but at least the observed throughput" if shown else ""
        text = f"access links have the rates of UK homes of 2023{bound}"
        rather = "your users' link rates are those of UK homes of 2015 rather than of 2023"
        all_cases.append(case("fast lines", text, "fast lines", rather, rates="uk-2023"))
    text = f"a user opens {PARALLEL_CONNECTIONS} parallel connections, each for one response of that size"
    rather = f"a user opens one connection at a time rather than {PARALLEL_CONNECTIONS} in parallel"
    name = f"{PARALLEL_CONNECTIONS} parallel connections"
    all_cases.append(case(name, text, "connections", rather, parallel_connections=PARALLEL_CONNECTIONS))
    text = "concurrent connections with the current window share the access link"
    all_cases.append(case("cross traffic", text, "others", cross_traffic=True))
    if open_buffers:
        text = f"the same with queues of {1e3 * SHALLOW_BUFFER_S:g} ms"
        name = "cross traffic, shallow buffers"
        all_cases.append(case(name, text, "buffer", shallow, cross_traffic=True, buffer_s=SHALLOW_BUFFER_S))
    for key, changes in (
        ("lines", {"rates": "given" if given.down_bps else given.lines, "shown": False}),
        ("buffer", {"buffer_s": given.buffer_s}),
        ("connections", {"parallel_connections": given.connections}),
        ("loss", {"loss": given.loss}),
    ):
        if next(iter(changes.values())) is not None:
            assumed = case(f"assumed {key}", given.text(key), "given", **changes)
            if not any(_same(assumed, other) for other in all_cases):
                all_cases.append(assumed)
    return all_cases


def _same(case: SensitivityCase, other: SensitivityCase) -> bool:
    """Whether both cases assume the same values."""
    return replace(case, name="", text="", about="", rather="") == replace(other, name="", text="", about="", rather="")


def check_open(population: FittedPopulation) -> None:
    """RequestError if a value is assumed that the data has for its users; the data takes precedence."""
    given = population.given
    for key, is_known in (
        ("lines", given.lines is not None and _enough_rates(population)),
        ("buffer", given.buffer_s is not None and population.known("buffer_s") == population.rows.height),
        ("loss", given.loss is not None and population.known("loss") > 0),
    ):
        if is_known:
            raise RequestError(f"the flows have the value of --assume {key}=...; remove that option")


def assumptions(population: FittedPopulation) -> list[Assumption]:
    """Values that the data lacks for some users, and the values used instead."""
    rows = population.rows
    share = {name: 100 * population.known(name) / rows.height for name in ("buffer_s", "loss", "up_bps", "down_bps")}
    texts = {
        "buffer_s": (
            "buffer before the user's access link",
            f"{1e3 * REFERENCE_BUFFER_S:g} ms, or the growth of the RTT if that is more; cases: "
            f"{1e3 * SHALLOW_BUFFER_S:g} ms and {DEEP_BUFFER_S:g} s; at least {LEAST_BUFFER_PACKETS} packets",
        ),
        "loss": (
            "loss on the path, without queue overflow",
            "half a percent; cases: none and 2%"
            if not population.known("loss")
            else "all retransmissions were lost on the path; case: none of them",
        ),
        "up_bps": ("uplink rate", f"{100 * UP_SHARE:g}% of the downlink rate; case: {100 * SLOW_UP_SHARE:g}%"),
        "down_bps": (
            "rate of the user's access link",
            "that of a user with a similar RTT" if _enough_rates(population) else _lines_text(population),
        ),
    }
    gaps = [Assumption(texts[name][0], known, texts[name][1]) for name, known in share.items() if known < 100]
    gaps += [Assumption("given by --assume", 0.0, text) for text in population.given.texts]
    # Known for all, but biased: not all retransmitted segments were lost on the path.
    if share["loss"] == 100:
        gaps.append(Assumption(texts["loss"][0], 0.0, texts["loss"][1]))
    if assumed := population.assumed_percent("tls_bytes"):
        flight = server_flight(CHAIN) / 1e3
        gaps.append(
            Assumption(
                "bytes of the TLS handshake",
                100 - assumed,
                f"{flight:.2g} kB (median of {CHAIN}), {server_flight(None) / 1e3:.2g} kB if resumed, which fit into "
                "10 segments; exchanges from the time of the handshake",
            )
        )
    if population.sizes is not None:
        gaps.append(Assumption("size of a response", 0.0, f'drawn from "{population.sizes}", independent of the path'))
    return [
        *gaps,
        Assumption(
            "parallel connections of a user, and cross traffic on the access link",
            0.0,
            f"none; cases: {PARALLEL_CONNECTIONS} parallel connections, and concurrent ones with the current window",
        ),
    ]


def _lines_text(population: FittedPopulation) -> str:
    """The values used for line rates that the data lacks."""
    if population.shows_lines:
        share = 100 * float(population.rows["shows_line"].mean() or 0.0)  # type: ignore[arg-type]
        return (
            f"drawn from UK homes of 2015, but at least the observed throughput: {share:.3g}% of the users had a "
            f"response of {SHOWING_BYTES / 1e3:.0f} kB or more, whose mean rate is a lower bound of their link rate "
            "and, by RTT, of the others'; cases: the observed throughput, and UK homes of 2023"
        )
    return "drawn from UK homes of 2015, independent of the RTT; cases: AvgDC of 2010, and UK homes of 2023"


def _reference_text(population: FittedPopulation, reference: SensitivityCase) -> str:
    seen = "paths" if reference.rates == "seen" else "RTTs"
    sizes = "sizes as seen" if population.sizes is None else f"sizes of {population.sizes}"
    if population.given.has_paths:
        parts = [sizes, "RTTs as assumed" if reference.rates != "seen" else "paths as assumed"]
    else:
        parts = [f"{seen} and {sizes}" if population.sizes is None else f"{seen} as seen, {sizes}"]
    if reference.rates != "seen":
        parts.append(f"rates of UK homes of 2015{', at least the observed throughput' if reference.shown else ''}")
    if population.known("buffer_s") < population.rows.height:
        parts.append(f"queues of {1e3 * reference.buffer_s:g} ms or the growth of the RTT")
    parts.append("loss as seen" if reference.loss is None else f"{100 * reference.loss:g}% loss")
    return ", ".join([*parts, "each connection alone on its access link"])


def _enough_rates(population: FittedPopulation) -> bool:
    return population.known("down_bps") >= _COPIES_AT_LEAST * population.rows.height
