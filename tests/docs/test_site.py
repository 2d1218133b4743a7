"""Each page has a place in the site. `make docs` checks the links, too."""

import re
import runpy
from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.utils import get_theme_dir

from firstflight.explain.page import TERMS

ROOT = Path(__file__).parents[2]


def test_each_page_is_in_the_navigation_or_linked_from_a_page_that_is() -> None:
    settings, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    in_navigation = {name for name in pages if f" {name}\n" in navigation}
    linked = {name for name in pages if any(f"({name}" in pages[page] for page in in_navigation)}
    assert sorted(pages.keys() - in_navigation - linked) == []
    assert sorted(name for name in pages.keys() - in_navigation if f"  {name}\n" not in settings) == []
    assert navigation.count(".md\n") <= 30


def test_lists_are_those_of_python_markdown_too() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        # An item directly after a paragraph would be a part of it.
        assert re.findall(r"\n\n(?: {2,3}[^\s|].*\n)+(?:[-*]|\d\.) .*", text) == [], page
        # Below an item that has a number, only what is indented by four does not end the list.
        assert re.findall(r"\n\d\. .*\n(?: .+\n)*\n {1,3}\S.*", text) == [], page


def test_the_glossary_has_each_term_once_and_those_of_the_rules_of_style() -> None:
    further = runpy.run_path(str(ROOT / "docs/site_pages.py"))["FURTHER_TERMS"]
    assert not TERMS.keys() & further.keys()
    meanings = " ".join(f"{term} {said}" for term, said in (TERMS | further).items())
    for short in ("IW", "cwnd", "rwnd", "ssthresh", "RTT", "RTO", "MSS", "BDP", "CI", "pp", "SRTT", "ACK"):
        assert f"{short} " in meanings or f"{short}:" in meanings, short


def test_the_search_fetches_its_index_when_it_is_opened(tmp_path: Path) -> None:
    hooks = runpy.run_path(str(ROOT / "docs/site_pages.py"))
    scripts = tmp_path / "assets/javascripts"
    (bundle,) = Path(get_theme_dir("material"), "assets/javascripts").glob("bundle.*.min.js")
    scripts.mkdir(parents=True)
    (scripts / bundle.name).write_bytes(bundle.read_bytes())
    config = MkDocsConfig()
    config.site_dir = str(tmp_path)
    hooks["on_post_build"](config)
    removed = len(bundle.read_text(encoding="utf-8")) - len((scripts / bundle.name).read_text(encoding="utf-8"))
    assert removed == len('$(location.protocol!=="file:"),')
    with pytest.raises(PluginError, match="0 times"):
        hooks["on_post_build"](config)
