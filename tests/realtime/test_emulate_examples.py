"""The examples that say so run over the kernel, with the links that the simulator draws."""

from pathlib import Path

import polars as pl
import pytest

import emulations
from example_engines import FILES, briefly, stated
from firstflight import Cell, MachineError, Scenario
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign

NEIGHBORS = """
name = "neighbors"
duration = "4s"
tcp = { profile = "linux", initial_window = 10, receive_window_growth = "none" }

[network]
topology = "tree"
server = { rate = "1Gbit", delay = "5ms", queue = "1000p" }

[[network.group]]
name = "street"
link = { rate = "200Mbit", delay = "1ms", queue = "400p" }

[[network.group]]
name = "home"
behind = "street"
count = 6
[network.group.link]
rate = { distribution = "uniform", low = "5Mbit", high = "300Mbit" }
delay = { distribution = "uniform", low = "10ms", high = "60ms" }
queue = "50ms"

[[application]]
name = "few"
kind = "file_transfer"
clients = "each"
user_fraction = 0.5
size = "30kB"
count = 1
"""


@pytest.mark.parametrize("file", [file for file in FILES if "emulate" in stated(file)])
def test_an_example_that_names_the_emulator_runs_in_it(file: str) -> None:
    emulations.skip_unless_possible()
    scenario = briefly(file, stated(file)["emulate"])
    tables = campaign.run_cell(Cell({}, scenario), 1, 1)
    assert tables["transfers"].height + tables["streams"]["packets_sent"].sum() > 0


def test_links_and_users_drawn_for_each_replicate_are_the_simulators() -> None:
    emulations.skip_unless_possible()
    cell = Cell({}, Scenario.from_toml(NEIGHBORS))
    real, simulated = (
        engine.run_cell(cell, 3, 2)["transfers"].sort("replicate", "client") for engine in (campaign, simulate)
    )
    who = real.select("replicate", "client").rows()
    assert who == simulated.select("replicate", "client").rows()
    assert len({replicate for replicate, _ in who}) == 2
    assert len(who) < 12
    # A busy machine makes a handshake later, never earlier than the way that was drawn.
    late = real["handshake_time_s"] - simulated["handshake_time_s"]
    assert late.min() > -1e-3  # type: ignore[operator]
    assert late.median() < 0.01  # type: ignore[operator]


def test_a_link_is_judged_by_what_passes_it() -> None:
    emulations.skip_unless_possible()
    fast = {"link__rate": "1Gbit", "link__queue": "2000p"}
    (transfer,) = campaign.run_cell(emulations.cell(**fast), 1, 1)["transfers"].iter_rows(named=True)
    assert transfer["completed"]
    with pytest.raises(MachineError, match=r"links\[0\] carried \d+ Mbit/s, and the link emulator is accurate up to"):
        campaign.run_cell(emulations.cell(**fast, web__size="60MB"), 1, 1)


def test_a_trace_with_a_fast_moment_is_carried(tmp_path: Path) -> None:
    """A tenth of a second at 430 Mbit/s in one with a mean of 76 Mbit/s."""
    emulations.skip_unless_possible()
    fast = [time for time in range(100) for _ in range(36)]
    slow = [100 + round(number / 3.083) for number in range(2740)]
    (tmp_path / "fast.trace").write_text("".join(f"{time}\n" for time in fast + slow))
    rate = {"trace": str(tmp_path / "fast.trace")}
    scenario = emulations.download(link__rate=rate, link__queue="500p", web__size="5MB")
    (transfer,) = campaign.run_cell(Cell({}, scenario), 1, 1)["transfers"].iter_rows(named=True)
    assert transfer["completed"]


def test_the_first_users_of_a_population_with_a_fast_line_among_them_can_be_emulated() -> None:
    emulations.skip_unless_possible()
    population = Scenario.load(Path(__file__).parents[2] / "examples/population.toml")
    star = population.replace("population.down", "400Mbit").star_of_users(seed=1, users=3).replace("duration", "4s")
    transfers = campaign.run_cell(Cell({}, star), 1, 1)["transfers"]
    assert transfers.filter(pl.col("completed") == 1).height == 3
