"""The `firstflight` program. Exit status: 0 done; 1 something did not hold; 2 wrong request; 3 the machine cannot."""

import errno
import os
import sys

from firstflight.characters import escaped
from firstflight.errors import FirstflightError, MachineError, RequestError

# The exit status in a shell for a program ended by Ctrl-C (128 + SIGINT).
_INTERRUPTED = 130
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def main() -> None:
    """Run the program with this process's arguments and end the process."""
    import typer
    from typer.exceptions import TyperException

    from firstflight.cli.app import app

    try:
        _check_python()
        _check_arguments()
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except FirstflightError as error:
        print(f"firstflight: {escaped(str(error))}", file=sys.stderr)
        sys.exit(error.exit_status)
    except TyperException as error:
        print(f"firstflight: {escaped(error.format_message())}", file=sys.stderr)
        context = getattr(error, "ctx", None)
        if context is not None:
            print(f'Try "{context.command_path} --help".', file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        print("firstflight: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except (BrokenPipeError, SystemExit) as error:
        # Typer makes status 1 of a reader that has gone (`| head`), which here means that something did not hold.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _discard_output()
        sys.exit(0)
    except OSError as error:
        if error.filename is not None:
            # A path that cannot be looked at or read, such as a name that is too long.
            print(f"firstflight: {error.filename}: {error.strerror}", file=sys.stderr)
            sys.exit(MachineError.exit_status)
        if error.errno not in _NO_SPACE:
            raise
        _discard_output()
        print(f"firstflight: the output cannot be written: {error.strerror}; make room", file=sys.stderr)
        sys.exit(MachineError.exit_status)
    sys.exit(status if isinstance(status, int) else 0)


def _check_python() -> None:
    """Raise MachineError where Python has dropped all docstrings: Altair, which draws the charts, copies some."""
    if sys.flags.optimize > 1:
        raise MachineError("Python runs without docstrings (PYTHONOPTIMIZE=2 or -OO), which charts need; use at most 1")


def _check_arguments() -> None:
    """Raise RequestError for bytes that are no text: no table, no page and no terminal could show them."""
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise RequestError(f"the argument {argument!a} is not UTF-8; rename the file") from None


def _discard_output() -> None:
    """Buffered output must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
