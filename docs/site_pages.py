"""What MkDocs adds to the files of docs: pages made from the code, the evidence of each study, the examples."""

from __future__ import annotations

import base64
import json
import re
import tomllib
from pathlib import Path
from string import Template
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from firstflight import Cell
from firstflight.analysis.claim import GIVEN, counts
from firstflight.engines import simulate
from firstflight.explain.page import TERMS
from firstflight.explore.page import PAGE
from firstflight.explore.start import NEIGHBORS
from firstflight.report.style import css
from firstflight.scenario import Scenario

ROOT = Path(__file__).parents[1]
PLAYGROUND = "playground.html"
# The same as one file, to which the page turns from disk, and the simulator that it loads from a server.
ALONE, SIMULATOR = "playground-alone.html", "simulator.bin"
# Of the glossary, in addition to those of `firstflight explain`.
FURTHER_TERMS = {
    "access link": "The link between a user and the network: usually the slowest.",
    "advertised window": "rwnd: number of bytes beyond the last ACK that the receiver allows.",
    "analytical model": "`--engine model`: the exact times of one transfer without losses, segment by segment, without "
    "a simulator.",
    "AQM": "Active queue management: a queue that drops or marks before it is full, such as CoDel or PIE.",
    "arm": "A part of the users with different TCP settings; paired arms have the same paths and random numbers.",
    "bandwidth-delay product": "BDP: the bytes that a link transmits in one RTT, needed in flight to fill it.",
    "bottleneck": "The link of a path at which packets wait.",
    "CE mark": "Congestion experienced: set by a queue in an ECN-capable packet instead of dropping it (RFC 3168).",
    "cell": "One point of a study's grid: a scenario with its keys, run in several replicates.",
    "claim": "A sentence of a publication, or a limit fixed before the first run, checked against a run. Its "
    "verdict: holds, differs, undecided, cannot be checked.",
    "completion time": "From opening the connection, or the request on an open one, to the last byte at the receiver.",
    "confidence interval": "CI: a range that, computed in this way, holds the true value in 95% of cases.",
    "dropped": "A packet that a queue refuses. A packet can also be lost on a link; the sender only marks it as lost.",
    "effective cwnd": "The smaller of cwnd and rwnd, which bounds the data in flight.",
    "engine": "A program that turns a scenario into records: `simulate`, `model`, `emulate`; `observe` reads your own "
    "traffic.",
    "first flight": "The data segments sent before the first ACK of data: at most the initial window.",
    "flow": "One observed connection.",
    "goodput": "Bytes delivered in order per second, without retransmissions.",
    "harm budget": "Limits on regressions that a recommended initial window must keep.",
    "hypothesis": "A claim of this study with a limit fixed before the first run.",
    "idle time": "Time without data on a connection; after one RTO a restart window may apply.",
    "in flight": "Sent and neither acknowledged nor marked lost.",
    "link emulator": "`linkbox`: the process that gives a link of the testbed its rate, delay, queue and losses.",
    "loss recovery": "Detection and retransmission of lost segments, with a reduction of cwnd.",
    "marked lost": "Of a segment: the sender takes it for lost and will retransmit it.",
    "MSS": "Maximum segment size: the most data of one segment.",
    "pacing": "Sending segments at intervals instead of back to back.",
    "percentage point": "pp: the difference of two values that are percentages.",
    "population": "Users drawn from distributions, or from a table of measured paths, one path per user.",
    "replicate": "One run of a cell, with different random numbers.",
    "restart window": "The largest cwnd after an idle time (RFC 5681, section 4.1).",
    "reverse path": "The links that ACKs and requests take, from the client to the server in a download.",
    "RTO": "Retransmission timeout: time that the sender waits for an ACK before it retransmits (RFC 6298).",
    "scenario": "A file that says who talks to whom, over which links, with which TCP. It names no engine.",
    "sensitivity case": "A changed assumption, to test whether the answer depends on it.",
    "spurious retransmission": "Data retransmitted although the original arrived; F-RTO, timestamps or D-SACK show it.",
    "SRTT": "Smoothed RTT: the sender's running average of its RTT samples.",
    "ssthresh": "Slow start threshold: slow start ends when cwnd reaches it.",
    "tail loss probe": "TLP: a segment sent when ACKs stop, which lets a loss at the end be found without an RTO "
    "(RFC 8985).",
    "think time": "Time from a page or response to the user's next request.",
    "timing tie": "Two events so close that microseconds decide their order.",
    "user": "One simulated path with its transfers.",
}
LINK = r'<a href="https://www.rfc-editor.org/rfc/rfc\1">RFC \1</a>'
OFCOM = "populations/ofcom/SOURCE.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the explorer into the navigation, where it is built."""
    if PAGE.exists():
        _section(config, "Explorer").append({"Open the explorer": PLAYGROUND})
    return config


