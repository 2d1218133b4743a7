"""The labs: right answers hold, wrong ones differ, and the notebooks run from the first cell to the last."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

LABS = Path(__file__).parents[2] / "examples" / "labs"
# Of the student whose name is "your name", worked out by hand: see the comments.
RIGHT = {
    # 28 segments, RTT 60 ms: 3 + 6 + 12 + 7 and 10 + 18, after the handshake; 3 + 6 < 10.
    "1-why-ten": ["5", "120", "28", "10"],
    # 10 Mbit/s over 40 ms; 6 packets of 1.2 ms; the queue; 7, 14, 28, 56, then above 33 in flight and 29 waiting.
    "2-slow-start-and-the-queue": ["33.3", "7.2", "29", "5"],
    # 20 * 12 kbit / 1250 kbit/s; 85% of 120 packets and 10 ms.
    "3-bufferbloat": ["192", "990", "17"],
    # 9 / 10; equal in the long run; one round of 44 ms and the request, of five; A keeps its time.
    "4-fairness": ["0.9", "1", "35", "0"],
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_hold(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(LABS / f"{name}.ipynb", as_version=4)
    answers = iter(RIGHT[name])
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            cell.source = re.sub(
                r"^(answer_\d) = None$", lambda found: f"{found[1]} = {next(answers)}", cell.source, flags=re.M
            )
    assert list(answers) == []
    notebook.cells.append(nbformat.v4.new_code_cell("sorted(set(me.verdicts.values()))"))
    nbformat.write(notebook, tmp_path / "lab.ipynb")
    program = (
        "import sys, nbformat, nbclient\n"
        "notebook = nbformat.read(sys.argv[1], as_version=4)\n"
        "nbclient.NotebookClient(notebook, timeout=300).execute(cwd=sys.argv[2])\n"
        "print(notebook.cells[-1].outputs[0]['data']['text/plain'])\n"
        "print([each.text for cell in notebook.cells for each in cell.get('outputs', []) if 'text' in each])\n"
    )
    own = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "TMPDIR"), str(tmp_path))
    command = [sys.executable, "-c", program, tmp_path / "lab.ipynb", LABS]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['holds']\n"), done.stdout


def test_verdicts_hints_and_draws(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(LABS)
    from lab import Student

    me = Student("Ada  Lovelace")
    me.check("right", 10.4, 10.0, within=0.05)
    me.check("wrong", 10.6, 10.0, within=0.05)
    me.check("none", None, 10.0)
    me.check("exact", 3, 3)
    assert me.verdicts == {"right": "holds", "wrong": "differs", "none": "no answer yet", "exact": "holds"}
    me.check("text", "41.5 ms", 41.5)
    me.check("words", "many", 41.5)
    assert (me.verdicts["text"], me.verdicts["words"]) == ("holds", "no answer yet")
    me.total()
    printed = capsys.readouterr().out
    assert "wrong: differs (10.6 is too large)" in printed
    assert 'words: no answer yet ("many" is not a number; write one)' in printed
    assert printed.endswith("ada lovelace: 3 of 6 answers hold\n")
    assert Student("ada lovelace").draw("rtt", range(1000)) == me.draw("rtt", range(1000))
    assert len({Student(str(number)).draw("rtt", range(1000)) for number in range(20)}) > 15
