"""`firstflight run`: progress while it works, a short summary when it is done."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firstflight.analysis.claim import counts, tally
from firstflight.cli.progress import progress
from firstflight.cli.settings import load_scenario, print_timing_hint, restrictions, variations
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.records.directory import set_aside_before
from firstflight.records.files import size_bytes
from firstflight.scenario import Scenario
from firstflight.studies import NAMES
from firstflight.studies.execute import Request, carry_out, prepare, started

_INTERRUPTED = 130


@dataclass(frozen=True)
class Wanted:
    """The options for the work and its place, as they were written."""

    engine: str | None
    replicates: int | None
    seed: int | None
    jobs: int | None
    only: list[str]
    settings: list[str]
    vary: list[str]
    on: str
    store: str | None


def run_command(what: str, wanted: Wanted, out: Path | None, set_aside: bool) -> None:
    """Run, print the summary; on Ctrl-C stop immediately and keep the finished part."""
    subject, name = _subject(what, wanted)
    if isinstance(subject, Scenario) and wanted.engine in (None, "simulate"):
        print_timing_hint(subject)
    request = prepare(
        subject,
        wanted.engine,
        wanted.replicates,
        wanted.seed,
        wanted.jobs,
        restrictions(wanted.only),
        on=wanted.on,
        store=wanted.store,
        vary=variations(wanted.vary),
    )
    compute(request, out or Path("runs") / name, set_aside, _summarise)


Summary = Callable[[Request, Run, int, float], None]
"""Of a request, its run, how many of its cells had finished before, and the seconds that the rest took."""


def compute(request: Request, directory: Path, set_aside: bool, summarise: Summary) -> None:
    """Compute the missing part of the run in `directory`, with a progress bar, then `summarise` it."""
    began = time.perf_counter()
    with started(request, directory, set_aside) as run:
        kept = sum(cell.key in run.cells for cell in request.cells)
        if run.aside is not None:
            _tell_of_aside(directory, run.aside)
        try:
            with progress(request, run) as on_replicates:
                carry_out(request, run, on_replicates)
        except KeyboardInterrupt:
            print(
                f"firstflight: interrupted; {len(run.cells)} finished cells are kept in {directory}, and the same "
                "command continues with the rest",
                file=sys.stderr,
                flush=True,
            )
            # Threads inside the native module cannot be stopped, and an orderly exit would wait for them.
            os._exit(_INTERRUPTED)
        summarise(request, run, kept, time.perf_counter() - began)


def _subject(what: str, wanted: Wanted) -> tuple[Scenario | str, str]:
    """The study's name or the scenario, and the name of its directory under runs/."""
    path = Path(what)
    if path.suffix == ".toml" or path.is_file():
        return load_scenario(path, wanted.settings), path.stem
    if wanted.settings:
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


def _summarise(request: Request, run: Run, kept: int, seconds: float) -> None:
    study = request.study
    cells = f"{len(request.cells)} cell{'s' if len(request.cells) != 1 else ''}"
    left = f"; {run.missing} requested earlier have not finished" if run.missing else ""
    before = f" ({kept} of them finished earlier)" if kept else ""
    print(f"{study.title}\n{cells}{before} in {seconds:.1f} s, in {run.directory}{left}\n")
    for sentence in study.answer(run):
        print(f"  {sentence}")
    claims = study.claims(run, listed=False)
    if claims:
        print(f"\nClaims: {tally(counts(claim.as_dict() for claim in claims))}\n")
    tables = study.table_names(run)
    directory = shlex.quote(str(run.directory))
    print(f"firstflight report {directory}")
    if claims:
        print(f"firstflight claims {directory}")
    if tables:
        print(f"firstflight table {directory} {shlex.quote(tables[0])}    (tables: {', '.join(tables)})")
