"""The links of crates/tcp/ONE_ACK.md lead to the functions that they name."""

import os
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "crates/tcp/ONE_ACK.md"
LINK = re.compile(r"\[`(?P<name>\w+)`\]\((?P<file>[\w./]+)#L(?P<line>\d+)\)")


def line_of(link: re.Match[str]) -> int:
    lines = (PAGE.parent / link["file"]).read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if re.search(rf"\bfn {link['name']}\b", line)]
    # Of a function of several types the first.
    assert found, f"{link['file']} has no function {link['name']}"
    return found[0]


def test_each_link_leads_to_the_line_of_its_function() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_LINES"):
        text = LINK.sub(lambda link: f"[`{link['name']}`]({link['file']}#L{line_of(link)})", text)
        PAGE.write_text(text, encoding="utf-8")
    wrong = {link[0]: line_of(link) for link in LINK.finditer(text) if int(link["line"]) != line_of(link)}
    assert not wrong, "make generated"
    assert len(LINK.findall(text)) > 20


def test_one_ack_is_read_in_three_files() -> None:
    walk = PAGE.read_text(encoding="utf-8").split("## What may be sent")[0]
    assert len({link["file"] for link in LINK.finditer(walk)}) == 3
