"""`firstflight guard rehearse`: a log of connections through the guard's decisions."""

import json
import re
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
    found = rehearse(log, Brain(settings, Groups(request.least)), rule.period_s, bad, request.seed)
    if as_json:
        print(json.dumps(asdict(found) | {"notes": notes}, allow_nan=False, default=str))
    else:
        print("\n".join(map(escaped, [f"{request.log}: {heading(found)}", *_indented(notes), "", *lines(found, bad)])))
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
