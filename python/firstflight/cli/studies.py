"""`firstflight studies`."""

from firstflight.cli.terminal import show
from firstflight.studies import all as all_studies


def command() -> None:
    """List the studies: name, source, engines and subject."""
    for study in all_studies():
        show(f"{study.name}  ({', '.join(study.engines)})\n  {study.shows}\n  {study.source}")
