"""Keeps what full runs of the studies found, and makes a page of evidence of each.

    .venv/bin/python docs/evidence_page.py store runs/rfc6928-rounds    keeps a run's claims and tables
    .venv/bin/python docs/evidence_page.py                              judges all claims again, and makes all pages

STUDY.npz holds the quantities that the claims read, so that a changed claim needs no run; figures and tables stay as
they were stored, and so do the claims of studies on the kernel whose run was stored before there was such a file. Both
commands make docs/what-we-found.md, too, of docs/questions.toml and the claims, and the list of studies in
docs/validation.md.

A page holds what docs/evidence/STUDY.json keeps, what study.toml says, and between two marks the notes of a person,
which stay as they are. STUDY.FIGURE.svg is a figure of the run's report, STUDY.FIGURE.narrow.svg the same for a phone.
Tables above 30 lines or 110 columns are kept as STUDY.TABLE.csv, and every claim with its source and reason is in
STUDY.claims.csv. A test compares the pages with what this makes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sys
import tomllib
from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from firstflight.analysis.claim import counts, tally
from firstflight.analysis.table import Table
from firstflight.counted import with_unit
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.report.figure import measure, svg
from firstflight.report.style import in_both_schemes
from firstflight.studies import Study, find, of
from firstflight.studies.kernel import DeclaredStudy, Quantities
from firstflight.studies.kernel.stored import packed

EVIDENCE = Path(__file__).parent / "evidence"
QUESTIONS = EVIDENCE.parent / "questions.toml"
ANSWERS = EVIDENCE.parent / "what-we-found.md"
VALIDATION = EVIDENCE.parent / "validation.md"
_NOTES, _END_OF_NOTES = "<!-- Written by hand. -->", "<!-- End of what is written by hand. -->"
# Longer or wider tables are files next to the page.
_LINES, _WIDTH = 30, 110
# Of more claims a page has those that do not hold; all are in its CSV file.
_CLAIMS = 15


def store(directory: str) -> str:
    """Keep what the run in `directory` found, and return its study's name."""
    run = Run.open(directory)
    study = of(run)
    if lacking := _lacking(run, study):
        raise RequestError(f'"{directory}" is not a whole run of {run.study}: {lacking}; nothing was stored')
    # Not those of tables and figures; where cells lack data, copies with made-up values are read.
    results = _results(study, quantities := Quantities(study.quantities(run).arrays()))
    read = quantities.arrays() if quantities.absent() else quantities.read()
    arrays = {of: array for of, array in quantities.arrays().items() if of in read}
    tables = []
    for table in study.tables(run):
        lines = (text := table.text()).partition("\n\n")[2].splitlines()
        is_file = len(text.splitlines()) > _LINES or max(map(len, lines)) > _WIDTH
        tables.append({"name": table.name, "title": _heading(table), "text": None if is_file else text})
        if is_file:
            _table_file(run.study, table.name).write_text(table.csv(), encoding="utf-8")
    kept = {
        "study": run.study,
        "engine": run.engine,
        "seed": run.seed,
        "cells": len(run.cells),
        "scenarios": scenarios(study, run.engine),
        **results,
        "figures": _stored_figures(run, study),
        "tables": tables,
    }
    (EVIDENCE / f"{run.study}.npz").write_bytes(packed(arrays))
    _write(run.study, kept)
    return run.study


def scenarios(study: Study, engine: str) -> str:
    """A digest of all cells' keys and scenarios. Evidence with another one is of an earlier grid."""
    digest = hashlib.sha256()
    for cell in study.cells(engine):
        digest.update(json.dumps([cell.key, cell.replicates, cell.engine]).encode())
        # Without defaults: a new key moves nothing.
        digest.update(cell.scenario.model_dump_json(exclude_defaults=True).encode())
    return digest.hexdigest()[:20]


