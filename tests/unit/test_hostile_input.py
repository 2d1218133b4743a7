"""Requests that no honest user writes: one sentence with the problem, and never a traceback or an abort."""

import copy
import datetime
import math
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firstflight import RequestError
from firstflight.report.figure import layer, nominal, quantitative, svg
from firstflight.scenario import Scenario

Program = Callable[..., Any]
ROOT = Path(__file__).parents[2]

DIGITS = "9" * 5000
NESTED = "[" * 5000 + "]" * 5000
SETTINGS = [
    ("duration=1e999999999s", '"1e999999999s" is too large: a time is at most'),
    (f"duration={DIGITS}s", "is too large"),
    (f'duration="{DIGITS[:4000]}s"', "is not a time"),
    (f"application.web.count={DIGITS}", "is too large"),
    ("application.web.count=0x" + "f" * 5000, "application[0].count: the number is too large"),
    ("application.web.count=5000000000", "application.web.count: 5000000000 is too large; write at most"),
    ("tcp.max_retries=99999999999999999999", "tcp.max_retries: the number is too large"),
    (f"duration={NESTED}", "more than 32 deep"),
    ("duration=" + "[" * 300 + "]" * 300, "duration: tables and lists lie in one another more than 32 deep"),
    ("a." * 5000 + "b=1", "more than 32 deep"),
    (f"network.left[{DIGITS}].rate=1Mbit", "is not a path of keys"),
    (f"application.web.client_hosts=left[{DIGITS[:4000]}]", "there are no hosts"),
    ('name="a\\u001b[31mb"', "name: this text has a control character (U+001B at character 2)"),
    ('name="a\\nb"', "name: this text has a control character (U+000A at character 2)"),
    ('description="\\u202Etxt"', "description: this text has a control character (U+202E at character 1)"),
    ('network.bottleneck.rate="1Mbit\\u0000"', "network.bottleneck.rate: this text has a control character"),
    (f'description="{"x" * 5000}"', "description: this text has 5000 characters; write at most 4096"),
]


@pytest.mark.parametrize(("setting", "expected"), SETTINGS, ids=[text[:30] for text, _ in SETTINGS])
def test_a_setting_out_of_all_bounds_is_refused_in_a_sentence(
    firstflight: Program, small_file: Path, tmp_path: Path, setting: str, expected: str
) -> None:
    answer = firstflight("run", small_file, "--set", setting, "--out", tmp_path / "out")
    assert answer.status == 2
    assert expected in answer.err
    assert answer.err.count("\n") == 1
    assert len(answer.err) < 500
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("nested", [NESTED, "{a=" * 5000 + "1" + "}" * 5000])
def test_a_file_nested_thousands_deep_is_refused_in_a_sentence(
    firstflight: Program, small_file: Path, nested: str
) -> None:
    small_file.write_text(f"odd = {nested}\n{small_file.read_text()}")
    answer = firstflight("run", small_file)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "small.toml: tables and lists lie in one another more than 32 deep" in answer.err


def test_a_number_of_thousands_of_digits_in_a_file_is_refused_in_a_sentence(
    firstflight: Program, small_file: Path
) -> None:
    small_file.write_text(f"odd = {DIGITS}\n{small_file.read_text()}")
    answer = firstflight("run", small_file)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "small.toml: a number in it is too large" in answer.err


# A value of every type of TOML, and numbers and texts at the ends of what they can be.
ODD: list[Any] = [
    [],
    {},
    "",
    "x" * 4000,
    "1e300s",
    True,
    -1,
    2**63 - 1,
    1e-320,
    1e300,
    -math.inf,
    math.nan,
    [1, [2]],
    [{}],
    ["x"] * 3000,
    {"": 1},
    {"y" * 4000: 1},
    {"distribution": []},
    {"kind": {}},
    datetime.date(2000, 1, 1),
]


def places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for step, inner in inside:
        yield from places(inner, (*above, step))


def keys_by_example() -> dict[Path, list[tuple[str | int, ...]]]:
    """A place of each key, in the first example that has it."""
    found: dict[tuple[str, ...], tuple[Path, tuple[str | int, ...]]] = {}
    for path in sorted((ROOT / "examples").rglob("*.toml")):
        if "[[application]]" in (text := path.read_text("utf-8")):
            for place in places(tomllib.loads(text)):
                found.setdefault(tuple(step for step in place if isinstance(step, str)), (path, place))
    return {path: [place for own, place in found.values() if own == path] for path, _ in found.values()}


KEYS = keys_by_example()


