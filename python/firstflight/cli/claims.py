"""`firstflight claims`: every claim with its limits, value and reason."""

import json as json_module

from firstflight.cli.options import Directory, Json
from firstflight.records import Run
from firstflight.studies import of


def command(directory: Directory, json: Json = False) -> None:
    """Check each claim of the publication against a run."""
    run = Run.open(directory)
    study = of(run)
    claims = study.claims(run)
    if json:
        print(json_module.dumps([claim.as_dict() for claim in claims], indent=2, ensure_ascii=False))
        return
    if not claims:
        print(f'"{run.study}" makes no claims')
    for claim in claims:
        print(claim.shown())
    if more := study.deciding(run, claims):
        print(more)
