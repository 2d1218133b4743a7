"""`firstflight advise`: progress while it simulates, the advice in a few lines, and where the page is."""

import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from firstflight.advise import DEFAULT_HARM, advise
from firstflight.advise.advice import SENT_AGAIN, Advice
from firstflight.advise.certificates import Certificates
from firstflight.advise.words import stopped_by
from firstflight.analysis.intervals import Estimate
from firstflight.cli.progress import progress
from firstflight.counted import counted

_INTERRUPTED = 130


def advise_command(
    flows: Path,
    iw: str,
    harm: str | None,
    kind: str | None,
    out: Path | None,
    seed: int | None,
    jobs: int | None,
    max_connections: int | None,
    assume_sizes: str | None,
    assume: Sequence[str],
    certificates: str | None,
    set_aside: bool,
) -> None:
    """Advise and print; on Ctrl-C stop immediately and keep the finished part."""
    directory = out or Path("runs") / f"advice-{flows.stem}"
    began = time.perf_counter()
    try:
        advice, path = advise(
            flows,
            iw=iw,
            harm=harm or DEFAULT_HARM,
            kind=kind,
            out=directory,
            seed=seed,
            jobs=jobs,
            max_connections=max_connections,
            assume_sizes=assume_sizes,
            assume=assume,
            certificates=certificates,
            set_aside=set_aside,
            watch=progress,
            doubted=_doubted,
            compared=_Comparing(),
        )
    except KeyboardInterrupt:
        print(
            f"firstflight: interrupted; finished parts are kept in {directory}, and the same command continues with "
            "the rest",
            file=sys.stderr,
            flush=True,
        )
        # Threads inside the native module cannot be stopped, and an orderly exit would wait for them.
        os._exit(_INTERRUPTED)
    print("\n".join(lines(advice)))
    print(f"\n{path}    ({time.perf_counter() - began:.0f} s)")


def _doubted(sentence: str) -> None:
    print(f"firstflight: {sentence}", file=sys.stderr, flush=True)


class _Comparing:
    """Comparisons made, with the time left, in one line on stderr where a person sees it."""

    def __init__(self) -> None:
        self._began_s = time.perf_counter()

    def __call__(self, done: int, of: int) -> None:
        """So many are done."""
        if not sys.stderr.isatty():
            return
        if done == 1:
            self._began_s = time.perf_counter()
        left = (time.perf_counter() - self._began_s) / max(done - 1, 1) * (of - done)
        text = f"comparing {done}/{of}" + (f", {left:.0f} s left" if done > 1 else "")
        print(f"\r{text:<40}" if done < of else f"\r{'':<40}\r", end="", file=sys.stderr, flush=True)


def lines(advice: Advice) -> list[str]:
    """The advice as a terminal shows it."""
    flows, current = advice.flows, advice.current
    seen = f"{current.share_percent:.0f}% of {current.flows:,} that show it" if current.known else "assumed"
    found = [
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
    found.append(f"{'window':>8}{'mean':>9}{'median':>9}{'95th':>9}{'99th':>9}{'retransmitted':>15}   in all cases")
    again = {cost.initial_window: cost for cost in advice.costs if (cost.name, cost.case) == (SENT_AGAIN, reference)}
    for place, window in enumerate(advice.candidates):
        changes = {
            gain.statistic: gain.change_percent
            for gain in advice.gains
            if (gain.case, gain.initial_window) == (reference, window)
        }
        shown = "".join(map(_shown, (changes[name] for name in ("mean", "p50", "p95", "p99"))))
        points = again[window].change_points.value
        why = stopped_by(advice.decision.candidate_results[place], len(advice.cases))
        found.append(f"{window:>8}{shown}{points:+12.2f} pp   {why}")
    if advice.certificates is not None:
        found += ["", *_certificates(advice.certificates)]
    if advice.command:
        found += [
            "",
            "To set it:",
            f"  {advice.command}",
            "  or raise it under watch: firstflight guard (see the page)",
        ]
    elif advice.deploy:
        found += ["", f"{advice.deploy[0].title}: {advice.deploy[0].note}"]
    return found


def _certificates(found: Certificates) -> list[str]:
    width = max(len(each.certificates) for each in found.options)
    head = f"{'certificates':<{width}}{'IW':>5}{'records':>9}{'handshake':>11}{'first usable':>14}{'last byte':>11}"
    rows = [
        f"{each.certificates:<{width}}{each.initial_window:>5}{each.record_size:>9}{1e3 * each.handshake_s:>8.0f} ms"
        f"{1e3 * each.first_usable_byte_s:>11.0f} ms{1e3 * each.last_byte_s:>8.0f} ms"
        + (f"{each.change_percent.value:+8.1f}%" if each is not found.options[0] else "")
        for each in found.options
    ]
    return [*found.answer, "", head, *rows]


def _outliers(advice: Advice) -> list[str]:
    """The outliers; where they turn the result, the answer has them."""
    found = advice.outliers and advice.outliers.sentence(advice.decision)
    return [found] if found and found not in advice.answer else []


def _shown(change: Estimate) -> str:
    """A change, if there are connections enough for its interval: a percentile alone may be that of a few."""
    return f"{'too few':>9}" if math.isnan(change.low) else f"{change.value:+8.1f}%"
