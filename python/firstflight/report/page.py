"""Writes a report: the run's content through one template into one file that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstflight.analysis.claim import COUNTED, Claim, counts, tally
from firstflight.analysis.table import NOTHING, Entry, Metric, Table, interval_text, number
from firstflight.explore.links import put_beside
from firstflight.records import output
from firstflight.records.files import explained
from firstflight.report.content import Content, gather
from firstflight.report.figure import Figure, picture, svg
from firstflight.report.style import css

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from firstflight.records import Run

TEMPLATES = Path(__file__).parent / "templates"


def write(run: Run, study: Any, path: Path | None = None) -> Path:
    """Write the report of a run of `study`, by default to `report.html` in its directory; returns the path.

    If it links to transfers, the explorer is written next to it. Each file is written to a temporary file and
    renamed, so that a reader never sees half of it. Works for any study, for a plain scenario, and for a run of
    which only some cells are finished. RequestError if something else is there; MachineError if it cannot be
    written.
    """
    target = path or run.directory / "report.html"
    output.check(target)
    content = gather(run, study)
    if content.transfers:
        put_beside(target)
    output.write(target, render(content).encode())
    return target


def figures_to_files(run: Run, study: Any, directory: Path, formats: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write each figure of the run into `directory` as NAME.FORMAT, FORMAT being svg, png or pdf; returns the paths."""
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in gather(run, study).figures:
        for form in formats:
            path = directory / f"{figure.name}.{form}"
            output.write(path, picture(figure.chart, form))
            paths.append(path)
    return paths


def environment(*folders: Path) -> jinja2.Environment:
    """Templates of `folders` and of reports, with the colors and the pictures of a figure."""
    import jinja2  # late: a short command writes no page
    from markupsafe import Markup

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.globals.update(theme=Markup(css()), pictures=_pictures)
    return made


def render(content: Content) -> str:
    """The report's HTML."""
    templates = environment()
    templates.globals.update(
        tone=_tone,
        metric_runs=_metric_runs,
        unit_of=_unit_of,
        verdicts=COUNTED,
    )
    templates.filters.update(number=number, short=short, interval=interval_text)
    drawn = {figure.name for figure in content.figures}
    numbers = counts(map(Claim.as_dict, content.claims))
    html = templates.get_template("report.html.j2").render(
        content=content,
        counts=numbers,
        tally=tally(numbers),
        main_tables=[table for table in content.tables if table.name not in drawn],
        figure_tables=[table for table in content.tables if table.name in drawn],
    )
    return unbreakable(html)


def unbreakable(html: str) -> str:
    """The page with no line that begins with a percent sign, and with the minus sign of its charts; text to be copied
    is unchanged.
    """
    return re.sub(r"<(pre|code|style|svg)\b.*?</\1>|<[^>]*>| %|(?<![^\s>(\[])-(?=\d)", _joined, html, flags=re.DOTALL)


def _joined(found: re.Match[str]) -> str:
    return {" %": "\u00a0%", "-": "\u2212"}.get(found[0], found[0])


def short(value: float | str | None) -> str:
    """A figure to three significant digits without an exponent; text as it is."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _tone(entry: Entry, metric: Metric) -> str:
    """CSS class of a compared figure: how far from the published one, and on which side."""
    if entry.ours is None or entry.published is None:
        return ""
    if entry.misprint:
        return "misprint"
    gap = metric.difference(entry.ours, entry.published)
    if gap is None or abs(gap) <= 1:
        return "near"
    side = "over" if gap > 0 else "under"
    return f"{side} far" if abs(gap) > 2 else side


def _metric_runs(table: Table) -> list[tuple[Metric, str, int]]:
    """(metric, unit, number of columns) in the table's order, for the upper header row."""
    columns = table.layout().columns
    names = dict.fromkeys(name for name, _ in columns)
    return [(table.metric(name), _unit_of(table, name), sum(column[0] == name for column in columns)) for name in names]


def _unit_of(table: Table, metric: str) -> str:
    return next(iter(table.frame.filter(table.frame["metric"] == metric)["unit"]), "")


def _pictures(figure: Figure) -> dict[str, Markup]:
    from markupsafe import Markup

    pictures: dict[str, Any] = {"wide": figure.chart}
    if figure.narrow is not None:
        pictures["narrow"] = figure.narrow
    # The charts are ours: vl-convert escapes their text, and they hold neither scripts nor links.
    return {width: Markup(svg(chart)) for width, chart in pictures.items()}
