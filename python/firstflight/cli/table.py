"""`firstflight table`."""

from typing import Annotated, Literal

import typer

from firstflight.cli.options import Directory
from firstflight.cli.terminal import room, show
from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.studies import of


def command(
    directory: Directory,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A table's name. Without it, print all names.")
    ] = None,
    format: Annotated[Literal["text", "csv", "json"], typer.Option(help="text, csv (tidy) or json.")] = "text",
) -> None:
    """Print a table of a run next to the published values. Without NAME, list the tables."""
    run = Run.open(directory)
    study = of(run)
    names = study.table_names(run)
    if name is None and names:
        print("\n".join(names))
        return
    if name is None or name not in names:
        raise RequestError(
            f'this run has no table "{name}"; {nearest(name or "", names)}'
            if names
            else f'"{directory}" has no finished cells yet, so no tables; continue it with "firstflight run"'
        )
    table = study.table(run, name)
    if format == "text":
        show(table.text(room()).rstrip("\n"))
    else:
        print(getattr(table, format)().rstrip("\n"))
