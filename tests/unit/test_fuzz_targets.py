"""Fuzz targets are compiled with everything else: by `make lint`, which checks all targets of the workspace."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(ROOT.glob("crates/*/fuzz"))


def test_every_fuzz_target_is_compiled_by_make_lint() -> None:
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    lint = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    assert "clippy --quiet --locked --workspace --all-targets" in lint
    assert {folder.relative_to(ROOT).as_posix() for folder in FOLDERS} <= set(members)
    for folder in FOLDERS:
        declared = {target["path"] for target in tomllib.loads((folder / "Cargo.toml").read_text())["bin"]}
        written = {
            file.relative_to(folder).as_posix()
            for file in (folder / "fuzz_targets").glob("*.rs")
            if "fuzz_target!" in file.read_text()
        }
        assert declared == written


def test_captures_packet_scripts_and_plans_have_a_fuzz_target() -> None:
    targets = {file.stem for folder in FOLDERS for file in (folder / "fuzz_targets").glob("*.rs")}
    assert {"endpoint", "capture", "script", "plan", "testbed"} <= targets
