"""Numbers of things in sentences."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """The number and what there is of it: 1 connection, 2,000 connections; `many` if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
