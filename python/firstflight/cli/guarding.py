"""`firstflight guard`: its commands and their options."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from firstflight.errors import require_linux

guard = typer.Typer(
    help="Raise the initial window per destination, with a stop rule and a fallback.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    no_args_is_help=True,
)


class Fallback(StrEnum):
    """Initial window after a stop."""

    rfc6928 = "rfc6928"
    rfc3390 = "rfc3390"


State = Annotated[Path, typer.Option(metavar="DIR", help="Journal, decisions and status.")]
_STATE = Path("/var/lib/firstflight-guard")


@guard.callback()
def _top() -> None:
    """Raise the initial window per destination, with a stop rule and a fallback."""


@guard.command(short_help="Replay a log through the guard.")
def rehearse(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log, capture or table with times.", show_default=False)],
    policy: Annotated[
        str, typer.Option(help="Policy that chooses the window: static, ewma, lossaware or lossaware-disc.")
    ] = "static",
    iw: Annotated[
        int, typer.Option(help="Largest initial window, in segments. static always uses it.", min=1, max=1000)
    ] = 20,
    alpha: Annotated[float, typer.Option(help="Maximum probability that a harmless window is ever stopped.")] = 0.05,
    period: Annotated[
        str, typer.Option(help="Interval between draws of the arms; each client counts once per interval.")
    ] = "60min",
    least: Annotated[
        int, typer.Option(help="Minimum connections per network. A network with fewer joins a larger one.", min=1)
    ] = 1000,
    fallback: Annotated[
        Fallback,
        typer.Option(
            help="Window after a stop: 10 segments (rfc6928, the system's), or 3 after stops of two groups (rfc3390)."
        ),
    ] = Fallback.rfc6928,
    bad: Annotated[
        str | None,
        typer.Option(
            metavar="TIME=RATE",
            help="Inject a bad link: extra loss of raised connections from TIME on, such as 90min=20%.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="For a log without losses: fraction of connections with loss in the first flight, such as 2%.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Format of LOG, if not detected.", show_default=False)] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the timeline to .svg, .png or .pdf.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of drawn losses.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay the connections of a log through the guard in virtual time. Print the windows that it raises, the groups
    that it stops and those that it misses.
    """
    from firstflight.cli.rehearsing import Request, rehearse_command

    rehearse_command(
        Request(log, policy, iw, alpha, period, least, fallback.value, bad, loss, kind, plot, seed), as_json=json
    )


@guard.command(short_help="Watch connections of this host and raise windows.")
def run(
    iw: Annotated[
        int | None,
        typer.Option(help="Largest initial window, in segments. Without it, only watch.", min=1, max=1000),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Policy that chooses the window: static, ewma, lossaware or lossaware-disc.")
    ] = "static",
    advice: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="advice.json of firstflight advise: never exceed the recommended window.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Log decisions, set no window.")] = False,
    ports: Annotated[
        str, typer.Option(metavar="N,...", help="Local ports whose connections count. Empty: all.")
    ] = "80,443",
    units: Annotated[
        str, typer.Option(metavar="V4,V6", help="Prefix lengths. A window is set and an arm is drawn per prefix.")
    ] = "28,56",
    alpha: Annotated[float, typer.Option(help="Maximum probability that a harmless window is ever stopped.")] = 0.05,
    period: Annotated[
        str, typer.Option(help="Interval between draws of the arms; each client counts once per interval.")
    ] = "60min",
    least: Annotated[
        int, typer.Option(help="Minimum connections per network. A network with fewer joins a larger one.", min=1)
    ] = 1000,
    as_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with one prefix and AS per line, such as 192.0.2.0/24 AS64500.",
            show_default=False,
        ),
    ] = None,
    fallback: Annotated[
        Fallback,
        typer.Option(
            help="Window after a stop: 10 segments (rfc6928, the system's), or 3 after stops of two groups (rfc3390)."
        ),
    ] = Fallback.rfc6928,
    cgroup: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Draw the arm per connection of this cgroup with BPF, not per prefix with routes. Also needs CAP_BPF.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", help="Serve Prometheus metrics on 127.0.0.1.", min=1, max=65535, show_default=False
        ),
    ] = None,
    state: State = _STATE,
) -> None:
    """Watch the connections that close on this host. Raise the initial window of random prefixes with routes, and fall
    back where losses rise. Any signal that stops the guard removes its routes. Needs Linux and CAP_NET_ADMIN.
    """
    require_linux("firstflight guard run")
    from firstflight.cli.guarding_host import Limits, Request, run_command

    limits = Limits(iw, policy, advice, alpha, period, least, fallback.value)
    run_command(Request(limits, dry_run, ports, units, as_file, metrics, state, cgroup))


@guard.command(short_help="Show the state of a running guard.")
def status(state: State = _STATE, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the connections, windows and verdicts of a running guard. Exit status 1 if none runs."""
    require_linux("firstflight guard status")
    from firstflight.cli.guarding_host import status_command

    raise typer.Exit(status_command(state, json))


@guard.command(short_help="Remove the routes of a guard that was killed.")
def undo(state: State = _STATE) -> None:
    """Remove the routes that a guard left behind that was killed with its watchdog. Changes nothing else."""
    require_linux("firstflight guard undo")
    from firstflight.cli.guarding_host import undo_command

    undo_command(state)
