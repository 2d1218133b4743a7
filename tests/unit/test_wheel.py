"""The wheel and the source distribution: what a user has without the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import firstflight
from firstflight.errors import RequestError
from firstflight.input_files import or_packaged

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_an_example_that_the_folder_lacks_is_the_packages_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert firstflight.load_scenario("examples/download.toml").name == "download"
    assert firstflight.observe.read("examples/flows/table.csv").transfers.height
    with pytest.raises(RequestError, match=r'there is no file "examples/none\.toml"'):
        firstflight.load_scenario("examples/none.toml")


def test_an_example_of_the_folder_comes_before_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = Path("examples/download.toml")
    assert or_packaged(own).is_absolute()
    own.parent.mkdir()
    own.touch()
    assert or_packaged(own) == own
    assert or_packaged("download.toml") == Path("download.toml")


def test_the_licenses_list_every_crate_of_the_native_module() -> None:
    tree = ["cargo", "tree", "--locked", "--offline", "--package=firstflight-python", "--edges=normal", "--prefix=none"]
    ran = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True)
    compiled = set(re.findall(r"^(\S+) v(\S+)", ran.stdout, re.MULTILINE))
    listed = set(re.findall(r"^\| (\S+) \| (\S+) \|", (ROOT / "LICENSE-THIRD-PARTY.md").read_text(), re.MULTILINE))
    others = {(name, version) for name, version in compiled if not name.startswith("firstflight-")}
    assert len(others) > 20
    assert others <= listed


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source distribution is made from a git checkout")
def test_the_source_distribution_holds_what_the_readme_links_to_the_tests_and_the_explorer(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (packed,) = tmp_path.glob("firstflight-*.tar.gz")
    with tarfile.open(packed) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    examples = {f"python/firstflight/{name}" for name in tracked if name.startswith("examples/")}
    assert (set(tracked) - {"python/firstflight/examples"}) | examples <= held
    for link in re.findall(r"\]\(([^):#]+)[)#]", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert link in held or any(name.startswith(f"{link}/") for name in held), link


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a wheel takes the time of its files from a git checkout")
def test_a_wheel_does_what_the_readme_says_in_an_empty_folder(tmp_path: Path) -> None:
    build = [sys.executable, str(ROOT / ".ci/wheel"), "--out", str(tmp_path)]
    done = subprocess.run(build, env=os.environ | {"PATH": PATH}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("firstflight-*.whl")
    assert "-cp311-abi3-" in wheel.name
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
        licenses = {Path(name).name for name in archive.namelist() if "/licenses/" in name}
    assert licenses == {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-THIRD-PARTY.md"}
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    # No paths of the machine that built it, and no table of symbols.
    for path in (*installed.rglob("_native*"), *installed.rglob("*.cyclonedx.json")):
        content = path.read_bytes()
        assert str(ROOT).encode() not in content, path
        assert cargo.encode() not in content, path
        assert b".symtab\0" not in content, path
    # The dependencies of this environment, without its own firstflight, which a .pth file would bring.
    found = f"import sys; sys.path += [{str(installed)!r}, {sysconfig.get_path('purelib')!r}]; "
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, expected in (
        (["run", "rfc6928-rounds"], "firstflight report runs/rfc6928-rounds"),
        (["report", "runs/rfc6928-rounds"], "runs/rfc6928-rounds/report.html"),
        (["explain", "--iw", "3,10", "--out", "explain.html"], "explain.html"),
        (["explain", "examples/download.toml"], "IW 10"),
        (["run", "examples/download.toml"], "firstflight report runs/download"),
        (["advise", "examples/flows/homes.csv.gz", "--iw", "10,20"], "runs/advice-homes.csv/advice.html"),
    ):
        program = f"{found}sys.argv = {['firstflight', *arguments]!r}; from firstflight.cli import main; main()"
        ran = subprocess.run(
            [sys.executable, "-S", "-I", "-c", program], cwd=empty, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, expected in ran.stdout) == (0, True), ran.stdout + ran.stderr
    where = f"{found}import firstflight; print(firstflight.__file__)"
    told = subprocess.run([sys.executable, "-S", "-I", "-c", where], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(installed / "firstflight" / "__init__.py")