def _section(config: MkDocsConfig, name: str) -> list[Any]:
    entries: list[Any] = next(entry[name] for entry in config.nav or [] if name in entry)
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the theme, the glossary, the explorer and the examples that pages link to."""
    schemes = [f'[data-md-color-scheme="{name}"]' for name in ("default", "slate")]
    files.append(File.generated(config, "theme.css", content=css(*schemes)))
    files.append(File.generated(config, "glossary.md", content=glossary()))
    if PAGE.exists():
        page, module = _in_two(PAGE.read_text(encoding="utf-8"))
        files.append(File.generated(config, PLAYGROUND, content=page))
        files.append(File.generated(config, SIMULATOR, content=module))
        files.append(File.generated(config, ALONE, abs_src_path=str(PAGE)))
    files.append(File.generated(config, OFCOM, abs_src_path=str(ROOT / "python/firstflight" / OFCOM)))
    for path in sorted((ROOT / "examples").rglob("*")):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts)
        if path.is_file() and not hidden:
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Let the search fetch its index when it is opened. From a server the theme fetches it with every page."""
    (script,) = Path(config.site_dir, "assets/javascripts").glob("bundle.*.js")
    at_once = r"""[\w$]+\(location\.protocol!=="file:"\),(?=[\w$]+\("search"\)\)\.)"""
    text, times = re.subn(at_once, "", script.read_text(encoding="utf-8"))
    if times != 1:
        raise PluginError(f"{script.name}: fetching the search index was found {times} times")
    script.write_text(text, encoding="utf-8")


def _in_two(page: str) -> tuple[str, bytes]:
    """The explorer without its simulator, which it loads when it has drawn, and the simulator."""
    before, begin, rest = page.partition('<script type="text/plain" id="module"')
    packed, end, after = rest.removeprefix(">").partition("</script>")
    policy = "default-src 'none'; "
    before = before.replace(policy, f"{policy}connect-src 'self'; ", 1)
    return f'{before}{begin} data-src="{SIMULATOR}" data-alone="{ALONE}">{end}{after}', base64.b64decode(packed)


