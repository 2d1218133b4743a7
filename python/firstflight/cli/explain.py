"""`firstflight explain`: the rounds of one transfer with several initial windows, in words and as ladder diagrams."""

from pathlib import Path
from typing import Annotated

import typer

from firstflight import explain
from firstflight.cli.options import Seed, Settings
from firstflight.cli.settings import load_scenario, print_timing_hint
from firstflight.cli.terminal import show
from firstflight.cli.trace import labeled
from firstflight.errors import RequestError
from firstflight.explain.ladder import sheet
from firstflight.explain.page import comparison, cost, first_flight, heading, line, page
from firstflight.explain.rounds import transfer
from firstflight.records import output
from firstflight.report.figure import drawing, format_of
from firstflight.tracing import Trace

_MOST_ROUNDS = 20
_DOWNLOAD = Path(explain.__file__).with_name("download.toml")


def command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.toml]", help="A scenario file. Default: 100 kB, RTT 40 ms."),
    ] = None,
    iw: Annotated[
        str | None, typer.Option(metavar="N,N", help="Initial windows to compare, in segments. Default: 3,10.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE[,VALUE]", help="Compare the values of this key instead."),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="F",
            help="Also write a page with ladder diagrams and a glossary to .html, or the diagrams alone to "
            ".svg, .png or .pdf.",
        ),
    ] = None,
) -> None:
    """Print the rounds of a transfer with each initial window, and the time that the larger one saves."""
    if out is not None:
        output.check(out, [] if file is None else [file])
    form = None if out is None or out.suffix.lower() in (".html", ".htm") else format_of(out, is_drawn=False)
    scenario = load_scenario(file or _DOWNLOAD, settings or [])
    print_timing_hint(scenario)
    if iw is not None and vary:
        raise RequestError("--vary compares values of another key; leave --iw or --vary out")
    windows = [f"tcp.initial_window={','.join(map(str, _windows('3,10' if iw is None else iw)))}"]
    varied = labeled(scenario, vary or windows, settings or [])
    # Each trace is let go of before the next is simulated.
    transfers = [transfer(Trace(changed, seed, label)) for label, changed in varied]
    title = scenario.description or scenario.name
    show(title)
    for of in transfers:
        show(f"\n{heading(of)}")
        for sent in of.rounds[:_MOST_ROUNDS]:
            show(f"  {line(sent, of)}")
        if len(of.rounds) > _MOST_ROUNDS:
            show(f"  and {len(of.rounds) - _MOST_ROUNDS} more")
    sentences = [first_flight(transfers), comparison(transfers), cost(transfers)]
    show("\n" + "\n".join(filter(None, sentences)))
    if out is not None:
        html = page(title, transfers).encode() if form is None else drawing(sheet(title, transfers), form)
        output.write(out, html)
        print(out)


def _windows(iw: str) -> list[int]:
    windows = [int(text) if text.strip().isdecimal() else 0 for text in iw.split(",")]
    if not all(1 <= window <= 1000 for window in windows) or not 2 <= len(set(windows)) == len(windows) <= 3:
        raise RequestError(f'--iw is "{iw}"; give two or three different initial windows, of 1 to 1000 segments')
    return windows
