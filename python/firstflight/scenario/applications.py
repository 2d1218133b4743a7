"""What clients do: the applications of a scenario."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..errors import RequestError
from ..populations.applications import preset
from .laws import Constant, CountLaw, SizeLaw, TimeLaw, law_plan
from .table import Table, choose
from .tcp import Tcp
from .units import Bytes, Duration

# The native module counts them in 32 bits.
Count = Annotated[int, Field(ge=1, le=2**32 - 1)]


class Application(Table):
    """A group of clients that do the same. Clients are spread round robin over `client_hosts`.

    Hosts default to the topology's two sides. `server_choice`: "random" anew for each connection, or "by_client"
    (client i asks host i modulo their number). `tcp` sets both ends, `client_tcp` and `server_tcp` one.
    `count` is per client; left out, clients go on to the end of the run. `response_header` is what the server sends
    before each object, as the header of an HTTP response: real programs are made to send just so much. Left out, a
    simulated server sends none, and a real one its own. `service_time` is how long a simulated server works at each
    answer; a real one takes what it takes. In a population each user is one client, and `share` is the part of the
    users that run the application, drawn for each of them.
    """

    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+$")
    clients: Count = 1
    client_hosts: str | None = None
    server_hosts: str | None = None
    server_choice: Literal["random", "by_client"] = "random"
    start: TimeLaw = Field(default="0s", validate_default=True)
    count: Count | None = None
    response_header: Bytes | None = None
    service_time: Duration | None = None
    share: float = Field(default=1.0, gt=0, le=1)
    tcp: Tcp | None = None
    client_tcp: Tcp | None = None
    server_tcp: Tcp | None = None


# In the place of the law of a size that a table's rows give.
_NO_LAW = Constant[Bytes](value=Bytes("1B"))


class FileTransfer(Application):
    """Files one after the other, each on a new connection; `gap` lies between the end of one and the next.

    `size = "row"`, in a population whose paths are a table: as many bytes as its column `bytes` says for the user.
    """

    kind: Literal["file_transfer"] = "file_transfer"
    size: SizeLaw | Literal["row"]
    request: Bytes = Bytes("80B")
    gap: TimeLaw = Field(default="0s", validate_default=True)
    direction: Literal["download", "upload"] = "download"

    def plan(self) -> dict[str, Any]:
        """The part of the plan that is special to this kind."""
        return {
            "size": law_plan(_NO_LAW if isinstance(self.size, str) else self.size),
            "request_bytes": int(self.request),
            "gap": law_plan(self.gap),
            "direction": self.direction,
        }


class WebPage(Application):
    """Pages of a primary object and in-line ones; the user thinks between them.

    `version` "1.0": a connection per object, `parallel` in-line ones at once (all, when left out). "1.1": one
    connection a page; `persistent` says how objects share it: "joined" into one response (RFC 2415's rough model)
    or "pipelined" after the primary.
    """

    kind: Literal["web_page"] = "web_page"
    version: Literal["1.0", "1.1"] = "1.0"
    primary: SizeLaw
    inline: SizeLaw
    inline_count: CountLaw = Field(default=3, validate_default=True)
    request: Bytes = Bytes("300B")
    think: TimeLaw
    parallel: Count | None = None
    persistent: Literal["joined", "pipelined"] = "joined"

    def plan(self) -> dict[str, Any]:
        """The part of the plan that is special to this kind."""
        return {
            "version": self.version,
            "primary": law_plan(self.primary),
            "inline": law_plan(self.inline),
            "inline_count": law_plan(self.inline_count),
            "request_bytes": int(self.request),
            "think": law_plan(self.think),
            "parallel": self.parallel,
            "persistent": self.persistent,
        }


class RequestResponse(Application):
    """Requests and responses in turn on one connection; `think` lies between a response and the next request."""

    kind: Literal["request_response"] = "request_response"
    request: SizeLaw
    response: SizeLaw
    think: TimeLaw = Field(default="0s", validate_default=True)

    def plan(self) -> dict[str, Any]:
        """The part of the plan that is special to this kind."""
        return {
            "request": law_plan(self.request),
            "response": law_plan(self.response),
            "think": law_plan(self.think),
        }


# An application can also be written as one of `firstflight.populations.applications` with some keys of its own.
_KINDS: dict[str, type[Table]] = {
    "file_transfer": FileTransfer,
    "web_page": WebPage,
    "request_response": RequestResponse,
}


def _application(data: Any, info: Any) -> Any:
    if isinstance(data, dict) and "preset" in data:
        try:
            data = preset(str(data["preset"]), **{key: value for key, value in data.items() if key != "preset"})
        except RequestError as error:
            raise ValueError(str(error)) from None
    return choose(data, _KINDS, "kind", "application", info.context)


_Kinds = FileTransfer | WebPage | RequestResponse
_Preset = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["preset"]})]
AnyApplication = Annotated[_Kinds, BeforeValidator(_application, json_schema_input_type=_Kinds | _Preset)]
