"""The registry of studies. Each is imported when it is asked for."""

import importlib

from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario import Cell, Scenario
from firstflight.scenario.table import nearest
from firstflight.studies.single import SingleScenario
from firstflight.studies.study import Study
from firstflight.studies.varied import VariedScenario

# Name, and the module whose STUDY it is.
_STUDIES = {
    "rfc2415": "firstflight.studies.rfc2415",
    "rfc2415-extended": "firstflight.studies.rfc2415_extended",
    "rfc6928-rounds": "firstflight.studies.rfc6928_rounds",
    "rfc6928-cluster": "firstflight.studies.rfc6928_cluster",
    "congestion-control": "firstflight.studies.congestion_control",
    "long-pipes": "firstflight.studies.long_pipes",
    "loss-recovery": "firstflight.studies.loss_recovery",
    "kernel-check": "firstflight.studies.kernel_check",
    "kernel-slices": "firstflight.studies.kernel_slices",
    "startup-schemes": "firstflight.studies.startup_schemes",
    "thalheim": "firstflight.studies.thalheim",
    "cs244-2014": "firstflight.studies.cs244_2014",
    "uk-homes": "firstflight.studies.uk_homes",
    "restart-window": "firstflight.studies.restart_window",
    "queues": "firstflight.studies.queues",
    "real-time": "firstflight.studies.real_time",
    "slow-links": "firstflight.studies.slow_links",
    "early-exit": "firstflight.studies.early_exit",
    "lost-syn": "firstflight.studies.lost_syn",
    "segment-size": "firstflight.studies.segment_size",
    "receive-window": "firstflight.studies.receive_window",
    "bottleneck-place": "firstflight.studies.bottleneck_place",
    "learned-window": "firstflight.studies.learned_window",
    "why-ten": "firstflight.studies.why_ten",
    "cellular": "firstflight.studies.cellular",
    "post-quantum": "firstflight.studies.post_quantum",
    "shared-queue": "firstflight.studies.shared_queue",
    "pages": "firstflight.studies.pages",
    "rfc2415-ensemble": "firstflight.studies.rfc2415_ensemble",
    "rfc6928-cluster-ensemble": "firstflight.studies.rfc6928_cluster_ensemble",
    "quic-first-flight": "firstflight.studies.quic_first_flight",
}
NAMES = tuple(_STUDIES)
# `firstflight advise` stores a run of this name, whose grid comes from the flows.
ADVICE = "advise"
# `firstflight scorecard` stores a run of this name, whose cells name the scheme.
SCORECARD = "scorecard"

__all__ = ["NAMES", "Cell", "SingleScenario", "Study", "VariedScenario", "all", "find", "of"]


def find(name: str) -> Study:
    """The study called `name`; RequestError with the nearest known one."""
    if name not in _STUDIES:
        raise RequestError(f'unknown study "{name}"; {nearest(name, _STUDIES)}')
    study: Study = importlib.import_module(_STUDIES[name]).STUDY
    return study


def all() -> list[Study]:
    """Every study, in the registry's order."""
    return [find(name) for name in _STUDIES]


def of(run: Run) -> Study:
    """The study that `run` is of; for a run of a scenario file, the study of that one scenario or of its grid."""
    if run.study == ADVICE:
        raise RequestError(
            f'"{run.directory}" holds an advice: its page is advice.html, which "firstflight advise" writes'
        )
    if run.study == SCORECARD and run.scenario is None:
        from firstflight.studies.scorecard import Scorecard

        return Scorecard.of(run)
    if run.scenario is None:
        return find(run.study)
    scenario = Scenario.from_toml(run.scenario, source=f"{run.directory}/run.json")
    return VariedScenario(scenario, run.vary) if run.vary else SingleScenario(scenario)
