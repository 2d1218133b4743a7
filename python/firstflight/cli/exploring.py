"""`firstflight explore`: the explorer in a browser."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

from firstflight.cli.settings import load_scenario, restrictions
from firstflight.errors import RequestError
from firstflight.explore.page import page
from firstflight.explore.serve import server
from firstflight.explore.start import transfer
from firstflight.explore.stored import cell, named
from firstflight.records import Run, output
from firstflight.studies.execute import check_seed


def explore_command(
    what: Path | None, only: list[str], settings: list[str], seed: int | None, out: Path | None, port: int
) -> None:
    """Serve the page until Ctrl-C, or write it to `out`."""
    if what is None and (only or settings):
        raise RequestError(f"--{'only chooses a cell of a run' if only else 'set changes a scenario'}: name it")
    if only and what is not None and not what.is_dir():
        raise RequestError(f'--only chooses a cell of a run, and "{what}" is a file; name a directory that "run" wrote')
    if seed is not None:
        check_seed(seed)
    html = page(None if what is None else _opening(what, only, settings, seed))
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
