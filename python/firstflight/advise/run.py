"""From a request to a page: reads, simulates missing results, decides and writes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import polars as pl

from firstflight import observe
from firstflight.advise import certificates as certificates_of
from firstflight.advise import page, request
from firstflight.advise.advice import Advice, Compared
from firstflight.advise.advice import advise as advise_on
from firstflight.advise.assume import with_paths, with_sizes
from firstflight.advise.experiment import Experiment
from firstflight.advise.figures import all_figures
from firstflight.advise.first_look import check_enough, doubts
from firstflight.advise.fit import fit
from firstflight.advise.measure import Measurements
from firstflight.advise.sensitivity import cases, check_open
from firstflight.errors import MachineError, RequestError, require_figures
from firstflight.explore.links import ExplorerLink, link
from firstflight.explore.page import PAGE
from firstflight.records import Run
from firstflight.scenario import Cell, Scenario
from firstflight.studies import execute

_PERCENTILES = (10, 50, 90, 99)


def transfers(advice: Advice, experiment: Experiment, measured: Measurements) -> list[ExplorerLink]:
    """The users at some percentiles of the time of a response, in the reference case with the current window. Each
    opens with that window and the one that the page shows. None if the explorer is not built.
    """
    if not PAGE.exists():
        return []
    rows = measured.responses(advice.cases[0].name).filter(pl.col("iw") == advice.current.window)
    took = pl.col("time_s").mean()
    ranked = rows.group_by("client").agg(took).filter(pl.col("time_s").is_not_nan()).sort("time_s", "client")["client"]
    at = {p: ranked[round(p / 100 * (len(ranked) - 1))] for p in _PERCENTILES} if len(ranked) else {}
    sides = f"&a.iw={advice.current.window}&b.iw={advice.shown_window}"
    return [
        link(f"{p}th percentile: {_path(experiment, user)}", _alone(experiment, user), advice.seed, sides)
        for p, user in at.items()
    ]


def _path(experiment: Experiment, user: int) -> str:
    columns = experiment.users[experiment.sensitivity_cases[0].name].columns
    size, rtt, rate = (columns[name][user] for name in ("bytes", "rtt_s", "down_bps"))
    return f"{size / 1e3:,.3g} kB, RTT {1e3 * rtt:.3g} ms, {rate / 1e6:.3g} Mbit/s"


def _alone(experiment: Experiment, user: int) -> Scenario:
    """The reference case with that user only."""
    document = experiment.cells("simulate")[0].scenario.to_dict()
    population = document["population"]
    population["users"] = 1
    population["columns"] = {name: [values[user]] for name, values in population["columns"].items()}
    return Scenario.from_dict(document, source="the flows").star_of_users(experiment.seed, users=1)


Watched = Callable[[execute.Request, Run], AbstractContextManager[Callable[[Cell, int], None]]]


def advise(
    flows: str | Path,
    *,
    out: str | Path = "runs/advice",
    jobs: int | None = None,
    set_aside: bool = False,
    watch: Watched = lambda asked, run: nullcontext(lambda cell, replicates: None),
    doubted: Callable[[str], None] = lambda sentence: None,
    compared: Compared = lambda done, of: None,
    **options: Unpack[request.Options],
) -> tuple[Advice, Path]:
    """The advice on the observed `flows`, and the path of its page. `options`: `advise.Options`.

    Results in `out` are reused; those of another request are refused or, with `set_aside`, renamed. `watch(asked, run)`
    returns the context of the simulation, which receives the number of finished replicates; `doubted` is called with
    doubts about the flows before that, `compared(done, of)` during the comparison. RequestError for a wrong request or
    file, MachineError if nothing can be written.
    """
    asked = request.check(flows, **options)
    chain = asked.chain
    directory = Path(out)
    try:
        before = request.windows_before(directory, asked)
    except RequestError:
        if not set_aside:
            raise
        before = set()
    observed = observe.read(asked.flows, asked.kind)
    if asked.assume_sizes is not None:
        observed = with_sizes(observed, asked.assume_sizes, asked.seed)
    unknown = observed.users["rtt_s"].null_count() / max(1, observed.users.height)
    observed = with_paths(observed, asked.assumed, asked.seed)
    population = replace(
        fit(observed, asked.max_connections, asked.seed),
        sizes=asked.assume_sizes,
        given=asked.assumed,
        assumed_rtt_percent=100 * unknown if asked.assumed.has_paths else 0.0,
    )
    check_open(population)
    check_enough(observed, population)
    flow_doubts = tuple(doubts(observed, population))
    for sentence in flow_doubts:
        doubted(sentence)
    undrawn = _undrawn()
    if undrawn is not None:
        doubted(f"the page has no figures: {undrawn}")
    windows = request.with_current(asked.windows, population.current.window)
    experiment = Experiment(population, cases(population), windows, asked.seed)
    run_request = execute.prepare(experiment, seed=asked.seed, jobs=jobs)
    # Windows that were asked for before keep their place in the directory.
    if before - set(windows):
        every = Experiment(population, experiment.sensitivity_cases, sorted(before | set(windows)), asked.seed)
        run_request = replace(run_request, grid=every.keys("simulate"))
    with execute.started(run_request, directory, set_aside) as run:
        request.remember(directory, asked, before | set(windows))
        with watch(run_request, run) as on_replicates:
            execute.carry_out(run_request, run, on_replicates)
        measured = Measurements(run, experiment)
        advice = advise_on(observed, population, experiment, measured, asked.budget, flow_doubts, compared)
        if chain is not None:
            place = directory / f"certificates-{chain.algorithm}-{chain.intermediates}"
            done = certificates_of.simulated(experiment, chain, place, jobs, set_aside, watch)
            advice = replace(advice, certificates=done)
        links = transfers(advice, experiment, measured)
        guard = guard_commands(asked, directory, observed) if advice.command else []
        command = shlex.join([*asked.words(), "--out", str(directory)])
        path = page.write(
            advice, [] if undrawn else all_figures(advice, experiment), [command], directory, links, guard
        )
    return advice, path


def _undrawn() -> MachineError | None:
    try:
        require_figures()
    except MachineError as error:
        return error
    return None


def guard_commands(asked: request.AdviceRequest, directory: Path, observed: observe.Observation) -> list[str]:
    """The lines that try the guard on these flows, if they have times, and that raise the window under watch."""
    timed = observed.transfers["start_s"].count() > 0
    rehearse = shlex.join(["firstflight", "guard", "rehearse", str(asked.flows)])
    # sudo looks for programs in directories of its own.
    run = f"sudo $(command -v firstflight) guard run --advice {shlex.quote(str(directory / page.DATA))}"
    return [rehearse, run] if timed else [run]
