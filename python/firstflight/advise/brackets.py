"""What the data cannot tell, and between which limits it may lie: each setting is one answer to all of it.

The first setting is the reference; each other changes one thing of it. An advice must hold in all of them, or say that
it depends.
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.advise.fit import SHOWING_BYTES, Population
from firstflight.errors import RequestError

TYPICAL_BUFFER_S, SHALLOW_BUFFER_S, DEEP_BUFFER_S = 0.13, 0.02, 1.0
"""RFC 6928 section 10 and its sources: most access routers hold at least 130 ms, queues of 1 s and more are seen. 20
ms is the worst case for a burst: three of four UK homes of 2023 with 15 to 100 Mbit/s were seen to hold more."""
LEAST_BUFFER = "20p"
"""What every queue holds, however slow the line. The UK homes of 2023 were seen to queue at least so much under load,
at about nine of ten lines below 45 Mbit/s (10th percentile 24, 19 and 46 packets below 5, 15 and 45 Mbit/s); what was
seen is a mean, and so a lower bound of what the queue holds."""
UP_SHARE, NARROW_UP_SHARE = 0.2, 0.05
"""Up rate as a part of the down rate. UK homes measured by Ofcom: median 0.17 (2015) and 0.23 (2023), lowest twentieth
0.05 and 0.07."""
UNKNOWN_LOSS, MUCH_LOSS = 0.005, 0.02
"""Where the data does not count retransmitted segments. RFC 6928 section 10: 2 % of all segments at an initial window
of 3 (AvgDC), overflows included; a path's own loss is a part of it."""
AT_ONCE = 4
"""Connections of a page to one server: browsers open up to 6 (RFC 6928 section 3), and pages seldom need all."""
_COPIES_AT_LEAST = 0.2
"""Share of users with a known rate from which on they lend it to the others."""


@dataclass(frozen=True)
class Setting:
    """One answer to what the data leaves open.

    `name`: short; `text`: what is assumed, a sentence; `about`: which unknown it turns; `buffer_s`: of lines whose
    buffer is not known; `loss`: None as seen, or one number for all; `up_share`; `rates`: "seen", "shown" (no more than
    what came through), "given" (`--assume`), or the built-in population whose rates stand in; `shown`: whether what
    came through to others bounds them; `at_once`:
    connections of a user; `others`: whether other connections share the line.
    """

    name: str
    text: str
    about: str = ""
    buffer_s: float = TYPICAL_BUFFER_S
    loss: float | None = None
    up_share: float = UP_SHARE
    rates: str = "seen"
    shown: bool = False
    at_once: int = 1
    others: bool = False


@dataclass(frozen=True)
class Assumption:
    """One thing the data does not tell, or not of all: `what`, `known` (of how many users, in percent), `assumed`."""

    what: str
    known_percent: float
    assumed: str


def settings(population: Population) -> list[Setting]:
    """The reference and one setting for each end of each bracket."""
    given = population.given
    shown = population.shows_lines
    rates = "seen"
    if not _enough_rates(population):
        rates = "uk-2015" if given.lines is None else "given" if given.down_bps else given.lines
    loss = given.loss
    if loss is None:
        loss = None if population.known("loss") else UNKNOWN_LOSS
    connections = given.connections or 1
    plain = {"rates": rates, "loss": loss, "shown": shown and given.lines is None, "at_once": connections}
    plain["buffer_s"] = TYPICAL_BUFFER_S if given.buffer_s is None else given.buffer_s

    def setting(name: str, text: str, about: str = "", **changes: object) -> Setting:
        return Setting(name, text, about, **(plain | changes))  # type: ignore[arg-type]

    found = [setting("typical", _reference_text(population, Setting("", "", **plain)))]  # type: ignore[arg-type]
    open_buffers = population.known("buffer_s") < population.rows.height and given.buffer_s is None
    if open_buffers:
        found += [
            setting(
                "shallow buffers",
                f"every queue before a user's line holds {1e3 * SHALLOW_BUFFER_S:g} ms or {_least()} packets, "
                "whichever is more, whatever round trips were seen",
                "buffer",
                buffer_s=SHALLOW_BUFFER_S,
            ),
            setting("deep buffers", f"every such queue holds {DEEP_BUFFER_S:g} s", "buffer", buffer_s=DEEP_BUFFER_S),
        ]
    if loss is None:
        text = "the paths lose nothing: all that was retransmitted had overflowed"
        found.append(setting("no loss of its own", text, "loss", loss=0.0))
    elif given.loss is None:
        found += [
            setting("no loss", "the paths lose nothing but what overflows", "loss", loss=0.0),
            setting("much loss", f"every path loses {100 * MUCH_LOSS:g} % of the packets", "loss", loss=MUCH_LOSS),
        ]
    if population.known("up_bps") < population.rows.height:
        text = f"up rates are {100 * NARROW_UP_SHARE:g} % of the down rates"
        found.append(setting("narrow way back", text, "up", up_share=NARROW_UP_SHARE))
    if rates != "seen" and given.lines is None:
        if shown:
            text = "every line carries no more than came through: in a response of the user, or of one as far away"
            found.append(setting("slow lines", text, "lines", rates="shown"))
        else:
            found.append(setting("slow lines", "the lines have the rates of 2010 (AvgDC)", "lines", rates="avgdc"))
        bound = ", but never less than came through" if shown else ""
        text = f"the lines have the rates of UK homes of 2023{bound}"
        found.append(setting("fast lines", text, "lines", rates="uk-2023"))
    if given.connections is None:
        text = f"a user opens {AT_ONCE} connections at once, each for such a response"
        found.append(setting(f"{AT_ONCE} at once", text, "connections", at_once=AT_ONCE))
    text = "other connections, whose window stays, use the line at the same time"
    found.append(setting("beside others", text, "others", others=True))
    if open_buffers:
        text = f"the same with queues of {1e3 * SHALLOW_BUFFER_S:g} ms"
        found.append(setting("beside others, shallow", text, "buffer", others=True, buffer_s=SHALLOW_BUFFER_S))
    return found


