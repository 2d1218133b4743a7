"""The recursion behind RFC 6928 section 5.1."""

from __future__ import annotations

import csv

import pytest

from firstflight.engines.model.delayed_acks import cumulative_segments, first_rounds, round_trips
from firstflight.errors import RequestError
from firstflight.studies.rfc6928_rounds import REFERENCE, TABLE


def test_all_26_printed_values_come_out() -> None:
    assert len(TABLE) == 26
    assert {key: round_trips(*key) for key in TABLE} == TABLE


def test_cumulative_segments_agree_with_an_independent_computation() -> None:
    with (REFERENCE / "cumulative_segments.csv").open(encoding="utf-8") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 54
    for row in rows:
        assert first_rounds(row["iw"], row["round"])[-1] == row["cumulative_segments"]


def test_without_delayed_acks_the_window_doubles() -> None:
    assert first_rounds(3, 5, segments_per_ack=1) == [3, 9, 21, 45, 93]


def test_a_lone_segment_with_delayed_acks_stalls_for_ever() -> None:
    assert first_rounds(1, 4) == [1, 1, 1, 1]
    with pytest.raises(RequestError, match="never arrive"):
        round_trips(2, 1)
    assert round_trips(1, 1) == 1


@pytest.mark.parametrize(("iw", "per_ack", "says"), [(0, 2, "sends nothing"), (3, 3, "give 1 or 2")])
def test_impossible_arguments_are_refused(iw: int, per_ack: int, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        cumulative_segments(iw, per_ack)


def test_a_transfer_of_nothing_is_refused() -> None:
    with pytest.raises(RequestError, match="give at least 1"):
        round_trips(0, 3)
