"""Each example says which engines run it."""

import pytest

from example_engines import ENGINES, FILES, attempt, briefly, stated
from firstflight import RequestError


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_example_runs_with_the_engines_that_it_names_and_no_other(file: str, engine: str) -> None:
    runs = stated(file)
    assert set(runs) <= set(ENGINES)
    if settings := runs.get(engine):
        # It says that it needs them.
        with pytest.raises(RequestError):
            attempt(engine, briefly(file, []))
    if engine in runs:
        attempt(engine, briefly(file, settings or []))
    else:
        with pytest.raises(RequestError):
            attempt(engine, briefly(file, []))
