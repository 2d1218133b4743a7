"""`firstflight observe`: a summary of observed traffic, and its rows as a table."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

from firstflight import observe
from firstflight.analysis.table import defused
from firstflight.characters import escaped
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.observe.joined import joined
from firstflight.observe.summary import lines
from firstflight.records import output


def observe_command(
    files: list[Path], kind: str | None, log_format: str | None, mss_bytes: int | None, out: Path | None
) -> None:
    """Print a summary; with `out`, write one row per response, as .parquet or .csv, which can be observed again."""
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise RequestError(f"--out {out}: the name must end in .parquet or .csv, which selects the format")
    if out is not None:
        output.check(out, files)
    with joined(files) as path:
        seen = observe.read(path, kind, log_format=log_format, mss_bytes=mss_bytes or observe.MSS_BYTES)
    shown = Path(", ".join(map(str, files)))
    # Names of columns and files come from other programs.
    print("\n".join(map(escaped, lines(replace(seen, source=replace(seen.source, path=shown))))))
    if out is None:
        return
    flat, content = seen.flat(), BytesIO()
    if out.suffix == ".parquet":
        flat.write_parquet(content, metadata={"generator": output.MARK})
    else:
        defused(flat).write_csv(content)
    output.write(out, content.getvalue(), files)
    print(f"  written: {out}, {counted(flat.height, 'row')}; firstflight observe reads it again")
