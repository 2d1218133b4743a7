"""`firstflight advise`: progress while it simulates, the advice in a few lines, and where the page is."""

import math
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from firstflight.advise import DEFAULT_HARM, advise
from firstflight.advise.advice import RETRANSMITTED, Advice
from firstflight.advise.certificates import Certificates
from firstflight.advise.request import DEFAULT_CONNECTIONS, DEFAULT_WINDOWS
from firstflight.advise.words import stopped_by
from firstflight.analysis.intervals import Estimate
from firstflight.cli.options import Harm, Jobs, Kind, Seed, SetAside
from firstflight.cli.run import progress
from firstflight.cli.terminal import interrupted, progress_line, show
from firstflight.counted import counted


def command(
    flows: Annotated[Path, typer.Argument(metavar="FLOWS", help="Observed connections: a log, capture or table.")],
    iw: Annotated[
        str, typer.Option(metavar="N,N,...", help="Candidate initial windows, in segments.")
    ] = DEFAULT_WINDOWS,
    harm: Harm = DEFAULT_HARM,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output directory. Default: runs/advice-NAME.")
    ] = None,
    kind: Kind = None,
    max_connections: Annotated[
        int, typer.Option(help="Maximum number of connections to simulate.")
    ] = DEFAULT_CONNECTIONS,
    assume_sizes: Annotated[
        str | None,
        typer.Option(
            metavar="APPLICATION",
            help="For flows without sizes, such as speed tests: assume those of an application, such as web-search.",
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Value to assume where FLOWS lacks it. May be repeated: paths=uk-2023+30ms or rtt=50ms (for "
            "flows without RTT), lines=uk-2023 (or uk-2015, avgdc, 20Mbit), buffer=130ms, connections=4, "
            "loss=0.5%.",
        ),
    ] = None,
    certificates: Annotated[
        str | None,
        typer.Option(
            metavar="CHAIN",
            help="Show what users lose with other certificates, such as ml-dsa-44 or "
            "ml-dsa-44,intermediates=2, and which window, chain or record size wins it back.",
        ),
    ] = None,
    seed: Seed = None,
    jobs: Jobs = None,
    set_aside: SetAside = False,
) -> None:
    """Recommend an initial window from observed connections: gain and cost of each candidate by user group, with
    confidence.
    """
    directory = out or Path("runs") / f"advice-{flows.stem}"
    began = time.perf_counter()
    try:
        advice, path = advise(
            flows,
            iw=iw,
            harm=harm,
            kind=kind,
            out=directory,
            seed=seed,
            jobs=jobs,
            max_connections=max_connections,
            assume_sizes=assume_sizes,
            assume=assume or (),
            certificates=certificates,
            set_aside=set_aside,
            watch=progress,
            doubted=_doubted,
            compared=progress_line("comparing"),
        )
    except KeyboardInterrupt:
        interrupted("finished parts", directory)
    # A break in a command would be copied with it.
    commands = [command for command in (advice.command, advice.missing and advice.missing.command) if command]
    for line in lines(advice):
        (print if any(command in line for command in commands) else show)(line)
    print(f"\n{path}    ({time.perf_counter() - began:.0f} s)")


def _doubted(sentence: str) -> None:
    print(f"firstflight: {sentence}", file=sys.stderr, flush=True)


def lines(advice: Advice) -> list[str]:
    """The advice as a terminal shows it."""
    flows, current = advice.flows, advice.current
    seen = f"{current.share_percent:.0f}% of {current.flows:,} that show it" if current.known else "assumed"
    output = [
        f"{flows.source}: {counted(flows.read, flows.unit)}, {flows.usable:,} usable, {flows.simulated:,} simulated; "
        f"current initial window: {current.window} ({seen})",
        *(f"  skipped: {text}" for text in flows.left_out),
        *(f"  unreadable: {text}" for text in flows.problems),
        *(f"  note: {text}" for text in flows.notes),
        *(f"  assumed, not observed: {text}" for text in flows.assumed),
        *(f"  note: {text}" for text in _outliers(advice)),
        "",
        *advice.answer,
        "",
    ]
    reference = advice.cases[0].name
    output.append(f"{'window':>8}{'mean':>9}{'median':>9}{'95th':>9}{'99th':>9}{'retransmitted':>15}   in all cases")
    again = {cost.initial_window: cost for cost in advice.costs if (cost.name, cost.case) == (RETRANSMITTED, reference)}
    for place, window in enumerate(advice.candidates):
        changes = {
            gain.statistic: gain.change_percent
            for gain in advice.gains
            if (gain.case, gain.initial_window) == (reference, window)
        }
        shown = "".join(map(_shown, (changes[name] for name in ("mean", "p50", "p95", "p99"))))
        points = again[window].change_points.value
        why = stopped_by(advice.decision.candidate_results[place], len(advice.cases))
        output.append(f"{window:>8}{shown}{points:+12.2f} pp   {why}")
    if advice.certificates is not None:
        output += ["", *_certificates(advice.certificates)]
    if advice.command:
        output += [
            "",
            "To set it:",
            f"  {advice.command}",
            "  or raise it under watch: firstflight guard (see the page)",
        ]
    elif advice.deploy:
        output += ["", f"{advice.deploy[0].title}: {advice.deploy[0].note}"]
    return output


def _certificates(certificates: Certificates) -> list[str]:
    width = max(len(option.certificates) for option in certificates.options)
    head = f"{'certificates':<{width}}{'IW':>5}{'records':>9}{'handshake':>11}{'first usable':>14}{'last byte':>11}"
    rows = [
        f"{option.certificates:<{width}}{option.initial_window:>5}{option.record_size:>9}"
        f"{1e3 * option.handshake_s:>8.0f} ms{1e3 * option.first_usable_byte_s:>11.0f} ms"
        f"{1e3 * option.last_byte_s:>8.0f} ms"
        + (f"{option.change_percent.value:+8.1f}%" if option is not certificates.options[0] else "")
        for option in certificates.options
    ]
    return [*certificates.answer, "", head, *rows]


def _outliers(advice: Advice) -> list[str]:
    """The outliers; where they turn the result, the answer has them."""
    sentence = advice.outliers and advice.outliers.sentence(advice.decision)
    return [sentence] if sentence and sentence not in advice.answer else []


def _shown(change: Estimate) -> str:
    """A change, if there are connections enough for its interval: a percentile alone may be that of a few."""
    return f"{'too few':>9}" if math.isnan(change.low) else f"{change.value:+8.1f}%"
