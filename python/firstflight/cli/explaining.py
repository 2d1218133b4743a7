"""`firstflight explain`: the first flights of one transfer with several initial windows."""

from pathlib import Path

from firstflight import explain
from firstflight.cli.settings import load_scenario
from firstflight.errors import RequestError
from firstflight.explain.page import page
from firstflight.explain.rounds import transfer
from firstflight.explain.words import comparison, cost, first_flight, heading, line
from firstflight.records import output
from firstflight.tracing import Trace

_DOWNLOAD = Path(explain.__file__).with_name("download.toml")


def explain_command(file: Path | None, iw: str, settings: list[str], seed: int | None, out: Path | None) -> None:
    """Print the rounds, and write the page to `out`."""
    windows = _windows(iw)
    if out is not None:
        output.check(out, [] if file is None else [file])
    scenario = load_scenario(file or _DOWNLOAD, settings)
    traces = [Trace(scenario.replace("tcp.initial_window", segments), seed) for segments in windows]
    # Each is let go of before the next is simulated.
    transfers = [transfer(traces.pop(0)) for _ in windows]
    title = scenario.description or scenario.name
    print(title)
    for of in transfers:
        print(f"\n{heading(of)}")
        for one in of.rounds:
            print(f"  {line(one, of)}")
    said = [first_flight(transfers), comparison(transfers), cost(transfers)]
    print("\n" + "\n".join(sentence for sentence in said if sentence))
    if out is not None:
        output.write(out, page(title, transfers).encode())
        print(out)


def _windows(iw: str) -> list[int]:
    windows = [int(text) for text in iw.split(",") if text.strip().isdecimal()]
    if len(windows) != len(iw.split(",")) or not 1 <= len(windows) <= 3:
        raise RequestError(f'--iw is "{iw}"; give one to three initial windows in segments, such as 3,10')
    return windows
