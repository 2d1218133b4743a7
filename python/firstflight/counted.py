"""Numbers in sentences."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """The number and its noun: 1 connection, 2,000 connections; `many` if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def with_unit(number: str, unit: str) -> str:
    """The number and its unit: 10 ms, 15.2%; the number alone if the unit is empty."""
    return f"{number}{unit}" if unit.startswith("%") else f"{number} {unit}".rstrip()
