"""`firstflight guard rehearse`: a log of connections through the guard's decisions."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from firstflight import observe
from firstflight.cli.options import Alpha, Fallback, Json, Kind, Least, Period, Policy, seconds
from firstflight.cli.terminal import progress_line, show
from firstflight.counted import counted, escaped, time_span
from firstflight.errors import RequestError
from firstflight.guard.brain import Brain, Settings
from firstflight.guard.groups import Groups
from firstflight.guard.policy import RFC6928_SEGMENTS
from firstflight.guard.policy import Policy as WindowPolicy
from firstflight.guard.rehearse import BadLink, Rehearsal, connections, rehearse
from firstflight.guard.stop_rule import StopAnswer, StopRule
from firstflight.guard.timeline import chart
from firstflight.records import output
from firstflight.report.figure import format_of, picture

_MOST_UNDECIDED = 5


def command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log, capture or table with times.")],
    policy: Policy = "static",
    iw: Annotated[
        int, typer.Option(help="Largest initial window, in segments. static always uses it.", min=1, max=1000)
    ] = 20,
    alpha: Alpha = 0.05,
    period: Period = "60min",
    least: Least = 1000,
    fallback: Fallback = "rfc6928",
    bad: Annotated[
        str | None,
        typer.Option(
            metavar="TIME=RATE",
            help="Inject a bad link: extra loss of raised connections from TIME on, such as 90min=20%.",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="For a log without losses: fraction of connections with loss in the first flight, such as 2%.",
        ),
    ] = None,
    kind: Kind = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the timeline to .svg, .png or .pdf.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of drawn losses.")] = 1,
    as_json: Json = False,
) -> None:
    """Replay the connections of a log through the guard in virtual time. Print the windows that it raises, the groups
    that it stops and those that it misses.
    """
    if plot is not None:
        format_of(plot)
        output.check(plot, [log])
    link = _bad_link(bad)
    rule = StopRule(alpha, period_s=seconds("--period", period))
    settings = Settings(WindowPolicy(policy, max(iw, RFC6928_SEGMENTS)), rule, fallback=fallback)
    observed, notes = connections(observe.read(log, kind), None if loss is None else _rate("--loss", loss), seed)
    if link is not None and observed and link.at > observed[-1].opened:
        last = time_span(observed[-1].opened)
        raise RequestError(f'--bad "{bad}": {log} ends before, its last connection opens after {last}')
    groups = Groups(least)
    shown, all_of_them = progress_line("rehearsed"), len(observed)
    result = rehearse(
        observed, Brain(settings, groups), rule.period_s, link, seed, lambda before: shown(before + 1, all_of_them)
    )
    judged = any(connection.lost is not None for connection in observed)
    sentence = verdict(
        result, groups, rule, judged=judged, iw=iw, policy=policy, period=period, least=least, bad=bad is not None
    )
    if as_json:
        print(json.dumps(asdict(result) | {"notes": notes, "verdict": sentence}, allow_nan=False, default=str))
    else:
        text = [f"{log}: {heading(result)}", *(f"  note: {note}" for note in notes), "", *lines(result, link)]
        show("\n".join(map(escaped, text)))
        # It ends with a command to copy.
        print(escaped(f"verdict: {sentence}"))
    if plot is not None:
        output.write(plot, picture(chart(result, rule.alpha, link), format_of(plot)), [log])
        if not as_json:
            print(plot)


def heading(rehearsal: Rehearsal) -> str:
    """The amount of data read."""
    return f"{counted(rehearsal.connections, 'connection')} in {time_span(rehearsal.span_s)}"


def lines(rehearsal: Rehearsal, bad: BadLink | None) -> list[str]:
    """The numbers of cases that would have been raised, stopped, missed and left undecided."""
    share = 100 * rehearsal.raised / rehearsal.connections
    if rehearsal.first_raised_at is None:
        said = ["raised: nothing"]
    else:
        said = [
            f"raised: {counted(rehearsal.raised, 'connection')} ({share:.0f}%), to {rehearsal.largest_window} segments "
            f"at most, first after {time_span(rehearsal.first_raised_at)}"
        ]
    for stop in rehearsal.stops:
        evidence = stop.evidence
        network = evidence.get("network", stop.group)
        said.append(
            f"stopped: {network} after {time_span(stop.at)}, e-value {evidence['e_value']:.0f}: "
            f"{evidence['losses_raised']} of {evidence['losses']} losses and {evidence['timeouts_raised']} of "
            f"{evidence['timeouts']} timeouts in the raised arm"
        )
        if bad is not None and stop.at >= bad.at:
            said.append(
                f"  {time_span(stop.at - bad.at)} after the link turned bad: "
                f"{counted(stop.raised_since_bad or 0, 'raised connection')} later, {stop.harmed} of them harmed"
            )
    if not rehearsal.stops:
        said.append("stopped: nothing")
    if bad is not None:
        harmed = counted(rehearsal.harmed, "connection")
        said.append(f"missed: {', '.join(rehearsal.missed) or 'nothing'} ({harmed} harmed in total)")
    undecided = [
        (verdict.more_connections, name)
        for name, verdict in rehearsal.verdicts.items()
        if verdict.answer in (StopAnswer.CONTINUE, StopAnswer.TOO_FEW) and verdict.more_connections is not None
    ]
    for more, name in sorted(undecided)[:_MOST_UNDECIDED]:
        said.append(f"undecided: {name} needs {counted(more, 'more connection')} to exclude harm")
    if len(undecided) > _MOST_UNDECIDED:
        said.append(f"undecided: {counted(len(undecided) - _MOST_UNDECIDED, 'more group')}")
    return said


def verdict(
    rehearsal: Rehearsal,
    groups: Groups,
    rule: StopRule,
    *,
    judged: bool,
    iw: int,
    policy: str,
    period: str,
    least: int,
    bad: bool,
) -> str:
    """What to do next, in one sentence."""
    if rehearsal.raised == 0:
        most = groups.largest()
        if iw <= RFC6928_SEGMENTS:
            return f"nothing to raise: {iw} segments are not more than the system's; give --iw 11 or more"
        if rehearsal.span_s < 2 * rule.period_s:
            return (
                f"the log is too short: arms are drawn once per period; give "
                f"--period {max(rehearsal.span_s // 10, 1):.0f}s"
            )
        if most is not None and most.connections < least:
            return (
                f"too little traffic: {most.name} has most, {most.connections:.0f} recent connections of the "
                f"{least} needed; rehearse a longer log or give --least {max(int(most.connections / 2), 1)}"
            )
        if any(moment.raised_prefixes for moment in rehearsal.moments):
            return "no host connected again while its route raised the window; rehearse a longer log"
        return f"nothing larger was learned from this log with --policy {policy}; --policy static raises immediately"
    if not judged:
        return "undecided: the log has no losses, so no harm could be seen; give --loss 2%, or a capture of the server"
    names = ", ".join(str(stop.evidence.get("network", stop.group)) for stop in rehearsal.stops[:_MOST_UNDECIDED])
    if bad and rehearsal.missed:
        return (
            f"harm would go on in {', '.join(rehearsal.missed[:_MOST_UNDECIDED])}: too few connections there; rehearse "
            "a longer log, or run with a smaller --iw"
        )
    command = f"sudo firstflight guard run --iw {iw} --policy {policy} --period {period}"
    command += f" --least {least}"
    if any(stop.raised_since_bad for stop in rehearsal.stops):
        return f"the bad link is found ({names}); begin with `{command} --dry-run`"
    if rehearsal.stops:
        return (
            f"stopped without a bad link in {names}: losses rose there by chance or with time; leave these networks out"
        )
    needed = [group.more_connections for group in rehearsal.verdicts.values() if group.more_connections is not None]
    if not needed:
        return f"no harm in any network; begin with `{command} --dry-run`"
    wait = time_span(min(needed) / rehearsal.connections * rehearsal.span_s)
    return f"nothing stopped; a first network excludes harm after about {wait} of this traffic: `{command} --dry-run`"


def _rate(option: str, text: str) -> float:
    number = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(%?)\s*", text)
    rate = float(number[1]) / (100 if number[2] else 1) if number else 2.0
    if not 0 <= rate <= 1:
        raise RequestError(f'{option} "{text}" is no share of connections; write for example 2%')
    return rate


def _bad_link(text: str | None) -> BadLink | None:
    if text is None:
        return None
    at, equals, rate = text.partition("=")
    if not equals:
        raise RequestError(f'--bad "{text}" is not TIME=RATE; write for example --bad 90min=20%')
    return BadLink(seconds("--bad", at), _rate("--bad", rate))
