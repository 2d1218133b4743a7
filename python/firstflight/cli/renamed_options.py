"""Options that have another name since the last release: the old one is taken for one release, with a warning."""

import sys
from typing import TypeVar

from firstflight.errors import RequestError

Value = TypeVar("Value", int, str)


def renamed(old: str, given: Value | None, new: str, value: Value | None) -> Value | None:
    """The value of `new`, which was called `old`. RequestError if both are `given`."""
    if given is None:
        return value
    if value is not None:
        raise RequestError(f"{old} is the old name of {new}; leave {old} out")
    print(f"firstflight: {old} is now {new}; the next release refuses {old}", file=sys.stderr, flush=True)
    return given