def _results(study: DeclaredStudy, quantities: Quantities) -> dict[str, Any]:
    """The answer and the claims, without the last digits, which differ between machines."""
    claims = [claim.as_dict() for claim in study.claims_of(quantities)]
    rounded = [{name: float(f"{of:.12g}") if isinstance(of, float) else of for name, of in it.items()} for it in claims]
    return {"answer": study.answer_of(quantities), "claims": rounded}


def _write(name: str, kept: dict[str, Any]) -> None:
    path = EVIDENCE / f"{name}.json"
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def with_current_claims(name: str) -> dict[str, Any]:
    """The stored results of the study called `name`, with claims and answer by its current code and the stored
    quantities; unchanged if none are stored. RequestError where they need another quantity.
    """
    kept: dict[str, Any] = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
    path = EVIDENCE / f"{name}.npz"
    study = find(name)
    assert isinstance(study, DeclaredStudy)
    if not path.exists():
        return kept
    quantities = study.stored_quantities(path, kept["engine"])
    try:
        return kept | _results(study, quantities)
    except RequestError as error:
        raise RequestError(
            f"{error} ({path.name} has the quantities that the claims read when it was stored; for others, run {name}, "
            "and store it again)"
        ) from None


def _stored_figures(run: Run, study: Study) -> list[dict[str, str | bool]]:
    """Write the figures of the run's report into files, and return what the page says of them."""
    for old in EVIDENCE.glob(f"{run.study}.*svg"):
        old.unlink()
    figures = []
    for figure in study.figures(run):
        for width, chart in (("", figure.chart), (".narrow", figure.narrow)):
            if chart is not None:
                path = EVIDENCE / f"{run.study}.{figure.name}{width}.svg"
                path.write_text(in_both_schemes(svg(chart)) + "\n", encoding="utf-8")
        about: dict[str, str | bool] = {"name": figure.name, "finding": figure.finding, "title": figure.title}
        figures.append(about | {"notes": figure.notes, "narrow": figure.narrow is not None})
    return figures


def _figure(study: str, figure: dict[str, Any], *, first: bool) -> str:
    """A figure with its heading; the first with its notes, which the report has of each."""
    heading, file = figure["finding"] or figure["title"], f"{study}.{figure['name']}"
    image = f"![Figure: {figure['name']}]({file}.svg)"
    if figure["narrow"]:
        image = f'<picture><source media="(max-width: 44rem)" srcset="{file}.narrow.svg">{image}</picture>'
    below = measure(figure["title"], figure["finding"]).rstrip(".")
    notes = f"\n\n{figure['notes']}" if first else ""
    return f"**{heading.rstrip('.')}.**{below and f' {below}.'}\n\n{image}{notes}"


def _lacking(run: Run, study: Study) -> str:
    """What a run lacks of the whole study with its own number of replicates; empty if nothing."""
    if (finished := len(run.cells)) < (cells := len(study.keys(run.engine))):
        return f"{finished} of {cells} cells are finished; run it without --only, to the end"
    wanted = 1 if run.engine == "model" else study.replicates
    if (replicates := run.provenance["replicates"]) != wanted:
        return f"it has {replicates} replicates a cell, and the study {wanted}; run it without --replicates"
    return "" if study.figures(run) else "the study has no figure with which its page could begin"


