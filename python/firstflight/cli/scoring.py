"""`firstflight scorecard`: RFC 9743's evaluation cases for one scheme, in the terminal and as a page."""

from pathlib import Path

from firstflight.cli.running import compute
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario.table import nearest
from firstflight.studies import of
from firstflight.studies.execute import Request, prepare
from firstflight.studies.kernel.grid import EXPERIMENT
from firstflight.studies.scorecard import NAME, REFERENCE, Scorecard
from firstflight.studies.scorecard import scheme as scheme_of
from firstflight.studies.scorecard.case import counted, in_words


def scorecard_command(
    scheme: str,
    reference: str,
    replicates: int | None,
    seed: int | None,
    jobs: int | None,
    only: list[str],
    out: Path | None,
    set_aside: bool,
) -> None:
    """Run the cases, print a row for each, and write the page."""
    card = Scorecard(scheme_of(scheme), scheme_of(reference))
    chosen = [name.strip() for names in only for name in names.split(",")]
    for name in chosen:
        if name not in card.grids:
            raise RequestError(f'no case is called "{name}"; {nearest(name, card.grids)}')
    restricted = {EXPERIMENT: chosen} if chosen else None
    request = prepare(card, replicates=replicates, seed=seed, jobs=jobs, only=restricted)
    other = "" if reference == REFERENCE else f"-against-{Path(reference).stem}"
    compute(request, out or Path("runs") / f"{NAME}-{Path(scheme).stem}{other}", set_aside, _print_card)


def _print_card(request: Request, run: Run, kept: int, seconds: float) -> None:
    from firstflight.report import write

    study = of(run)
    cases = study.cases(run)
    print(f"{study.title}\n{len(request.cells)} cells in {seconds:.1f} s, in {run.directory}\n")
    for case in cases:
        print(f"{case.section:7}{case.title}")
        for who, change in case.changes.items():
            print(f"{'':7}{who:15} {change.verdict:13} {change.title} {change.shown()}")
        if not case.changes:
            print(f"{'':7}{case.lacks:15} {case.text}")
    print(f"\n{in_words(counted(cases))}")
    print(write(run))
