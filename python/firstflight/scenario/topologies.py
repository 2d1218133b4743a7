"""The topologies that a scenario can name."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from firstflight.scenario.network import Chain, Dumbbell, Star
from firstflight.scenario.table import Table, choose
from firstflight.scenario.tree import Tree

_TOPOLOGIES: dict[str, type[Table]] = {"dumbbell": Dumbbell, "star": Star, "chain": Chain, "tree": Tree}

AnyNetwork = Dumbbell | Star | Chain | Tree


def _network(data: Any, info: ValidationInfo) -> Any:
    return choose(data, _TOPOLOGIES, "topology", "network", info.context)


_Named = Annotated[AnyNetwork, Field(discriminator="topology")]
Network = Annotated[AnyNetwork, BeforeValidator(_network, json_schema_input_type=_Named)]
