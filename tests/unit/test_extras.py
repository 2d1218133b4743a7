"""What works without the extras `figures` and `studies`, and the sentence that names the missing one."""

import math
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firstflight._native import chi_squared_tail, normal_cdf, student_cdf, student_quantile
from firstflight.studies import NAMES

ROOT = Path(__file__).parents[2]
CORE = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
without = {"vl_convert", "scipy", "xarray", "pandas"}
PathFinder.find_spec = lambda name, *more: None if name.partition(".")[0] in without else found(name, *more)
from firstflight.cli import main
"""
# Of 450 users no second replicate.
LITTLE = "from firstflight.advise import experiment; experiment.WORK = 1"
Core = Callable[..., tuple[int, str, str]]


@pytest.fixture
def core(tmp_path: Path) -> Core:
    def run(*arguments: object, first: str = "") -> tuple[int, str, str]:
        words = [sys.executable, "-c", f"{CORE}{first}\nmain()", *map(str, arguments)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("figures", ["report", "run"]),
        ("figures", ["explain", "--out", "explained.png"]),
        ("figures", ["trace", ROOT / "examples" / "download.toml", "--plot", "traced.svg"]),
        ("studies", ["run", "lost-syn"]),
        ("studies", ["scorecard", "iw10"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_needs_an_extra_names_it_before_any_work(core: Core, tmp_path: Path, extra: str, words: list[str]) -> None:
    status, out, err = core(*words)
    assert (status, out) == (3, "")
    assert err.endswith(f'is not installed; fix: pip install "firstflight[{extra}]"\n')
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_studies_are_listed_with_the_core_alone(core: Core) -> None:
    status, out, err = core("studies")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(NAMES)


def test_an_explanation_is_drawn_with_the_core_alone(core: Core, tmp_path: Path) -> None:
    assert core("explain", "--out", "explained.svg")[::2] == (0, "")
    assert (tmp_path / "explained.svg").read_text().startswith("<svg")


def test_a_scenario_runs_and_its_tables_are_printed_with_the_core_alone(core: Core) -> None:
    assert core("run", ROOT / "examples" / "download.toml", "--replicates", 3, "--out", "run")[0] == 0
    status, out, err = core("table", "run", "transfers")
    assert (status, err) == (0, "")
    assert "0.210" in out


def test_an_advice_of_the_core_has_a_page_without_figures_and_says_so(core: Core, tmp_path: Path) -> None:
    flows = tmp_path / "flows.csv"
    rows = (f"{n},{20_000 + 10 * n},{0.02 + 0.0001 * n}" for n in range(450))
    flows.write_text("\n".join(["connection,bytes,rtt_s", *rows]) + "\n")
    assumed = [word for value in ("lines=20Mbit", "buffer=50ms", "loss=0.1%") for word in ("--assume", value)]
    status, out, err = core("advise", flows, "--iw", "10,20", *assumed, "--out", "advice", first=LITTLE)
    assert status == 0, err
    assert "initial window" in out
    assert 'the page has no figures: vl_convert is not installed; fix: pip install "firstflight[figures]"' in err
    page = (tmp_path / "advice" / "advice.html").read_text()
    assert "<figure" not in page


def test_the_laws_are_those_of_scipy() -> None:
    np = pytest.importorskip("numpy")
    special = pytest.importorskip("scipy.special")
    scores = np.linspace(-9, 9, 1001)
    assert np.frombuffer(normal_cdf(scores)) == pytest.approx(special.ndtr(scores), rel=1e-9, abs=1e-300)
    for freedom in (1, 1.5, 2, 4, 11, 29, 399, 1e5):
        for share in (0.001, 0.025, 0.2, 0.5, 0.9, 0.975, 0.99999):
            expected = special.stdtrit(freedom, share)
            assert student_quantile(freedom, share) == pytest.approx(expected, rel=1e-8, abs=1e-8), (freedom, share)
        for value in (-40, -2.5, -0.1, 0, 1, 3, 12):
            assert student_cdf(freedom, value) == pytest.approx(special.stdtr(freedom, value), rel=1e-9)
    for freedom in (1, 3, 40):
        for value in (0, 0.3, 5, 60, 200):
            assert chi_squared_tail(freedom, value) == pytest.approx(special.chdtrc(freedom, value), rel=1e-9)
    assert student_quantile(float("inf"), 0.975) == pytest.approx(special.ndtri(0.975))
    assert [student_quantile(5, share) for share in (0, 0.5, 1)] == [-math.inf, pytest.approx(0), math.inf]


def test_every_quantile_of_students_t_is_found() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        freedom, tail = 10 ** draw.uniform(-0.5, 7), 10 ** draw.uniform(-8, 0)
        assert student_cdf(freedom, student_quantile(freedom, tail)) == pytest.approx(tail, rel=1e-6)


def test_laws_without_an_answer_give_nan() -> None:
    nan = float("nan")
    for found in (student_cdf(nan, 1), student_cdf(0, 1), student_quantile(3, nan), chi_squared_tail(0, 1)):
        assert found != found
