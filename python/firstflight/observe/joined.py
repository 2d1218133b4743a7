"""Several files as one: the parts of a rotated log, and standard input."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from firstflight.errors import MachineError, RequestError
from firstflight.input_files import check_is_file, or_packaged
from firstflight.observe import capture
from firstflight.observe.lines import begins, unpacked
from firstflight.temporary import temporary_directory

STANDARD_INPUT = Path("-")


@contextmanager
def joined(files: Sequence[Path]) -> Iterator[Path]:
    """One file with the contents of these, unpacked and in this order: itself if it is alone, else a copy for as long
    as the context lasts.

    RequestError for a file that is not there or stands twice, and for captures; MachineError without room for the copy.
    """
    if len(files) == 1 and files[0] != STANDARD_INPUT:
        yield files[0]
        return
    places = [file.resolve() for file in files]
    if twice := [file for file, place in zip(files, places, strict=True) if places.count(place) > 1]:
        raise RequestError(f"{twice[0]} is named twice, and its connections would count twice; name it once")
    with temporary_directory() as directory:
        copy = Path(directory) / ("standard-input" if files[0] == STANDARD_INPUT else f"{files[0].name}-and-others")
        try:
            with copy.open("wb") as out:
                if len(files) == 1:
                    shutil.copyfileobj(sys.stdin.buffer, out)
                else:
                    for content in _contents(files):
                        out.write(content)
        except OSError as error:
            raise MachineError(
                f"{copy} cannot be written: {error.strerror or error}; set TMPDIR to a place with room"
            ) from None
        yield copy


def _contents(files: Sequence[Path]) -> Iterator[bytes]:
    for file in map(or_packaged, files):
        if file == STANDARD_INPUT:
            raise RequestError("- is standard input and is read alone; name files, or write all of them to it")
        check_is_file(file)
        try:
            if capture.recognizes(begins(file)):
                raise RequestError(f"{file} is a capture; captures are joined first: mergecap -w all.pcapng FILE...")
            content = b"\n"
            for content in unpacked(file):
                yield content
            if not content.endswith(b"\n"):
                yield b"\n"
        except OSError as error:
            raise RequestError(f"{file} cannot be read: {error.strerror or error}") from None
