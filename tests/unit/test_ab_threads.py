"""Intervals are computed with one thread of BLAS, and leave its threads as they were."""

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from firstflight.analysis.ab import Design, compare
from firstflight.analysis.ab.sample import Values

if not any("numpy" in library["filepath"] for library in threadpool_info()):
    pytest.skip("this NumPy does not bring its BLAS along", allow_module_level=True)

DESIGN = Design(arm="iw", baseline=3, treatment=10, unit=["client"], least=2, resamples=100)
ROWS = pl.DataFrame({"iw": [3] * 40 + [10] * 40, "client": [*range(40)] * 2, "time_s": [float(n) for n in range(80)]})


def _threads() -> set[int]:
    """Of the BLAS that multiplies; SciPy may load another."""
    own = [library for library in threadpool_info() if "numpy" in library["filepath"]]
    return {library["num_threads"] for library in own if library["user_api"] == "blas"}


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The number of threads during each product of a resampling."""
    found: list[set[int]] = []

    multiply = np.matmul

    def noted(left: Values, right: Values, out: Values) -> Values:
        found.append(_threads())
        return multiply(left, right, out=out)

    monkeypatch.setattr(np, "matmul", noted)
    return found


def test_a_comparison_uses_one_and_leaves_them_as_they_were(seen: list[set[int]]) -> None:
    with threadpool_limits(2, user_api="blas"):
        compare(ROWS, "time_s", DESIGN)
        assert _threads() == {2}
    assert seen
    assert all(threads == {1} for threads in seen)
