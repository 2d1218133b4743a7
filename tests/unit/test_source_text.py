"""The text of the source: sentences in literals fill their lines."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "python" / "firstflight"
_FULL = 100
"""A literal that ends before this column, though the next word had room, was broken by a re-wrap."""


def broken(source: str) -> Iterator[str]:
    """Places where one sentence continues in the next literal, and the next word would have fitted."""
    before: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NL:
            continue
        if token.type == tokenize.STRING and before is not None and before.end[0] < token.start[0]:
            goes_on = re.match(r"""f?["']([A-Za-z]\S*)""", token.string)
            had_room = goes_on is not None and before.end[1] + len(goes_on[1]) + 1 <= _FULL
            if had_room and re.search(r"""[\w,)%] ["']$""", before.string):
                yield f"line {before.start[0]}: {before.string} {token.string}"
        before = token if token.type == tokenize.STRING else None


def test_a_sentence_in_the_source_is_not_broken_where_its_next_word_had_room() -> None:
    found = {path: list(broken(path.read_text(encoding="utf-8"))) for path in SOURCE.rglob("*.py")}
    assert {str(path): lines for path, lines in found.items() if lines} == {}


def test_a_broken_sentence_is_found() -> None:
    assert list(broken('x = (\n    "gives "\n    "way to"\n)\n')) == ['line 2: "gives " "way to"']
    assert list(broken(f'x = (\n    "{"word " * 18}"\n    "{"word " * 3}"\n)\n')) == []
