"""What can go wrong for a reason the user can mend; each message is one sentence that says how.

The exit statuses are the map's: 2 when the request was wrong, 3 when the machine cannot do it.
"""


class FirstflightError(Exception):
    """Base of the errors this package raises on purpose; `exit_status` is what the command line returns."""

    exit_status = 1


class RequestError(FirstflightError):
    """The request was wrong: a bad file, an unknown name, a value out of range (exit status 2)."""

    exit_status = 2


class SelfCheckError(FirstflightError):
    """What was set up does not do what it was told (exit status 1)."""


class MachineError(FirstflightError):
    """The machine cannot do it: a missing program, a missing privilege, a full disk (exit status 3)."""

    exit_status = 3
