"""Line rates of users from the times in a log, and the operator's additions with `--assume`."""

from pathlib import Path

import numpy as np
import pytest

import advise_flows
from firstflight import observe
from firstflight.advise import sensitivity
from firstflight.advise.assume import parse
from firstflight.advise.experiment import complete
from firstflight.advise.fit import FittedPopulation, fit
from firstflight.errors import RequestError
from flows import EXAMPLES


def timed(path: Path, mbps: float, flows: int = 2000) -> Path:
    """Flows with RTT, size and time: every fourth response is of 400 kB, on lines of `mbps`."""
    random = np.random.default_rng(1)
    rtt_ms = random.uniform(20, 80, flows)
    size = np.where(np.arange(flows) % 4 == 0, 400_000, 9_000)
    time_ms = 5 * rtt_ms + 8 * 1.05 * size / mbps / 1e3
    rows = "\n".join(f"{r:.3f},{s},{t:.3f}" for r, s, t in zip(rtt_ms, size, time_ms, strict=True))
    path.write_text(f"rtt_ms,bytes,completion_time_ms\n{rows}\n")
    return path


def population(path: Path) -> FittedPopulation:
    return fit(observe.read(path), 10_000, seed=1)


def rates(found: FittedPopulation) -> dict[str, np.ndarray]:
    return {case.name: np.array(complete(found, case, 1).columns["down_bps"]) for case in sensitivity.cases(found)}


def test_lines_of_2010_are_out_of_the_question_where_more_came_through(tmp_path: Path) -> None:
    found = population(timed(tmp_path / "flows.csv", 30))
    down = rates(found)
    # 400 kB in 5 round trips of 80 ms and 112 ms: no line has less than 6 Mbit/s, and none that was seen has 30.
    assert 6e6 < down["slow lines"].min() < down["slow lines"].max() < 31.5e6
    assert (down["reference"] >= down["slow lines"]).all()
    assert "2010" not in " ".join(case.text for case in sensitivity.cases(found))


def test_slow_lines_are_seen_to_be_slow(tmp_path: Path) -> None:
    down = rates(population(timed(tmp_path / "flows.csv", 0.5)))
    assert np.median(down["slow lines"]) < 0.53e6


def test_few_long_responses_do_not_speak_for_the_others(tmp_path: Path) -> None:
    found = population(timed(tmp_path / "flows.csv", 30, flows=400))
    assert not found.shows_lines
    assert np.median(rates(found)["slow lines"]) < 2.5e6


def test_the_times_of_an_access_log_bound_the_rates_of_real_lines_from_below() -> None:
    truth = dict(enumerate((1, 2, 4, 5, 8, 8, 12, 16)))
    seen = observe.read(EXAMPLES / "nginx.log")
    bounds = seen.users.join(seen.bounds, on="client").select("subnet", "client", "min_down_bps", "rtt_s")
    assert bounds.height == len(truth)
    least = sorted(bounds["min_down_bps"].to_list())
    # The 2% loss of one user leaves its TCP a fifth of the rate.
    assert all(0.1 * rate <= found / 1e6 <= rate for found, rate in zip(least, sorted(truth.values()), strict=True))


def test_what_the_operator_assumes_adds_cases_removes_none_and_is_told_as_assumed(tmp_path: Path) -> None:
    path = advise_flows.write(tmp_path / "flows.csv", 300, rates=False, again=False)
    found = population(path)
    given = parse(["lines=uk-2015", "buffer=50ms", "connections=3", "loss=0.1%"])
    known = FittedPopulation(**(vars(found) | {"given": given}))
    without, having = sensitivity.cases(found), sensitivity.cases(known)
    assert having[: len(without)] == without
    # The lines are the reference's: no case is there twice.
    buffer, connections, loss = having[len(without) :]
    assert (buffer.buffer_s, connections.parallel_connections, loss.loss) == (0.05, 3, 0.001)
    assert [each.name for each in (buffer, connections, loss)] == [
        "assumed buffer",
        "assumed connections",
        "assumed loss",
    ]
    assert [text.split(":")[0] for text in known.assumed[1:]] == [
        "--assume lines=uk-2015",
        "--assume buffer=50ms",
        "--assume connections=3",
        "--assume loss=0.1%",
    ]


def test_one_rate_for_all_lines_can_be_assumed(tmp_path: Path) -> None:
    path = advise_flows.write(tmp_path / "flows.csv", 300, rates=False, again=False)
    known = FittedPopulation(**(vars(population(path)) | {"given": parse(["lines=20Mbit"])}))
    assert set(rates(known)["assumed lines"]) == {20e6}


def test_what_the_data_tells_cannot_be_assumed(tmp_path: Path) -> None:
    found = population(advise_flows.write(tmp_path / "flows.csv", 300))
    with pytest.raises(RequestError, match="have the value of --assume lines="):
        sensitivity.check_open(FittedPopulation(**(vars(found) | {"given": parse(["lines=uk-2023"])})))


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("line=uk-2023", 'did you mean "lines"'),
        ("lines=uk-2032", '"uk-2023"'),
        ("lines=20", "has no unit"),
        ("buffer=deep", "is not a time"),
        ("connections=many", "is no number"),
        ("connections=400", "out of range"),
        ("loss=x", "is no share"),
        ("loss", "is not KEY=VALUE"),
    ],
)
def test_an_assumption_that_is_not_right_is_refused_in_one_sentence(term: str, said: str) -> None:
    with pytest.raises(RequestError, match=r"^--assume") as refused:
        parse([term])
    assert said in str(refused.value)
