"""`firstflight conform`: the kernel that runs here next to the `linux` profile."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from firstflight.conform.oracle import Judged, Kernel, shrink
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
        Path | None,
        typer.Option(metavar="DIR", help="Keep the scripts in DIR, for firstflight script.", show_default=False),
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
        mismatches = [number for number, one in enumerate(judged) if not one.matches]
        shrunk = dict(zip(mismatches, shrink([judged[n] for n in mismatches], kernel.judge), strict=True))
    if record is not None:
        _write(record, judged, shrunk)
    print(f"{kernel.name}; seed {seed}; {', '.join(controls)}")
    _print(judged, shrunk)
    if mismatches:
        raise typer.Exit(_DIFFERS)


def _controls(asked: str | None, offered: list[str]) -> list[str]:
    if asked is None:
        return [name for name in _CONTROLS if name in offered]
    wanted = [name.strip() for name in asked.split(",")]
    for name in wanted:
        if name not in offered:
            raise MachineError(
                f'this kernel has no congestion control "{name}"; it has {", ".join(sorted(offered))}; '
                f"a module may bring it: modprobe tcp_{name}"
            )
    return wanted


def _name(number: int, one: Judged) -> str:
    return f"{number:04}-{one.parameters.family.replace(' ', '-')}"


def _write(directory: Path, judged: list[Judged], shrunk: dict[int, Judged]) -> None:
    scripts = {f"{_name(number, one)}.pkt": one.script for number, one in enumerate(judged)}
    scripts |= {f"{_name(number, one)}-shrunk.pkt": one.script for number, one in shrunk.items()}
    directory.parent.mkdir(parents=True, exist_ok=True)
    write_directory(directory, ((name, script.encode()) for name, script in scripts.items()))


def _print(judged: list[Judged], shrunk: dict[int, Judged]) -> None:
    of = Counter(one.parameters.family for one in judged)
    matching = Counter(one.parameters.family for one in judged if one.matches)
    for family in FAMILIES:
        if of[family]:
            print(f"{family:16}{matching[family]:5} of {of[family]:4} match")
    total = matching.total()
    print(f"{'all':16}{total:5} of {len(judged):4} match: {100 * total / len(judged):.1f}%")
    for number, one in shrunk.items():
        print(f"\n{_name(number, judged[number])}: {judged[number].part}")
        print(f"    drawn    {judged[number].parameters.described()}")
        print(f"    shrunk   {one.parameters.described()}")
        print(f"    {one.reason}")
        for line in one.details:
            print(f"        {line}")
