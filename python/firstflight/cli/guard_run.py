"""`firstflight guard run`."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.options import STATE, Alpha, Fallback, Least, Period, Policy, State, seconds
from firstflight.errors import RequestError, require_linux
from firstflight.guard.brain import Settings
from firstflight.guard.groups import AsTable, Groups
from firstflight.guard.policy import MOST_SEGMENTS, RFC6928_SEGMENTS
from firstflight.guard.policy import Policy as WindowPolicy
from firstflight.guard.stop_rule import StopRule
from firstflight.input_files import check_is_file, read_text

_ADVICE_SCHEMA = 7
"""Of `firstflight.advise`, which takes much memory to import."""


def command(
    iw: Annotated[
        int | None, typer.Option(help="Largest initial window, in segments. Without it, only watch.", min=1, max=1000)
    ] = None,
    policy: Policy = "static",
    advice: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="advice.json of firstflight advise: never exceed the recommended window."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Log decisions, set no window.")] = False,
    ports: Annotated[
        str, typer.Option(metavar="N,...", help="Local ports whose connections count. Empty: all.")
    ] = "80,443",
    units: Annotated[
        str, typer.Option(metavar="V4,V6", help="Prefix lengths. A window is set and an arm is drawn per prefix.")
    ] = "28,56",
    alpha: Alpha = 0.05,
    period: Period = "60min",
    least: Least = 1000,
    as_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with one prefix and AS per line, such as 192.0.2.0/24 AS64500."),
    ] = None,
    fallback: Fallback = "rfc6928",
    cgroup: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Draw the arm per connection of this cgroup with BPF, not per prefix with routes. Also needs CAP_BPF.",
        ),
    ] = None,
    metrics: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve Prometheus metrics on 127.0.0.1.", min=1, max=65535)
    ] = None,
    state: State = STATE,
) -> None:
    """Watch the connections that close on this host. Raise the initial window of random prefixes with routes, and fall
    back where losses rise. Any signal that stops the guard removes its routes. Needs Linux and CAP_NET_ADMIN.
    """
    require_linux("firstflight guard run")
    from firstflight.guard.watch import GuardedHost, guard  # late: other systems lack what it imports

    advised, handshake_bytes = (None, 0) if advice is None else _advised(advice)
    largest = _ceiling(iw, advised, advice)
    prefix_lengths = _numbers("--units", units, 128)
    if len(prefix_lengths) != 2 or prefix_lengths[0] > 32 or 0 in prefix_lengths:
        raise RequestError(f"--units {units}: give prefix lengths of IPv4 and IPv6, such as 28,56")
    settings = Settings(
        WindowPolicy(policy, max(largest, RFC6928_SEGMENTS), handshake_bytes=handshake_bytes),
        StopRule(alpha=alpha, period_s=seconds("--period", period)),
        fallback=fallback,
        draw="prefix" if cgroup is None else "connection",
        secret=os.urandom(16),
    )
    acts = not dry_run and largest > RFC6928_SEGMENTS
    host = GuardedHost(
        settings,
        Groups(least_connections=least, table=AsTable.read(as_file) if as_file else None),
        state,
        acts=acts,
        ports=_numbers("--ports", ports, 65535),
        prefix_lengths=(prefix_lengths[0], prefix_lengths[1]),
        metrics_port=metrics,
        cgroup=cgroup if acts else None,
    )
    does = f"raises windows up to {largest} segments" if host.acts else "changes nothing"
    if iw is not None and iw <= RFC6928_SEGMENTS:
        does += f" ({iw} segments are not more than the system's {RFC6928_SEGMENTS})"
    line = f"guard {does}; `firstflight guard status --state {state}` shows its state"

    def started(barred: str | None) -> None:
        print(line, file=sys.stderr)
        if barred is not None:
            print(f"no window is set now: {barred}, and a route of the guard's could divert packets", file=sys.stderr)
        sys.stderr.flush()

    guard(host, started)


def _ceiling(iw: int | None, advised: int | None, advice: Path | None) -> int:
    if iw is None:
        return advised or RFC6928_SEGMENTS
    if advised is not None and iw > advised:
        raise RequestError(f"--iw {iw}: {advice} advises {advised}; drop one of the two")
    return iw


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


def _numbers(option: str, text: str, most: int) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        numbers = [-1]
    if not all(0 <= number <= most for number in numbers):
        raise RequestError(f'{option} "{text}": give whole numbers from 0 to {most}, separated by commas')
    return numbers
