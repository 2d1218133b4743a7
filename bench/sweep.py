"""RFC 2415's sweep (12 cells x 4 initial windows x 2 HTTP versions x 360 s, one replicate)."""

from statistics import median

from bench.peers import Ns2
from bench.process import simulate
from bench.row import Goal, Row
from bench.work import NANOSECONDS, Plan, plan, rfc2415_cell, rfc2415_sweep

ROUNDS = 3


def plans() -> list[Plan]:
    """The plans of the 96 cells, the longest to simulate first."""
    base = plan("rfc2415")
    return [rfc2415_cell(base, *cell) for cell in rfc2415_sweep()]


def rows(ns2: Ns2 | None, beside: bool) -> list[Row]:
    """Simulated seconds per CPU second, next to ns-2; ns-2's sweep is run once, between ours."""
    cells = plans()
    simulated_s = sum(cell["duration_ns"] for cell in cells) / NANOSECONDS
    costs = [simulate(cells).cpu_s for _ in range(ROUNDS)]
    title, unit = "RFC 2415 sweep", "simulated s / CPU s"
    if ns2 is None:
        note = f"{median(costs):.3g} CPU s"
        return [Row(title, simulated_s / median(costs), unit, peer="ns-2" if beside else None, note=note)]
    theirs = sum(ns2.rfc2415(*cell).cpu_s for cell in rfc2415_sweep())
    costs += [simulate(cells).cpu_s for _ in range(ROUNDS)]
    row = Row(
        title,
        simulated_s / median(costs),
        unit,
        peer=ns2.name,
        peer_value=simulated_s / theirs,
        spread=(theirs / max(costs), theirs / min(costs)),
        goals=(Goal(80), Goal(100)),
        note=f"{median(costs):.3g} CPU s against {theirs:.3g}",
    )
    return [row]


def threads_row() -> Row:
    """Two threads against one over the sweep: how much less time passes."""
    cells = plans()
    simulated_s = sum(cell["duration_ns"] for cell in cells) / NANOSECONDS
    # several sweeps in a row, so that the last cell's tail does not decide
    repeat = 4
    one, two = [], []
    for _ in range(ROUNDS):
        one.append(simulate(cells, repeat=repeat, threads=1).wall_s)
        two.append(simulate(cells, repeat=repeat, threads=2).wall_s)
    ratios = [a / b for a, b in zip(one, two, strict=True)]
    return Row(
        "RFC 2415 sweep, two threads",
        repeat * simulated_s / median(two),
        "simulated s / s",
        peer="one thread",
        peer_value=repeat * simulated_s / median(one),
        spread=(min(ratios), max(ratios)),
        goals=(Goal(1.9),),
    )
