"""Each page has a place in the site. `make docs` checks the links, too."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []
