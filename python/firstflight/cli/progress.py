"""A progress bar on stderr, only where a person sees it."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from firstflight.engines.sweep import cost
from firstflight.records import Run
from firstflight.scenario import Cell
from firstflight.studies.execute import Request


@contextlib.contextmanager
def progress(request: Request, run: Run) -> Iterator[Callable[[Cell, int], None]]:
    """The progress of `sweep`: replicates done, rate and time left; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda cell, replicates: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # As the sweep does: cells with the same plan are computed once.
    work = {name: cell for cell in request.cells if not run.is_finished(name := request.identity.cell_hash(cell))}
    replicates = {name: cell.replicates or request.identity.replicates for name, cell in work.items()}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[all]} replicates"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        total = sum(cost(cell) * replicates[name] for name, cell in work.items())
        task = bar.add_task(request.study.name, total=total, done=0, all=sum(replicates.values()), rate="")

        def on_replicates(cell: Cell, number: int) -> None:
            state = bar.tasks[task]
            done = state.fields["done"] + number
            rate = f"{done / state.elapsed:.1f}/s" if state.elapsed else ""
            bar.update(task, advance=cost(cell) * number, done=done, rate=rate)

        yield on_replicates
