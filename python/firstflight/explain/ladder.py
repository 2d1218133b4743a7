"""A ladder diagram: two vertical lines, the sender and the receiver, and a slanted line for each segment between."""

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from markupsafe import escape

from firstflight.explain.rounds import Crossing, Transfer
from firstflight.report.style import color

# In pixels of a drawing, which the page scales.
_WIDTH, _HEIGHT = 500, 620
_TOP, _BOTTOM = 46, 12
_AXIS, _LABEL, _RIGHT = 58, 76, 34
_SENDER, _RECEIVER = _AXIS + _LABEL, _WIDTH - _RIGHT
_TICKS = (1, 2, 5)
_MOST_TICKS = 10
_LINE = 16
_GAP, _MARGIN = 10, 16
# Of a letter of the caption.
_LETTER = 7.4

_CAPTION = (
    "Time runs down, on one axis. Blue: segments with data. Thin: ACKs. Dashed: handshake and request. {tls}"
    "Red: retransmissions, and a cross where a segment was dropped. A band is a round."
)
_TLS = "Purple: TLS handshake. "


def style(color: Callable[[str], str]) -> str:
    """The rules of a drawing; `color` gives each color of the theme, on a page as a variable."""
    ink, paper, faint, band, data, bad, tls = map(color, ("ink", "paper", "soft", "panel", "accent", "alarm", "tls"))
    return f"""text {{ fill: {ink}; font-size: 13px; font-family: system-ui, Arial, 'Liberation Sans', sans-serif; }}
.strong {{ font-weight: 600; }} .took {{ paint-order: stroke; stroke: {paper}; stroke-width: 4; }}
text.faint {{ fill: {faint}; }}
.band {{ fill: {band}; }} .end {{ stroke: {ink}; stroke-width: 2; }} .tick {{ stroke: {faint}; stroke-width: .5; }}
.data {{ stroke: {data}; stroke-width: 1.6; }} .retransmission {{ stroke: {bad}; stroke-width: 2; }}
.tls {{ stroke: {tls}; stroke-width: 1.6; }}
.ack {{ stroke: {faint}; stroke-width: .7; }}
.handshake, .request {{ stroke: {ink}; stroke-width: 1.2; stroke-dasharray: 5 3; }}
.gone {{ stroke: {bad}; stroke-width: 2; fill: none; }}
.done {{ stroke: {ink}; stroke-width: 1.5; stroke-dasharray: 2 2; }}"""


def caption(transfers: Sequence[Transfer]) -> str:
    """What the lines mean."""
    return _CAPTION.format(tls=_TLS if any(map(_has_tls, transfers)) else "")


def ladders(transfers: Sequence[Transfer]) -> list[str]:
    """A drawing of each transfer as SVG, all on one time axis."""
    last_s = max(_last_s(of) for of in transfers)
    return [_ladder(of, last_s) for of in transfers]


def sheet(title: str, transfers: Sequence[Transfer]) -> str:
    """The drawings next to each other as one SVG, with title and caption."""
    last_s = max(_last_s(of) for of in transfers)
    width = len(transfers) * (_WIDTH + _GAP) - _GAP + 2 * _MARGIN
    letters = int((width - 2 * _MARGIN) / _LETTER)
    heads, lines = textwrap.wrap(title, int(letters * 0.8)), textwrap.wrap(caption(transfers), letters)
    top = _MARGIN + 20 * len(heads) + 4
    height = top + _HEIGHT + _LINE * len(lines) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{style(color)}</style>",
        f'<rect width="{width}" height="{height}" fill="{color("paper")}"/>',
    ]
    for place, text in enumerate(heads):
        y = _MARGIN + 15 + 20 * place
        parts.append(f'<text class="strong" x="{_MARGIN}" y="{y}" style="font-size: 16px">{escape(text)}</text>')
    for place, of in enumerate(transfers):
        at = f'x="{_MARGIN + place * (_WIDTH + _GAP)}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" '
        parts.append(_ladder(of, last_s, at))
    for place, text in enumerate(lines):
        parts.append(f'<text class="faint" x="{_MARGIN}" y="{top + _HEIGHT + _LINE * (place + 1)}">{text}</text>')
    return "\n".join([*parts, "</svg>"])


