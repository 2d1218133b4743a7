"""Programs of one's own on the hosts of a testbed."""

import pytest

from firstflight.engines.emulate.lab import Lab
from firstflight.errors import MachineError
from testbeds import one_link, refusal

pytestmark = [pytest.mark.skipif(refusal() is not None, reason=f"no testbed here: {refusal()}")]


def test_a_program_runs_on_a_host_and_its_output_is_the_answer():
    with Lab(one_link()) as lab:
        addresses = lab.call("run", host="node[1]", program=["ip", "-o", "-4", "addr"], within_s=10.0)
        assert "10.77.0.2" in addresses
        assert "10.77.0.1" not in addresses


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["sh", "-c", "echo why >&2; exit 3"], r"sh on host node\[0\] failed: exit status 3: why"),
        (["sleep", "5"], r"sleep on host node\[0\] did not end within 0.2 s"),
        (["no-such-program"], r"no-such-program cannot be run on host node\[0\]: No such file"),
    ],
)
def test_a_program_that_fails_hangs_or_is_missing_is_told_in_one_sentence(program, said):
    with Lab(one_link()) as lab, pytest.raises(MachineError, match=said):
        lab.call("run", host="node[0]", program=program, within_s=0.2)
