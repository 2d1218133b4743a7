"""The explorer's page, what it starts with of a stored run, and the server on loopback that hands it out."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from firstflight.errors import MachineError, RequestError
from firstflight.explore.start import start
from firstflight.records import Run
from firstflight.scenario.cell import Only, chosen


def cell(run: Run, only: Only) -> tuple[dict[str, Any], Path]:
    """Key and scenario file of the one finished cell that has the values of `only`. RequestError unless it is one."""
    cells = run.scenario_files
    if not cells:
        raise RequestError(f'no cell of "{run.directory}" has finished; run it first')
    left = [cells[index] for index in chosen([key for key, _ in cells], only)]
    if len(left) > 1:
        raise RequestError(f"{len(left)} cells are left, and the explorer opens with one; add {_choices(left)}")
    return left[0]


def named(study: str, key: Mapping[str, Any]) -> str:
    """The study and the values of a cell's key: "rfc6928-rounds: segments 20, iw 10"."""
    values = [f"{of.replace('_', ' ')} {value}" for of, value in key.items() if value is not None and value != study]
    return f"{study}: {', '.join(values)}" if values else study


def _choices(cells: list[tuple[dict[str, Any], Path]]) -> str:
    """Options of which each decides one of the keys that are still open."""
    values = {of: list(dict.fromkeys(str(key[of]) for key, _ in cells)) for of in cells[0][0]}
    return ", ".join(f"--only {of}={'|'.join(known)}" for of, known in values.items() if len(known) > 1)


PAGE = Path(__file__).with_name("explorer.html")
_BEGIN, _END = '<script type="application/json" id="start">', "</script>"


def page(opening: dict[str, Any] | None = None) -> str:
    """The page as HTML, which opens with the `start.transfer`. MachineError if it was not built."""
    try:
        built = PAGE.read_text()
    except FileNotFoundError:
        raise MachineError(
            "the explorer is not built: in a checkout run `make explore`, which needs Node.js 18 or later with npm and "
            "`rustup target add wasm32-unknown-unknown`"
        ) from None
    if opening is None:
        return built
    before, rest = built.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    # In a block of data "<" could end the block.
    return before + _BEGIN + json.dumps(start(opening)).replace("<", "\\u003c") + _END + after


def server(page: str, port: int) -> ThreadingHTTPServer:
    """Listens on 127.0.0.1 (port 0: a free one) and answers with the page. MachineError if the port is taken."""
    content = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise MachineError(f"port {port} of 127.0.0.1: {error.strerror}; name another: --port") from None
