"""The notebooks of the examples run from the first cell to the last, and are stored without output."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert len(code) > 3
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """In a separate process, whose kernel keeps its history and connection files in a directory of the test."""
    program = (
        "import sys, nbformat, nbclient\n"
        "notebook = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(notebook, timeout=300).execute(cwd=sys.argv[2])\n"
        "nbformat.write(notebook, sys.argv[3])\n"
    )
    own = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "TMPDIR"), str(tmp_path))
    executed = tmp_path / "executed.ipynb"
    command = [sys.executable, "-c", program, path, path.parent, executed]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = [cell.outputs for cell in nbformat.read(executed, as_version=4).cells if cell.cell_type == "code"]
    assert any(printed)
