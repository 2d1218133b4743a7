"""Errors that the user can fix; each message says how.

Exit statuses: 2 when the request was wrong, 3 when the machine cannot do it.
"""

import re
from importlib.util import find_spec

# A path can be long and is useful whole.
_LONG_WORD = re.compile(r"(\S{300})\S{100,}")


class FirstflightError(Exception):
    """Base of the errors this package raises on purpose; `exit_status` is the command line's exit status."""

    exit_status = 1


class RequestError(FirstflightError):
    """The request was wrong: a bad file, an unknown name, a value out of range (exit status 2).

    Messages quote names of the input; of a longer one than a sentence bears only the first characters are kept.
    """

    exit_status = 2

    def __init__(self, message: str) -> None:
        super().__init__(_LONG_WORD.sub(r"\1...", message))


class SelfCheckError(FirstflightError):
    """A testbed does not behave as configured (exit status 1)."""


class MachineError(FirstflightError):
    """The machine cannot do it: a missing program, a missing privilege, a full disk (exit status 3).

    `fix`: the command that usually fixes it, or an instruction; empty where `reason` contains it or none is known.
    """

    exit_status = 3

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"{reason}; fix: {fix}" if fix else reason)
        self.reason = reason
        self.fix = fix


_EXTRAS = {"vl_convert": "figures", "scipy": "studies", "xarray": "studies"}


def missing_extra(module: str) -> MachineError | None:
    """The error that names the extra with this module; None if it belongs to none."""
    extra = _EXTRAS.get(module.partition(".")[0])
    return None if extra is None else MachineError(f"{module} is not installed", f'pip install "firstflight[{extra}]"')


def require_figures() -> None:
    """Raise MachineError, before long work, where what draws is not installed."""
    missing = missing_extra("vl_convert") if find_spec("vl_convert") is None else None
    if missing is not None:
        raise missing


def require_linux(what: str) -> None:
    """Raise MachineError on another system: `what`, which the sentence begins with, is done by Linux itself."""
    import platform

    if platform.system() != "Linux":
        raise MachineError(
            f"{what} needs Linux's TCP, and this is {platform.system()}: use a Linux machine, a virtual one will do; "
            "everything else works here"
        )
