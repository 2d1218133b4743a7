"""What `import firstflight` offers, and what a notebook does with it."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest

import firstflight
from firstflight import RequestError
from firstflight.scenario import Bytes, Scenario, profiles

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = [
    path
    for folder in ("examples", "python/firstflight/studies")
    for path in sorted((REPOSITORY / folder).rglob("*.toml"))
    if "application" in tomllib.loads(path.read_text())
]


def test_importing_the_package_is_enough_for_its_modules() -> None:
    """In a process of its own: another import would have set the names."""
    program = "import firstflight; print(firstflight.advise.advise.__name__, firstflight.observe.read.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("advise read\n", "")


def test_every_public_name_is_listed_and_there() -> None:
    program = "import firstflight; print([n for n in firstflight.__all__ if n not in dir(firstflight)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    for name in firstflight.__all__:
        assert getattr(firstflight, name) is not None
    with pytest.raises(AttributeError, match="nosuch"):
        firstflight.nosuch  # noqa: B018


def test_a_table_or_key_that_a_run_does_not_have_is_said(small: Scenario) -> None:
    run = firstflight.run(small, replicates=1)
    with pytest.raises(RequestError, match='a run has no table "transfer"; did you mean "transfers"'):
        run.table("transfer")
    with pytest.raises(RequestError, match='no key "scenari"; did you mean "scenario"'):
        run.table("transfers", scenari="small")


def test_what_a_tcp_table_does_not_set_reads_as_its_profile_has_it(small_toml: str) -> None:
    scenario = Scenario.from_toml(small_toml.replace('profile = "rfc"\ninitial_window = 3', 'profile = "linux"'))
    assert scenario.tcp.initial_window == {"policy": "linux"}
    assert scenario.tcp.rto["minimum_ns"] == 200_000_000
    assert isinstance(scenario.tcp.receive_window, Bytes)
    before = scenario.to_plan()
    scenario.tcp.receive_window = scenario.tcp.receive_window
    scenario.tcp.initial_window = scenario.tcp.initial_window
    assert scenario.to_plan() == before
    scenario.tcp.initial_window = 3
    assert scenario.tcp.initial_window == 3
    with pytest.raises(AttributeError, match='did you mean "initial_window"'):
        scenario.tcp.initial_windo  # noqa: B018
    with pytest.raises(AttributeError, match="names no profile"):
        firstflight.Tcp(initial_window=3).nagle  # noqa: B018


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_json_schema_takes_every_scenario_that_is_shipped(path: Path) -> None:
    """It is the one that an editor finds by the file's first line."""
    text = path.read_text()
    schema = path.parent / text.partition("\n")[0].removeprefix("#:schema ")
    assert schema.resolve() == Path(firstflight.__file__).parent / "scenario.schema.json"
    jsonschema.validate(tomllib.loads(text), json.loads(schema.read_text()))


def test_the_schema_that_is_shipped_is_that_of_the_code() -> None:
    program = [sys.executable, "-W", "error", str(REPOSITORY / "docs" / "scenario_schema.py")]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert printed == Path(firstflight.__file__).with_name("scenario.schema.json").read_text()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('duration = "20s"', "duration = 20"),
        ('duration = "20s"', 'duration = "20"'),
        ('kind = "web_page"', 'kind = "webpage"'),
        ('rate = "1.5Mbit"', 'rate = "1.5MB"'),
        ("clients = 4", "client = 4"),
        ('profile = "rfc"', 'profile = "rcf"'),
        ("initial_window = 3", "initial_windo = 3"),
        ("initial_window = 3", 'initial_window = "rfc6982"'),
        ("initial_window = 3", "recovery = { new_reno = { ack_heuristics = true } }"),
        ("initial_window = 3", 'rto = { minimum = "200" }'),
        ("initial_window = 3", "sack = 1"),
    ],
)
def test_the_json_schema_refuses_what_a_scenario_refuses(small_toml: str, right: str, wrong: str) -> None:
    text = small_toml.replace(right, wrong)
    assert text != small_toml
    with pytest.raises(RequestError):
        Scenario.from_toml(text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), Scenario.model_json_schema())


def test_the_json_schema_takes_each_profile_as_it_is_written() -> None:
    """Every field and every choice with its rules, by their native names."""
    validator = jsonschema.Draft202012Validator(Scenario.model_json_schema())
    tcp = validator.evolve(schema={"$ref": "#/$defs/Tcp"})
    for profile in profiles().values():
        table = {name: "none" if value is None else value for name, value in profile.items()}
        tcp.validate(json.loads(json.dumps(table).replace("null", '"none"')))


def test_the_keys_of_a_tcp_table_are_completed() -> None:
    assert {"profile", "initial_window", "receive_window", "rto"} <= set(dir(firstflight.Tcp(profile="linux")))


def test_a_scenario_gets_a_population_in_the_place_of_its_network(small: Scenario) -> None:
    changed = small.with_population(name="uk-2023", users=7)
    assert changed.network is None
    assert changed.population is not None
    assert changed.population.users == 7
    assert changed.tcp == small.tcp
    assert small.population is None
    with pytest.raises(RequestError, match='unknown population "uk-203"; did you mean "uk-2023"'):
        small.with_population(name="uk-203")


def test_a_notebook_shows_a_scenario_as_its_file_and_escapes_it(small: Scenario) -> None:
    small.description = "a < b"
    shown = small._repr_html_()
    assert "<pre>name = &quot;small&quot;" in shown
    assert "a &lt; b" in shown
