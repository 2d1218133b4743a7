"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from firstflight.engines.model.delayed_acks import round_trips as modelled

from . import published


def answer(measured: dict[tuple[int, int], float]) -> list[str]:
    """What the larger window saves, how far the table is confirmed, what the RFC's text gets wrong."""
    return [_saving(measured), _agreement(measured), _slip(measured)]


def _saving(measured: dict[tuple[int, int], float]) -> str:
    few, many = published.initial_windows()
    sizes = [n for n, iw in published.table() if iw == few and {(n, few), (n, many)} <= measured.keys()]
    if not sizes:
        return f"This run has no size with both initial windows, {few} and {many}, so it shows no saving."
    mean = {iw: sum(measured[n, iw] for n in sizes) / len(sizes) for iw in (few, many)}
    savings = [measured[n, few] - measured[n, many] for n in sizes]
    return (
        f"With an initial window of {many} segments instead of {few}, transfers of {min(sizes)} to {max(sizes)} "
        f"segments take {mean[many]:.1f} round trips on average instead of {mean[few]:.1f}: {min(savings):.0f} to "
        f"{max(savings):.0f} saved."
    )


def _agreement(measured: dict[tuple[int, int], float]) -> str:
    printed = published.table()
    found = [measured[key] == trips for key, trips in printed.items() if key in measured]
    by_rule = sum(modelled(*key) == trips for key, trips in printed.items())
    if len(found) < len(printed):
        covered = f"{len(found)} values that it covers of the {len(printed)} in the RFC's table"
    else:
        covered = f"{len(printed)} values in the RFC's table"
    return (
        f"This run reproduces {sum(found)} of the {covered}; the rule applied round by round reproduces {by_rule} of "
        f"{len(printed)}."
    )


def _slip(measured: dict[tuple[int, int], float]) -> str:
    covered = {key: trips for key, trips in published.example().items() if key in measured}
    wrong = {key: trips for key, trips in covered.items() if measured[key] != trips}
    if len(covered) < len(published.example()) and not wrong:
        return "This run does not cover the transfer of which the sentence after the RFC's table speaks."
    if not wrong:
        return "The sentence after the RFC's table holds here."
    return " ".join(_difference(measured[key], key, trips) for key, trips in wrong.items())


def _difference(found: float, key: tuple[int, int], trips: int) -> str:
    segments, iw = key
    # Only what the rule says too is the RFC's slip; anything else may as well be ours.
    if found != modelled(*key):
        return (
            f"The sentence after the table gives {segments} segments {trips} round trips with an initial window of "
            f"{iw}; here they take {found:g}, where the rule has {modelled(*key)}."
        )
    return (
        f"The sentence after the table is a slip: it gives {segments} segments {trips} round trips with an "
        f"initial window of {iw}; they take {found:.0f}, as the table itself implies."
    )
