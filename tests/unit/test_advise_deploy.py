"""The lines of an advice: iproute2 accepts them, they can be undone, and they state their evidence."""

import os
import shutil
import subprocess

import pytest

from firstflight.advise import deploy

SET, PREFIX = 1, 2


def test_the_lines_set_the_window_and_take_it_back() -> None:
    steps = deploy.steps(32, 10, current_known=True)
    assert steps[SET].lines[0].endswith("initcwnd 32")
    back = next(step for step in steps if step.title == "Take it back")
    assert back.lines[0].endswith("initcwnd 10")
    assert "was seen in the data" in back.note


def test_a_window_in_use_that_was_assumed_is_called_so_in_the_way_back() -> None:
    back = next(step for step in deploy.steps(16, 10, current_known=False) if step.title == "Take it back")
    assert "was not seen in the data" in back.note


def test_each_persistent_form_has_the_window_and_its_file_or_commands() -> None:
    for step in deploy.persistent(24):
        assert step.file.startswith("/etc/") or all(line.startswith("sudo ") for line in step.lines)
        assert any("24" in line for line in step.lines)


def test_lines_for_hosts_on_which_none_was_run_are_not_printed() -> None:
    assert deploy.elsewhere().lines == ()


@pytest.mark.parametrize(("window", "told"), [(32, "and 32 fit"), (64, "which bounds the first flight")])
def test_what_a_client_allows_is_said(window: int, told: str) -> None:
    assert told in deploy.receive_window(window).note


def test_a_client_s_buffer_holds_twice_the_window() -> None:
    line = deploy.receive_window(100).lines[1]
    least, middle, largest = line.split('"')[1].split(maxsplit=2)
    assert (least, int(middle) / 2 >= 100 * 1448) == ("4096", True)
    # That of a kernel since 6.16 is five times that of one before: the host's own stays.
    assert largest == "$(cut -f3 /proc/sys/net/ipv4/tcp_rmem)"


def test_the_kernel_takes_the_lines_as_they_are_printed() -> None:
    ip, unshare = shutil.which("ip"), shutil.which("unshare")
    if ip is None or unshare is None or os.name != "posix":
        pytest.skip("ip or unshare is not installed")
    if subprocess.run([unshare, "-Urn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets no user make a network namespace")
    steps = deploy.steps(32, 10, current_known=True)
    set_line = steps[SET].lines[0].removeprefix("sudo ")
    back_line = next(step for step in steps if step.title == "Take it back").lines[0].removeprefix("sudo ")
    prefix = steps[PREFIX].lines[0].removeprefix("sudo ").replace("GATEWAY", "192.0.2.1").replace("DEVICE", "d0")
    route = "via 192.0.2.1 dev d0 proto static src 192.0.2.10 metric 100"
    script = f"""
        set -e
        ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up
        ip addr add 192.0.2.10/24 dev d0; ip route add default {route}
        {set_line}; ip -4 route show default; echo --
        {back_line}; ip -4 route show default; echo --
        {prefix}; ip route get 203.0.113.9
    """
    done = subprocess.run([unshare, "-Urn", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after_set, after_back, to_prefix = done.stdout.split("--\n")
    assert after_set.split() == f"default {route} initcwnd 32".split()
    assert after_back.split() == f"default {route} initcwnd 10".split()
    assert "initcwnd 32" in to_prefix
