"""A figure of a report: a chart with its name, title and caption."""

from __future__ import annotations

import html
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstflight.counted import escaped
from firstflight.errors import RequestError, require_figures
from firstflight.records.output import MARK
from firstflight.report.style import INK, LINE, ORDERED, PAPER, SOFT

FORMATS = ("svg", "png", "pdf")
# Widths in the legend, in units of the picture: of a letter, and of a symbol with its room.
_LETTER, _SYMBOL = 7, 40
Spec = dict[str, Any]
"""A chart or a part of one as Vega-Lite reads it, as JSON."""
_VEGA_LITE = "6.4"
"""The version by which they are drawn."""


@dataclass(frozen=True)
class Figure:
    """A chart for a wide page and, where it would not fit a telephone, one for a narrow page, as Vega-Lite reads them
    (of an Altair chart, `chart.to_dict()`).

    `narrow` should stay within about 340 px of width; None: the wide chart scrolls in its box. `finding`: what the
    chart shows, with numbers, as the heading; `title`, the measure, is then the line below it.
    """

    name: str
    title: str
    caption: str
    chart: Spec = field(repr=False)
    narrow: Spec | None = field(default=None, repr=False)
    finding: str = ""

    def _repr_html_(self) -> str:
        """In a notebook: the wide picture below its heading."""
        return f"<p>{html.escape(self.finding or self.title)}</p>{svg(self.chart)}"

    @property
    def measure(self) -> str:
        """The title below a finding that does not begin with it."""
        return measure(self.title, self.finding)

    @property
    def pictures(self) -> dict[str, Spec]:
        """The charts: "wide" and, if there is one, "narrow"."""
        return {"wide": self.chart} | ({} if self.narrow is None else {"narrow": self.narrow})

    @property
    def notes(self) -> str:
        """The caption, and where the axis of the values begins if not at 0."""
        cut = _starts_above_zero(self.chart)
        return f"{self.caption} The vertical axis does not start at 0." if cut else self.caption


def layer(mark: str | Spec, rows: list[dict[str, Any]] | None = None, /, **encoding: Spec) -> Spec:
    """A mark for each of the rows, by default of those of the chart that it is a part of."""
    return {"mark": mark, "encoding": encoding} | ({} if rows is None else {"data": {"values": rows}})


def quantitative(field: str, **settings: Any) -> Spec:
    """A channel of a `Spec` that shows numbers of this column."""
    return {"field": field, "type": "quantitative", **settings}


def nominal(field: str, **settings: Any) -> Spec:
    """The same for names."""
    return {"field": field, "type": "nominal", **settings}


