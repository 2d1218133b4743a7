"""The names of `import firstflight`, and their use in a notebook."""

import json
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest
import xarray as xr

import firstflight
from firstflight import RequestError
from firstflight.analysis.ab import Design, compare
from firstflight.analysis.claim import Sentence, near
from firstflight.analysis.intervals import Estimate
from firstflight.scenario import Bytes, Scenario, profiles
from firstflight.scenario.tcp_fields import TcpFields
from firstflight.studies.kernel import Quantities, Quantity
from small_population import scenario

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIOS = [
    path
    for folder in ("examples", "python/firstflight/studies")
    for path in sorted((REPOSITORY / folder).rglob("*.toml"))
    if "application" in tomllib.loads(path.read_text())
]
SCHEMA = Path(firstflight.__file__).with_name("scenario.schema.json")


@cache
def _shipped() -> jsonschema.Draft202012Validator:
    """The schema is checked once: that takes longer than to validate a scenario with it."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_importing_the_package_is_enough_for_its_modules() -> None:
    """In a separate process: another import would have set the names."""
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


@pytest.mark.parametrize("function", ["run", "trace"])
def test_the_name_of_a_file_is_no_scenario(function: str) -> None:
    with pytest.raises(RequestError, match="load_scenario reads"):
        getattr(firstflight, function)("examples/download.toml")


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
    assert schema.resolve() == SCHEMA
    _shipped().validate(tomllib.loads(text))


def test_the_schema_that_is_shipped_is_that_of_the_code() -> None:
    program = [sys.executable, "-W", "error", str(REPOSITORY / "docs" / "scenario_schema.py")]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert printed == SCHEMA.read_text(), "make generated"


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
        _shipped().validate(tomllib.loads(text))


def test_the_json_schema_takes_each_profile_as_it_is_written() -> None:
    """Every field and every choice with its rules, by their native names."""
    tcp = _shipped().evolve(schema={"$ref": "#/$defs/Tcp"})
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


def test_a_run_knows_the_tables_that_the_command_line_prints(small: Scenario) -> None:
    run = firstflight.run(small, vary={"tcp.initial_window": [3, 10]}, replicates=2)
    assert {"comparison", "pages", "links"} <= set(run.tables())
    rows = run.table("comparison", initial_window=10).collect()
    assert rows.height > 0
    assert set(rows["initial_window"]) == {10}
    assert rows.columns[-6:] == ["metric", "ours", "low", "high", "published", "unit"]
    assert run.table("pages").collect()["completion_time_s"].len() > 0
    with pytest.raises(RequestError, match='no table "comparsion"; did you mean "comparison"'):
        run.table("comparsion")
    with pytest.raises(RequestError, match='the table "comparison" has no key "initial_windw"; did you mean'):
        run.table("comparison", initial_windw=10)


def test_two_runs_compare_as_two_values_of_a_varied_key_do(small: Scenario) -> None:
    """Same seed, same replicates: whether one run holds both arms or each has its own must not matter."""
    varied = firstflight.run(small, vary={"tcp.initial_window": [3, 10]}, replicates=3).table("comparison").collect()
    arms = [firstflight.run(small.replace("tcp.initial_window", iw), replicates=3) for iw in (3, 10)]
    found = firstflight.compare(*arms).frame
    values = ["application", "metric", "ours", "low", "high", "unit"]
    assert found.select(values).equals(varied.select(values))
    assert found.height > 0
    assert firstflight.compare(str(arms[0].directory), arms[1]).frame.equals(found)


def test_two_grids_compare_cell_by_cell_and_users_pair_by_user(small: Scenario) -> None:
    shorter = small.replace("network.bottleneck.queue", "10p")
    grids = [firstflight.run(s, vary={"tcp.initial_window": [3, 10]}, replicates=2) for s in (small, shorter)]
    rows = firstflight.compare(*grids).frame
    assert rows["initial_window"].unique(maintain_order=True).to_list() == [3, 10]
    users = [firstflight.run(scenario(users=400).replace("tcp.initial_window", iw), replicates=1) for iw in (3, 10)]
    table = firstflight.compare(*users)
    assert "Intervals over users" in table.caption
    assert table.frame["low"].null_count() < table.frame.height


def test_runs_that_nothing_pairs_are_not_compared(small: Scenario) -> None:
    one, other = (firstflight.run(small, replicates=1, seed=seed) for seed in (1, 2))
    with pytest.raises(RequestError, match=r"seed differs \(1 and 2\)"):
        firstflight.compare(one, other)
    grids = [firstflight.run(small, replicates=1, vary={"tcp.initial_window": iws}) for iws in ([1, 2], [3, 4])]
    with pytest.raises(RequestError, match="compare runs of the same grid"):
        firstflight.compare(*grids)


def test_a_run_a_study_a_trace_and_quantities_say_what_they_are(small: Scenario) -> None:
    assert repr(firstflight.run(small, replicates=1)).startswith("small: simulate, seed 1, 1 replicate\n1 of 1 cell")
    assert repr(firstflight.study("rfc2415")).startswith("rfc2415: ")
    assert "engines: simulate" in firstflight.study("rfc2415")._repr_html_()
    trace = firstflight.trace(small)
    assert repr(trace) == "small: trace of its first connection, simulate, seed 1"
    assert trace.segments["time_s"].to_list() == pytest.approx(trace.as_text()["time_s"].cast(pl.Float64).to_list())
    q = Quantities({Quantity("delay", "Delay", "ms", pl.col("x").mean()): xr.DataArray(1.0)})
    assert repr(q) == "delay: Delay (ms)"
    assert q._repr_html_() == "<pre>delay: Delay (ms)</pre>"
    assert "delay" in dir(q)


def test_readers_of_a_run_see_no_writer(small: Scenario) -> None:
    assert not {"create", "write", "discard", "session"} & set(dir(firstflight.run(small, replicates=1)))


def test_a_trace_is_what_the_command_prints_and_writes(
    small: Scenario, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program = request.getfixturevalue("firstflight")
    trace = firstflight.trace(small)
    assert trace.segments["flags"].head(3).to_list() == ["SYN", "SYN", "SYN+ACK"]
    file = tmp_path / "small.toml"
    file.write_text(small.to_toml())
    printed = program("trace", file, "--csv", "-").out
    assert printed == trace.as_text().write_csv()
    trace.csv(tmp_path / "t.csv")
    trace.plot(tmp_path / "t.svg")
    assert (tmp_path / "t.csv").read_text() == printed
    assert (tmp_path / "t.svg").read_text().count("<svg") >= 1
    assert trace.pcap(tmp_path / "t.pcapng", at="server") > 0
    with pytest.raises(RequestError, match=r"written as .svg, .png or .pdf"):
        trace.plot(tmp_path / "t.txt")
    with pytest.raises(RequestError, match="the seed is -1"):
        firstflight.trace(small, seed=-1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(
            ({name: value}, f"{name} is {value}; write a")
            for name in ("replicates", "jobs")
            for value in (True, "3", 2.5)
        ),
        *(({"seed": value}, f"the seed is {value}; write a whole number") for value in (True, "3", 2.5)),
        ({"what": 5}, "5 is no study, no name of one and no scenario"),
        ({"only": "iw=3"}, "only is 'iw=3'; write keys with their values"),
        ({"vary": ["mtu"]}, r"vary is \['mtu'\]; write keys with their values"),
        ({"vary": {"mtu": "900B"}}, "--vary mtu is '900B'; write a list of at least two values"),
        ({"vary": {"mtu": 900}}, "--vary mtu is 900; write a list of at least two values"),
    ],
)
def test_an_argument_of_another_type_is_refused_before_the_run(
    small: Scenario, tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        firstflight.run(**{"what": small, "out": tmp_path / "out"} | arguments)
    assert not (tmp_path / "out").exists()


def test_whole_numbers_may_be_those_of_numpy(small: Scenario, tmp_path: Path) -> None:
    run = firstflight.run(small, out=tmp_path / "run", replicates=np.int64(2), seed=np.uint64(3), jobs=np.int8(1))
    assert "seed 3, 2 replicates" in run._repr_html_()
    assert firstflight.trace(small, seed=np.int64(3)).seed == 3
    assert firstflight.observe.read("examples/flows/nginx.log", mss_bytes=np.int64(1448)).transfers.height


@pytest.mark.parametrize("mss", [0, -5, 65496, True, "1448"])
def test_a_segment_size_that_cannot_be_is_refused(mss: Any) -> None:
    with pytest.raises(RequestError, match=f"mss_bytes is {mss!r}; write a whole number from 1 to 65495"):
        firstflight.observe.read("examples/flows/nginx.log", mss_bytes=mss)


def test_a_notebook_shows_runs_claims_comparisons_and_traces(small: Scenario) -> None:
    run = firstflight.run(small.replace("name", "a<b"), replicates=2)
    assert "a&lt;b: simulate, seed 1, 2 replicates" in run._repr_html_()
    assert "1 of 1 cell finished" in run._repr_html_()
    claim = Sentence("id", "RFC 1", "x < y", near(3, "s", 0.5), "why").judge(Estimate(3.0, 2.9, 3.1, 9))
    assert "holds             id: x &lt; y (RFC 1)" in claim._repr_html_()
    assert "expected 3, tolerance 0.5 s; found 3 s (95% CI 2.9 to 3.1)" in claim._repr_html_()
    rows = pl.DataFrame({"unit": [0, 1, 2] * 2, "arm": ["a"] * 3 + ["b"] * 3, "v": [1.0, 2, 3, 2, 3, 4]})
    shown = compare(rows, "v", Design(arm="arm", baseline="a", treatment="b", unit=["unit"]))._repr_html_()
    assert "<th>difference</th><td>1</td>" in shown
    with pytest.raises(RequestError, match='called "IW 3"; give each a label'):
        firstflight.trace(small).plot("x.svg", firstflight.trace(small))
    assert "<p>small: initial window of 3 segments</p>" in firstflight.trace(small)._repr_html_()


def test_the_fields_of_a_profile_are_those_of_the_code() -> None:
    program = [sys.executable, "-W", "error", str(REPOSITORY / "docs" / "tcp_fields.py")]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert printed == (Path(firstflight.__file__).parent / "scenario" / "tcp_fields.py").read_text(), "make generated"


def test_every_field_of_a_profile_reads_as_its_type() -> None:
    tcp = firstflight.Tcp(profile="linux", receive_window="64KiB")
    assert isinstance(tcp.receive_window, Bytes)
    assert tcp.as_table()["receive_window"] == "64KiB"
    for name in firstflight.Tcp.__annotations__ | TcpFields.__annotations__:
        if not name.startswith("_"):
            getattr(tcp, name)
    assert len(TcpFields.__annotations__) == len(profiles()["linux"])


def test_a_trace_is_of_the_first_connection_in_whichever_arm() -> None:
    arms = firstflight.load_scenario(REPOSITORY / "examples" / "arms.toml")
    everyone = firstflight.trace(arms.replace("arm[0].share", 1.0))
    assert everyone.outcome["application"] == "download.iw10"
    assert everyone.label == "IW 10"
    shared = firstflight.trace(arms)
    transfers = firstflight.run(arms, replicates=1).table("transfers")
    assert shared.outcome["start_s"] == transfers.collect()["start_s"].min()
    assert shared.label == f"IW {shared.outcome['initial_window_segments']}"


def test_packets_of_the_kernel_are_refused_before_the_transfer(tmp_path: Path) -> None:
    download = firstflight.trace(firstflight.load_scenario(REPOSITORY / "examples" / "download.toml"), engine="emulate")
    with pytest.raises(RequestError, match=r'no link "hub" in this network; it has links\[0\], links\[0\]\.reverse'):
        download.pcap(tmp_path / "x.pcapng", link="hub")
    with pytest.raises(RequestError, match=r"packets of the kernel are written as \.pcapng"):
        download.pcap(tmp_path / "new" / "x.pcap")
    assert not (tmp_path / "new").exists()
    assert "_captured" not in vars(download)
