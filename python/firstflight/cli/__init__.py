"""The `firstflight` program. Exit status: 0 done; 1 something did not hold; 2 wrong request; 3 the machine cannot."""

import sys

from ..errors import FirstflightError

# What shells report for a program ended by Ctrl-C (128 + SIGINT).
_INTERRUPTED = 130


def main() -> None:
    """Run the program with this process's arguments and end the process."""
    import typer
    from typer.exceptions import TyperException

    from .app import app

    try:
        status = app(standalone_mode=False)
    except FirstflightError as error:
        print(f"firstflight: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except TyperException as error:
        print(f"firstflight: {error.format_message()}", file=sys.stderr)
        context = getattr(error, "ctx", None)
        if context is not None:
            print(f'Try "{context.command_path} --help".', file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        print("firstflight: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain about it once more at exit.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)
