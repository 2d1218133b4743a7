"""`firstflight conform`: the kernel that runs here next to the `linux` profile."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from firstflight.conform.oracle import JudgedConnection, Kernel, shrink
from firstflight.conform.parameters import FAMILIES, draw
from firstflight.errors import MachineError, RequestError, require_linux
from firstflight.records.files import write_directory

_DIFFERS = 1
_CONTROLS = ("cubic", "reno")


def command(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Number of connections to record.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the random connections.")] = 1,
    cc: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Congestion controls, such as cubic,reno,bbr.", show_default="cubic,reno"),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the scripts in DIR, for firstflight script.")
    ] = None,
) -> None:
    """Record random connections of the local kernel as packet scripts, run them through the linux profile, and shrink
    those that differ. Needs user namespaces and a TUN device, not root.
    """
    require_linux("firstflight conform")
    if record is not None and record.exists() and (not record.is_dir() or any(record.iterdir())):
        raise RequestError(f'--record: "{record}" exists and is no empty directory')
    with Kernel() as kernel:
        controls = _controls(cc, kernel.controls)
        connections = [draw(Random(f"{seed} {number}"), number, controls) for number in range(count)]
        judged = kernel.judge(connections)
        print(f"{kernel.name}; seed {seed}; {', '.join(controls)}")
        _print_matches(judged)
        kinds: dict[str, list[int]] = {}
        for number, connection in enumerate(judged):
            if not connection.matches:
                kinds.setdefault(connection.part, []).append(number)
        # Each attempt is a connection in real time, so one of each kind is shrunk.
        shortest = [min(numbers, key=lambda number: judged[number].length) for numbers in kinds.values()]
        shrunk = dict(zip(shortest, shrink([judged[number] for number in shortest], kernel.judge), strict=True))
    if record is not None:
        _write(record, judged, shrunk)
    for (part, numbers), (number, example) in zip(kinds.items(), shrunk.items(), strict=True):
        print(f"\n{part}: {', '.join(_name(number, judged[number]) for number in numbers)}")
        print(f"    {number:04} {judged[number].parameters.described()}")
        print(f"    shrunk to {example.parameters.described()}")
        print("\n".join(f"    {line}" for line in (example.reason, *example.details)))
    if kinds:
        raise typer.Exit(_DIFFERS)


def _controls(asked: str | None, offered: list[str]) -> list[str]:
    if asked is None:
        return [name for name in _CONTROLS if name in offered]
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in offered:
            raise MachineError(
                f'this kernel has no congestion control "{name}"; it has {", ".join(sorted(offered))}; '
                f"a module may bring it: modprobe tcp_{name}"
            )
    return names


def _name(number: int, connection: JudgedConnection) -> str:
    return f"{number:04}-{connection.parameters.family.replace(' ', '-')}"


def _write(directory: Path, judged: list[JudgedConnection], shrunk: dict[int, JudgedConnection]) -> None:
    scripts = {f"{_name(number, connection)}.pkt": connection.script for number, connection in enumerate(judged)}
    scripts |= {f"{_name(number, connection)}-shrunk.pkt": connection.script for number, connection in shrunk.items()}
    directory.parent.mkdir(parents=True, exist_ok=True)
    write_directory(directory, ((name, script.encode()) for name, script in scripts.items()))


def _print_matches(judged: list[JudgedConnection]) -> None:
    of = Counter(connection.parameters.family for connection in judged)
    matching = Counter(connection.parameters.family for connection in judged if connection.matches)
    for family in FAMILIES:
        if of[family]:
            print(f"{family:16}{matching[family]:5} of {of[family]:4} match")
    total = matching.total()
    print(f"{'all':16}{total:5} of {len(judged):4} match: {100 * total / len(judged):.1f}%", flush=True)
