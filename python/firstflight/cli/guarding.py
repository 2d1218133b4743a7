"""`firstflight guard`: its commands and their options."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

guard = typer.Typer(
    help="Raise the initial window safely: per destination, with a stop rule and a way back.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    no_args_is_help=True,
)


class Fallback(StrEnum):
    """The window after a stop."""

    rfc6928 = "rfc6928"
    rfc3390 = "rfc3390"


@guard.callback()
def _top() -> None:
    """Raise the initial window safely: per destination, with a stop rule and a way back."""


@guard.command(short_help="What the guard would have done with a log's connections.")
def rehearse(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log, capture or table with times.", show_default=False)],
    policy: Annotated[
        str, typer.Option(help="How the window is chosen: static, ewma, lossaware or lossaware-disc.")
    ] = "static",
    iw: Annotated[int, typer.Option(help="Largest initial window, in segments; static always uses it.")] = 20,
    alpha: Annotated[float, typer.Option(help="Largest probability that a harmless window is ever stopped.")] = 0.05,
    period: Annotated[str, typer.Option(help="Arms are drawn again, and a client counts again, after this.")] = "60min",
    least: Annotated[int, typer.Option(help="A network with fewer connections joins a larger one.")] = 1000,
    fallback: Annotated[
        Fallback, typer.Option(help="Window after a stop: the system's 10 segments, or RFC 3390's 3.")
    ] = Fallback.rfc6928,
    bad: Annotated[
        str | None,
        typer.Option(
            metavar="TIME=RATE",
            help="Inject a bad link: from TIME on, raised connections lose in addition, such as 90min=20%.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="For a log without losses: connections that lose in the first flight, such as 2%.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="What LOG is, if not recognised.", show_default=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the timeline, .svg or .png.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of drawn losses.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a log's connections through the guard in virtual time: what it would have raised, stopped and missed."""
    from firstflight.cli.rehearsing import Request, rehearse_command

    rehearse_command(
        Request(log, policy, iw, alpha, period, least, fallback.value, bad, loss, kind, plot, seed), as_json=json
    )
