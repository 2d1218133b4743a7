"""`firstflight guard rehearse`: a log of connections through the guard's decisions."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from firstflight import observe
from firstflight.characters import escaped
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.guard.brain import Brain, Settings
from firstflight.guard.groups import Groups
from firstflight.guard.policy import RFC6928_SEGMENTS, Policy
from firstflight.guard.rehearse import BadLink, Rehearsal, connections, rehearse
from firstflight.guard.stop_rule import Answer, StopRule
from firstflight.records import output
from firstflight.report.figure import format_of, picture
from firstflight.scenario.units import Duration

_MOST_UNDECIDED = 5


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the command."""

    log: Path
    policy: str
    iw: int
    alpha: float
    period: str
    least: int
    fallback: Literal["rfc6928", "rfc3390"]
    bad: str | None
    loss: str | None
    kind: str | None
    plot: Path | None
    seed: int


def rehearse_command(request: Request, *, as_json: bool) -> None:
    """Rehearse and print; with `plot` also draw the timeline."""
    if request.plot is not None:
        format_of(request.plot)
        output.check(request.plot, [request.log])
    bad = _bad_link(request.bad)
    rule = StopRule(request.alpha, period_s=_seconds("--period", request.period))
    settings = Settings(Policy(request.policy, max(request.iw, RFC6928_SEGMENTS)), rule, fallback=request.fallback)
    loss = None if request.loss is None else _rate("--loss", request.loss)
    log, notes = connections(observe.read(request.log, request.kind), loss, request.seed)
    if bad is not None and log and bad.at > log[-1].opened:
        last = _span(log[-1].opened)
        raise RequestError(f'--bad "{request.bad}": {request.log} ends before, its last connection opens after {last}')
    groups = Groups(request.least)
    with _progress(len(log)) as progress:
        found = rehearse(log, Brain(settings, groups), rule.period_s, bad, request.seed, progress)
    said = verdict(request, found, groups, rule, judged=any(one.lost is not None for one in log))
    if as_json:
        print(json.dumps(asdict(found) | {"notes": notes, "verdict": said}, allow_nan=False, default=str))
    else:
        told = [*_indented(notes), "", *lines(found, bad), f"verdict: {said}"]
        print("\n".join(map(escaped, [f"{request.log}: {heading(found)}", *told])))
    if request.plot is not None:
        from firstflight.guard.timeline import chart

        output.write(request.plot, picture(chart(found, rule.alpha, bad), format_of(request.plot)), [request.log])
        if not as_json:
            print(request.plot)


def heading(found: Rehearsal) -> str:
    """The amount of data read."""
    return f"{counted(found.connections, 'connection')} in {_span(found.span_s)}"


def lines(found: Rehearsal, bad: BadLink | None) -> list[str]:
    """The numbers of cases that would have been raised, stopped, missed and left undecided."""
    share = 100 * found.raised / found.connections
    if found.first_raised_at is None:
        said = ["raised: nothing"]
    else:
        said = [
            f"raised: {counted(found.raised, 'connection')} ({share:.0f}%), to {found.largest_window} segments at "
            f"most, first after {_span(found.first_raised_at)}"
        ]
    for stop in found.stops:
        evidence = stop.evidence
        network = evidence.get("network", stop.group)
        said.append(
            f"stopped: {network} after {_span(stop.at)}, e-value {evidence['e_value']:.0f}: "
            f"{evidence['losses_raised']} of {evidence['losses']} losses and {evidence['timeouts_raised']} of "
            f"{evidence['timeouts']} timeouts in the raised arm"
        )
        if bad is not None and stop.at >= bad.at:
            said.append(
                f"  {_span(stop.at - bad.at)} after the link turned bad: "
                f"{counted(stop.raised_since_bad or 0, 'raised connection')} later, {stop.harmed} of them harmed"
            )
    if not found.stops:
        said.append("stopped: nothing")
    if bad is not None:
        harmed = counted(found.harmed, "connection")
        said.append(f"missed: {', '.join(found.missed) or 'nothing'} ({harmed} harmed in total)")
    undecided = [
        (verdict.more_connections, name)
        for name, verdict in found.verdicts.items()
        if verdict.answer in (Answer.CONTINUE, Answer.TOO_FEW) and verdict.more_connections is not None
    ]
    for more, name in sorted(undecided)[:_MOST_UNDECIDED]:
        said.append(f"undecided: {name} needs {counted(more, 'more connection')} to exclude harm")
    if len(undecided) > _MOST_UNDECIDED:
        said.append(f"undecided: {counted(len(undecided) - _MOST_UNDECIDED, 'more group')}")
    return said


