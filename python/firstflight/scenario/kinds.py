"""The applications that a scenario can name, by their `kind`, and the topologies."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from firstflight.errors import RequestError
from firstflight.populations.applications import preset
from firstflight.scenario.applications import Arrivals, FileTransfer, RequestResponse, Video, WebPage
from firstflight.scenario.datagrams import ConstantRate, Dns, Game, Voice
from firstflight.scenario.network import Chain, Dumbbell, Star
from firstflight.scenario.table import ScenarioTable, choose
from firstflight.scenario.tree import Tree

# An application can also be written as one of `firstflight.populations.applications` with some other keys.
_KINDS: dict[str, type[ScenarioTable]] = {
    "file_transfer": FileTransfer,
    "web_page": WebPage,
    "request_response": RequestResponse,
    "video": Video,
    "arrivals": Arrivals,
    "constant_rate": ConstantRate,
    "dns": Dns,
    "game": Game,
    "voice": Voice,
}


def _application(data: Any, info: Any) -> Any:
    if isinstance(data, dict) and "preset" in data:
        try:
            data = preset(str(data["preset"]), **{key: value for key, value in data.items() if key != "preset"})
        except RequestError as error:
            raise ValueError(str(error)) from None
    return choose(data, _KINDS, "kind", "application", info.context)


_Kinds = FileTransfer | WebPage | RequestResponse | Video | Arrivals | ConstantRate | Dns | Game | Voice
_NamedKind = Annotated[_Kinds, Field(discriminator="kind")]
_Preset = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["preset"]})]
AnyApplication = Annotated[_Kinds, BeforeValidator(_application, json_schema_input_type=_NamedKind | _Preset)]


_TOPOLOGIES: dict[str, type[ScenarioTable]] = {"dumbbell": Dumbbell, "star": Star, "chain": Chain, "tree": Tree}

AnyNetwork = Dumbbell | Star | Chain | Tree


def _network(data: Any, info: ValidationInfo) -> Any:
    return choose(data, _TOPOLOGIES, "topology", "network", info.context)


_NamedNetwork = Annotated[AnyNetwork, Field(discriminator="topology")]
Network = Annotated[AnyNetwork, BeforeValidator(_network, json_schema_input_type=_NamedNetwork)]