def _ladder(of: Transfer, last_s: float, at: str = "") -> str:
    scale = (_HEIGHT - _TOP - _BOTTOM) / last_s
    label = f'role="img" aria-label="{escape(of.label)}: {of.round_trips} rounds"'
    parts = [f'<svg {at}viewBox="0 0 {_WIDTH} {_HEIGHT}" {label}>', *_axis(last_s, scale), *_bands(of, scale)]
    # ACKs of the last segments arrive after the end.
    parts.append(f'<svg x="0" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT - _TOP - _BOTTOM}">')
    parts += [_line(crossing, scale) for crossing in of.crossings]
    parts.append("</svg>")
    for x, name in ((_SENDER, of.end(True)), (_RECEIVER, of.end(False))):
        parts.append(f'<line class="end" x1="{x}" x2="{x}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text class="faint" x="{x}" y="{_TOP - 6}" text-anchor="middle">{name}</text>')
    middle = (_SENDER + _RECEIVER) / 2
    parts.append(f'<text class="strong" x="{middle:g}" y="18" text-anchor="middle">{escape(of.label)}</text>')
    if of.completion_s is not None:
        y = _TOP + of.completion_s * scale
        parts.append(f'<line class="done" x1="{_SENDER}" x2="{_RECEIVER + 20}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if not _has_tls(of):
            took = f"{1e3 * of.completion_s:.1f} ms"
            # At the sender's end of that line a mark may stand.
            place = f'x="{_RECEIVER - 8}" y="{y - 5:.1f}" text-anchor="end"'
            parts.append(f'<text class="strong took" {place}>{took}</text>')
    for is_sender in (True, False):
        marks = {name: time_s for name, time_s in of.slow_start_end.items() if is_sender and time_s <= last_s}
        if _has_tls(of) and of.end(is_sender) == "client":
            marks.update(of.marks)
        parts += _marks(marks, is_sender, scale)
    return "\n".join([*parts, "</svg>"])


def _bands(of: Transfer, scale: float) -> Iterable[str]:
    """The rounds, each second one shaded."""
    began = [*(round_.began_s for round_ in of.rounds), _last_s(of)]
    for place, (round_, start, end) in enumerate(zip(of.rounds, began, began[1:], strict=False)):
        top, height = _TOP + start * scale, (end - start) * scale
        if place % 2 == 0:
            width = _RECEIVER - _AXIS
            yield f'<rect class="band" x="{_AXIS}" y="{top:.1f}" width="{width}" height="{height:.1f}"/>'
        label = f'x="{_SENDER - 8}" text-anchor="end"'
        name = of.end(round_.from_sender) if round_.number is None else f"round {round_.number}"
        if height >= _LINE:
            yield f'<text {label} y="{top + 14:.1f}">{name}</text>'
        if height >= 2 * _LINE:
            count = round_.segments + round_.retransmissions
            yield f'<text class="faint" {label} y="{top + 30:.1f}">{count} seg.</text>'


def _has_tls(of: Transfer) -> bool:
    return any(round_.tls for round_ in of.rounds)


def _marks(marks: Mapping[str, float], at_sender: bool, scale: float) -> Iterable[str]:
    """The marks at one end, from the last one up, so that none covers another."""
    x, side, anchor = (_SENDER, 1, "start") if at_sender else (_RECEIVER, -1, "end")
    lowest = math.inf
    for name, time_s in sorted(marks.items(), key=lambda mark: mark[1], reverse=True):
        y = _TOP + time_s * scale
        yield f'<line class="end" x1="{x}" x2="{x - 10 * side}" y1="{y:.1f}" y2="{y:.1f}"/>'
        lowest = min(y - 5, lowest - _LINE)
        says = f"{name} {1e3 * time_s:.1f} ms"
        yield f'<text class="took" x="{x + 8 * side}" y="{lowest:.1f}" text-anchor="{anchor}">{says}</text>'


def _line(crossing: Crossing, scale: float) -> str:
    """A segment; from the top of the time axis."""
    start, end = (_SENDER, _RECEIVER) if crossing.from_sender else (_RECEIVER, _SENDER)
    top = crossing.sent_s * scale
    says = f"{crossing.kind}, sent at {1e3 * crossing.sent_s:.1f} ms"
    if crossing.arrives_s is None:
        x = start + (end - start) * 0.25
        cross = f'<path class="gone" d="M{x - 4:.1f} {top - 4:.1f}l8 8m0 -8l-8 8"/>'
        line = f'<line class="{crossing.kind}" x1="{start:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{top:.1f}"/>'
        return f"<g><title>{says}, dropped</title>{line}{cross}</g>"
    bottom = crossing.arrives_s * scale
    says += f", received at {1e3 * crossing.arrives_s:.1f} ms"
    ends = f'x1="{start:.1f}" y1="{top:.1f}" x2="{end:.1f}" y2="{bottom:.1f}"'
    return f'<line class="{crossing.kind}" {ends}><title>{says}</title></line>'


def _axis(last_s: float, scale: float) -> Iterable[str]:
    step_s = _step(last_s)
    for number in range(int(last_s / step_s) + 1):
        y = _TOP + number * step_s * scale
        yield f'<line class="tick" x1="{_AXIS - 6}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        label = f"{1e3 * number * step_s:g} ms"
        yield f'<text class="faint" x="{_AXIS - 10}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _step(last_s: float) -> float:
    """A round number that gives five to ten ticks."""
    power = 1e-6
    while True:
        for digit in _TICKS:
            if last_s / (digit * power) <= _MOST_TICKS:
                return digit * power
        power *= 10


def _last_s(of: Transfer) -> float:
    """When the drawing of a transfer ends: it is complete, or the last segment has arrived."""
    if of.completion_s is not None:
        return of.completion_s
    return max(crossing.arrives_s or crossing.sent_s for crossing in of.crossings)
