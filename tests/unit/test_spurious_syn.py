"""A SYN-ACK that was repeated needlessly, where the round trip exceeds the initial timeout of a second."""

import pytest

from firstflight import Cell, Scenario, engines

SCENARIO = """
name = "far"
duration = "120s"
[tcp]
profile = "linux"
[network]
topology = "chain"
links = { rate = "1189kbit", delay = "550ms", queue = "1000p" }
[[application]]
name = "download"
kind = "file_transfer"
count = 1
size = "43600B"
"""


@pytest.mark.parametrize(("segments", "kernel_s"), [(3, 5.628), (10, 4.427)])
def test_a_needless_repetition_of_the_syn_ack_keeps_the_initial_window_as_in_the_kernel(
    segments: int, kernel_s: float
) -> None:
    scenario = Scenario.from_toml(SCENARIO).replace("tcp.initial_window", segments)
    transfer = engines.find("simulate").run_cell(Cell({"iw": segments}, scenario), 1, 1)["transfers"]
    assert transfer["first_flight_segments"].to_list() == [segments]
    # The kernel's times are of the emulator: nginx and curl need some milliseconds.
    assert transfer["completion_time_s"].item() == pytest.approx(kernel_s, abs=0.01)


def test_without_timestamps_nothing_tells_that_the_repetition_was_needless() -> None:
    without = SCENARIO.replace('"linux"', '"linux"\ntimestamps = false\nundo_spurious_syn = false')
    scenario = Scenario.from_toml(without)
    transfer = engines.find("simulate").run_cell(Cell({"iw": 10}, scenario), 1, 1)["transfers"]
    # One segment, and a second later the probe of the tail.
    assert transfer["first_flight_segments"].to_list() == [2]
