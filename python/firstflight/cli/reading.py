"""The commands that read a run: claims, table, report; and the list of studies."""

import json
from pathlib import Path

from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario.table import nearest
from firstflight.studies import all as all_studies
from firstflight.studies import of


def print_studies() -> None:
    """One paragraph a study."""
    for study in all_studies():
        print(f"{study.name}  ({', '.join(study.engines)})\n  {study.shows}\n  {study.source}")


def print_claims(directory: Path, as_json: bool) -> None:
    """Every claim with its limits, value and reason; or all of them as JSON."""
    run = Run.open(directory)
    study = of(run)
    claims = study.claims(run)
    if as_json:
        print(json.dumps([claim.as_dict() for claim in claims], indent=2, ensure_ascii=False))
        return
    if not claims:
        print(f'"{run.study}" makes no claims')
    for claim in claims:
        print(claim.shown())
    if more := study.deciding(run, claims):
        print(more)


def print_table(directory: Path, name: str | None, form: str) -> None:
    """One table, as text, CSV or JSON; without a name, the names of all."""
    run = Run.open(directory)
    study = of(run)
    names = study.table_names(run)
    if name is None and names:
        print("\n".join(names))
        return
    if name is None or name not in names:
        raise RequestError(
            f'this run has no table "{name}"; {nearest(name or "", names)}'
            if names
            else f'"{directory}" has no finished cells yet, so no tables; continue it with "firstflight run"'
        )
    table = study.table(run, name)
    text = {"text": table.text, "csv": table.csv, "json": table.json}[form]()
    print(text.rstrip("\n"))


def write_report(directory: Path, figures: bool, formats: list[str]) -> None:
    """Write the report, and the figures if wanted, and say where they are."""
    from firstflight.report import figures_to_files, write

    if formats and not figures:
        raise RequestError("--format is that of --figures; add --figures")

    run = Run.open(directory)
    print(write(run))
    if figures:
        for path in figures_to_files(run, run.directory / "figures", formats or ("svg", "png")):
            print(path)
