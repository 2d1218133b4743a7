"""From a request to a run: which study, which cells, which directory; then the sweep."""

import atexit
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from firstflight.engines import RealTime, memory
from firstflight.engines import find as find_engine
from firstflight.engines.cluster import HERE, Place
from firstflight.engines.cluster import place as place_of
from firstflight.engines.sweep import sweep
from firstflight.errors import FirstflightError, RequestError
from firstflight.records import Identity, RunWriter
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.cell import Key, Only, check_seed, chosen, whole
from firstflight.studies import Run, find
from firstflight.studies.study import Study
from firstflight.studies.varied import SingleScenario, VariedScenario, Vary
from firstflight.temporary import temporary_directory

Records = Literal["needed", "all"]
# Threads or processes; more of them were never of use anywhere.
MOST_JOBS = 1024


@dataclass(frozen=True)
class Request:
    """A checked request: the result of `prepare` for a user's request. `grid`: the keys of all cells of the study;
    `jobs` None: as many as suit the engine.
    """

    study: Study
    identity: Identity
    cells: list[Cell]
    grid: list[Key]
    jobs: int | None
    place: Place = HERE


def prepare(
    what: "Study | Scenario | str",
    engine: str | None = None,
    replicates: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    only: Only | None = None,
    on: str = "local",
    store: str | None = None,
    vary: Vary | None = None,
    records: Records = "all",
) -> Request:
    """Check the request. `what`: a study, its name, or a scenario; `on`: local, dask or dask://HOST:PORT; `store`: URL
    or directory where workers of Dask keep chunks; `vary`: values of keys of the scenario; `records`: keep all columns,
    or those that the study needs. RequestError states the problem.
    """
    for name, given in (("only", only or {}), ("vary", vary or {})):
        if not isinstance(given, Mapping):
            raise RequestError(
                f'{name} is {given!r}; write keys with their values, such as {{"mtu": ["900B", "1500B"]}}'
            )
    if records not in get_args(Records):
        raise RequestError(f'records is {records!r}; write "needed" or "all"')
    place = place_of(on, store)
    study = _study(what, vary or {})
    engine = engine or study.engines[0]
    find_engine(engine)
    if engine not in study.engines:
        raise RequestError(f'"{study.name}" cannot be run by "{engine}"; its engines: {", ".join(study.engines)}')
    if replicates is not None and (replicates := whole(asked := replicates, 1, 2**32 - 1)) is None:
        raise RequestError(f"replicates is {asked}; write a whole number from 1 to 2^32 - 1")
    if jobs is not None and (jobs := whole(asked := jobs, 1, MOST_JOBS)) is None:
        raise RequestError(f"jobs is {asked}; write a number from 1 to {MOST_JOBS}, or leave it out: one a CPU")
    if seed is not None:
        seed = check_seed(seed)
    # The model draws nothing, so its replicates would all be the same.
    default = 1 if engine == "model" else study.replicates
    study.check(engine)
    grid = study.keys(engine)
    cells = study.cells_at(engine, chosen(grid, only or {}))
    if replicates is not None or engine == "model":
        cells = [replace(cell, replicates=replicates) for cell in cells]
    identity = Identity(
        study=study.name,
        engine=engine,
        seed=study.seed if seed is None else seed,
        replicates=replicates or default,
        scenario=study.scenario.to_toml() if isinstance(study, SingleScenario) else None,
        vary=study.vary if isinstance(study, VariedScenario) else None,
        kept=study.kept if records == "needed" else {},
    )
    if place.cluster is not None:
        _check_for_cluster(place, cells, engine, jobs)
    if not place.cluster:
        memory.check(cells, identity, jobs)
    engines = {name: find_engine(name) for name in dict.fromkeys(cell.engine or engine for cell in cells)}
    surroundings = {name: runner.surroundings() for name, runner in engines.items() if isinstance(runner, RealTime)}
    identity = replace(identity, surroundings=surroundings)
    return Request(study, identity, cells, grid, jobs, place)


def _study(what: "Study | Scenario | str", vary: Vary) -> Study:
    if isinstance(what, Scenario):
        return VariedScenario(what, vary) if vary else SingleScenario(what)
    if isinstance(what, Path) or (isinstance(what, str) and what.endswith(".toml")):
        raise RequestError(f'"{what}" is a file, and the name of no study; load_scenario reads a scenario from it')
    study = find(what) if isinstance(what, str) else what
    if not isinstance(study, Study):
        raise RequestError(f"{what!r} is no study, no name of one and no scenario")
    if vary:
        raise RequestError(
            f'--vary changes a scenario file, and "{study.name}" is a study with a grid; choose from it '
            "with --only, or copy its scenario"
        )
    return study


def _check_for_cluster(place: Place, cells: Sequence[Cell], engine: str, jobs: int | None) -> None:
    for name in sorted({cell.engine or engine for cell in cells}):
        if isinstance(find_engine(name), RealTime):
            raise RequestError(
                f'"{name}" runs in real time on this machine\'s own kernel and not on {place}; leave out --on, or '
                "choose --engine simulate or model"
            )
    if jobs is not None and place.cluster:
        raise RequestError(f"the workers of {place} determine the number of jobs; leave out --jobs")


@contextlib.contextmanager
def started(request: Request, out: str | Path, set_aside: bool = False) -> Iterator[RunWriter]:
    """The run in `out`, created or continued and locked for the time of the context. A request that turns out to be
    refused leaves no directory behind that was not there before.
    """
    with RunWriter.create(out, request.identity, request.cells, request.grid, set_aside) as run:
        try:
            yield run
        except FirstflightError:
            if run.made_directory and not run.holds_something:
                run.discard()
            raise


def carry_out(
    request: Request, run: RunWriter, on_replicates: Callable[[Cell, int], None] = lambda cell, replicates: None
) -> None:
    """Compute the missing part of the run. A complete run is left unchanged."""
    if all(run.is_finished(request.identity.cell_hash(cell)) for cell in request.cells):
        return
    with run.session(request.jobs, str(request.place)):
        sweep(run, request.identity, request.cells, request.jobs, on_replicates, request.place)


def run(
    what: "Study | Scenario | str",
    *,
    engine: str | None = None,
    replicates: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    only: Only | None = None,
    out: str | Path | None = None,
    on: str = "local",
    store: str | None = None,
    vary: Vary | None = None,
    records: Records = "all",
) -> Run:
    """Run a study (or its name) or a scenario, and return its records.

    `only` restricts the grid: `{"webs": [8, 16], "http": "1.0"}`. `out` is the run's directory, which is continued if
    it holds the same run; without it the records last until the process exits. `on`: "local", "dask" (`jobs` processes
    for this run) or "dask://HOST:PORT"; `store`: URL or directory that all workers share, where they keep their chunks.
    `vary` makes a grid of a scenario: `{"tcp.initial_window": [3, 10]}` has cells with the key "initial_window".
    `records`: "all" columns, or those "needed" by the study. Raises RequestError and MachineError.
    """
    request = prepare(what, engine, replicates, seed, jobs, only, on, store, vary, records)
    directory = Path(tempfile.mkdtemp(dir=_scratch())) if out is None else out
    with started(request, directory) as made:
        carry_out(request, made)
    return Run.open(directory)


@cache
def _scratch() -> str:
    """The place of runs without a directory until the process ends."""
    lasting = contextlib.ExitStack()
    atexit.register(lasting.close)
    return lasting.enter_context(temporary_directory())
