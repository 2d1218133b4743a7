"""`firstflight scorecard`: RFC 9743's evaluation cases for one scheme, in the terminal and as a page."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.options import Jobs, Seed, SetAside
from firstflight.cli.run import compute
from firstflight.cli.terminal import show
from firstflight.counted import nearest
from firstflight.errors import RequestError, require_figures
from firstflight.records import Run
from firstflight.report import write
from firstflight.studies import of
from firstflight.studies.execute import Request, prepare
from firstflight.studies.kernel.grid import EXPERIMENT
from firstflight.studies.scorecard import NAME, REFERENCE, Scorecard
from firstflight.studies.scorecard import scheme as scheme_of
from firstflight.studies.scorecard.case import counted, in_words


def command(
    scheme: Annotated[
        str,
        typer.Argument(
            metavar="SCHEME|FILE.toml", help="A start-up scheme or congestion control, or a file with a [tcp] table."
        ),
    ],
    reference: Annotated[
        str, typer.Option(metavar="SCHEME|FILE.toml", help="Scheme to compare with, in the profile linux.")
    ] = REFERENCE,
    replicates: Annotated[int | None, typer.Option(help="Replicates of each case. Default: 30.")] = None,
    seed: Seed = None,
    jobs: Jobs = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CASE[,CASE]", help="Run only these cases, such as bufferbloat.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output directory. Default: runs/scorecard-SCHEME.")
    ] = None,
    set_aside: SetAside = False,
) -> None:
    """Simulate every evaluation case of RFC 9743 with a scheme and with a reference. Print the verdicts and write a
    page.
    """
    require_figures()
    card = Scorecard(scheme_of(scheme), scheme_of(reference))
    chosen = [name.strip() for names in only or [] for name in names.split(",")]
    for name in chosen:
        if name not in card.grids:
            raise RequestError(f'no case is called "{name}"; {nearest(name, card.grids)}')
    restricted = {EXPERIMENT: chosen} if chosen else None
    request = prepare(card, replicates=replicates, seed=seed, jobs=jobs, only=restricted)
    other = "" if reference == REFERENCE else f"-against-{Path(reference).stem}"
    compute(request, out or Path("runs") / f"{NAME}-{Path(scheme).stem}{other}", set_aside, _print_card)


def _print_card(request: Request, run: Run, kept: int, seconds: float) -> None:
    study = of(run)
    cases = study.cases(run)
    show(f"{study.title}\n{len(request.cells)} cells in {seconds:.1f} s, in {run.directory}\n")
    for case in cases:
        show(f"{case.section:7}{case.title}")
        for who, change in case.changes.items():
            show(f"{'':7}{who:15} {change.verdict:13}  {change.title} {change.shown()}")
        if not case.changes:
            show(f"{'':7}{case.lacks:15} {case.text}")
    show(f"\n{in_words(counted(cases))}")
    print(write(run, study))
