"""Results computed once per run and shared by tables, claims, figures and the answer."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from firstflight.records import Run

P = ParamSpec("P")
T = TypeVar("T")


def kept(function: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """`function`, whose results are kept with the run, one for each of its other arguments (all hashable), until
    another cell of it has finished.
    """

    @wraps(function)
    def once(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        finished = len(run.cells)
        if run.derived.setdefault("finished", finished) != finished:
            run.derived.clear()
            run.derived["finished"] = finished
        key = (function, args, tuple(sorted(kwargs.items())))
        if key not in run.derived:
            run.derived[key] = function(run, *args, **kwargs)
        found: T = run.derived[key]
        return found

    return once
