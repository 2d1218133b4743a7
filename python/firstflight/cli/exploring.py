"""`firstflight explore`: the explorer in a browser."""

import webbrowser
from contextlib import suppress
from pathlib import Path

from firstflight.cli.settings import load_scenario
from firstflight.errors import RequestError
from firstflight.explore.page import page
from firstflight.explore.serve import server
from firstflight.records import output
from firstflight.studies.execute import check_seed


def explore_command(file: Path | None, settings: list[str], seed: int | None, out: Path | None, port: int) -> None:
    """Serve the page until Ctrl-C, or write it to `out`."""
    if settings and file is None:
        raise RequestError("--set changes a scenario: name its file")
    if seed is not None:
        check_seed(seed)
    html = page(None if file is None else load_scenario(file, settings), seed)
    if out is not None:
        output.write(out, html.encode(), [] if file is None else [file])
        print(out)
        return
    with server(html, port) as listening:
        url = f"http://127.0.0.1:{listening.server_address[1]}/"
        print(f"{url} (Ctrl-C ends it)", flush=True)
        webbrowser.open(url)
        with suppress(KeyboardInterrupt):
            listening.serve_forever()
