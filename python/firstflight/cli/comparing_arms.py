"""`firstflight advise --compare`: what two observed data sets say, in a few lines."""

import math
from pathlib import Path

from firstflight.advise.arms import RETRANSMISSIONS, ArmsCompared, Change, Side, compare_arms
from firstflight.advise.budget import DEFAULT, Check
from firstflight.analysis.intervals import Estimate
from firstflight.records import files

_ANSWERS = {
    "faster": "After is faster. Each term of the harm budget that could be judged is within its limit.",
    "faster, budget not shown": "After is faster, but a term of the harm budget is not shown to be within its limit.",
    "slower": "After is slower.",
    "over the budget": "After is over the harm budget.",
    "inconclusive": "Inconclusive: the 95% CI of the mean change includes 0.",
}


def compare_arms_command(
    pair: tuple[Path, Path], harm: str | None, kind: str | None, out: Path | None, seed: int | None, concurrent: bool
) -> None:
    """Compare and print; with `out`, store every number there."""
    found = compare_arms(
        *pair, harm=harm or DEFAULT, kind=kind, concurrent=concurrent, seed=1 if seed is None else seed
    )
    print("\n".join(lines(found)))
    if out is not None:
        with files.explained(out):
            out.mkdir(parents=True, exist_ok=True)
            files.write_json(out / "comparison.json", found.as_json())
        print(f"\n{out / 'comparison.json'}")


def lines(found: ArmsCompared) -> list[str]:
    """The comparison as a terminal shows it."""
    made = [
        f"before  {_side(found.before)}",
        f"after   {_side(found.after)}",
        "",
        _ANSWERS[found.outcome],
        *(f"  doubt: {text}" for text in found.doubts),
        "",
        f"{'statistic':<16}{'before':>10}{'after':>10}  {'change (95% CI)':<30}"
        f"{'' if found.concurrent else 'as seen'}".rstrip(),
    ]
    made += [_row(each, found.concurrent) for each in found.changes]
    return [*made, "", "harm budget", *map(_judged, found.checks)]


def _side(side: Side) -> str:
    window = f"{side.in_use.window} ({side.in_use.share_percent:.0f}% of {side.in_use.flows:,})"
    rtt = "unknown" if side.median_rtt_s is None else f"{1e3 * side.median_rtt_s:.3g} ms"
    size = "unknown" if side.median_bytes is None else f"{side.median_bytes / 1e3:.3g} kB"
    return (
        f"{side.source.name}: {side.compared:,} of {side.connections:,} connections compared; initial window "
        f"{window if side.in_use.known else 'unknown'}; median RTT {rtt}, size {size}"
    )


def _row(each: Change, concurrent: bool) -> str:
    again = each.statistic == RETRANSMISSIONS
    values = "".join(
        f"{value.value:>9.2f}%" if again else f"{1e3 * value.value:>7.0f} ms" for value in (each.before, each.after)
    )
    unit = " pp" if again else "%"
    seen = "" if concurrent else f"{each.as_seen.value:+.3g}{unit}"
    return f"{each.statistic:<16}{values}  {_interval(each.change, unit):<30}{seen}".rstrip()


def _interval(found: Estimate, unit: str) -> str:
    if math.isnan(found.low):
        return "too few connections"
    return f"{found.value:+.3g}{unit} ({found.low:+.3g} to {found.high:+.3g})"


def _judged(each: Check) -> str:
    if math.isnan(each.found.low):
        text = each.reason
    else:
        where = f"{each.where}: " if each.where else ""
        text = where + _interval(each.found, " pp" if each.term.unit == "points" else "%")
        text += f"; {each.flows_needed:,} connections would settle it" if each.flows_needed else ""
    return f"  {each.term.text:<22} {each.verdict:<14} {text}"
