"""Short queues: the line that says what decides them on real hosts."""

import shlex
import tomllib
from itertools import pairwise

import pytest

from firstflight.cli.settings import print_timing_hint
from firstflight.scenario import Scenario

SHORT = """
name = "short"
duration = "5s"

[tcp]
profile = "linux"
initial_window = 3

[network]
topology = "chain"
links = { rate = "48Mbit", delay = "13500us", queue = "5p" }

[[application]]
name = "download"
kind = "file_transfer"
count = 1
size = "100kB"
"""


def test_linux_with_a_short_queue_says_once_which_keys_decide_and_they_silence_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = Scenario.from_toml(SHORT)
    print_timing_hint(scenario)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    words = shlex.split(said)
    settings = [after for word, after in pairwise(words) if word == "--set"]
    assert len(settings) == 3
    for setting in settings:
        key, value = setting.split("=", 1)
        try:
            scenario = scenario.replace(key, tomllib.loads(f"x = {value}")["x"])
        except tomllib.TOMLDecodeError:
            scenario = scenario.replace(key, value)
    print_timing_hint(scenario)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [("network.links[0].queue", "40p"), ("network.links[0].queue", {"kind": "codel"}), ("tcp.profile", "rfc")],
)
def test_a_longer_queue_another_discipline_and_another_profile_say_nothing(
    key: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    print_timing_hint(Scenario.from_toml(SHORT).replace(key, value))
    assert capsys.readouterr().err == ""
