"""A campaign that is killed leaves nothing but finished cells, and the same request goes on with the rest."""

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import firstflight
import testbeds
from emulated_grid import EmulatedGrid
from emulations import skip_unless_possible
from firstflight.records import Run

PATIENCE_S = 60.0
VARIABLE = "FIRSTFLIGHT_TEST_CAMPAIGN"


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    skip_unless_possible()


def test_a_campaign_killed_in_the_middle_leaves_no_process_and_goes_on_where_it_was(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    directory = tmp_path / "run"
    script = Path(testbeds.__file__).parent / "emulated_grid.py"
    campaign = subprocess.Popen([sys.executable, script, directory], env=os.environ | {VARIABLE: mark})
    deadline = time.monotonic() + PATIENCE_S
    # Killed while the testbed of a further group runs.
    while not list(directory.glob("cells/*/links.parquet")) or len(testbeds.processes_of(mark, VARIABLE)) < 2:
        assert campaign.poll() is None, "the campaign ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    campaign.kill()
    campaign.wait()
    assert testbeds.seconds_until_gone(mark, VARIABLE) < 1.0
    before = {path: path.stat().st_mtime_ns for path in directory.glob("cells/*/*.parquet")}
    assert 0 < len(Run.open(directory).cells) < 6
    facts = Run.open(directory).provenance["surroundings"]["emulate"]
    assert os.uname().release in facts["kernel"]
    assert facts["nginx"].startswith("nginx version")
    assert facts["curl"].startswith("curl ")
    assert "net.ipv4.tcp_rmem" in facts
    run = firstflight.run(EmulatedGrid(), jobs=1, out=directory)
    assert len(run.cells) == 6
    assert before == {path: path.stat().st_mtime_ns for path in before}
    transfers = run.transfers.collect()
    assert transfers["completed"].to_list() == [1] * 18
    assert transfers["first_flight_segments"].max() == 10
