"""The explorer: the command in this process, the page in headless Chromium."""

import base64
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import firstflight
from firstflight.cli.settings import load_scenario
from firstflight.engines.simulate import capture
from firstflight.explore.page import PAGE, page
from firstflight.explore.start import HOMES, fragment, homes, transfer
from firstflight.populations import uk_homes
from firstflight.records import Run
from firstflight.scenario import Scenario
from firstflight.tracing import first_connection

ROOT = Path(__file__).parents[2]
EXPLORER = ROOT / "explorer"
STREETS = ROOT / "examples" / "homes.toml"
DOWNLOAD = ROOT / "examples" / "download.toml"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
COLUMNS = ["time_ns", "event", "from_server", "seq", "length", "ack", "window_bytes", "cwnd_segments", "flags"]

needs_page = pytest.mark.skipif(not PAGE.exists(), reason="the explorer is not built: make explore")


def _is_stale() -> bool:
    """Whether the page was built before a change of its sources."""
    sources = [*(ROOT / "crates").glob("*/src/**/*.rs"), *(EXPLORER / "src").iterdir()]
    return PAGE.exists() and max(path.stat().st_mtime for path in sources) > PAGE.stat().st_mtime


# The settings in the page's address, and the same by --set.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("", {"tcp.initial_window": 3}),
    ("#a.iw=10", {}),
    (
        "#a.iw=32&rate_bps=2500000&rtt_ms=120&limit=25&size_bytes=400000",
        {
            "tcp.initial_window": 32,
            "network.links[0].rate": "2.5Mbit",
            "network.links[0].delay": "60ms",
            "network.links[0].queue": "25p",
            "application[0].size": "400kB",
        },
    ),
    (
        "#queue=codel&limit=60&limit_unit=kB&a.cc=reno&a.startup=paced&size_bytes=2000000",
        {
            "tcp.initial_window": 3,
            "network.links[0].queue": {"kind": "codel", "limit": "60kB"},
            "tcp.congestion_control": "reno",
            "tcp.startup": "paced",
            "application[0].size": "2MB",
        },
    ),
    (
        "#queue=fq_codel&loss_percent=2&seed=7&a.cc=bbr&size_bytes=500000",
        {
            "tcp.initial_window": 3,
            "network.links[0].queue": {"kind": "fq_codel", "limit": "100p"},
            "network.links[0].loss": 0.02,
            "network.links[0].reverse": {"loss": 0.0},
            "tcp.congestion_control": "bbr",
            "application[0].size": "500kB",
        },
    ),
    ("#a.chain=ml-dsa-65", {"tcp.initial_window": 3, "application[0].tls": "ml-dsa-65"}),
    (
        "#a.profile=rfc&a.chain=ecdsa&a.iw=10",
        {
            "tcp.profile": "rfc",
            "tcp.congestion_control": "cubic",
            "tcp.initial_window": 10,
            "application[0].tls": "ecdsa",
        },
    ),
    (
        "#a.profile=rfc&a.iw=4&lose=3%2014&queue=red",
        {
            "tcp.profile": "rfc",
            "tcp.congestion_control": "cubic",
            "tcp.initial_window": 4,
            "network.links[0].loss_list": [3, 14],
            "network.links[0].reverse": {"loss_list": []},
            "network.links[0].queue": {"kind": "red", "limit": "100p"},
        },
    ),
]


# Settings of the page whose scenario and command are run.
TAKEN = [
    "",
    "#neighbor=short%20flow&rate_bps=2500000&rtt_ms=120&limit=25&size_bytes=400000",
    "#loss_percent=2&seed=7&a.cc=bbr&size_bytes=500000&lose=3%2014",
    "#a.profile=rfc&a.chain=ecdsa&queue=fq_codel&limit=60&limit_unit=kB&neighbor=call",
    "#b.startup=paced&queue=red&seed=3",
]


