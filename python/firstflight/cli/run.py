"""`firstflight run`: progress while it works, a short summary when it is done."""

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from firstflight.analysis.claim import counts, tally
from firstflight.cli.options import Jobs, Seed, SetAside, Settings
from firstflight.cli.settings import load_scenario, print_timing_hint, restrictions, variations
from firstflight.cli.terminal import interrupted, show
from firstflight.engines.sweep import cost
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.records.directory import set_aside_before
from firstflight.records.files import size_bytes
from firstflight.scenario import Cell, Scenario
from firstflight.studies import NAMES
from firstflight.studies.execute import Records, Request, carry_out, prepare, started


def command(
    what: Annotated[str, typer.Argument(metavar="STUDY|FILE.toml", help="A study's name or a scenario file.")],
    engine: Annotated[
        str | None, typer.Option(help="simulate, model or emulate. Default: the study's first engine.")
    ] = None,
    replicates: Annotated[int | None, typer.Option(help="Replicates of each cell.")] = None,
    seed: Seed = None,
    jobs: Jobs = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE[,VALUE]", help="Run only these cells of the grid.")
    ] = None,
    settings: Settings = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE[,VALUE]", help="Run a scenario once per value of a key."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Output directory. Default: runs/NAME.")] = None,
    on: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Where to compute: local, dask (processes on this machine), dask+tls://HOST:PORT or dask://HOST:PORT.",
        ),
    ] = "local",
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="With --on dask: storage that all workers share, for chunks.")
    ] = None,
    records: Annotated[
        Records, typer.Option(help="Of a study: keep all columns of transfers and pages, or those that it needs.")
    ] = "needed",
    set_aside: SetAside = False,
) -> None:
    """Run a study or a scenario. The same command continues an interrupted run."""
    subject, name = _subject(what, settings or [])
    if isinstance(subject, Scenario) and engine in (None, "simulate"):
        print_timing_hint(subject)
    varied, restricted = variations(vary or [], settings or []), restrictions(only or [])
    request = prepare(subject, engine, replicates, seed, jobs, restricted, on, store, varied, records)
    compute(request, out or Path("runs") / name, set_aside, _summarize)


Summary = Callable[[Request, Run, int, float], None]
"""Of a request, its run, how many of its cells had finished before, and the seconds that the rest took."""


def compute(request: Request, directory: Path, set_aside: bool, summarize: Summary) -> None:
    """Compute the missing part of the run in `directory`, with a progress bar, then `summarize` it."""
    began = time.perf_counter()
    with started(request, directory, set_aside) as run:
        try:
            finished = run.cells
            kept = sum(cell.key in finished for cell in request.cells)
            if run.aside is not None:
                _tell_of_aside(directory, run.aside)
            with progress(request, run) as on_replicates:
                carry_out(request, run, on_replicates)
        except KeyboardInterrupt:
            interrupted(f"{len(run.cells)} finished cells", directory)
        summarize(request, run, kept, time.perf_counter() - began)
        request.study.keep(run)


def _subject(what: str, settings: list[str]) -> tuple[Scenario | str, str]:
    """The study's name or the scenario, and the name of its directory under runs/."""
    path = Path(what)
    if path.suffix == ".toml" or path.is_file() or (path.is_dir() and what not in NAMES):
        return load_scenario(path, settings), path.stem
    if settings:
        raise RequestError(f'--set changes a scenario file, and "{what}" is a study; copy its scenario to change it')
    if what not in NAMES and os.sep in what:
        raise RequestError(f'there is no file "{what}", and no study is called so; studies: {", ".join(NAMES)}')
    return what, what


def _tell_of_aside(directory: Path, aside: Path) -> None:
    """Where the earlier run is, the space that all of them take, and how to delete them: nothing else does."""
    earlier = set_aside_before(directory)
    taken = sum(map(size_bytes, earlier)) / 1e6
    which = "It takes" if len(earlier) == 1 else f"The {len(earlier)} runs set aside there take"
    print(
        f"The earlier run in {directory} is now {aside}. {which} {taken:.0f} MB; to delete what is no longer "
        f"needed:\nrm -r {shlex.join(map(str, earlier))}\n",
        flush=True,
    )


def _summarize(request: Request, run: Run, kept: int, seconds: float) -> None:
    study = request.study
    cells = f"{len(request.cells)} cell{'s' if len(request.cells) != 1 else ''}"
    left = f"; {run.missing} requested earlier have not finished" if run.missing else ""
    before = f" ({kept} of them finished earlier)" if kept else ""
    show(f"{study.title}\n{cells}{before} in {seconds:.1f} s, in {run.directory}{left}\n")
    for sentence in study.answer(run):
        show(f"  {sentence}")
    claims = study.claims(run, listed=False)
    if claims:
        show(f"\nClaims: {tally(counts(claim.as_dict() for claim in claims))}\n")
    tables = study.table_names(run)
    directory = shlex.quote(str(run.directory))
    print(f"firstflight report {directory}")
    if claims:
        print(f"firstflight claims {directory}")
    if tables:
        print(f"firstflight table {directory} {shlex.quote(tables[0])}    (tables: {', '.join(tables)})")


@contextlib.contextmanager
def progress(request: Request, run: Run) -> Iterator[Callable[[Cell, int], None]]:
    """The progress of `sweep` on stderr: replicates done, rate and time left; nothing without a terminal."""
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
