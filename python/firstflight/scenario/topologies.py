"""The topologies that a scenario can name."""

from typing import Annotated

from pydantic import BeforeValidator

from .network import Chain, Dumbbell, Star
from .table import Table, choose
from .tree import Tree

_TOPOLOGIES: dict[str, type[Table]] = {"dumbbell": Dumbbell, "star": Star, "chain": Chain, "tree": Tree}

AnyNetwork = Dumbbell | Star | Chain | Tree
Network = Annotated[AnyNetwork, BeforeValidator(lambda data: choose(data, _TOPOLOGIES, "topology", "network"))]
