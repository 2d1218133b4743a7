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
from firstflight.errors import RequestError
from firstflight.guard.brain import Settings
from firstflight.guard.groups import AsTable, Groups
from firstflight.guard.journal import Journal, undo
from firstflight.guard.policy import RFC6928_SEGMENTS, Policy
from firstflight.guard.routes import Routes
from firstflight.guard.stop_rule import StopRule
from firstflight.guard.watch import STATUS, Host, guard

_STALE_S = 10
_ADVICE_SCHEMA = 5
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
        Policy(limits.policy, largest),
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
    line = f"guard {does}; `firstflight guard status --state {request.state}` shows its state"
    guard(host, lambda: print(line, file=sys.stderr, flush=True))


def status_command(state: Path, as_json: bool) -> int:
    """Print the status; 1 if no guard runs."""
    try:
        text = (state / STATUS).read_text(encoding="utf-8")
    except OSError:
        print(f"no guard runs with {state}; start one with `firstflight guard run`", file=sys.stderr)
        return 1
    status: dict[str, Any] = json.loads(text)
    old_s = time.time() - status["written_at"]
    if as_json:
        print(json.dumps(status))
    else:
        _print(status, old_s)
    return 1 if old_s > _STALE_S else 0


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
    advised = None if limits.advice is None else _advised(limits.advice)
    if limits.iw is None:
        return advised or RFC6928_SEGMENTS
    if advised is not None and limits.iw > advised:
        raise RequestError(f"--iw {limits.iw}: {limits.advice} advises {advised}; leave one of both out")
    return limits.iw


def _advised(path: Path) -> int:
    try:
        advice = json.loads(path.read_text(encoding="utf-8"))
        schema, window = advice["schema"], int(advice["decision"]["initial_window"])
    except (OSError, ValueError, KeyError, TypeError):
        raise RequestError(f"{path}: no advice; name the advice.json that `firstflight advise` wrote") from None
    if schema != _ADVICE_SCHEMA:
        raise RequestError(
            f"{path}: this advice.json has schema {schema} and this firstflight reads {_ADVICE_SCHEMA}; run "
            "`firstflight advise` again"
        )
    return window


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


def _print(status: dict[str, Any], old_s: float) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    policy, seen = status["policy"], status["connections"]
    does = "acts" if status["acts"] else "changes nothing"
    console.print(
        f"[bold]guard[/] pid {status['pid']}, up {status['running_s']:.0f} s: {policy['name']}, initial window up to "
        f"{policy['ceiling']}; {does}"
    )
    if old_s > _STALE_S:
        console.print(
            f"[red]not written for {old_s:.0f} s: the guard hangs or was killed; run `firstflight guard undo`[/]"
        )
    console.print(
        f"{seen['reported']} connections closed, {seen['passed_over']} passed over, {seen['beyond']} beyond the limit, "
        f"{seen['dropped']} reports dropped by the kernel, {status['uncertain']} with an uncertain window"
    )
    if status["timeouts_unknown"]:
        console.print("[yellow]this kernel does not count timeouts (6.7 and later do): they are not evaluated[/]")
    console.print(
        f"{status['windows_set']} prefixes set, {status['windows_decided']} decided, {status['hands_off']} prefixes "
        "with routes of other programs left unchanged"
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
    console.print(table)
    console.print("losses, timeouts: in the raised arm, of all; needed: further connections until harm is excluded")
    if status["groups_in_all"] > len(status["groups"]):
        console.print(f"and {status['groups_in_all'] - len(status['groups'])} more groups")
