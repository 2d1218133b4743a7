"""Applications by name, for `[[application]] preset = "..."`: the requests of users, with the source of each number.

No source has the joint distribution of sizes and connections, so these are stated assumptions.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from firstflight.counted import nearest
from firstflight.errors import RequestError


@dataclass(frozen=True)
class Preset:
    """An application as in a scenario file, and the sources of its numbers."""

    what: str
    sources: str
    table: dict[str, Any]


def _page(
    primary: tuple[str, float], inline: tuple[str, float], *, inline_count: int, parallel: int, request: str
) -> dict[str, Any]:
    """A page and objects in it, whose sizes are lognormal: the median and sigma of each."""
    law_of_page, law_of_objects = (
        {"distribution": "lognormal", "median": median, "sigma": sigma} for median, sigma in (primary, inline)
    )
    sizes = {"primary": law_of_page, "inline": law_of_objects, "inline_count": inline_count, "parallel": parallel}
    asked = {"request": request, "think_time": "0s", "count": 1}
    return {"kind": "web_page", "http_version": "1.0"} | sizes | asked


PRESETS = {
    "web-search": Preset(
        "one response of a search page on its own connection",
        "Sizes: a median of 9 kB (figure 9 of Dukkipati et al. 2010, as CS244 2014 reads it) and a tenth within 4 KB "
        "(RFC 6928), taken as 4,380 B: the lognormal distribution through the two has sigma 0.56. The request of 400 B "
        "is our choice.",
        {
            "kind": "file_transfer",
            "size": {"distribution": "lognormal", "median": "9kB", "sigma": 0.56},
            "request": "400B",
            "count": 1,
        },
    ),
    "maps": Preset(
        "a map: a page and 24 tiles, twelve parallel connections to one user",
        "Six connections to a host are those of browsers in 2010 (RFC 6928). Our choice: two hosts of tiles, so twelve "
        "in parallel; 24 tiles of 256 x 256 points cover a window of 1,536 x 1,024; tiles of 12 kB in the median, a "
        "page of 20 kB, requests of 500 B.",
        _page(("20kB", 0.5), ("12kB", 0.6), inline_count=24, parallel=12, request="500B"),
    ),
    "photos": Preset(
        "an album: a page and twenty thumbnails, six parallel connections",
        "Six connections to a host are those of browsers in 2010 (RFC 6928). Our choice: twenty thumbnails of 5 kB in "
        "the median, a page of 15 kB, requests of 400 B.",
        _page(("15kB", 0.5), ("5kB", 0.5), inline_count=20, parallel=6, request="400B"),
    ),
    "blog": Preset(
        "a blog's page: text and twenty objects of very different sizes, six parallel connections",
        "Mean of a page with all its objects: 384 kB (Dukkipati et al. 2010, as a summary of the paper has it). Six "
        "connections to a host are those of browsers in 2010 (RFC 6928). Our choice: twenty objects, the distribution "
        "of bytes over them (sigma 1.2; the page itself 20 kB in the median, sigma 0.8), requests of 400 B.",
        _page(("20kB", 0.8), ("8.7kB", 1.2), inline_count=20, parallel=6, request="400B"),
    ),
    "bulk": Preset(
        "a long download in the background, without end, by a tenth of the users",
        "All our choice. It starts with the user; start the other applications some seconds later, so that it is in "
        "progress when they begin.",
        {"kind": "file_transfer", "size": "100MB", "request": "400B", "idle_time": "0s", "user_fraction": 0.1},
    ),
}
NAMES = tuple(PRESETS)


def preset(preset: str, /, **keys: Any) -> dict[str, Any]:
    """A new `[[application]]` table of a preset, in which `keys` replace the preset's: `preset("maps", parallel=6)`.

    Its `name` is that of the preset by default. RequestError with the nearest known name.
    """
    if preset not in PRESETS:
        raise RequestError(f'unknown preset "{preset}"; {nearest(preset, NAMES)}')
    return {"name": preset} | deepcopy(PRESETS[preset].table) | keys