def test_a_page_that_is_not_built_says_what_is_needed(
    firstflight: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("firstflight.explore.page.PAGE", tmp_path / "explorer.html")
    refused = firstflight("explore")
    assert refused.status == 3
    assert "run `make explore`" in refused.err


def test_the_homes_of_the_page_are_the_population_in_small() -> None:
    whole = uk_homes.homes(2023)
    rtts, rates, queues, losses = (np.array(column) for column in zip(*homes(), strict=True))
    assert len(rtts) == HOMES
    for some, every in [(rtts, 1e3 * whole["rtt_s"]), (rates, whole["down_bps"]), (losses, 100 * whole["loss"])]:
        order = np.argsort(every)
        share = np.cumsum(whole["weight"].to_numpy()[order]) / whole["weight"].sum()
        for level in (0.1, 0.5, 0.9):
            # Four standard errors of a share among this number; at even steps of the weights it is closer.
            above = float((some <= every.to_numpy()[order][np.searchsorted(share, level)] * 1.005).mean())
            assert abs(above - level) < 0.1
    assert queues.min() == 15


@needs_page
def test_the_page_opens_with_the_scenario(firstflight: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    written = firstflight("explore", DOWNLOAD, "--set", 'name="</script>"', "--out", file)
    assert written.status == 0, written.err
    html = file.read_text()
    assert "</script>" not in html.split('id="start">')[1].split("</script>")[0]
    assert '"name": "\\u003c/script>"' in html
    assert firstflight("explore", DOWNLOAD, "--out", file).status == 0
    assert firstflight("explore", "--set", "duration=1s").status == 2
    assert "[population]" in firstflight("explore", ROOT / "examples" / "population.toml").err


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two sizes and two windows."""
    directory = tmp_path_factory.mktemp("runs") / "rounds"
    firstflight.run("rfc6928-rounds", only={"segments": [12, 25]}, out=directory)
    return directory


def _start(html: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(html.split('id="start">')[1].split("</script>")[0])
    return found


@needs_page
def test_the_page_opens_with_a_cell_of_a_run(firstflight: Callable[..., Any], rounds: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    refused = firstflight("explore", rounds, "--only", "iw=10", "--out", file)
    assert refused.status == 2
    assert "2 cells are left, and the explorer opens with one; add --only segments=12|25" in refused.err
    assert firstflight("explore", rounds, "--only", "iw=10", "--only", "segments=12", "--out", file).status == 0
    start = _start(file.read_text())
    stored = next(path for key, path in Run.open(rounds).scenario_files if key == {"segments": 12, "iw": 10})
    assert start["name"] == "rfc6928-rounds: segments 12, iw 10"
    assert (start["seed"], start["plan"]) == (1, Scenario.load(stored).to_plan())


@needs_page
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((DOWNLOAD, "--only", "iw=3"), "--only chooses a cell of a run"),
        (("--only", "iw=3"), "--only chooses a cell of a run: name it"),
        ((ROOT / "examples",), "is not a run"),
    ],
)
def test_only_a_run_has_cells(firstflight: Callable[..., Any], arguments: tuple[Any, ...], says: str) -> None:
    refused = firstflight("explore", *arguments)
    assert refused.status == 2
    assert says in refused.err


@needs_page
def test_a_report_links_its_transfers_to_the_explorer_beside_it(firstflight: Callable[..., Any], rounds: Path) -> None:
    assert firstflight("report", rounds).status == 0
    report = (rounds / "report.html").read_text()
    links = re.findall(r'<a href="(explorer\.html)#plan=([\w-]+)">(.*?)</a>', report)
    # Of each size the larger window; the explorer has IW 3 next to it.
    assert [text for *_, text in links] == [f"rfc6928-rounds: segments {size}, iw 10" for size in (12, 25)]
    assert (rounds / links[0][0]).read_text() == page()
    opening = json.loads(zlib.decompress(base64.urlsafe_b64decode(links[0][1] + "==")))
    assert opening["plan"]["applications"][0]["size"]["value"] == 12 * 1460


@needs_page
def test_it_is_served_on_loopback_until_it_is_interrupted() -> None:
    program = [Path(sys.executable).with_name("firstflight"), "explore"]
    # BROWSER: none shall open.
    served = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=os.environ | {"BROWSER": "true"})
    try:
        assert served.stdout is not None
        url = served.stdout.readline().split()[0]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url) as answer:
            assert answer.read().decode() == page()
        served.send_signal(signal.SIGINT)
        assert served.wait(30) == 0
    finally:
        served.kill()
        served.communicate()


@needs_page
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium was not found: apt-get install chromium")
@pytest.mark.skipif(_is_stale(), reason="the explorer is older than its sources: make explore")
@pytest.mark.skipif(not (EXPLORER / "node_modules").exists(), reason="npm packages are missing: make explore")
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page())
    own = transfer(Scenario.load(ROOT / "examples" / "transfer-20-segments.toml"))
    (tmp_path / "home.html").write_text(page(own))
    cases = [_case(tmp_path / "page.html", Scenario.load(DOWNLOAD), *case) for case in CASES]
    cases.append(_case(tmp_path / "home.html", Scenario.load(ROOT / "examples" / "transfer-20-segments.toml"), "", {}))
    # The handshake is in the file; the knob takes it away, and with it the programs' TCP_NODELAY.
    tls = Scenario.load(ROOT / "examples" / "handshake.toml")
    (tmp_path / "tls.html").write_text(page(transfer(tls)))
    cases.append(_case(tmp_path / "tls.html", tls, "#a.iw=10", {"tcp.initial_window": 10}))
    cases.append(
        _case(
            tmp_path / "tls.html",
            tls,
            "#a.iw=10&a.profile=linux&a.chain=none",
            {"tcp.initial_window": 10, "application[0].tls": "none"},
        )
    )
    # A link from elsewhere: the transfer is in the address.
    cases.append(
        _case(
            tmp_path / "page.html",
            Scenario.load(STREETS),
            f"#{fragment(transfer(Scenario.load(STREETS)))}",
            {"tcp.initial_window": 3},
        )
    )
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    taken = tmp_path / "taken.json"
    for name, content in zip(("playground.html", "simulator.bin"), _site_pages()._in_two(page()), strict=True):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    told = {
        "CHROMIUM": CHROMIUM,
        "PAGE": str(tmp_path / "page.html"),
        "CASES": str(tmp_path / "cases.json"),
        "FRAGMENTS": json.dumps(TAKEN),
        "TAKEN": str(taken),
        "SITE": str(tmp_path),
    }
    ran = subprocess.run(
        ["node", "--test", "test/page.test.mjs"],
        cwd=EXPLORER,
        env=os.environ | {name: str(value) for name, value in told.items()},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for settings, found in zip(TAKEN, json.loads(taken.read_text()), strict=True):
        file = tmp_path / "explored.toml"
        file.write_text(found["toml"])
        assert _completions(file, found["command"]) == found["completion_ns"], settings


def _site_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _completions(file: Path, command: str) -> list[int]:
    """The completion times in ns of both settings, by the commands that the page gives with its scenario."""
    found = []
    for line in command.splitlines():
        program, name, path, *options = shlex.split(line)
        assert (program, path) == ("firstflight", "explored.toml")
        pairs = list(zip(options[::2], options[1::2], strict=True))
        scenario = load_scenario(file, [value for option, value in pairs if option == "--set"])
        given = dict(pairs)
        key, _, values = given.get("--vary", "").partition("=")
        assert name == ("run" if key else "trace")
        for arm in [scenario.replace(key, int(value)) for value in values.split(",")] if key else [scenario]:
            transfers = capture(arm, int(given["--seed"]))["transfers"].filter(pl.col("application") != "neighbor")
            found.append(round(transfers["completion_time_s"][0] * 1e9))
    return found


def _case(file: Path, scenario: Scenario, fragment: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The output of `firstflight trace --csv` for the scenario with the settings, as numbers."""
    for key, value in settings.items():
        scenario = scenario.replace(key, value)
    tables = capture(scenario, 7 if "seed=7" in fragment else 1)
    columns = first_connection(tables, scenario).select(pl.col(COLUMNS).cast(pl.Float64)).to_dict(as_series=False)
    completion = tables["transfers"]["completion_time_s"][0]
    name = fragment[:60] or scenario.name
    return {
        "name": name,
        "file": str(file),
        "fragment": fragment,
        "columns": columns,
        "completion_ns": round(completion * 1e9),
    }
