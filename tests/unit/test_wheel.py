"""The wheel: a user's installation without a compiler, in a separate environment, away from the checkout."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_wheel_holds_all_that_a_study_and_a_page_need(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "maturin", "build", "--release", "--out", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("firstflight-*.whl")
    assert "-cp311-abi3-" in wheel.name
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    # The dependencies of this environment, without its own firstflight, which a .pth file would bring.
    found = f"import sys; sys.path += [{str(installed)!r}, {sysconfig.get_path('purelib')!r}]; "
    for arguments, expected in (
        (["run", "rfc6928-rounds"], "firstflight report runs/rfc6928-rounds"),
        (["report", "runs/rfc6928-rounds"], "runs/rfc6928-rounds/report.html"),
        (["explain", "--out", "explain.html"], "explain.html"),
    ):
        program = f"{found}sys.argv = {['firstflight', *arguments]!r}; from firstflight.cli import main; main()"
        ran = subprocess.run(
            [sys.executable, "-S", "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, expected in ran.stdout) == (0, True), ran.stdout + ran.stderr
    where = f"{found}import firstflight; print(firstflight.__file__)"
    told = subprocess.run([sys.executable, "-S", "-I", "-c", where], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(installed / "firstflight" / "__init__.py")