def legend(names: list[str], width: int) -> Spec:
    """With as many names in a row as fit: a longer row would make the whole picture smaller."""
    return {"columns": max(1, width // (_LETTER * max(map(len, names)) + _SYMBOL))}


def measure(title: str, finding: str) -> str:
    """The title of a figure, to stand below its finding; empty without a finding or where that begins with it."""
    return "" if not finding or finding.startswith(title.rstrip(".")) else title


def _starts_above_zero(part: Any) -> bool:
    if isinstance(part, list):
        return any(map(_starts_above_zero, part))
    if not isinstance(part, dict):
        return False
    scale = part.get("y", {}).get("scale") if isinstance(part.get("y"), dict) else None
    if scale and scale.get("zero") is False and scale.get("type", "linear") == "linear":
        return True
    return any(_starts_above_zero(item) for name, item in part.items() if name not in ("data", "datasets"))


def svg(chart: Spec) -> str:
    """The chart as one SVG element, with a transparent background; colors follow the page's style."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(_spec(chart), vl_version=_VEGA_LITE)
    # The page names the picture; the library's roles for its parts lack names.
    return _short(re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", str(drawn)))


# A point as the library draws it: two arcs about its place.
_POINT = re.compile(r'<path transform="translate\(([\d.-]+),([\d.-]+)\)" d="M([\d.]+),0A\3,[^"]*,\3,0"')
# A line at a value, which it draws once for each row of the data.
_AGAIN = re.compile(r'(<line (?![^>]*opacity="0)[^>]*/>)\1+')
_PLACES = re.compile(r'(?: d|transform|[xy][12]?|c[xy]|r|width|height)="[^"]*"')


def _short(drawn: str) -> str:
    """The same picture, shorter: points as circles, each line once, places to a hundredth of a pixel."""
    drawn = _AGAIN.sub(r"\1", _POINT.sub(r'<circle cx="\1" cy="\2" r="\3"', drawn))
    return _PLACES.sub(lambda place: re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", place[0]), drawn)


def format_of(path: Path, is_drawn: bool = True) -> str:
    """The format of a picture by the end of its name. RequestError for another; MachineError without what draws it,
    which an SVG needs only where it `is_drawn` from a chart.
    """
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        what = "a picture is written as" if is_drawn else "a page is written as .html, a picture as"
        raise RequestError(f'"{path}": {what} .svg, .png or .pdf; choose a name with one of these')
    if is_drawn or form != "svg":
        require_figures()
    return form


def picture(chart: Spec, form: str) -> bytes:
    """The content of a file with the chart, in one of FORMATS, which says who wrote it; PNG on white."""
    if form == "svg":
        return drawing(svg(chart), form)
    spec = _spec(chart) | ({"background": PAPER} if form == "png" else {})
    return _converted("vegalite", spec, form, vl_version=_VEGA_LITE)


def drawing(text: str, form: str) -> bytes:
    """The same of an SVG."""
    return f"{text}<!-- {MARK} -->\n".encode() if form == "svg" else _converted("svg", text, form)


def _converted(source: str, what: Any, form: str, **options: Any) -> bytes:
    import vl_convert

    scale = {"scale": 2.0} if form == "png" else {}
    content = bytes(getattr(vl_convert, f"{source}_to_{form}")(what, **options, **scale))
    # Behind the end of a PDF file readers look no further.
    return _marked(content) if form == "png" else content + f"\n% {MARK}\n".encode()


def _marked(data: bytes) -> bytes:
    """A PNG with a text chunk behind its header, the first 33 bytes (PNG specification, 11.3.4.3)."""
    chunk = b"tEXtSoftware\0" + MARK.encode()
    length = (len(chunk) - 4).to_bytes(4, "big")
    return data[:33] + length + chunk + zlib.crc32(chunk).to_bytes(4, "big") + data[33:]


def _spec(chart: Spec) -> Spec:
    spec: Spec = _shown(chart)
    config = spec.get("config", {}) | {
        "background": "transparent",
        # Letters as wide as those the picture was laid out with: these fonts have the same widths, and the library
        # that measures them here has Liberation Sans. Wider ones would run over each other.
        "font": "Arial, 'Liberation Sans', Helvetica, Arimo, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "gridColor": LINE,
            "labelColor": SOFT,
            "titleColor": SOFT,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "header": {
            "labelFontSize": 12,
            "labelFontWeight": "bold",
            "labelColor": INK,
            "titleFontSize": 12,
            "titleColor": SOFT,
        },
        "title": {"color": INK, "subtitleColor": SOFT},
        "text": {"color": INK},
        "mark": {"color": ORDERED[0]},
        "rule": {"color": INK},
        # Symbols are as strong as lines and dots, whatever else of a layer is pale.
        "legend": {
            "labelColor": INK,
            "titleColor": SOFT,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "orient": "top",
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
            "labelLimit": 400,
            # Room for the wider letters of a machine that has none of the fonts above.
            "columnPadding": 28,
        },
    }
    return spec | {"config": config}


def _shown(part: Any) -> Any:
    """The part of a chart with its texts as a picture can show them: a control character would end the process."""
    if isinstance(part, dict):
        return {key: _shown(item) for key, item in part.items()}
    if isinstance(part, list):
        return [_shown(item) for item in part]
    return escaped(part) if isinstance(part, str) else part
