"""`firstflight probe`: the initial windows of servers."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from firstflight.cli.terminal import show
from firstflight.counted import counted, escaped
from firstflight.errors import RequestError, require_linux
from firstflight.input_files import named_text
from firstflight.probe import Answer, Verdict, Window, probe
from firstflight.probe.judge import handshake_lines

_DOES_NOT_TELL = 1


def command(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL...", help="https or http. A host name means https.")
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", metavar="FILE", help="File with more URLs, one per line.")
    ] = None,
    mss: Annotated[
        str, typer.Option(metavar="BYTES,...", help="Segment sizes (MSS) to offer the server.")
    ] = "64,536,1460",
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Connections per segment size.")] = 3,
    pause: Annotated[float, typer.Option(metavar="S", min=0, help="Pause between connections to one server.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per URL, with each flight.")] = False,
) -> None:
    """Request an object, send no ACK for it, and count the segments until the server retransmits. Needs CAP_NET_RAW
    (sudo). Changes nothing on this machine.
    """
    require_linux("firstflight probe")
    urls = [*(urls or []), *(_read(listed) if listed is not None else [])]
    if not urls:
        raise RequestError("name at least one URL, such as https://example.org/large.jpg, or a --list of them")
    tell = (lambda answer: print(json.dumps(asdict(answer)), flush=True)) if as_json else _print
    answers = probe(urls, _sizes(mss), repeats, pause, tell)
    if any(answer.verdict is None for answer in answers):
        raise typer.Exit(_DOES_NOT_TELL)


def _read(listed: Path) -> list[str]:
    lines = named_text(listed).splitlines()
    return [url for line in lines if (url := line.partition("#")[0].strip())]


def _sizes(mss: str) -> list[int]:
    try:
        return [int(size) for size in mss.split(",")]
    except ValueError:
        raise RequestError(f'--mss is "{mss}"; give sizes in bytes with commas between, such as 64,1460') from None


def _print(answer: Answer) -> None:
    where = "" if answer.url == answer.asked else f", led to {answer.url}"
    show(escaped(f"{answer.asked} ({answer.address or 'no address'}{where})"))
    if answer.verdict is not None:
        show(f"  {answer.verdict.rule or _without_rule(answer.verdict)}")
        for window in answer.verdict.windows:
            show(_line(window))
            for doubt in window.doubts:
                show(f"      {doubt}")
    for line in handshake_lines(answer.handshakes, answer.verdict):
        show(f"  {line}")
    if answer.error is not None:
        show(escaped(f"  {answer.error}"))
    print(flush=True)


def _without_rule(verdict: Verdict) -> str:
    if all(window.at_least for window in verdict.windows):
        return f"at least {counted(max(window.segments for window in verdict.windows), 'segment')}"
    return "by no rule that is known: it depends on the segment size"


def _line(window: Window) -> str:
    count = f"{'at least ' if window.at_least else ''}{counted(window.segments, 'segment')}, {window.bytes} bytes"
    how = f", {window.shape}" if window.shape is not None else ""
    agree = f"{window.confidence}, {window.agreeing} of {window.flights} agree"
    return f"  MSS {window.mss:>5}: {count}{how}; {agree}; {window.protocol}"
