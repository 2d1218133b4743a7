"""The dependence of the five quantities of a path: correlations of their normal scores (a Gaussian copula)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

# Their order in the plan's matrix.
VARIABLES = ("rtt", "down", "up", "buffer", "loss")

# An eigenvalue below this is zero but for rounding: one quantity would follow from the others.
_LEAST_EIGENVALUE = 1e-9


def correlations(pairs: Mapping[str, float]) -> list[float]:
    """The correlation matrix that `pairs` ("rtt_down": -0.3) describe, 25 numbers row by row in the order of VARIABLES.

    A pair can be named either way round; those left out are 0. ValueError for an unknown pair, one given twice, a
    correlation not between -1 and 1, and for numbers that no quantities can have together: it says which.
    """
    import numpy as np

    matrix = np.eye(len(VARIABLES))
    given: set[frozenset[int]] = set()
    for name, correlation in pairs.items():
        first, second = _indices(name)
        if frozenset((first, second)) in given:
            raise ValueError(f'"{name}" is given both ways round; keep one')
        if not -1 < correlation < 1:
            raise ValueError(f"{name} is {correlation:g}: write a correlation between -1 and 1, both left out")
        given.add(frozenset((first, second)))
        matrix[first, second] = matrix[second, first] = correlation
    for size in range(3, len(VARIABLES) + 1):
        for chosen in combinations(range(len(VARIABLES)), size):
            smallest = float(np.linalg.eigvalsh(matrix[np.ix_(chosen, chosen)])[0])
            if smallest < _LEAST_EIGENVALUE:
                raise ValueError(_impossible(matrix, chosen, smallest))
    return [float(value) for value in matrix.ravel()]


def _indices(name: str) -> tuple[int, int]:
    parts = name.split("_")
    if len(parts) != 2 or parts[0] == parts[1] or any(part not in VARIABLES for part in parts):
        raise ValueError(f'"{name}" is not a pair of {", ".join(VARIABLES)}: write for example rtt_down = -0.3')
    return VARIABLES.index(parts[0]), VARIABLES.index(parts[1])


def _impossible(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], chosen: tuple[int, ...], smallest: float
) -> str:
    named = [f"{VARIABLES[a]}_{VARIABLES[b]} = {matrix[a, b]:g}" for a, b in combinations(chosen, 2)]
    return (
        f"no quantities have {', '.join(named[:-1])} and {named[-1]} together (the matrix of these is not positive "
        f"definite: its smallest eigenvalue is {smallest:.3g}); move them towards 0"
    )
