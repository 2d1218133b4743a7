"""The applications that a scenario can name, by their `kind`."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from firstflight.errors import RequestError
from firstflight.populations.applications import preset
from firstflight.scenario.applications import Arrivals, FileTransfer, RequestResponse, Video, WebPage
from firstflight.scenario.datagrams import ConstantRate, Dns, Game, Voice
from firstflight.scenario.table import Table, choose

# An application can also be written as one of `firstflight.populations.applications` with some other keys.
_KINDS: dict[str, type[Table]] = {
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
_Named = Annotated[_Kinds, Field(discriminator="kind")]
_Preset = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["preset"]})]
AnyApplication = Annotated[_Kinds, BeforeValidator(_application, json_schema_input_type=_Named | _Preset)]
