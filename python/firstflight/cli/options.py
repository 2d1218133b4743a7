"""Arguments and options that several commands have. The last ones are those of `guard`."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from firstflight.errors import RequestError

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A run's directory.")]
Harm = Annotated[str, typer.Option(metavar="BUDGET", help="Limits on regressions.")]
Jobs = Annotated[int | None, typer.Option(help="Number of threads. Default: one per CPU.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Kind = Annotated[str | None, typer.Option(help="Format of the data, if not detected.")]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.")]
SetAside = Annotated[
    bool,
    typer.Option("--set-aside", help="If DIR holds another run or advice, rename it to DIR.1 and start a new one."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the scenario, such as tcp.initial_window=10."),
]


Policy = Annotated[str, typer.Option(help="Policy that chooses the window: static, ewma, lossaware or lossaware-disc.")]
Alpha = Annotated[float, typer.Option(help="Maximum probability that a harmless window is ever stopped.")]
Period = Annotated[str, typer.Option(help="Interval between draws of the arms; each client counts once per interval.")]
Least = Annotated[
    int, typer.Option(help="Minimum connections per network. A network with fewer joins a larger one.", min=1)
]
Fallback = Annotated[
    Literal["rfc6928", "rfc3390"],
    typer.Option(
        help="Window after a stop: 10 segments (rfc6928, the system's), or 3 after stops of two groups (rfc3390)."
    ),
]
State = Annotated[Path, typer.Option(metavar="DIR", help="Journal, decisions and status.")]
STATE = Path("/var/lib/firstflight-guard")


def seconds(option: str, text: str) -> float:
    """The time that the value of an option spells. RequestError if it spells none."""
    # The scenario's package, which reads every other way of writing a time, takes 17 MB as long as the guard runs.
    if match := re.fullmatch(r"(\d{1,6})(s|min)", text):
        return int(match[1]) * (60.0 if match[2] == "min" else 1.0)
    from firstflight.scenario.units import Duration

    try:
        return Duration(text).seconds
    except ValueError as error:
        raise RequestError(f'{option} "{text}": {error}') from None