def verdict(request: Request, found: Rehearsal, groups: Groups, rule: StopRule, *, judged: bool) -> str:
    """What to do next, in one sentence."""
    if found.raised == 0:
        most = groups.largest()
        if request.iw <= RFC6928_SEGMENTS:
            return f"nothing to raise: {request.iw} segments are not more than the system's; give --iw 11 or more"
        if found.span_s < 2 * rule.period_s:
            return (
                f"the log is too short: arms are drawn once per period; give --period {max(found.span_s // 10, 1):.0f}s"
            )
        if most is not None and most.connections < request.least:
            return (
                f"too little traffic: {most.name} has most, {most.connections:.0f} recent connections of the "
                f"{request.least} needed; rehearse a longer log or give --least {max(int(most.connections / 2), 1)}"
            )
        return (
            f"nothing larger was learned from this log with --policy {request.policy}; --policy static raises at once"
        )
    if not judged:
        return "undecided: the log has no losses, so no harm could be seen; give --loss 2%, or a capture of the server"
    names = ", ".join(str(stop.evidence.get("network", stop.group)) for stop in found.stops[:_MOST_UNDECIDED])
    if request.bad is not None and found.missed:
        return (
            f"harm would go on in {', '.join(found.missed[:_MOST_UNDECIDED])}: too few connections there; rehearse a "
            "longer log, or run with a smaller --iw"
        )
    command = f"sudo firstflight guard run --iw {request.iw} --policy {request.policy} --period {request.period}"
    command += f" --least {request.least}"
    if any(stop.raised_since_bad for stop in found.stops):
        return f"the bad link is found ({names}); begin with `{command} --dry-run`"
    if found.stops:
        return (
            f"stopped without a bad link in {names}: losses rose there by chance or with time; leave these networks out"
        )
    needed = [one.more_connections for one in found.verdicts.values() if one.more_connections is not None]
    if not needed:
        return f"no harm in any network; begin with `{command} --dry-run`"
    wait = _span(min(needed) / found.connections * found.span_s)
    return f"nothing stopped; a first network excludes harm after about {wait} of this traffic: `{command} --dry-run`"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Connections done, on stderr: one line on a terminal, else a line every ten seconds."""
    terminal = sys.stderr.isatty()
    started = shown = time.monotonic()

    def on_connection(done: int) -> None:
        nonlocal shown
        now = time.monotonic() if done % 256 == 0 else shown
        if done and now - shown >= (0.5 if terminal else 10):
            shown = now
            left = _span((now - started) * (total - done) / done)
            line = f"rehearsed {done:,} of {total:,} connections, {left} left"
            print(f"\r{line:<70}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)

    yield on_connection
    if terminal and shown > started:
        print(f"\r{'':<70}\r", end="", file=sys.stderr, flush=True)


def _indented(notes: list[str]) -> list[str]:
    return [f"  note: {note}" for note in notes]


def _span(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _seconds(option: str, text: str) -> float:
    try:
        return Duration(text).seconds
    except ValueError as error:
        raise RequestError(f'{option} "{text}": {error}') from None


def _rate(option: str, text: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(%?)\s*", text)
    rate = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    if not 0 <= rate <= 1:
        raise RequestError(f'{option} "{text}" is no share of connections; write for example 2%')
    return rate


def _bad_link(text: str | None) -> BadLink | None:
    if text is None:
        return None
    at, equals, rate = text.partition("=")
    if not equals:
        raise RequestError(f'--bad "{text}" is not TIME=RATE; write for example --bad 90min=20%')
    return BadLink(_seconds("--bad", at), _rate("--bad", rate))
