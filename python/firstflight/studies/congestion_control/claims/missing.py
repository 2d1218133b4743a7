"""What to say where a run lacks what a claim needs."""

from ..grid import titles
from ..measure import Place


def missing(error: KeyError) -> str:
    """What a run lacks whose quantities or traces raised `error`."""
    place = error.args[0]
    if not isinstance(place, Place):
        return f"This run lacks the download under {titles()[place]}."
    point = place.point
    return (
        f"This run lacks {point.experiment} under {titles()[point.control]} with {point.flows} flows of "
        f"{point.size_kb} kB."
    )
