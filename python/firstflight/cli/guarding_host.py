"""`firstflight guard run`, `status` and `undo`."""

import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.counted import counted
from firstflight.errors import MachineError, RequestError
from firstflight.guard.brain import Settings
from firstflight.guard.groups import AsTable, Groups
from firstflight.guard.journal import Journal, is_held, undo
from firstflight.guard.policy import MOST_SEGMENTS, RFC6928_SEGMENTS, Policy
from firstflight.guard.routes import Routes
from firstflight.guard.stop_rule import StopRule
from firstflight.guard.watch import Host, guard
from firstflight.guard.watchdog import STATUS
from firstflight.input_files import check_is_file, read_text

_STALE_S = 10
_ADVICE_SCHEMA = 7
"""Of `firstflight.advise`, which takes much memory to import."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of `guard run` about windows and the stop rule."""

    iw: int | None
    policy: str
    advice: Path | None
    alpha: float
    period: str
    least: int
    fallback: Any


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `guard run`."""

    limits: Limits
    dry_run: bool
    ports: str
    units: str
    as_file: Path | None
    metrics: int | None
    state: Path
    cgroup: Path | None


def run_command(request: Request) -> None:
    """Run until a signal."""
    limits = request.limits
    largest = _ceiling(limits)
    prefix_lengths = _numbers("--units", request.units, 128)
    if len(prefix_lengths) != 2 or prefix_lengths[0] > 32 or 0 in prefix_lengths:
        raise RequestError(f"--units {request.units}: give prefix lengths of IPv4 and IPv6, such as 28,56")
    settings = Settings(
        Policy(
            limits.policy,
            max(largest, RFC6928_SEGMENTS),
            handshake_bytes=0 if limits.advice is None else _advised(limits.advice)[1],
        ),
        StopRule(alpha=limits.alpha, period_s=_seconds(limits.period)),
        fallback=limits.fallback,
        draw="prefix" if request.cgroup is None else "connection",
        secret=os.urandom(16),
    )
    acts = not request.dry_run and largest > RFC6928_SEGMENTS
    host = Host(
        settings,
        Groups(least_connections=limits.least, table=AsTable.read(request.as_file) if request.as_file else None),
        request.state,
        acts=acts,
        ports=_numbers("--ports", request.ports, 65535),
        prefix_lengths=(prefix_lengths[0], prefix_lengths[1]),
        metrics_port=request.metrics,
        cgroup=request.cgroup if acts else None,
    )
    does = f"raises windows up to {largest} segments" if host.acts else "changes nothing"
    if limits.iw is not None and limits.iw <= RFC6928_SEGMENTS:
        does += f" ({limits.iw} segments are not more than the system's {RFC6928_SEGMENTS})"
    line = f"guard {does}; `firstflight guard status --state {request.state}` shows its state"

    def started(barred: str | None) -> None:
        print(line, file=sys.stderr)
        if barred is not None:
            print(f"no window is set now: {barred}, and a route of the guard's could divert packets", file=sys.stderr)
        sys.stderr.flush()

    guard(host, started)


def status_command(state: Path, as_json: bool) -> int:
    """Print the status; 1 if no guard runs."""
    path = state / STATUS
    try:
        runs = is_held(state)
        check_is_file(path)
        status: dict[str, Any] = json.loads(read_text(path))
        old_s = time.time() - status["written_at"]
        shown = _shown(status)
    except FileNotFoundError:
        print(f"no guard runs with {state}; start one with `firstflight guard run`", file=sys.stderr)
        return 1
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
    return 0 if fault is None else 1


def undo_command(state: Path) -> None:
    """Remove leftovers, and list them."""
    if not state.is_dir():
        raise RequestError(f"{state}: no guard has run with this state; name its directory with --state")
    journal = Journal(state)
    routes = Routes()
    try:
        removed, left = undo(journal, routes)
    finally:
        routes.close()
        journal.close()
    # Else `status` would go on naming a guard that hangs or was killed.
    (state / STATUS).unlink(missing_ok=True)
    print(f"{counted(len(removed), 'route')} removed")
    for prefix in left:
        print(
            f"{prefix}: has the guard's number (proto 71) and is not in the journal of {state}; left unchanged. "
            "If a guard with another --state set it, name that"
        )


def _ceiling(limits: Limits) -> int:
    advised = None if limits.advice is None else _advised(limits.advice)[0]
    if limits.iw is None:
        return advised or RFC6928_SEGMENTS
    if advised is not None and limits.iw > advised:
        raise RequestError(f"--iw {limits.iw}: {limits.advice} advises {advised}; drop one of the two")
    return limits.iw


def _advised(path: Path) -> tuple[int, int]:
    """The window that an advice recommends, and the bytes of the TLS handshakes that it saw."""
    check_is_file(path)
    try:
        advice = json.loads(read_text(path))
        schema, window = advice["schema"], advice["decision"]["initial_window"]
        if type(window) is not int or not 1 <= window <= MOST_SEGMENTS:
            raise ValueError
        handshake = int(advice["flows"]["handshake_bytes"]) if schema == _ADVICE_SCHEMA else 0
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise RequestError(f"{path}: no advice; name the advice.json that `firstflight advise` wrote") from None
    if schema != _ADVICE_SCHEMA:
        raise RequestError(
            f"{path}: this advice.json has schema {str(schema)[:40]} and this firstflight reads {_ADVICE_SCHEMA}; run "
            "`firstflight advise` again"
        )
    return window, handshake


def _seconds(period: str) -> float:
    # The scenario's package, which reads every other way of writing a time, takes 17 MB as long as the guard runs.
    if found := re.fullmatch(r"(\d{1,6})(s|min)", period):
        return int(found[1]) * (60.0 if found[2] == "min" else 1.0)
    from firstflight.scenario.units import Duration

    try:
        return Duration(period).seconds
    except ValueError as error:
        raise RequestError(f'--period "{period}": {error}') from None


def _numbers(option: str, text: str, most: int) -> list[int]:
    try:
        found = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        found = [-1]
    if not all(0 <= number <= most for number in found):
        raise RequestError(f'{option} "{text}": give whole numbers from 0 to {most}, separated by commas')
    return found


def _shown(status: dict[str, Any]) -> list[Any]:
    """What is printed, line by line."""
    from rich.box import SIMPLE
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
    table = Table(Column("group", no_wrap=True), *names, box=SIMPLE)
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
