"""`firstflight studies`."""

from firstflight.cli.terminal import show
from firstflight.studies import listed


def command() -> None:
    """List the studies: name, source, engines and subject."""
    for name, said in listed():
        show(f"{name}  ({', '.join(said['engines'])})\n  {said['shows']}\n  {said['source']}")
