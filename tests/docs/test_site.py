"""Each page has a place in the site. `make docs` checks the links, too."""

from pathlib import Path

from firstflight.explain.words import FURTHER_TERMS, TERMS

ROOT = Path(__file__).parents[2]


def test_each_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_glossary_has_each_term_once_and_those_of_the_rules_of_style() -> None:
    assert not TERMS.keys() & FURTHER_TERMS.keys()
    meanings = " ".join(f"{term} {said}" for term, said in (TERMS | FURTHER_TERMS).items())
    for short in ("IW", "cwnd", "rwnd", "ssthresh", "RTT", "RTO", "MSS", "BDP", "CI", "pp", "SRTT", "ACK"):
        assert f"{short} " in meanings or f"{short}:" in meanings, short
