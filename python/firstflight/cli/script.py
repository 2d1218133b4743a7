"""`firstflight script`: packet scripts, run in virtual time."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from firstflight import packet_scripts
from firstflight.cli.options import Json
from firstflight.cli.terminal import show
from firstflight.errors import RequestError
from firstflight.input_files import read_text
from firstflight.scenario.units import Duration

_SUFFIX = ".pkt"
_VERDICTS = ("pass", "differs", "unsupported", "error")
_DIFFERS = 1


def command(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Scripts, or directories of .pkt files.")],
    as_json: Json = False,
    tolerance: Annotated[
        str, typer.Option(metavar="DURATION", help="Allowed time error of an event. packetdrill allows 4ms.")
    ] = "1us",
) -> None:
    """Run packet scripts in packetdrill's language: they list the packets that a TCP must send and receive."""
    try:
        tolerance_ns = int(Duration(tolerance))
    except ValueError as error:
        raise RequestError(f"--tolerance: {error}") from None
    outcomes = [run_script(path, tolerance_ns) for path in find_scripts(paths)]
    if as_json:
        rows = [{name: outcome[name] for name in ("path", "verdict", "reason")} for outcome in outcomes]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print(outcomes)
    verdicts = {outcome["verdict"] for outcome in outcomes}
    if verdicts == {"unsupported"}:
        print("firstflight: none of these scripts can be run", file=sys.stderr)
        raise typer.Exit(_DIFFERS)
    if "error" in verdicts:
        raise typer.Exit(RequestError.exit_status)
    if "differs" in verdicts:
        raise typer.Exit(_DIFFERS)


def find_scripts(paths: list[Path]) -> list[Path]:
    """The files among `paths`, and the scripts below the directories among them, sorted.

    Raises RequestError for a path that does not exist and if there is no script at all.
    """
    scripts: list[Path] = []
    for path in paths:
        if path.is_dir():
            scripts += sorted(script for script in path.rglob(f"*{_SUFFIX}") if script.is_file())
        elif path.exists():
            scripts.append(path)
        else:
            raise RequestError(f'there is no file or directory "{path}"')
    if not scripts:
        raise RequestError(f"there is no script (*{_SUFFIX}) in {', '.join(map(str, paths))}")
    return scripts


def run_script(path: Path, tolerance_ns: int) -> dict[str, Any]:
    """The `path` of a script and its report; `tolerance_ns` is how far an event may be from its time."""
    report: dict[str, Any] = {"path": str(path), "verdict": "error", "details": [], "notes": []}
    try:
        return report | packet_scripts.run_script(read_text(path), tolerance_ns)
    except OSError as error:
        return report | {"reason": f"it cannot be read: {error.strerror}"}
    except UnicodeDecodeError as error:
        return report | {"reason": f"byte {error.start} is not UTF-8 text"}


def _print(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        reason = f": {outcome['reason']}" if outcome["reason"] else ""
        show(f"{outcome['verdict']:12}{outcome['path']}{reason}")
        for line in (*outcome["details"], *(f"note: {note}" for note in outcome["notes"])):
            show(f"{'':12}{line}")
    counted = {verdict: sum(outcome["verdict"] == verdict for outcome in outcomes) for verdict in _VERDICTS}
    parts = [f"{count} {verdict}" for verdict, count in counted.items() if count]
    show(f"{len(outcomes)} script{'' if len(outcomes) == 1 else 's'}: {', '.join(parts)}")
