"""Colors by role, of theme.json: for figures, pages, the explorer (build.mjs) and the site (site_pages.py).

A color of theme.json is a pair, on a light and on a dark page. Figures are drawn in the light ones, each of which
stands there once, so that a dark page can replace it by its pair. In an order, as of `ordered`, they are dark enough
on white (contrast 3:1) and distinguishable by readers who do not see red or green (after Okabe and Ito).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_THEME = json.loads(Path(__file__).with_name("theme.json").read_text(encoding="utf-8"))
_PAIRS: dict[str, list[str]] = _THEME["colors"]
_ROLES: dict[str, str] = _THEME["roles"]
_WINDOW = re.compile(r"(?:\bIW|initial_window)[ =]+(\d+)")
_WINDOW_KEYS = ("iw", "initial_window")


def color(name: str) -> str:
    """The color of this name or role on a light page. KeyError for another."""
    return _PAIRS[_ROLES.get(name, name)][0]


ORDERED = tuple(map(color, _THEME["ordered"]))
INK, SOFT, LINE, PAPER = map(color, ("ink", "soft", "line", "paper"))
# Against a base: colors for faster, slower, and the base itself.
BETTER, WORSE, BASE = map(color, ("better", "worse", "base"))


def scale(names: Sequence[str | int], key: str = "") -> dict[str, Any]:
    """A color for each name of a legend: an initial window has the same one in every figure.

    A name is a window if it says so ("IW 10", "initial_window 10"), or if it is a value of `key`, such as "iw".
    """
    said = [[str(name)] if key in _WINDOW_KEYS else _WINDOW.findall(str(name)) for name in names]
    colors: list[str | None] = []
    for windows in said:
        role = _THEME["windows"].get(windows[0]) if len(windows) == 1 else None
        colors.append(color(role) if role and color(role) not in colors else None)
    free = [shade for shade in ORDERED if shade not in colors] or list(ORDERED)
    others = itertools.cycle(free)
    return {"domain": list(names), "range": [shade or next(others) for shade in colors]}


def css(light: str = ":root", dark: str = "") -> str:
    """All colors and roles as variables, for what `light` selects, and for `dark`: by default `light` where the reader
    prefers that. Pictures within follow.
    """
    roles = [f"--{role}: var(--{name})" for role, name in _ROLES.items()]
    schemes = ("light", "dark") if dark else ("light dark", "dark")
    rules = []
    for place, (of, scheme) in enumerate(zip((light, dark or light), schemes, strict=True)):
        variables = [f"--{name}: {pair[place]}" for name, pair in _PAIRS.items()]
        rules.append(f"{of} {{ {'; '.join([f'color-scheme: {scheme}', *variables, *roles])}; }}")
    if not dark:
        rules[1] = f"@media (prefers-color-scheme: dark) {{ {rules[1]} }}"
    rules += [
        f'.picture svg [{part}="{pair[0]}"] {{ {part}: var(--{name}); }}'
        for name, pair in _PAIRS.items()
        for part in ("fill", "stroke")
    ]
    return "\n".join(rules)


def in_both_schemes(svg: str) -> str:
    """The picture with a style for a page that shows it as an image: with the dark colors where the reader prefers
    those.
    """
    rules = [
        f'[{part}="{light}"]{{{part}:{dark}}}'
        for light, dark in _PAIRS.values()
        for part in ("fill", "stroke")
        if f'{part}="{light}"' in svg
    ]
    return svg.replace(">", f"><style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>", 1)
