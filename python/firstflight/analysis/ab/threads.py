"""Matrix products with one thread each."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS works with one thread.

    The products of a resampling are small: BLAS's threads would wait for each other for longer than they work, and take
    several times the CPU.
    """
    context: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return context


@cache
def _libraries() -> ThreadpoolController:
    # To find the libraries takes milliseconds.
    return ThreadpoolController()
