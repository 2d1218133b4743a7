"""`firstflight observe`: a summary of observed traffic, and its rows as a table."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from firstflight import observe
from firstflight.analysis.table import defused
from firstflight.cli.terminal import room, show
from firstflight.counted import counted, escaped
from firstflight.errors import RequestError
from firstflight.observe.joined import joined
from firstflight.observe.summary import lines
from firstflight.records import output


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A log, snapshots, a capture or a table; a rotated log in order; - for standard input.",
        ),
    ],
    kind: Annotated[
        str | None, typer.Option(help="nginx, ss, capture, ndt7, log or table. Default: detected from the content.")
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "--log-format",
            metavar="STRING",
            help="Format of a log: nginx's log_format, Apache's LogFormat, or JSON fields (\"bytes=response.size\").",
        ),
    ] = None,
    mss: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Payload of a full segment, if the file does not have it. Default: 1448.",
            min=1,
            max=65495,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="F", help="Write one row per response, to .parquet or .csv.")
    ] = None,
) -> None:
    """Read your own traffic as records. Print a summary, the columns that it lacks and the rows skipped."""
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise RequestError(f"--out {out}: the name must end in .parquet or .csv, which selects the format")
    if out is not None:
        output.check(out, files)
    with joined(files) as path:
        seen = observe.read(path, kind, log_format=log_format, mss_bytes=mss or observe.MSS_BYTES)
    shown = Path(", ".join(map(str, files)))
    # Names of columns and files come from other programs.
    show("\n".join(map(escaped, lines(replace(seen, source=replace(seen.source, path=shown)), room()))))
    if out is None:
        return
    flat, content = seen.flat(), BytesIO()
    if out.suffix == ".parquet":
        flat.write_parquet(content, metadata={"generator": output.MARK})
    else:
        defused(flat).write_csv(content)
    output.write(out, content.getvalue(), files)
    show(f"  written: {out}, {counted(flat.height, 'row')}; firstflight observe reads it again")
