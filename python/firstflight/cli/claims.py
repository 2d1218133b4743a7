"""`firstflight claims`: every claim with its limits, value and reason."""

from firstflight.analysis.table import as_json
from firstflight.cli.options import Directory, Json
from firstflight.cli.terminal import show
from firstflight.records import Run
from firstflight.studies import of


def command(directory: Directory, json: Json = False) -> None:
    """Check each claim of the publication against a run."""
    run = Run.open(directory)
    study = of(run)
    claims = study.claims(run)
    more = study.deciding(run, claims)
    if json:
        print(as_json("claims", study.title, "", [more] if more else [], [claim.as_dict() for claim in claims]))
        return
    if not claims:
        print(f'"{run.study}" makes no claims')
    for claim in claims:
        show(claim.shown())
    if more:
        show(more)
