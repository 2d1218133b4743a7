"""What MkDocs adds to the files of docs: pages made from the code, the evidence of each study, the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from firstflight.explain.words import FURTHER_TERMS, TERMS
from firstflight.explore.page import PAGE

ROOT = Path(__file__).parents[1]
PLAYGROUND = "playground.html"
# The title of each page leads here.
HOME = """<!doctype html><title>firstflight</title>
<meta http-equiv="refresh" content="0; url=start.html"><a href="start.html">Start</a>
"""
OFCOM = "populations/ofcom/SOURCE.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages whose number changes into the navigation."""
    _section(config, "Evidence").extend(
        {path.stem: f"evidence/{path.name}"} for path in sorted((ROOT / "docs/evidence").glob("*.md"))
    )
    if PAGE.exists():
        _section(config, "Explorer").append({"Open the explorer": PLAYGROUND})
    return config


def _section(config: MkDocsConfig, name: str) -> list[Any]:
    entries: list[Any] = next(entry[name] for entry in config.nav or [] if name in entry)
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the glossary, the explorer and the examples that pages link to."""
    files.append(File.generated(config, "glossary.md", content=glossary()))
    files.append(File.generated(config, "index.html", content=HOME))
    if PAGE.exists():
        files.append(File.generated(config, PLAYGROUND, abs_src_path=str(PAGE)))
    files.append(File.generated(config, OFCOM, abs_src_path=str(ROOT / "python/firstflight" / OFCOM)))
    for path in sorted((ROOT / "examples").rglob("*")):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts)
        if path.is_file() and not hidden:
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the examples lead to their copies in the site."""
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith("examples/"):
        return markdown.replace("](../../docs/", "](../../").replace(
            f"](../../python/firstflight/{OFCOM}", f"](../../{OFCOM}"
        )
    return markdown.replace(f"]({up}../examples/", f"]({up}examples/")


def glossary() -> str:
    """The terms of `firstflight explain` and of the pages, in the order of the alphabet."""
    terms = TERMS | FURTHER_TERMS
    entries = [f"{term}\n:   {terms[term]}" for term in sorted(terms, key=str.lower)]
    first = "One sentence for each term that the pages, reports and `firstflight explain` use. Next: [Start](start.md)."
    return "\n\n".join(["# Glossary", first, *entries]) + "\n"
