"""A slice of `kernel-slices`: both engines in one run."""

import firstflight
from emulations import skip_unless_possible
from firstflight.studies import find
from firstflight.studies.kernel import DeclaredStudy


def test_a_larger_window_is_faster_over_the_kernel_as_in_the_simulator() -> None:
    skip_unless_possible()
    study = find("kernel-slices")
    assert isinstance(study, DeclaredStudy)
    only = {"experiment": "startup", "queue": "133p", "scheme": ["IW 3", "IW 32"]}
    q = study.quantities(firstflight.run(study, engine="emulate", replicates=1, only=only))
    for engine in ("emulate", "simulate"):
        few, many = (float(q.time.sel(engine=engine, queue="133p", scheme=iw).isel(draw=0)) for iw in only["scheme"])
        assert many < few
    assert float(q.again.sel(queue="133p", scheme="IW 3").isel(draw=0).max()) == 0
