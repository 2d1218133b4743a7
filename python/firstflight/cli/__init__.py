"""The `firstflight` program. Exit status: 0 done; 1 something did not hold; 2 wrong request; 3 the machine cannot."""

import gc
import signal
import sys
from types import FrameType

from firstflight.errors import FirstflightError, MachineError, RequestError, missing_extra

# The exit status in a shell for a program ended by Ctrl-C (128 + SIGINT).
_INTERRUPTED = 130
# Plus-minus, micro, ellipsis, arrow, at least and at most, where the terminal or the pipe has no others than ASCII.
_IN_ASCII = {"\xb1": "+-", "\xb5": "u", "\u2026": "...", "\u2192": "->", "\u2265": ">=", "\u2264": "<="}


def main() -> None:
    """Run the program with this process's arguments and end the process."""
    # By default after every 700: while modules are imported, a twentieth of the time of a command.
    gc.set_threshold(100_000)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        _interrupted()
    except Exception:
        # Libraries in the middle of their import make other errors of a KeyboardInterrupt (Pydantic a SchemaError).
        if _interruptions:
            _interrupted()
        raise


_interruptions: list[int] = []


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    _interruptions.append(signum)
    raise KeyboardInterrupt


def _run() -> int:
    # Imports take a tenth of a second, in which Ctrl-C can come.
    import errno

    import typer
    from typer.exceptions import TyperException

    from firstflight.counted import escaped

    try:
        _check_surroundings()
        _check_arguments()
        from firstflight.cli.app import app

        status = app(standalone_mode=False)
        sys.stdout.flush()
    except FirstflightError as error:
        print(f"firstflight: {escaped(str(error))}", file=sys.stderr)
        return error.exit_status
    except TyperException as error:
        # Typer's values are checked by Pydantic, which says so, but not what the value is; Typer does so for choices.
        what, _, choices = error.format_message().partition("Value error, ")
        if not choices and (found := getattr(error.__cause__, "errors", None)):
            what = f'{what.partition(", unable to parse")[0]}, not "{found()[0]["input"]}"'
        print(f"firstflight: {escaped(what + choices)}", file=sys.stderr)
        context = getattr(error, "ctx", None)
        if context is not None:
            print(f'Try "{context.command_path} --help".', file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        missing = missing_extra(error.name or "")
        if missing is None:
            raise
        print(f"firstflight: {missing}", file=sys.stderr)
        return missing.exit_status
    except typer.Abort:
        raise KeyboardInterrupt from None
    except (BrokenPipeError, SystemExit) as error:
        # Typer makes status 1 of a reader that has gone (`| head`), which here means that something did not hold.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _discard_output()
        return 0
    except OSError as error:
        # A path that cannot be looked at or read, a full disk, too many open files: the machine's state.
        what = f"{error.filename}: {error.strerror}"
        if error.filename is None:
            _discard_output()
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = (
                f"the output cannot be written: {error.strerror}; make room" if full else f"{error.strerror or error}"
            )
        print(f"firstflight: {escaped(what)}", file=sys.stderr)
        return MachineError.exit_status
    except MemoryError:
        print("firstflight: there is not enough memory for this; ask for less", file=sys.stderr)
        return MachineError.exit_status
    if status == _INTERRUPTED:
        # Typer's answer to Ctrl-C.
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


def _check_surroundings() -> None:
    """Raise MachineError where the current folder is gone, by which paths are found. Output that the terminal cannot
    show is spelled in ASCII.
    """
    import codecs
    import os
    from pathlib import Path

    # Of a stream that was closed, Python has none, and the next file that is opened would get its number.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error("firstflight", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        # Others have no encoding, such as those of tests.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="firstflight")
    try:
        Path.cwd()
    except OSError as error:
        raise MachineError(f"the current folder cannot be used ({error.strerror}); change to another one") from None


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(char, char.encode("ascii", "backslashreplace").decode()) for char in text), error.end


def _interrupted() -> None:
    """End the process. A second Ctrl-C, while it ends, changes nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("firstflight: interrupted", file=sys.stderr)
    sys.exit(_INTERRUPTED)


def _check_arguments() -> None:
    """Raise RequestError for bytes that are no text: no table, no page and no terminal could show them."""
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise RequestError(f"the argument {argument!a} is not UTF-8; rename the file") from None


def _discard_output() -> None:
    """Buffered output must not fail again at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
