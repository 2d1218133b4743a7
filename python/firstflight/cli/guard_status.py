"""`firstflight guard status`."""

import json
import sys
import time
from typing import Any

import typer

from firstflight.cli.options import STATE, Json, State
from firstflight.errors import MachineError, RequestError, require_linux
from firstflight.input_files import check_is_file, read_text

_STALE_S = 10
_NO_GUARD = 1


def command(state: State = STATE, as_json: Json = False) -> None:
    """Show the connections, windows and verdicts of a running guard. Exit status 1 if none runs."""
    require_linux("firstflight guard status")
    from firstflight.guard.journal import is_held  # late: other systems lack what it imports
    from firstflight.guard.watchdog import STATUS

    path = state / STATUS
    try:
        runs = is_held(state)
        check_is_file(path)
        status: dict[str, Any] = json.loads(read_text(path))
        old_s = time.time() - status["written_at"]
        shown = _shown(status)
    except FileNotFoundError:
        print(f"no guard runs with {state}; start one with `firstflight guard run`", file=sys.stderr)
        raise typer.Exit(_NO_GUARD) from None
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}; run as the guard's user, such as with sudo") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RequestError(f"{path}: not the status of a guard; remove it, a running guard writes it again") from None
    fault = None
    if not runs:
        fault = f"the guard with pid {status['pid']} was killed; run `firstflight guard undo --state {state}`"
    elif old_s > _STALE_S:
        fault = (
            f"the guard with pid {status['pid']} has not written for {old_s:.0f} s and hangs; kill it, then run "
            f"`firstflight guard undo --state {state}`"
        )
    if as_json:
        print(json.dumps(status | {"runs": runs}))
    else:
        from rich.console import Console

        console = Console()
        for part in shown:
            console.print(part)
    if fault is not None:
        print(fault, file=sys.stderr)
        raise typer.Exit(_NO_GUARD)


def _shown(status: dict[str, Any]) -> list[Any]:
    """What is printed, line by line."""
    from rich.table import Column, Table

    policy, seen = status["policy"], status["connections"]
    does = "acts" if status["acts"] else "changes nothing"
    said: list[Any] = [
        f"[bold]guard[/] pid {status['pid']}, up {status['running_s']:.0f} s: {policy['name']}, initial window up to "
        f"{policy['ceiling']}; {does}"
    ]
    if status.get("barred"):
        said.append(f"[red]no window is set: {status['barred']}, and a route of the guard's could divert packets[/]")
    said.append(
        f"{seen['reported']} connections closed, {seen['passed_over']} passed over, {seen['beyond']} beyond the limit, "
        f"{seen['dropped']} reports dropped by the kernel, {status['uncertain']} with an uncertain window, "
        f"{status['unfinished_handshakes']} handshakes unfinished"
    )
    if status["timeouts_unknown"]:
        said.append("[yellow]this kernel does not count timeouts (6.7 and later do): they are not evaluated[/]")
    said.append(
        f"{status['windows_set']} prefixes set, {status['windows_decided']} decided, {status['hands_off']} prefixes "
        "with routes of other programs left unchanged"
    )
    if "route_changes" in status:
        said.append(
            f"{status['route_changes']} changes of routes, {status['route_changes_in_a_minute']} in a minute; "
            f"{status['windows_waiting']} prefixes wait until the routes of others have settled"
        )
    names = ("answer", "e-value", "flows", "losses", "timeouts", "needed")
    table = Table(Column("group", no_wrap=True), *names, box=None, pad_edge=False, header_style="")
    for group in status["groups"]:
        more = group["more_connections"]
        table.add_row(
            group["group"],
            group["answer"],
            f"{group['e_value']:.3g}",
            str(group["connections"]),
            f"{group['losses_raised']} of {group['losses']}",
            f"{group['timeouts_raised']} of {group['timeouts']}",
            "" if more is None else str(more),
        )
    said += [table, "losses, timeouts: in the raised arm, of all; needed: further connections until harm is excluded"]
    if status["groups_in_all"] > len(status["groups"]):
        said.append(f"and {status['groups_in_all'] - len(status['groups'])} more groups")
    return said
