"""Colors stand in one file, and a window has one color."""

import re
import runpy
from pathlib import Path

import pytest

from firstflight.report import style

ROOT = Path(__file__).parents[2]
HEX = re.compile(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})\b", re.IGNORECASE)
DRAWS = (
    "python/firstflight/**/*.py",
    "python/firstflight/**/*.css",
    "python/firstflight/**/*.j2",
    "explorer/src/*",
    "docs/*.css",
)


def test_no_color_stands_outside_of_the_theme() -> None:
    found = [
        f"{path}: {color}"
        for pattern in DRAWS
        for path in ROOT.glob(pattern)
        for color in HEX.findall(re.sub(r"\w#\d+", "", path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_each_light_color_stands_once_so_that_a_dark_page_can_replace_it() -> None:
    light = [pair[0] for pair in style._PAIRS.values()]
    assert len(set(light)) == len(light)
    assert light == [color.lower() for color in light]


@pytest.mark.parametrize(
    ("names", "key", "windows"),
    [
        (["3", "10"], "iw", ["a", "b"]),
        (["IW 10", "IW 3"], "scheme", ["b", "a"]),
        (["IW 10, IW 3"], "", ["blue"]),
        (["initial_window 10: complete after 209.8 ms"], "", ["b"]),
        (["IW 32", "IW 32, paced"], "scheme", ["wine", "blue"]),
        (["7", "10"], "iw", ["orange", "b"]),
        (["8", "16", "32"], "webs", ["blue", "orange", "green"]),
    ],
)
def test_a_window_has_one_color(names: list[str], key: str, windows: list[str]) -> None:
    scale = style.scale(names, key)
    assert scale == {"domain": names, "range": [style.color(name) for name in windows]}


def test_the_pictures_of_the_evidence_follow_the_theme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    picture = '<path fill="#0b5cad"/><path fill="#6cb4ff"/><path stroke="#123456"/>'
    names = pictures["recolor"].__globals__
    monkeypatch.setitem(names, "committed", lambda command, _: "study.svg" if command == "ls-files" else picture)
    monkeypatch.setitem(names, "ROOT", tmp_path)
    before = '{"colors": {"blue": ["#0b5cad", "#6cb4ff"], "sky": ["#123456", "#654321"]}}'
    for _ in range(2):
        pictures["recolor"](before, '{"colors": {"blue": ["#6cb4ff", "#0b5cad"], "sky": ["#123456", "#654321"]}}')
        found = (tmp_path / "study.svg").read_text()
        assert found == '<path fill="#6cb4ff"/><path fill="#0b5cad"/><path stroke="#123456"/>'
