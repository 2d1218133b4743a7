"""Few records that turn a result are found, named, and the result is shown with and without them."""

import csv
from pathlib import Path

import numpy as np
import pytest

import advise_flows
from firstflight.advise import Advice, advise, experiment
from firstflight.advise.compare import compare_arms
from firstflight.advise.fit import FittedPopulation, shrunken
from firstflight.advise.outliers import hinging
from firstflight.advise.sensitivity import SensitivityCase, cases

FLOWS = 600


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(population: FittedPopulation) -> list[SensitivityCase]:
        return [case for case in cases(population) if case.name in ("reference", "deep buffers")]

    monkeypatch.setattr(experiment, "WORK", FLOWS)
    monkeypatch.setattr("firstflight.advise.run.cases", some)


def with_rows(path: Path, *changes: dict[str, str]) -> Path:
    """`path` with copies of its 100th, 101st, ... row, each with some other values."""
    rows = list(csv.reader(path.read_text().splitlines()))
    for place, change in enumerate(changes):
        row = dict(zip(rows[0], rows[100 + place], strict=True)) | change
        rows.insert(300 + place, [row[name] for name in rows[0]])
    changed = path.with_name(f"changed-{path.name}")
    with changed.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return changed


def advised(flows: Path) -> Advice:
    return advise(flows, iw="10,16", harm="retransmissions=+2,mean=+5%", out=flows.parent / "out", jobs=1)[0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param([{"bytes": "4294967296", "down_mbps": "10"}], ["4.29 GB", "10 Mbit/s"], id="one of 4 GB"),
        pytest.param(
            [{"bytes": "900000000", "down_mbps": "5"}] * 3, ["900 MB"], marks=pytest.mark.slow, id="three of 900 MB"
        ),
        pytest.param([{"down_mbps": "0.001"}], ["0.001 Mbit/s"], marks=pytest.mark.slow, id="one line of 1 kbit/s"),
    ],
)
def test_a_result_that_hinges_on_few_records_names_them_and_is_shown_without_them(
    tmp_path: Path, changes: list[dict[str, str]], named: list[str]
) -> None:
    made = advised(with_rows(advise_flows.write(tmp_path / "flows.csv", FLOWS), *changes))
    assert (made.decision.outcome, made.confidence) == ("keep", "insufficient data")
    found = made.outliers
    assert found is not None
    assert found.initial_window == 16
    assert [f"connection {300 + place}" for place in range(len(changes))] == [
        record.partition(":")[0] for record in sorted(found.records)
    ]
    assert all(word in record for record in found.records for word in named)
    assert found.share_percent > 30
    # With and without: not shown to gain, and shown.
    assert not found.with_them.high < 0
    assert found.without.high < -3
    (sentence,) = (text for text in made.answer if text.startswith("Outliers"))
    assert "16 would be recommended" in sentence
    assert "hinges on" in made.confidence_reason


def test_flows_without_outliers_name_none_and_do_not_depend_on_them(tmp_path: Path) -> None:
    made = advised(advise_flows.write(tmp_path / "flows.csv", FLOWS))
    assert made.outliers is None
    assert (made.decision.outcome, made.decision.initial_window) == ("change", 16)


def test_a_part_of_all_is_an_outlier_by_its_size_and_its_fair_share() -> None:
    own = np.ones(4000)
    own[[7, 9]] = 50, 30
    # 50 and 30 of 4,078: above and below a hundredth.
    assert hinging(own).tolist() == [7]
    few = np.ones(500)
    few[3] = 18.0
    assert hinging(few).tolist() == []
    few[3] = 25.0
    assert hinging(few).tolist() == [3]
    assert len(hinging(np.r_[np.ones(4000), np.full(9, 500.0)])) == 5
    assert hinging(np.array([np.nan, *np.ones(500)])).tolist() == []


def test_one_long_connection_does_not_set_the_loss_of_all() -> None:
    drawn = np.random.default_rng(3)
    trials = drawn.integers(5, 60, 2000).astype(float)
    events = drawn.binomial(trials.astype(int), 0.004).astype(float)
    alone = shrunken(events, trials)
    changed = shrunken(np.r_[events, 900_000.0], np.r_[trials, 3_000_000.0])
    assert changed[-1] == pytest.approx(0.3, rel=0.01)
    # Before: the law of all was that of the one, 30%.
    assert np.median(changed[:-1]) < 4 * np.median(alone)


def test_a_comparison_that_hinges_on_one_record_says_what_it_is_without_it(tmp_path: Path) -> None:
    drawn = np.random.default_rng(2)
    paths = []
    for name, factor in (("before", 1.0), ("after", 0.8)):
        times = factor * drawn.lognormal(5.3, 0.5, 900)
        if name == "after":
            times[5] = 900_000.0
        rows = "\n".join(f"{40 + row % 50},30000,{time:.2f}" for row, time in enumerate(times))
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(f"rtt_ms,bytes,completion_time_ms\n{rows}\n")
    found = compare_arms(paths[0], paths[1], harm="mean=+5%", concurrent=True)
    assert found.outcome == "inconclusive"
    (said,) = (text for text in found.doubts if "outlier" in text)
    assert said.startswith("outlier: 1 response of after makes up")
    assert "0.03 MB, RTT 45 ms in 900 s" in said
    assert "without it the outcome is: faster, with a mean change of -" in said