def page(name: str) -> str:
    """The page of the study called `name`."""
    kept: dict[str, Any] = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
    study = find(name)
    engine = "" if kept["engine"] == study.engines[0] else f" --engine {kept['engine']}"
    counted = tally(counts(kept["claims"]))
    figures: list[str] = [_figure(name, figure, first=not i) for i, figure in enumerate(kept["figures"])]
    tables: list[str] = [_shown(name, table) for table in kept["tables"]]
    parts = [
        f"<!-- Made by docs/evidence_page.py of {name}.json and study.toml; notes are by hand. -->",
        f"# {study.title}",
        *([f"**Answer.** {' '.join(kept['answer'])}"] if kept["answer"] else []),
        figures[0],
        f"**Question.** {study.asked}",
        f"Source: {study.source.rstrip('.')}.",
        f"    firstflight run {name}{engine} && firstflight claims runs/{name}",
        f"Seed {kept['seed']}, {kept['cells']} cells, engine `{kept['engine']}`.",
        *(["## Figures"] if figures[1:] else []),
        *figures[1:],
        "## Claims",
        f"{counted} ([how judged](../validation.md#how-a-claim-is-judged); "
        f"[each with its source and reason]({name}.claims.csv)).",
        *_claims(kept["claims"]),
        *(["## Tables"] if tables else []),
        *sorted(tables, key=lambda text: text.startswith("- ")),
        *(_NOTES, _notes(name), _END_OF_NOTES),
        "## Limitations",
        "\n".join(f"- {sentence}" for sentence in study.limitations),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _heading(table: Table) -> str:
    return ". ".join(line.rstrip(".") for line in (table.title, *table.caption.splitlines()) if line)


def _table_file(study: str, table: str) -> Path:
    return EVIDENCE / f"{study}.{table}.csv"


def _shown(study: str, table: dict[str, Any]) -> str:
    """A table as text, or where to find one that is too long for the page."""
    if table["text"]:
        return f"`{table['name']}`\n\n```text\n{table['text'].rstrip()}\n```"
    file = _table_file(study, table["name"])
    if file.exists():
        return f"- [{file.name}]({file.name}): {table['title']}."
    return f"- `firstflight table runs/{study} {table['name']}`."


def claims_file(name: str) -> str:
    """The claims of the study called `name` as CSV."""
    kept = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
    file = io.StringIO()
    writer = csv.DictWriter(file, list(kept["claims"][0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept["claims"])
    return file.getvalue()


def _notes(name: str) -> str:
    """What is written by hand in a page as it is; empty for a new page."""
    path = EVIDENCE / f"{name}.md"
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    return written.partition(_NOTES)[2].partition(_END_OF_NOTES)[0].strip()


def answers() -> str:
    """The page of answers. ValueError where a verdict is another than when its answer was written."""
    rows = ["| | question | answer (95% CI) | study |", "|---|---|---|---|"]
    with QUESTIONS.open("rb") as file:
        questions = tomllib.load(file)["question"]
    for question in questions:
        name = question["study"]
        kept = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
        claim = next(claim for claim in kept["claims"] if claim["id"] == question["claim"])
        if claim["verdict"] != question["verdict"]:
            raise ValueError(
                f'{QUESTIONS.name}: "{question["asks"]}" was answered when {claim["id"]} was "{question["verdict"]}", '
                f'and it is "{claim["verdict"]}": rewrite the answer'
            )
        link = f"[{name}](evidence/{name}.md)"
        if question["answer"].count("{}") != 1:
            raise ValueError(f'{QUESTIONS.name}: the answer to "{question["asks"]}" needs one {{}} for the number')
        cells = (question["of"], question["asks"], question["answer"].replace("{}", _number(claim, question)), link)
        rows.append(f"|{'|'.join(cells)}|")
    return (
        "\n\n".join(
            (
                "<!-- Made by docs/evidence_page.py of questions.toml and the claims kept: change these. -->",
                "# What we found",
                "Questions that RFC 6928 and its sources ask or leave open. The number is that of one claim of the "
                "study, which has the others, its assumptions and its limitations; pp are percentage points.",
                "\n".join(rows),
            )
        )
        + "\n"
    )


def _number(claim: dict[str, Any], question: dict[str, Any]) -> str:
    """What a claim found, as its answer puts it, and its interval if it has a width in these digits."""
    found, *ends = (
        f"{question.get('factor', 1) * claim[of]:.{question['digits']}f}"
        for of in ("found", "low", "high")
        if claim[of] is not None
    )
    number = f"**{with_unit(found, question['unit'])}**"
    if len(set(ends)) < 2:
        return number
    low, high = sorted(ends, key=float)
    return f"{number} ({low} to {high})"


def _found(claim: dict[str, Any]) -> str:
    if claim["found"] is None:
        return ""
    found = with_unit(f"{claim['found']:.4g}", claim["unit"])
    if claim["low"] is not None and claim["high"] is not None:
        found += f" ({claim['low']:.4g} to {claim['high']:.4g})"
    return found


def _claims(claims: list[dict[str, Any]]) -> list[str]:
    """The table of claims, without those that hold if it were longer than a page bears; and why the others do not."""
    open_ones = [claim for claim in claims if claim["verdict"] != "holds"]
    shown = claims if len(claims) <= _CLAIMS else open_ones
    rows = ["|claim|expected|found (95% CI)|verdict|", "|---|---|---|---|"]
    sources = list(dict.fromkeys(claim["source"] for claim in shown))
    for source, group in groupby(
        sorted(shown, key=lambda claim: sources.index(claim["source"])), key=itemgetter("source")
    ):
        rows.append(f"|**{source}**||||")
        for claim in group:
            tolerance = f" ± {claim['tolerance']:g}" if claim["tolerance"] else ""
            cells = [
                f"`{claim['id']}`: {claim['text']}",
                with_unit(f"{claim['expected']}{tolerance}", claim["unit"]),
                _found(claim),
                claim["verdict"],
            ]
            rows.append(f"|{'|'.join(cell.replace('|', chr(92) + '|') for cell in cells)}|")
    sentences = [(f"`{claim['id']}`", re.split(r"(?<=[.]) (?=[A-Z0-9\"])", claim["reason"])) for claim in open_ones]
    often = Counter(sentence for _, parts in sentences for sentence in parts)
    why: dict[str, list[str]] = {}
    for identifier, parts in sentences:
        single = " ".join(sentence for sentence in parts if often[sentence] == 1)
        for reason in filter(None, (single, *(sentence for sentence in parts if often[sentence] > 1))):
            why.setdefault(reason, []).append(identifier)
    # A sentence that several claims share stands once, after those of one claim.
    reasons = sorted(why.items(), key=lambda item: len(item[1]) > 1)
    left_out = len(claims) - len(shown)
    return [
        *([f"Not shown here: the {left_out} that hold."] if left_out else []),
        "\n".join(rows),
        *(["Reasons where a claim does not hold:"] if reasons else []),
        "\n".join(f"- {_several(ids)}: {reason}" for reason, ids in reasons),
    ]


def _several(ids: list[str]) -> str:
    """The claims of a reason. The CSV file has the reasons of each."""
    return ", ".join(ids) if len(ids) < 4 else f"{ids[0]} and {len(ids) - 1} others"


def validation() -> str:
    """The page of evidence, with the list of studies as it is now."""
    rows = ["| study | about | claims |", "|---|---|---|"]
    for name in names():
        kept = json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
        rows.append(f"|[{name}](evidence/{name}.md)|{find(name).title}|{tally(counts(kept['claims']))}|")
    before, begin, rest = VALIDATION.read_text(encoding="utf-8").partition(
        "<!-- studies: made by docs/evidence_page.py -->"
    )
    _, end, after = rest.partition("<!-- end of studies -->")
    return "\n".join((before + begin, *rows, end + after))


def names() -> list[str]:
    """The studies of which something is kept."""
    return sorted(path.stem for path in EVIDENCE.glob("*.json"))


def main(arguments: list[str]) -> None:
    """Store the runs named, or without arguments judge the claims of all studies again; then make the pages."""
    for name in [store(directory) for directory in arguments[1:]] or names():
        _write(name, with_current_claims(name))
        for path, text in (
            (EVIDENCE / f"{name}.claims.csv", claims_file(name)),
            (EVIDENCE / f"{name}.md", page(name)),
        ):
            path.write_text(text, encoding="utf-8")
            print(path)
    for path, text in ((ANSWERS, answers()), (VALIDATION, validation())):
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RequestError as error:
        sys.exit(f"evidence_page.py: {error}")
