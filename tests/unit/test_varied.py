"""A scenario varied: a grid, whose values are compared with the first over the same random numbers."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import firstflight
from firstflight import Duration, RequestError, Scenario, studies
from firstflight.analysis.ab import Design, compare
from firstflight.analysis.intervals import Estimate
from firstflight.analysis.varied import Compared, sentences
from firstflight.records import Run
from small import USERS, Answer

IW = {"tcp.initial_window": [3, 10]}


def value(run: Run, table: str, **wanted: Any) -> dict[str, Any]:
    (found,) = [item for item in studies.of(run).tables(run) if item.name == table]
    (row,) = found.frame.filter(pl.col(name) == item for name, item in wanted.items()).to_dicts()
    return row


def test_cells_are_named_after_the_last_part_of_the_key(small: Scenario) -> None:
    run = firstflight.run(small, replicates=2, vary={**IW, "application.web.clients": [2, 4]})
    assert run.cells == [
        {"initial_window": 3, "clients": 2},
        {"initial_window": 3, "clients": 4},
        {"initial_window": 10, "clients": 2},
        {"initial_window": 10, "clients": 4},
    ]
    assert run.vary == {"tcp.initial_window": [3, 10], "application.web.clients": [2, 4]}


def test_values_from_python_are_those_of_the_same_file_and_a_stored_run_has_them(small: Scenario) -> None:
    vary = {"tcp.initial_window": np.array([3, 10]), "network.bottleneck.delay": [Duration("5ms"), "10ms"]}
    run = firstflight.run(small, replicates=2, vary=vary)
    assert run.vary == {"tcp.initial_window": [3, 10], "network.bottleneck.delay": ["5ms", "10ms"]}
    assert "comparison_delay" in firstflight.open_run(run.directory).tables()


def test_keys_that_would_be_called_the_same_or_like_a_column_keep_their_path(small: Scenario) -> None:
    vary = {"network.left[0].rate": ["5Mbit", "10Mbit"], "network.bottleneck.rate": ["1Mbit", "2Mbit"]}
    assert list(firstflight.run(small, replicates=1, vary=vary).cells[0]) == list(vary)
    varied = firstflight.run(Scenario.from_toml(USERS), replicates=1, vary={"population.loss": [0.0, 0.01]})
    assert varied.cells == [{"population.loss": 0.0}, {"population.loss": 0.01}]


def test_tables_as_values_are_shown_as_toml(small: Scenario) -> None:
    think = [{"distribution": "uniform", "low": "1s", "high": "5s"}, {"distribution": "exponential", "mean": "2s"}]
    run = firstflight.run(small, replicates=1, vary={"application.web.think_time": think})
    assert run.cells[1] == {"think_time": '{ distribution = "exponential", mean = "2s" }'}


def test_the_comparison_of_a_network_is_that_of_its_replicates(small: Scenario, tmp_path: Path) -> None:
    run = firstflight.run(small, replicates=6, vary=IW, out=tmp_path)
    web = run.pages.filter(pl.col("application").cast(pl.String) == "web")
    design = Design(arm="initial_window", baseline=3, treatment=10, unit=["replicate"])
    for metric in ("mean", "p50", "p95"):
        found = value(Run.open(tmp_path), "comparison", metric=metric, application="web", initial_window=10)
        public = compare(web, "completion_time_s", design, statistic=metric)
        same = (public.percent.value, public.percent.low, public.percent.high)
        ours = [math.nan if found[name] is None else found[name] for name in ("ours", "low", "high")]
        assert ours == pytest.approx(same, nan_ok=True), metric
    mean = value(run, "comparison", metric="mean", application="web", initial_window=10)
    assert mean["low"] < mean["ours"] < mean["high"]
    (table,) = [table for table in studies.of(run).tables(run) if table.name == "comparison"]
    assert any("too few: p95 needs 800, so some" in note for note in table.notes)


def test_the_comparison_of_a_population_is_over_its_users() -> None:
    run = firstflight.run(Scenario.from_toml(USERS), replicates=20, vary={"tcp.initial_window": [3, 10]})
    found = value(run, "comparison", metric="mean", application="file_transfer", initial_window=10)
    means = run.transfers.group_by("initial_window").agg(pl.col("completion_time_s").mean()).collect()
    one, other = (means.filter(pl.col("initial_window") == iw)["completion_time_s"].item() for iw in (10, 3))
    assert found["ours"] == pytest.approx(100 * (one / other - 1), rel=1e-6)
    assert found["low"] < found["ours"] < found["high"] < 0


def test_arms_are_compared_together_and_what_datagrams_met_too() -> None:
    street = Scenario.load(Path(__file__).parents[2] / "examples/street.toml")
    few = street.replace_all(
        [("duration", "4s"), ("network.group.home.count", 20), ("application.voice.user_fraction", 1)]
    )
    few = few.replace("network.group.aggregation.link.rate", "40Mbit")
    run = firstflight.run(few, replicates=3, vary={"arm.iw10.share": [0, 1]})
    faster = value(run, "comparison", application="web, all arms", metric="mean", share=1)
    assert faster["ours"] < 0
    voice = {"application": "voice, all arms, sender server", "share": 1}
    units = {name: value(run, "comparison", metric=name, **voice)["unit"] for name in ("mean_delay", "late", "mos")}
    assert units == {"mean_delay": "percent", "late": "percentage points", "mos": "points"}
    delay = value(run, "comparison", metric="mean_delay", **voice)["ours"]
    of_voice = pl.col("application").cast(pl.String).str.contains("voice")
    streams = run.streams.filter(pl.col("from_server") == 1, of_voice)
    means = streams.group_by("share", "replicate").agg(pl.col("delay_mean_s").mean()).group_by("share").mean().collect()
    one, other = (means.filter(pl.col("share") == share)["delay_mean_s"].item() for share in (1, 0))
    assert delay == pytest.approx(100 * (one / other - 1))


def test_what_run_prints_has_the_worst_change_and_less_time_is_no_speed() -> None:
    def change(iw: int, application: str, percent: float) -> Compared:
        return Compared("iw", 3, iw, {}, application, "mean", Estimate(percent, percent - 1, percent + 1), "users")

    comparisons = [change(10, "web", -20), change(10, "call", 0.3), change(32, "web", -43), change(32, "call", 9)]
    assert sentences(comparisons, {"iw": [3, 10, 32]}) == [
        "With iw 10 instead of 3, web takes 20.0% less time on average (95% CI 19.0 to 21.0%).",
        "With iw 10 instead of 3, call takes 0.3% more time on average (95% CI -0.7 to 1.3%).",
        "With iw 32 instead of 3, call takes 9.0% more time on average (95% CI 8.0 to 10.0%).",
    ]


def test_a_quantile_among_unfinished_transfers_has_no_change_in_percent(small: Scenario) -> None:
    # With 200 bit/s nothing finishes.
    run = firstflight.run(small, replicates=5, vary={"network.bottleneck.rate": ["200bit", "100Mbit"]})
    p99 = value(run, "comparison", metric="p99", application="web")
    assert p99["ours"] is None


def test_aggregates_are_compared_too() -> None:
    users = Scenario.from_toml(USERS)
    rows = firstflight.run(users, replicates=10, vary=IW)
    sums = firstflight.run(users.replace("population.records", "aggregates"), replicates=10, vary=IW)
    for metric, tolerance in (("mean", 1e-6), ("p50", 1.5)):
        one, other = (
            value(run, "comparison", metric=metric, application="file_transfer")["ours"] for run in (rows, sums)
        )
        assert one == pytest.approx(other, abs=tolerance), metric


def test_a_varied_run_reads_as_a_study_of_its_own(
    firstflight: Callable[..., Answer], small_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ("run", small_file, "--replicates", 3, "--out", out)
    done = firstflight(*options, "--vary", "tcp.initial_window=3,10", "--vary", 'application.web.inline="3kB",6kB')
    assert done.status == 0, done.err
    assert "4 cells in" in done.out
    assert "comparison_initial_window, comparison_inline, transfers, pages" in done.out
    assert firstflight("table", out, "comparison_inline").out.startswith("inline: compared with 3kB\n")
    assert firstflight("claims", out).out == '"small" makes no claims\n'
    assert firstflight("report", out).status == 0
    html = (out / "report.html").read_text()
    assert "initial_window: compared with 3" in html
    other = firstflight(*options, "--vary", "tcp.initial_window=3,16")
    assert other.status == 2
    assert "it varies tcp.initial_window = 3, 10 and application.web.inline = 3kB, 6kB, not tcp" in other.err
    assert firstflight(*options).status == 2


@pytest.mark.parametrize(
    ("vary", "expected"),
    [
        ({"tcp.initial_window": [3, "many"]}, r'--vary tcp\.initial_window="many": '),
        ({"tcp.window": [3, 10]}, r'--vary tcp\.window=3: .*unknown key "window"'),
        ({"application.mail.clients": [3, 10]}, r'nothing is called "mail"'),
        ({"duration": ["1s", "1000ms"]}, "--vary duration: .1s. and .1000ms. are equal; write each value once"),
        ({"tcp.initial_window": [3, 10, 3]}, r"--vary tcp\.initial_window: 3 and 3 are equal; write each value once"),
        ({"tcp.initial_window": [3]}, r"has 1 value; write at least two"),
        ({"tcp.initial_window": range(1, 102), "mtu": range(100)}, r"makes 10,100 cells; .* at most 10,000 cells"),
    ],
)
def test_a_wrong_variation_is_one_sentence(small: Scenario, vary: dict[str, list[Any]], expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        firstflight.run(small, vary=vary)


def test_a_study_is_not_varied() -> None:
    with pytest.raises(RequestError, match='--vary changes a scenario file, and "rfc2415" is a study with a grid'):
        firstflight.run("rfc2415", vary=IW)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tcp.initial_window"], "is not KEY=VALUE: write for example --vary tcp.initial_window=3,10"),
        (["tcp.initial_window=3,"], "write values with commas between them"),
        (["a={ law = 1,3"], "write values with commas between them"),
        (["a=1,2", "a=3,4"], 'gives "a" twice'),
    ],
)
def test_a_variation_that_cannot_be_read_is_one_sentence(
    firstflight: Callable[..., Answer], small_file: Path, words: list[str], expected: str
) -> None:
    answer = firstflight("run", small_file, *(part for word in words for part in ("--vary", word)))
    assert answer.status == 2
    assert expected in answer.err