def put(document: dict[str, Any], place: tuple[str | int, ...], value: Any) -> Any:
    changed: Any = copy.deepcopy(document)
    if not place:
        return value
    table = changed
    for step in place[:-1]:
        table = table[step]
    table[place[-1]] = value
    return changed


@pytest.mark.parametrize("path", KEYS, ids=lambda path: path.stem)
def test_every_key_of_a_scenario_takes_a_wrong_value_of_any_type_in_one_sentence(path: Path) -> None:
    document = tomllib.loads(path.read_text("utf-8"))
    for place in KEYS[path]:
        for value in ODD:
            try:
                scenario = Scenario.from_dict(put(document, place, value), directory=path.parent, source="file")
            except RequestError as error:
                said = str(error)
                assert said.startswith("file: "), said
                assert "\n" not in said
                assert len(said) < 1500
                assert not re.search("Input should|pydantic|NoneType|function-|Value error", said), said
            else:
                assert Scenario.from_toml(scenario.to_toml()).to_plan() == scenario.to_plan()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tcp = { profile = [] }", "tcp.profile: unknown profile []; known here: "),
        ("arm = { name = 1 }", "arm: this is one table of a list; write [[arm]] above it"),
        ("duration = 2000-01-01", 'duration: 2000-01-01 has no unit: write a time such as "50ms"'),
        (f"{'k' * 200} = 1", f'the key "{"k" * 20}..." has 200 characters; none is so long'),
    ],
)
def test_what_is_wrong_with_a_value_is_said_as_the_file_spells_it(text: str, said: str, small_toml: str) -> None:
    document = tomllib.loads(small_toml) | tomllib.loads(text)
    with pytest.raises(RequestError, match=re.escape(said)):
        Scenario.from_dict(document)


@pytest.mark.parametrize(
    "size",
    [
        '{ distribution = "lognormal", median = "20kB", sigma = 60.0 }',
        '{ distribution = "lognormal", median = "20kB", sigma = 60.0, maximum = "1GB" }',
        '{ distribution = "lognormal", median = "20kB", sigma = 1e300 }',
        '{ distribution = "pareto", shape = 1e-320, minimum = "1kB", maximum = "1GB" }',
    ],
)
@pytest.mark.parametrize("command", ["run", "explain", "trace"])
def test_a_load_of_sizes_without_a_mean_to_compute_is_refused(
    firstflight: Program, small_file: Path, size: str, command: str
) -> None:
    others = 'kind = "arrivals"\nname = "others"\nload = 0.5\nof = "bottleneck"\n'
    small_file.write_text(f"{small_file.read_text()}\n[[application]]\n{others}size = {size}\n")
    answer = firstflight(command, small_file)
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "application.others.size: the mean of this distribution is too large" in answer.err


def test_a_varied_text_with_control_characters_is_refused(firstflight: Program, small_file: Path) -> None:
    answer = firstflight("run", small_file, "--vary", 'name="a\\u0001","b"')
    assert answer.status == 2
    assert "name: this text has a control character (U+0001 at character 2)" in answer.err


def test_a_name_with_control_characters_cannot_be_assigned(small: Scenario) -> None:
    with pytest.raises(RequestError, match=re.escape("name: this text has a control character (U+0000")):
        small.name = "a\0b"
    assert small.name == "small"


def test_a_control_character_in_an_error_does_not_reach_the_terminal(firstflight: Program, tmp_path: Path) -> None:
    answer = firstflight("run", tmp_path / "a\x1b]0;b\x07.toml")
    assert answer.status == 2
    assert "\\x1b]0;b\\x07.toml" in answer.err
    assert "\x1b" not in answer.err


def test_a_control_character_in_a_column_of_a_table_does_not_reach_the_terminal(
    firstflight: Program, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("rtt_ms,down_mbps,bytes,odd\x1b[31m\n40,10,2000,x\n")
    answer = firstflight("observe", table)
    assert answer.status == 0, answer.err
    assert "odd\\x1b[31m" in answer.out
    assert "\x1b" not in answer.out


def test_a_control_character_in_a_figure_does_not_end_the_process() -> None:
    chart = layer("bar", [{"a": "x\0y", "b": 1}], x=nominal("a"), y=quantitative("b")) | {"title": "t\x01"}
    assert "x\\x00y" in svg(chart)


def test_an_initial_window_of_thousands_of_digits_is_refused_in_a_sentence(
    firstflight: Program, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("rtt_ms,down_mbps,bytes\n40,10,2000\n")
    answer = firstflight("advise", table, "--iw", DIGITS, "--out", tmp_path / "out")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "is not a number of segments from 1 to 1000" in answer.err
