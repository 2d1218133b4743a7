"""`firstflight compare`: the comparison of two observed data sets, in a few lines."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from firstflight.advise.budget import DEFAULT
from firstflight.advise.compare import RETRANSMISSIONS, ArmsCompared, Change, Side, compare_arms
from firstflight.advise.comparison_page import DATA, PAGE, answer, interval, judged, render
from firstflight.cli.options import Harm, Kind
from firstflight.cli.terminal import show
from firstflight.records import output


def command(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A log, capture or table.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Another one.")],
    concurrent: Annotated[
        bool, typer.Option("--concurrent", help="Both arms were served at the same time, split at random.")
    ] = False,
    harm: Harm = DEFAULT,
    kind: Kind = None,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a page and every number to this directory.")
    ] = None,
) -> None:
    """Compare two data sets, of two arms or before and after a change: the change with its CI, and the harm budget.
    Nothing is simulated.
    """
    compared = compare_arms(before, after, harm=harm, kind=kind, concurrent=concurrent, seed=seed)
    show("\n".join(lines(compared)))
    if out is None:
        return
    words = ["firstflight", "compare", str(before), str(after), "--harm", harm, "--seed", str(seed), "--out", str(out)]
    words += ["--kind", kind] if kind else []
    words += ["--concurrent"] if concurrent else []
    texts = {
        DATA: json.dumps(compared.as_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        PAGE: render(compared, shlex.join(words)),
    }
    for name, text in texts.items():
        output.write(out / name, text.encode())
    print(f"\n{out / PAGE}")


def lines(comparison: ArmsCompared) -> list[str]:
    """The comparison as a terminal shows it."""
    made = [
        f"before  {_side(comparison.before)}",
        f"after   {_side(comparison.after)}",
        "",
        answer(comparison),
        *(f"  doubt: {text}" for text in comparison.doubts),
        "",
        f"{'statistic':<16}{'before':>10}{'after':>10}  {'change (95% CI)':<30}"
        f"{'' if comparison.concurrent else 'as seen'}".rstrip(),
    ]
    made += [_row(change, comparison.concurrent) for change in comparison.changes]
    checks = [f"  {check.term.text:<22} {check.verdict:<14} {judged(check)}" for check in comparison.checks]
    return [*made, "", "harm budget", *checks]


def _side(side: Side) -> str:
    window = f"{side.current.window} ({side.current.share_percent:.0f}% of {side.current.flows:,})"
    rtt = "unknown" if side.median_rtt_s is None else f"{1e3 * side.median_rtt_s:.3g} ms"
    size = "unknown" if side.median_bytes is None else f"{side.median_bytes / 1e3:.3g} kB"
    return (
        f"{side.source}: {side.compared:,} of {side.connections:,} connections compared; initial window "
        f"{window if side.current.known else 'unknown'}; median RTT {rtt}, size {size}"
    )


def _row(change: Change, concurrent: bool) -> str:
    again = change.statistic == RETRANSMISSIONS
    values = "".join(
        f"{value.value:>9.2f}%" if again else f"{1e3 * value.value:>7.0f} ms" for value in (change.before, change.after)
    )
    unit = " pp" if again else "%"
    seen = "" if concurrent else f"{change.as_seen.value:+.3g}{unit}"
    return f"{change.statistic:<16}{values}  {interval(change.change, unit):<30}{seen}".rstrip()
