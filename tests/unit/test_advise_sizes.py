"""Advice on paths that were seen without sizes, as speed tests are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import advise_flows
from firstflight import observe
from firstflight.advise.assume import with_sizes
from firstflight.advise.fit import fit
from firstflight.advise.request import check
from firstflight.advise.run import advise
from firstflight.advise.sensitivity import assumptions, cases
from firstflight.errors import RequestError
from flows import EXAMPLES


@pytest.fixture
def tests(tmp_path: Path) -> observe.Observation:
    """Four thousand speed tests."""
    path = tmp_path / "ndt7.csv"
    rows = "".join(f"{1 + number % 90},{5 + number % 150}\n" for number in range(4000))
    path.write_text(f"a.MeanThroughputMbps,a.MinRTT\n{rows}")
    return observe.read(path)


def test_speed_tests_alone_are_refused_and_the_refusal_names_the_option(tests: observe.Observation) -> None:
    with pytest.raises(RequestError, match="of at least one byte; add --assume-sizes web-search") as said:
        fit(tests, 1000, seed=1)
    assert "\n" not in str(said.value)


def test_assumed_sizes_are_those_of_the_application_on_the_paths_that_were_seen(tests: observe.Observation) -> None:
    found = fit(with_sizes(tests, "web-search", seed=1), 10_000, seed=1)
    assert found.rows["rtt_s"].equals(tests.users["rtt_s"])
    assert found.rows["down_bps"].equals(tests.users["down_bps"])
    sizes = np.log(found.rows["bytes"].to_numpy())
    # 4,000 draws: the median is within five standard errors, 1.25 sigma / sqrt(n) each.
    assert np.median(sizes) == pytest.approx(np.log(9000), abs=5 * 1.25 * 0.56 / 4000**0.5)
    assert sizes.std() == pytest.approx(0.56, abs=5 * 0.56 / 8000**0.5)


def test_the_same_seed_assumes_the_same_sizes(tests: observe.Observation) -> None:
    one, same, other = (with_sizes(tests, "web-search", seed).transfers for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_the_page_is_told_that_sizes_are_assumed(tmp_path: Path) -> None:
    path = tmp_path / "ndt7.csv"
    path.write_text("a.MeanThroughputMbps,a.MinRTT\n" + "20,30\n40,50\n" * 250)
    seen = with_sizes(observe.read(path), "web-search", seed=1)
    population = replace(fit(seen, 1000, seed=1), sizes="web-search")
    assert any("sizes are not in the data but assumed" in note for note in seen.source.notes)
    assert "size of a response" in [each.what for each in assumptions(population)]
    assert "paths as seen, sizes of web-search" in cases(population)[0].text


def test_flows_with_sizes_of_their_own_keep_them(tmp_path: Path) -> None:
    flows = advise_flows.write(tmp_path / "flows.csv", 200)
    with pytest.raises(RequestError, match="has sizes, which are used; leave --assume-sizes web-search out"):
        advise(flows, assume_sizes="web-search", out=tmp_path / "out")


def test_an_application_that_is_no_single_response_is_refused() -> None:
    with pytest.raises(RequestError, match='--assume-sizes "maps" is no built-in application of one short response'):
        check(EXAMPLES / "ndt7.csv", iw="10,16", harm="p99=+5%", assume_sizes="maps")


def test_a_table_of_paths_alone_takes_assumed_sizes_too(tmp_path: Path) -> None:
    path = tmp_path / "paths.csv"
    pl.DataFrame({"rtt_ms": [20.0] * 60, "down_mbps": [10.0] * 60}).write_csv(path)
    assert fit(with_sizes(observe.read(path), "web-search", seed=1), 1000, seed=1).usable == 60
