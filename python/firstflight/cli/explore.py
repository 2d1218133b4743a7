"""`firstflight explore`: the explorer in a browser."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from firstflight.cli.options import Seed, Settings
from firstflight.cli.settings import load_scenario, restrictions
from firstflight.errors import RequestError
from firstflight.explore.page import cell, named, page, server
from firstflight.explore.start import transfer
from firstflight.records import Run, output
from firstflight.scenario.cell import check_seed


def command(
    what: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.toml|RUN", help="A scenario file or a run's directory. Default: a download."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Open the cell of the run that has this value.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[Path | None, typer.Option(metavar="F", help="Write the page to this file instead.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback. 0: any free port.")] = 0,
) -> None:
    """Open the explorer in a browser: one transfer with two settings side by side, segment by segment. The page is
    served on loopback and loads nothing else.
    """
    if what is None and (only or settings):
        raise RequestError(f"--{'only chooses a cell of a run' if only else 'set changes a scenario'}: name it")
    if only and what is not None and not what.is_dir():
        raise RequestError(f'--only chooses a cell of a run, and "{what}" is a file; name a directory that "run" wrote')
    if seed is not None:
        check_seed(seed)
    html = page(None if what is None else _opening(what, only or [], settings or [], seed))
    if out is not None:
        output.write(out, html.encode(), [] if what is None else [what])
        print(out)
        return
    with server(html, port) as listening:
        url = f"http://127.0.0.1:{listening.server_address[1]}/"
        print(f"{url} (Ctrl-C ends it)", flush=True)
        webbrowser.open(url)
        with suppress(KeyboardInterrupt):
            listening.serve_forever()


def _opening(what: Path, only: list[str], settings: list[str], seed: int | None) -> dict[str, Any]:
    if not what.is_dir():
        return transfer(load_scenario(what, settings), seed)
    run = Run.open(what)
    key, file = cell(run, restrictions(only))
    name = named(run.study, key)
    return transfer(load_scenario(file, settings), run.seed if seed is None else seed, name)
