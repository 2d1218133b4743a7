"""`firstflight guard`: its commands and their options."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from firstflight.errors import require_linux

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


State = Annotated[Path, typer.Option(metavar="DIR", help="Journal, decisions and status.")]
_STATE = Path("/var/lib/firstflight-guard")


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
        Path | None, typer.Option(metavar="FILE", help="Draw the timeline, .svg, .png or .pdf.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of drawn losses.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a log's connections through the guard in virtual time: what it would have raised, stopped and missed."""
    from firstflight.cli.rehearsing import Request, rehearse_command

    rehearse_command(
        Request(log, policy, iw, alpha, period, least, fallback.value, bad, loss, kind, plot, seed), as_json=json
    )


@guard.command(short_help="Watch connections of this host and raise windows.")
def run(
    iw: Annotated[
        int | None,
        typer.Option(help="Largest initial window, in segments; without it, watch and change nothing.", min=11),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="How the window is chosen: static, ewma, lossaware or lossaware-disc.")
    ] = "static",
    advice: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="advice.json: never above the window advised.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write decisions down and set nothing.")] = False,
    ports: Annotated[
        str, typer.Option(metavar="N,...", help="Local ports whose connections count; empty: all.")
    ] = "80,443",
    units: Annotated[
        str, typer.Option(metavar="V4,V6", help="Prefix lengths of what a window is set for and an arm drawn.")
    ] = "28,56",
    alpha: Annotated[float, typer.Option(help="Largest probability that a harmless window is ever stopped.")] = 0.05,
    period: Annotated[str, typer.Option(help="Arms are drawn again, and a client counts again, after this.")] = "60min",
    least: Annotated[int, typer.Option(help="A network with fewer connections joins a larger one.", min=1)] = 1000,
    as_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Lines of a prefix and an AS, such as 192.0.2.0/24 AS64500.", show_default=False
        ),
    ] = None,
    fallback: Annotated[
        Fallback, typer.Option(help="Window after a stop: the system's 10 segments, or RFC 3390's 3.")
    ] = Fallback.rfc6928,
    cgroup: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Draw each connection of this cgroup by BPF, not prefixes by routes; needs CAP_BPF, too.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Prometheus metrics on 127.0.0.1.", min=1, max=65535, show_default=False),
    ] = None,
    state: State = _STATE,
) -> None:
    """Watch the connections that finish on this host, raise the initial window of a random part of the prefixes by
    routes of its own, and fall back where that does harm. Ends with SIGTERM or Ctrl-C, which removes every route it
    set. Needs Linux and CAP_NET_ADMIN.
    """
    require_linux("firstflight guard run")
    from firstflight.cli.guarding_host import Limits, Request, run_command

    limits = Limits(iw, policy, advice, alpha, period, least, fallback.value)
    run_command(Request(limits, dry_run, ports, units, as_file, metrics, state, cgroup))


@guard.command(short_help="What a running guard does.")
def status(state: State = _STATE, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show what a running guard has seen, set and found. Exit status 1 if none runs."""
    require_linux("firstflight guard status")
    from firstflight.cli.guarding_host import status_command

    raise typer.Exit(status_command(state, json))


@guard.command(short_help="Remove the routes of a guard that was killed.")
def undo(state: State = _STATE) -> None:
    """Remove every route that a guard has set and not removed, as after kill -9. Does nothing else."""
    require_linux("firstflight guard undo")
    from firstflight.cli.guarding_host import undo_command

    undo_command(state)
