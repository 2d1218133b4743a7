"""The pages of docs keep up with the code: keys, commands, examples."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pydantic
import pytest

import firstflight
from firstflight.cli import main
from firstflight.populations.applications import PRESETS
from firstflight.scenario import Scenario, profiles
from firstflight.scenario.applications import Arrivals, FileTransfer, Level, RequestResponse, Video, WebPage
from firstflight.scenario.arms import Arm
from firstflight.scenario.datagrams import ConstantRate, Dns, Game, Impairment, Voice
from firstflight.scenario.laws import Constant, Empirical, Exponential, Lognormal, Pareto, Uniform
from firstflight.scenario.network import Chain, Direction, Dumbbell, Links, Star
from firstflight.scenario.parts import LOSSES, QUEUES
from firstflight.scenario.paths_table import Columns
from firstflight.scenario.population import Buckets, Marginals, PathsTable
from firstflight.scenario.tcp import choices
from firstflight.scenario.tree import Group, Tree

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS.parent / "examples"
KEYS = (DOCS / "keys.md").read_text(encoding="utf-8")
# Pages whose commands are executed, and how many they are at least.
COMMANDS = {
    "start.md": 3,
    "studies.md": 9,
    "trace.md": 7,
    "post-quantum.md": 8,
    "scenario.md": 10,
    "shared-links.md": 10,
    "emulation.md": 8,
    "packet-scripts.md": 3,
    "populations.md": 4,
}
TABLES: list[type[pydantic.BaseModel]] = [
    *(
        Scenario,
        Dumbbell,
        Star,
        Chain,
        Tree,
        Group,
        Links,
        Direction,
        Marginals,
        PathsTable,
        *(model for parts in (QUEUES, LOSSES) for model in parts.values()),
        FileTransfer,
        WebPage,
        RequestResponse,
        *(ConstantRate, Dns, Game, Impairment, Voice),
        *(Level, Video, Arrivals, Arm),
    ),
    *(Constant, Uniform, Exponential, Lognormal, Pareto, Empirical),
]


def _profile_keys(table: dict[str, Any], before: str = "") -> set[str]:
    keys = set()
    for name, value in table.items():
        keys.add(before + name.removesuffix("_ns").removesuffix("_bytes"))
        if isinstance(value, dict) and before + name not in choices():
            keys |= _profile_keys(value, f"{before}{name}.")
    return keys


def test_every_key_of_a_scenario_is_in_its_page() -> None:
    keys = {key for table in TABLES for key in table.model_fields} | _profile_keys(profiles()["rfc"])
    kinds = [(path, kind) for path, values in choices().items() for kind in values if isinstance(kind, dict)]
    keys |= {
        f"{path}.{name}.{rule}"
        for path, kind in kinds
        for name, rules in kind.items()
        if isinstance(rules, dict)
        for rule in rules
    }
    # `links` = several in a row; [tcp], [network], [population] and [[application]] are separate tables.
    names = ("tcp", "network", "population")
    tables = {name: f"[{name}]" for name in names} | {name: f"[[{name}]]" for name in ("application", "arm")}
    queues = {"kind": 'kind = "red"'}
    missing = [
        key for key in sorted(keys) if f"`{tables.get(key, key)}`" not in KEYS and queues.get(key, "\0") not in KEYS
    ]
    assert missing == []


def test_the_tables_of_keys_are_what_the_models_say() -> None:
    program = runpy.run_path(str(DOCS / "keys_page.py"))
    assert program["page"](KEYS) == KEYS, "make generated"
    blocks = re.findall("<!-- keys: (.*) -->", KEYS)
    told = [program["MODELS"][name] for names in blocks if names not in program["FAMILIES"] for name in names.split()]
    chosen_by = {"kind", "topology", "paths"}
    missing = [
        f"{model.__name__}.{name}"
        for model in told
        for name, field in model.model_fields.items()
        if name not in chosen_by and name in model.__annotations__ and not field.description
    ]
    assert missing == []


def test_every_column_of_a_population_and_every_preset_is_in_its_page() -> None:
    page = (DOCS / "populations.md").read_text(encoding="utf-8")
    assert [key for table in (Columns, Buckets) for key in table.model_fields if f"`{key}`" not in page] == []
    for name, preset in PRESETS.items():
        assert f'| `"{name}"` | {preset.what} | {preset.sources} |' in page
    assert (EXAMPLES / "population.toml").read_text(encoding="utf-8").strip() in page


def test_the_examples_load_and_a_page_shows_one_of_them() -> None:
    for path in EXAMPLES.rglob("*.toml"):
        Scenario.load(path)
    assert (EXAMPLES / "home.toml").read_text(encoding="utf-8").strip() in (DOCS / "scenario.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_applications_and_arms_of_a_page_have_keys_that_there_are(path: Path) -> None:
    kinds = (FileTransfer, WebPage, RequestResponse, Video, Arrivals, Voice, Game, Dns, ConstantRate)
    known = {"application": {"preset"}.union(*(kind.model_fields for kind in kinds)), "arm": set(Arm.model_fields)}
    for block in re.findall(r"^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for name, keys in known.items():
            unknown = [key for table in tomllib.loads(block).get(name, ()) for key in table.keys() - keys]
            assert unknown == [], block


def test_a_page_shows_a_packet_script_of_the_project() -> None:
    script = Path(__file__).parents[1] / "packet_scripts/initial_window/rfc3390_sends_three_segments_of_1460_bytes.pkt"
    assert script.read_text(encoding="utf-8").strip() in (DOCS / "packet-scripts.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["gallery.md", "keys.md", *sorted(COMMANDS.keys() - {"start.md"})])
def test_the_links_of_a_page_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (DOCS / name).read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        if target.startswith("https://"):
            continue
        page, _, heading = target.partition("#")
        path = DOCS / (page or name)
        assert path.exists(), target
        assert not heading or heading in _headings(path), target


def _headings(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in lines if line[:1] == "#"}


@pytest.mark.parametrize(
    ("page", "program"),
    [
        ("reference.md", "reference_page.py"),
        ("api.md", "api_page.py"),
        ("commands.md", "commands_page.py"),
        ("../LICENSE-THIRD-PARTY.md", "third_party.py"),
    ],
)
def test_a_generated_page_is_what_the_code_says(page: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / program))["main"]()
    assert (DOCS / page).read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip(), "make generated"


def test_the_api_page_has_every_name_that_a_page_imports_or_calls() -> None:
    parts = (DOCS / "api.md").read_text(encoding="utf-8").split("\n## firstflight.")
    public = {"firstflight": set(re.findall("^### (.+)$", parts[0], re.MULTILINE))}
    for part in parts[1:]:
        name, _, text = part.partition("\n")
        public[f"firstflight.{name}"] = set(re.findall("^#### (.+)$", text, re.MULTILINE))
    pages = [*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS / "example.py"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    used = {
        (module, name)
        for module, names in re.findall(r"from (firstflight[\w.]*) import ([\w, ]+)", text)
        for name in names.partition(" as ")[0].strip().split(", ")
        if f"{module}.{name}" not in public
    }
    used |= {(module, name) for module, name in re.findall(r"\b(firstflight(?:\.[a-z_]+)*)\.(\w+)\(", text)}
    assert {("firstflight", "run"), ("firstflight.analysis.ab", "Design")} <= used
    assert {(module, name) for module, name in used if name not in public.get(module, ())} == set()


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), COMMANDS.items())
def test_every_command_of_a_page_works_in_its_order(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "tests").symlink_to(Path(__file__).parents[1])
    monkeypatch.chdir(tmp_path)
    # An advice simulates few users more often, up to this number of them.
    monkeypatch.setattr("firstflight.advise.experiment.WORK", 400)
    text = (DOCS / page).read_text(encoding="utf-8")
    commands = re.findall(r"^    (firstflight [^#\n]+)", text, re.MULTILINE)
    assert len(commands) >= least
    for command in commands:
        words = shlex.split(command)
        if words[1] == "run" and "--replicates" not in words:
            words += ["--replicates", "1"]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, command


def test_a_comparison_in_a_page_is_what_run_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "scenario.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (firstflight run .*--vary tcp\.initial_window=3,10,32 .*)$", text, re.MULTILINE)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr().out
    shown = re.findall("^With .* on average.*$", text, re.MULTILINE)
    assert len(shown) == 3
    assert [line for line in shown if line not in printed] == []


@pytest.mark.slow
def test_the_pictures_of_the_pages_say_what_their_commands_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = runpy.run_path(str(DOCS / "pictures.py"))
    monkeypatch.chdir(DOCS.parent)
    for *words, stored in program["commands"]():
        drawn = tmp_path / Path(stored).name
        monkeypatch.setattr(sys, "argv", ["firstflight", *words, str(drawn)])
        with pytest.raises(SystemExit):
            main()
        written, kept = (
            re.findall(">([^<]+)</text>", path.read_text("utf-8")) for path in (drawn, DOCS.parent / stored)
        )
        assert written == kept != [], stored


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DOCS / "example.py"))
    printed = capsys.readouterr().out
    assert "refused: tcp.initial_window" in printed
    assert "Found 3." in printed


def test_the_parts_of_a_study_in_its_page_are_one_study(tmp_path: Path) -> None:
    page = (DOCS / "add-a-study.md").read_text(encoding="utf-8")
    grid, *code = re.findall(r"```(?:toml|python)\n(.*?)```", page, re.DOTALL)
    folder = Path(firstflight.__file__).parent / "studies/restart_window"
    head = (folder / "study.toml").read_text(encoding="utf-8").partition("[grid]")[0]
    (tmp_path / "study.toml").write_text(head + grid, encoding="utf-8")
    (tmp_path / "kept.toml").write_bytes((folder / "kept.toml").read_bytes())
    parts = [part for part in code if re.search(r"^(QUANTITIES|RFC|def \w+\(q\)|STUDY)", part, re.MULTILINE)]
    written = tmp_path / "__init__.py"
    written.write_text("\n".join(parts), encoding="utf-8")
    study = runpy.run_path(str(written))["STUDY"]
    study.check("simulate")
    assert study.claim_ids("simulate") == ["restart-costs-time"]
    assert len(study.cells("simulate")) == 2 * 4 * 7
