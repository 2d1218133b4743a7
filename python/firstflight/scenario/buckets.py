"""The buckets by which a population's connections are counted: of round trip, bandwidth, product and segments."""

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from firstflight.scenario.table import Table


def _edges(edges: list[float]) -> list[float]:
    if any(edge <= 0 for edge in edges) or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(f"{edges} are not ascending numbers above zero; write for example [0.02, 0.05, 0.1]")
    return edges


Edges = Annotated[list[float], AfterValidator(_edges)]


class Buckets(Table):
    """Upper edges, each in its bucket; values above the last one have a separate bucket.

    The defaults are those of Dukkipati et al. 2010: figure 5 (round trip, bandwidth, bandwidth-delay product) and
    figure 7 (segments of the response).
    """

    rtt_s: Edges = Field(default=[0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0])
    down_bps: Edges = Field(default=[56e3, 256e3, 512e3, 1e6, 2e6, 3e6, 5e6])
    bdp_bytes: Edges = Field(default=[1e3, 5e3, 1e4, 5e4, 1e5])
    segments: Edges = Field(default=[3.0, 4.0, 7.0, 10.0, 15.0, 30.0, 50.0])