# Pages whose tables are lists on a phone.
LISTS = ("keys.md", "what-we-found.md")
# A search for these words finds these pages first.
SOUGHT = {"start.md": "install", "evidence/why-ten.md": "why 10", "guard.md": "undo"}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the examples lead to their copies in the site; the home page has its numbers. A comment before the
    heading would hide the title from MkDocs.
    """
    markdown = re.sub(r"\A\s*<!--.*?-->\s*", "", markdown, flags=re.DOTALL)
    if words := SOUGHT.get(page.file.src_uri):
        page.meta["tags"] = [words]
    if page.file.src_uri == "index.md":
        return Template(markdown).substitute(_of_the_home_page())
    up = "../" * page.file.src_uri.count("/")
    if page.file.src_uri.startswith("examples/"):
        return markdown.replace("](../../docs/", "](../../").replace(
            f"](../../python/firstflight/{OFCOM}", f"](../../{OFCOM}"
        )
    return markdown.replace(f"]({up}../examples/", f"]({up}examples/")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """The number of an RFC leads to the RFC, but for headings, code and what is a link already."""
    parts = re.split(r"(<(a|code|pre|h[1-6])\b.*?</\2>|<[^>]*>)", html, flags=re.DOTALL)
    # Two groups: every third part is text.
    for index in range(0, len(parts), 3):
        parts[index] = re.sub(
            r"\bRFC (\d{3,4})\b", r'<a href="https://www.rfc-editor.org/rfc/rfc\1">RFC \1</a>', parts[index]
        )
        if index + 2 < len(parts):
            parts[index + 2] = ""
    # The first view waits for the first picture only; a cell without a text heads nothing.
    first, image, others = "".join(part or "" for part in parts).partition("<img ")
    html = first + image + others.replace("<img ", '<img loading="lazy" ')
    linked = re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", html)
    if page.file.src_uri.startswith("evidence/"):
        # Code and tables would be most of the index of the search.
        linked = re.sub("<(pre|table)", r"<\1 data-search-exclude", linked)
    return f'<div class="keys">{_labelled(linked)}</div>' if page.file.src_uri in LISTS else linked


def _labelled(html: str) -> str:
    """Each cell of a table with the heading of its column, which a list on a phone shows."""

    def row(found: re.Match[str], heads: list[str]) -> str:
        label = iter(heads)
        return re.sub("<td", lambda _: f'<td data-label="{next(label, "")}"', found[0])

    def table(found: re.Match[str]) -> str:
        head, body, rows = found[0].partition("<tbody>")
        names = [re.sub("<[^>]*>", "", name) for name in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", head)]
        return head + body + re.sub(r"<tr>.*?</tr>", lambda one: row(one, names), rows, flags=re.DOTALL)

    return re.sub(r"<table.*?</table>", table, html, flags=re.DOTALL)


def _of_the_home_page() -> dict[str, str]:
    """The numbers of docs/index.md, and the explorer, where it is built."""
    with (ROOT / "examples/download.toml").open("rb") as file:
        download = tomllib.load(file)
    # As the explorer adds it: at the same moment, with Linux's own window.
    download["application"].append(
        tomllib.loads(NEIGHBORS["short flow"]) | {"name": "neighbor", "tcp": download["tcp"]}
    )
    times = {}
    for window in (3, 10):
        scenario = Scenario.from_dict(download | {"tcp": {**download["tcp"], "initial_window": window}})
        found = simulate.run_cell(Cell({}, scenario), 1, 1)["transfers"].select("application", "completion_time_s")
        times |= {(str(name), window): f"{1e3 * time_s:.0f}" for name, time_s in found.iter_rows()}
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "docs/evidence").glob("*.json"))]
    claims = {(study["study"], claim["id"]): claim for study in kept for claim in study["claims"]}
    verdicts = counts(claims.values())
    explorer = f'<iframe class="explorer" src="{PLAYGROUND}" title="Explorer" loading="lazy"></iframe>'
    see = f" ([see it]({PLAYGROUND}#neighbor=short%20flow))"
    return {
        "explorer": explorer if PAGE.exists() else "![Two ladders of segments](images/explorer.png)",
        "see": see if PAGE.exists() else "",
        "iw3_ms": times["download", 3],
        "iw10_ms": times["download", 10],
        "neighbor3_ms": times["neighbor", 3],
        "neighbor10_ms": times["neighbor", 10],
        "lose_percent": f"{claims['post-quantum', 'ml-dsa-44-above-iw-10']['found']:.0f}",
        "studies": str(len(kept)),
        "claims": str(len(claims)),
        "holds": str(verdicts["holds"]),
        "differs": str(verdicts["differs"]),
        "open": str(verdicts["undecided"] + verdicts["cannot be checked"]),
        "given": str(verdicts[GIVEN]),
    }


def glossary() -> str:
    """The terms of `firstflight explain` and of the pages, in the order of the alphabet."""
    terms = TERMS | FURTHER_TERMS
    entries = [f"{term}\n:   {terms[term]}" for term in sorted(terms, key=str.lower)]
    first = "One sentence for each term that the pages, reports and `firstflight explain` use. Next: [Start](start.md)."
    return "\n\n".join(["# Glossary", first, *entries]) + "\n"
