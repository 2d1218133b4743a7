"""The report of a run: its contents, the same for a study and for a plain scenario, through one template into one file
that needs nothing else.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstflight.analysis.claim import COUNTED, Claim, counts, tally
from firstflight.analysis.summary import weights_of
from firstflight.analysis.table import NOTHING, Entry, Metric, Table, interval_text, number
from firstflight.counted import counted, with_unit
from firstflight.explore.links import ExplorerLink, of_run, put_beside
from firstflight.records import output
from firstflight.records.files import explained
from firstflight.report.distribution import completion_times, stream_delays
from firstflight.report.figure import Figure, picture, svg
from firstflight.report.style import css
from firstflight.scenario.document import toml_value

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from firstflight.records import Run

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Content:
    """The parts of a report, in its order. `kind` is "study" or "scenario"."""

    kind: str
    name: str
    title: str
    asked: str
    source: str = ""
    notice: str = ""
    answer: list[str] = field(default_factory=list)
    cases: list[Any] = field(default_factory=list)
    case_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The number of cases by verdict: of own flows, of others, without results."""
    claims: list[Claim] = field(default_factory=list)
    deciding: str = ""
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    transfers: list[ExplorerLink] = field(default_factory=list)
    directory: str = ""
    commands: list[str] = field(default_factory=list)
    limitations: tuple[str, ...] = ()
    scenario: str = ""
    provenance: list[tuple[str, str]] = field(default_factory=list)

    @property
    def compared(self) -> bool:
        """Whether any table has a published value next to ours."""
        return any(table.frame["published"].is_not_null().any() for table in self.tables)


OWN_SCENARIO = "Results of a scenario file, with the scenario in full below."


def gather(run: Run, study: Any) -> Content:
    """Everything a report of this run says. `study`: the run's `firstflight.studies.Study`."""
    alone = run.scenario is not None
    keys = list(run.cells[0]) if run.cells else []
    claims = study.claims(run)
    figures = [*study.figures(run)]
    if alone:
        weights = weights_of(run)
        figures += completion_times(run.pages, keys, True, weights) + completion_times(
            run.transfers, keys, False, weights
        )
        figures += stream_delays(run.streams, keys)
    return Content(
        kind="scenario" if alone else "study",
        name=study.name,
        title=study.title,
        asked=OWN_SCENARIO if alone else study.asked or study.shows,
        source=study.source,
        notice=f"{run.missing} of the requested cells have not finished; this report shows the others."
        if run.missing
        else "",
        answer=[*study.answer(run), *_counted(claims)],
        cases=study.cases(run),
        case_counts=study.case_counts(run),
        claims=claims,
        deciding=study.deciding(run, claims),
        figures=figures,
        tables=study.tables(run),
        transfers=of_run(run),
        directory=str(run.directory),
        commands=_commands(run, study.words, study.replicates, study.engines[0]),
        limitations=study.limitations,
        scenario=_without_long_lists(run.scenario or ""),
        provenance=_provenance(run),
    )


def _counted(claims: list[Claim]) -> list[str]:
    numbers = counts(map(Claim.as_dict, claims))
    return [f"{counted(len(claims), 'claim')}: {tally(numbers)}."] if claims else []


# A list of numbers longer than this is cut on the page: that of a table of paths, say.
_SHOWN_NUMBERS = 50
_LONG_LIST = re.compile(rf"\[((?:[-+.\deE]+, ){{{_SHOWN_NUMBERS},}}[-+.\deE]+)\]")


def _without_long_lists(scenario: str) -> str:
    def cut(match: re.Match[str]) -> str:
        numbers = match.group(1).split(", ")
        return f"[{', '.join(numbers[:5])}, ... {len(numbers):,} numbers in run.json]"

    return _LONG_LIST.sub(cut, scenario)


def _commands(run: Run, study: list[str], replicates: int, engine: str) -> list[str]:
    """The command that gives the same records again, next to these. The file of a scenario is the one that is kept with
    a cell: a varied key has its own value there, and is varied again.
    """
    file = next((str(path) for _, path in run.scenario_files), "FILE.toml")
    words = ["firstflight", *(study if run.scenario is None else ["run", file])]
    words += ["--seed", str(run.seed)]
    if run.engine != engine:
        words += ["--engine", run.engine]
    # A study's own number is left out, because giving one overrides cells that have their own.
    if run.provenance["replicates"] != replicates:
        words += ["--replicates", str(run.provenance["replicates"])]
    for key, values in (run.vary or {}).items():
        words += ["--vary", f"{key}={','.join(map(toml_value, values))}"]
    again = f"{run.directory}-again"
    return [shlex.join([*words, "--out", again]), shlex.join(["firstflight", "report", again])]


def _provenance(run: Run) -> list[tuple[str, str]]:
    """Name and value, one entry a fact; the scenario has its own place."""
    facts = {name: value for name, value in run.provenance.items() if name != "scenario"}
    environments = facts.pop("environments")
    return list(_flat(facts | _once(environments)))


def _once(environments: list[dict[str, str]]) -> dict[str, Any]:
    """The common part of all environments, and the rest of each: most of a kernel's settings are every cell's."""
    if len(environments) < 2:
        return {"environments": environments}
    first, *others = environments
    common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
    rest = [{name: value for name, value in environment.items() if name not in common} for environment in environments]
    return {"every environment": common, "environments": rest}


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        path = f"{prefix}{name}"
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value, start=1):
                yield f"{path} {number}", _compact(item)
        elif value not in (None, "", [], {}):
            yield path, _compact(value)


def _compact(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_inner(item)}" for name, item in value.items() if item is not None)
    return _inner(value)


def _inner(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
    templates.globals.update(tone=_tone, metric_runs=_metric_runs, unit_of=_unit_of, verdicts=COUNTED)
    templates.filters.update(number=number, short=short, interval=interval_text, with_unit=with_unit)
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


def _joined(match: re.Match[str]) -> str:
    return {" %": "\u00a0%", "-": "\u2212"}.get(match[0], match[0])


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
    return with_unit("", next(iter(table.frame.filter(table.frame["metric"] == metric)["unit"]), "")).strip()


def _pictures(figure: Figure) -> dict[str, Markup]:
    from markupsafe import Markup

    # The charts are ours: vl-convert escapes their text, and they hold neither scripts nor links.
    return {width: Markup(svg(drawn)) for width, drawn in figure.pictures.items()}