def check_open(population: Population) -> None:
    """RequestError if something is assumed that the data tells of its users, which counts."""
    given = population.given
    for key, told in (
        ("lines", given.lines is not None and _enough_rates(population)),
        ("buffer", given.buffer_s is not None and population.known("buffer_s") == population.rows.height),
        ("loss", given.loss is not None and population.known("loss") > 0),
    ):
        if told:
            raise RequestError(f"the flows tell themselves what --assume {key}=... is about; leave it out")


def assumptions(population: Population) -> list[Assumption]:
    """What the data does not tell of every user, and what is taken instead."""
    rows = population.rows
    share = {name: 100 * population.known(name) / rows.height for name in ("buffer_s", "loss", "up_bps", "down_bps")}
    texts = {
        "buffer_s": (
            "buffer before the user's line",
            f"{1e3 * TYPICAL_BUFFER_S:g} ms, or more where the round trip was seen to grow by more; bracket: "
            f"{1e3 * SHALLOW_BUFFER_S:g} ms and {DEEP_BUFFER_S:g} s; {_least()} packets at least",
        ),
        "loss": (
            "loss on the path, apart from overflow",
            "half a percent; bracket: none and 2 %"
            if not population.known("loss")
            else "all that was retransmitted had been lost by the path; bracket: none of it",
        ),
        "up_bps": (
            "rate of the way back",
            f"{100 * UP_SHARE:g} % of the down rate; bracket: {100 * NARROW_UP_SHARE:g} %",
        ),
        "down_bps": (
            "rate of the user's line",
            "that of a user with a like round trip" if _enough_rates(population) else _lines_text(population),
        ),
    }
    found = [Assumption(texts[name][0], known, texts[name][1]) for name, known in share.items() if known < 100]
    found += [Assumption("as you said", 0.0, text) for text in population.given.texts]
    # Known for all, and still not what it looks like: what is retransmitted is not only what the path lost.
    if share["loss"] == 100:
        found.append(Assumption(texts["loss"][0], 0.0, texts["loss"][1]))
    if population.known("tls_bytes"):
        found.append(
            Assumption(
                "what the handshake of TLS does to the window",
                0.0,
                "nothing, as Linux has it for a handshake of at most half the window; its round trips and bytes, as "
                "seen, are added to each time, the same for every window",
            )
        )
    if population.sizes is not None:
        found.append(Assumption("size of a response", 0.0, f'drawn from "{population.sizes}", whatever the path'))
    return [
        *found,
        Assumption(
            "connections of a user at once, and other traffic on the line",
            0.0,
            f"none; bracket: {AT_ONCE} at once, and beside others whose window stays",
        ),
    ]


def _least() -> str:
    return LEAST_BUFFER.removesuffix("p")


def _lines_text(population: Population) -> str:
    """What stands for the rates of lines that the data does not tell."""
    if population.given.lines is not None:
        return f"{population.given.lines}, as you said"
    if population.shows_lines:
        share = 100 * float(population.rows["shows_line"].mean() or 0.0)  # type: ignore[arg-type]
        return (
            f"drawn from UK homes of 2015, but never less than came through: {share:.3g} % of the users had a response "
            f"of {SHOWING_BYTES / 1e3:.0f} kB or more, whose mean rate bounds their lines from below, and they stand "
            "for the others; bracket: no more than came through, and UK homes of 2023"
        )
    return "drawn from UK homes of 2015, whatever the round trip; bracket: AvgDC of 2010, and UK homes of 2023"


def _reference_text(population: Population, reference: Setting) -> str:
    seen = "paths" if reference.rates == "seen" else "round trips"
    sizes = "sizes as seen" if population.sizes is None else f"sizes of {population.sizes}"
    if population.given.has_paths:
        parts = [sizes, "round trips as assumed" if reference.rates != "seen" else "paths as assumed"]
    else:
        parts = [f"{seen} and {sizes}" if population.sizes is None else f"{seen} as seen, {sizes}"]
    if population.given.lines is not None and reference.rates != "seen":
        parts.append(f"lines of {population.given.lines}")
    elif reference.rates != "seen":
        parts.append(f"rates of UK homes of 2015{', never less than came through' if reference.shown else ''}")
    if population.known("buffer_s") < population.rows.height:
        parts.append(f"queues of {1e3 * reference.buffer_s:g} ms or what the round trips showed")
    parts.append("loss as seen" if reference.loss is None else f"{100 * reference.loss:g} % loss")
    alone = "each connection alone on its line"
    return ", ".join([*parts, alone if reference.at_once == 1 else f"{reference.at_once} connections at once"])


def _enough_rates(population: Population) -> bool:
    return population.known("down_bps") >= _COPIES_AT_LEAST * population.rows.height
