import polars as pl
import pytest

from firstflight.studies.rfc2415.grid import Point
from firstflight.studies.rfc2415.measure import Measures, Place, from_records, page_clocks
from rfc2415_records import CONNECTED, plain_delay, synthetic

CELLS = [Point("base", 16, ftps, "1.0", iw) for ftps in (0, 1) for iw in ("1", "3")]


@pytest.fixture(scope="module")
def measures() -> Measures:
    return from_records(*synthetic(grid=CELLS, replicates=3), CONNECTED)


def test_page_delay_is_the_median_within_each_replicate(measures: Measures):
    found = measures.values[Place("median_page_delay", *CELLS[1])]
    assert found == pytest.approx({r: plain_delay(CELLS[1], r) for r in range(3)})


def test_page_clock_may_start_when_the_client_asks():
    found = from_records(*synthetic(grid=CELLS, replicates=1), {"1.0": "start", "1.1": "start"})
    place = Place("median_page_delay", *CELLS[0])
    assert found.values[place][0] == pytest.approx(plain_delay(CELLS[0], 0) + 0.1)


def test_the_page_clock_of_the_study_is_one_of_the_two():
    assert set(page_clocks()) == {"1.0", "1.1"}


def test_pages_that_did_not_complete_count_for_no_delay():
    transfers, pages, links = synthetic(grid=CELLS[:1], replicates=2)
    unfinished = pages.with_columns(pl.when(pl.col("replicate") == 0).then(0).otherwise(1).alias("completed"))
    found = from_records(transfers, unfinished, links, CONNECTED).values[Place("median_page_delay", *CELLS[0])]
    assert list(found) == [1]


def test_decrease_and_normalised_power_compare_with_iw_1_replicate_by_replicate(measures: Measures):
    decrease = measures.values[Place("median_page_delay_decrease_vs_iw1", *CELLS[1])]
    # The synthetic delay is proportional to 1.2 - 0.05 IW, whatever the replicate.
    assert decrease == pytest.approx(dict.fromkeys(range(3), 100 * (1 - 1.05 / 1.15)))
    power = measures.values[Place("normalized_network_power", *CELLS[1])]
    assert power == pytest.approx(dict.fromkeys(range(3), 1.15 / 1.05))


def test_network_power_is_goodput_by_median_delay(measures: Measures):
    web = Place("network_power", *CELLS[2])
    assert measures.values[web][0] == pytest.approx(12 * 2000 / 1e6 / plain_delay(CELLS[2], 0))
    ftp = Place("network_power", *CELLS[2], group="ftp")
    assert measures.values[ftp][0] == pytest.approx(1 / 9)


def test_the_bottleneck_is_measured_in_the_direction_of_the_data(measures: Measures):
    used = measures.values[Place("link_utilization", *CELLS[0], group="link")]
    dropped = measures.values[Place("packet_drop_rate", *CELLS[0], group="link")]
    assert used == pytest.approx(dict.fromkeys(range(3), 55))
    assert dropped == pytest.approx({0: 1.8, 1: 1.85, 2: 1.9})


def test_a_run_without_cells_measures_nothing():
    empty = [frame.head(0) for frame in synthetic(grid=CELLS, replicates=1)]
    assert from_records(*empty, CONNECTED).values == {}
