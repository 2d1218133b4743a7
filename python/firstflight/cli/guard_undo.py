"""`firstflight guard undo`."""

from firstflight.cli.options import STATE, State
from firstflight.counted import counted
from firstflight.errors import RequestError, require_linux


def command(state: State = STATE) -> None:
    """Remove the routes left by a guard that was killed together with its watchdog. Changes nothing else."""
    require_linux("firstflight guard undo")
    from firstflight.guard.journal import Journal, undo  # late: other systems lack what they import
    from firstflight.guard.routes import Routes
    from firstflight.guard.watchdog import STATUS

    if not state.is_dir():
        raise RequestError(f"{state}: no guard has run with this state; name its directory with --state")
    journal = Journal(state)
    routes = Routes()
    try:
        removed, left = undo(journal, routes)
    finally:
        routes.close()
        journal.close()
    # Else `status` would go on naming a guard that hangs or was killed.
    (state / STATUS).unlink(missing_ok=True)
    print(f"{counted(len(removed), 'route')} removed")
    for prefix in left:
        print(
            f"{prefix}: has the guard's number (proto 71) and is not in the journal of {state}; left unchanged. "
            "If a guard with another --state set it, name that"
        )
