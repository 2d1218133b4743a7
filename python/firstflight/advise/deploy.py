"""The lines that set an initial window on Linux, keep it over a reboot, show that it works, and take it back: those of
deploy.toml, and those that depend on more than the window.

`ip route replace` with the whole line of the route changes that route; with a part of it, it adds a second one (another
metric is another route). A later `initcwnd` in the line wins over an earlier one.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

LINUX_DEFAULT = 10
"""TCP_INIT_CWND of Linux since 2.6.39."""
CLIENT_WINDOW_SEGMENTS = 44
"""Number of segments in the window that a Linux client announces first with default settings: 63 kB of 1448 bytes."""


@dataclass(frozen=True)
class Step:
    """One thing to do: a heading, the lines to type or to write into `file`, what to type `then`, and notes. `host`:
    the program or system that it is for; empty if for each.
    """

    title: str
    lines: tuple[str, ...]
    note: str = ""
    file: str = ""
    then: tuple[str, ...] = ()
    host: str = ""


def steps(window: int, current: int, current_known: bool) -> list[Step]:
    """Commands that replace `current` by `window`; `current_known` False: assumed, not seen in the data."""
    return [
        *_steps("set", window),
        *persistent(window),
        *_steps("container", window),
        elsewhere(),
        *_steps("verify", window),
        roll_back(current, current_known),
        receive_window(window),
    ]


def persistent(window: int) -> list[Step]:
    """The same so that it outlives a reboot, for each program that configures networks on Linux."""
    return _steps("persistent", window)


def elsewhere() -> Step:
    """For hosts on which these lines mean nothing."""
    (step,) = _steps("elsewhere", LINUX_DEFAULT)
    return step


def roll_back(current: int, known: bool) -> Step:
    """The commands that restore the earlier window."""
    plain = current == LINUX_DEFAULT
    source = "was seen in the data" if known else "is Linux's default and was not seen in the data"
    return Step(
        "Take it back",
        _steps("set", current)[1].lines,
        f"{current} {source}. "
        + ("It is what Linux does without the word initcwnd, too. " if plain else "")
        + "Remove the persistent lines as well. It applies to new connections; open ones keep theirs.",
    )


def receive_window(window: int) -> Step:
    """The requirements on the other endpoint."""
    lines = ["sysctl net.ipv4.tcp_rmem    # on a client: half of the middle value is its first window"]
    if window <= CLIENT_WINDOW_SEGMENTS:
        note = (
            f"Nothing: a Linux client advertises room for about {CLIENT_WINDOW_SEGMENTS} full segments at first, and "
            f"{window} fit. "
        )
    else:
        lines += [f'sudo sysctl net.ipv4.tcp_rmem="4096 {_middle(window)} $(cut -f3 /proc/sys/net/ipv4/tcp_rmem)"']
        note = (
            f"A Linux client with default settings advertises about {CLIENT_WINDOW_SEGMENTS} full segments at first, "
            "which bounds the first flight, whatever the server may send. Who runs the clients as well can raise the "
            "middle value of tcp_rmem: half of it is advertised after the handshake. "
        )
    return Step(
        "Limit of the clients",
        tuple(lines),
        note + "The route attribute initrwnd of a client can only lower its first window on Linux 6.18, not raise it. "
        "For uploads the same holds with the roles exchanged.",
    )


def _middle(window: int) -> int:
    """A middle value of tcp_rmem, a power of two, of which half holds `window` segments of 1448 bytes."""
    need, size = 2 * window * 1448, 131072
    while size < need:
        size *= 2
    return size


def watch(window: int) -> list[tuple[str, str]]:
    """Values to monitor afterwards: (what, how)."""
    return [(value["what"], value["how"]) for value in _said(window)["watch"]]


def _said(window: int) -> dict[str, list[dict[str, Any]]]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return tomllib.loads(text.replace("{window}", str(window)))


def _steps(part: str, window: int) -> list[Step]:
    return TypeAdapter(list[Step]).validate_python(_said(window)[part])
