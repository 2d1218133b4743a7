"""Each page has a place in the site. `make docs` checks the links, too."""

from pathlib import Path

from firstflight.explain.page import FURTHER_TERMS, TERMS

ROOT = Path(__file__).parents[2]


def test_each_page_is_in_the_navigation_or_linked_from_a_page_that_is() -> None:
    settings, _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    in_navigation = {name for name in pages if f" {name}\n" in navigation}
    linked = {name for name in pages if any(f"({name}" in pages[page] for page in in_navigation)}
    assert sorted(pages.keys() - in_navigation - linked) == []
    assert sorted(name for name in pages.keys() - in_navigation if f"  {name}\n" not in settings) == []
    assert navigation.count(".md\n") <= 30


def test_the_glossary_has_each_term_once_and_those_of_the_rules_of_style() -> None:
    assert not TERMS.keys() & FURTHER_TERMS.keys()
    meanings = " ".join(f"{term} {said}" for term, said in (TERMS | FURTHER_TERMS).items())
    for short in ("IW", "cwnd", "rwnd", "ssthresh", "RTT", "RTO", "MSS", "BDP", "CI", "pp", "SRTT", "ACK"):
        assert f"{short} " in meanings or f"{short}:" in meanings, short
