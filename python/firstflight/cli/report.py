"""`firstflight report`."""

from enum import StrEnum
from typing import Annotated

import typer

from firstflight.cli.options import Directory
from firstflight.errors import RequestError, require_figures
from firstflight.records import Run
from firstflight.report import figures_to_files, write
from firstflight.studies import of

Picture = StrEnum("Picture", ("svg", "png", "pdf"))


def command(
    directory: Directory,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also write each figure to DIR/figures, as SVG and PNG.")
    ] = False,
    format: Annotated[
        list[Picture] | None, typer.Option(help="With --figures: format to write, such as pdf. May be repeated.")
    ] = None,
) -> None:
    """Write DIR/report.html: one page with text, figures and tables, without external files."""
    if format and not figures:
        raise RequestError("--format is that of --figures; add --figures")
    require_figures()
    run = Run.open(directory)
    study = of(run)
    print(write(run, study))
    if figures:
        for path in figures_to_files(run, study, run.directory / "figures", format or ("svg", "png")):
            print(path)
