"""Applications over TCP of a scenario."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from firstflight.scenario.explain import shown
from firstflight.scenario.laws import Constant, CountLaw, Planned, SizeLaw, TimeLaw, law_plan
from firstflight.scenario.queries import Names
from firstflight.scenario.tcp import Tcp
from firstflight.scenario.tls import TlsKey
from firstflight.scenario.units import Bytes, Bytes32, Duration, PositiveBytes

# The native module counts them in 32 bits.
Count = Annotated[int, Field(ge=1, le=2**32 - 1)]
# A share, not percent: at ten times a link's rate next to nothing gets through.
MOST_LOAD = 10
LEAST_LOAD = 1e-9


def _clients(data: Any, number: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(data, str) and data != "each":
        raise ValueError(f'{shown(data)} is not a number of clients; write for example 4, or "each"')
    return data if data == "each" else number(data)


# A number, or "each": one at each of the client hosts.
Clients = Annotated[
    Count,
    WrapValidator(_clients, json_schema_input_type=Count | Literal["each"]),
    PlainSerializer(lambda clients: clients),
]


class Application(Planned):
    """A group of clients that do the same. Clients are spread round robin over `client_hosts`.

    Hosts default to the topology's two sides; `clients = "each"` are one at each of the client hosts. `server_choice`:
    "random" for each connection separately, or "by_client" (client i asks host i modulo their number). In a
    population each user is one client, and `user_fraction` is the part of the users that run the application, drawn
    for each of them, as it is of the clients in a tree. `priority` is the class of its packets, where a queue prefers
    higher ones.
    """

    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="name in the records and in `--set`; default: the value of `kind`",
    )
    clients: Clients = Field(default=1, description='number of clients; `"each"`: one on each of `client_hosts`')
    client_hosts: str | None = Field(
        default=None,
        description='a group of hosts (`"left"`) or one (`"left[2]"`); clients are spread round robin; default: '
        "by topology",
    )
    server_hosts: str | None = Field(
        default=None, description="group of hosts or one host, for servers; default: by topology"
    )
    server_choice: Literal["random", "by_client"] = Field(
        default="random",
        description='`"random"`: a random server for each connection; `"by_client"`: client i uses server host i mod '
        "number of hosts",
    )
    start: TimeLaw = Field(default="0s", validate_default=True, description="start time of each client (distribution)")
    priority: int = Field(
        default=0,
        ge=0,
        le=7,
        description="class of its packets in both directions, 0 to 7, for links with a `priority` queue",
    )
    user_fraction: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="fraction of the users of a population, or of the clients in a tree, that run the application, "
        "drawn at random",
    )


class TcpApplication(Application):
    """Clients that open connections. `tcp` sets both ends, `client_tcp` and `server_tcp` one.

    `count` is per client; left out, clients go on to the end of the run. `response_header` is the size of the header
    that the server sends before each object, as the header of an HTTP response: real programs are made to send exactly
    this size. Left out, a simulated server sends none, and a real one its own. `service_time` is how long a simulated
    server works at each answer; a real one takes its own time.
    """

    count: Count | None = Field(
        default=None, description="files, pages or requests per client; default: to the end of the run"
    )
    response_header: Bytes32 | None = Field(
        default=None,
        description="header size of each response; real applications are configured to send exactly this many bytes; "
        "default: none in simulation; a real server's own",
    )
    service_time: Duration | None = Field(
        default=None,
        description="processing time of a simulated server per response, from the last byte of the request; no effect "
        'on a real server; default: `"0s"`',
    )
    tls: TlsKey = Field(
        default=None,
        description='TLS 1.3 before the first request of each connection: a chain by name (`"ecdsa"`, `"ml-dsa-65"`, '
        '...) or a [table](#tls); `"none"`: no TLS; default: none',
    )
    tcp: Tcp | None = Field(
        default=None,
        description='TCP of both endpoints, where it differs from `[tcp]`; with real applications `stack = "kernel"` '
        'or `"firstflight"` selects the TCP implementation; default: as `[tcp]`',
    )
    client_tcp: Tcp | None = Field(default=None, description="TCP of the client, where it differs; default: as `tcp`")
    server_tcp: Tcp | None = Field(default=None, description="TCP of the server, where it differs; default: as `tcp`")


# In the place of the law of a size that a table's rows give.
_NO_LAW = Constant[Bytes](value=Bytes("1B"))


class FileTransfer(TcpApplication):
    """Files one after the other, each on a new connection; `idle_time` lies between the end of one and the next.

    `size = "row"`, in a population whose paths are a table: as many bytes as its column `bytes` says for the user.
    """

    kind: Literal["file_transfer"] = "file_transfer"
    size: SizeLaw | Literal["row"] = Field(
        description='file size (distribution); `"row"`: the column `bytes` of a population\'s table'
    )
    request: PositiveBytes = Field(default=Bytes("80B"), description="size of the request")
    idle_time: TimeLaw = Field(
        default="0s",
        validate_default=True,
        description="idle time from the end of a file to the next request (distribution)",
    )
    direction: Literal["download", "upload"] = Field(default="download", description='`"download"` or `"upload"`')
    transport: Literal["tcp", "quic"] = Field(
        default="tcp",
        description='`"quic"`: over a real QUIC stack, with a handshake of the bytes of `tls`; `--engine emulate` only',
    )
    quic_stack: Literal["quinn", "aioquic"] | None = Field(
        default=None, description='implementation of QUIC at both ends; default: `"quinn"`'
    )

    planned: ClassVar[str] = "size request_bytes gap=idle_time direction"

    @model_validator(mode="after")
    def _over_quic(self) -> Self:
        if self.transport == "tcp" and self.quic_stack is not None:
            raise ValueError(f'quic_stack is "{self.quic_stack}", but transport is "tcp"; write transport = "quic"')
        if self.transport == "quic" and self.tls is None:
            raise ValueError('transport is "quic", which always has TLS, but tls is "none"; write tls = "ecdsa"')
        return self

    def plan(self) -> dict[str, Any]:
        """As Planned; a size of a row has no law."""
        return super().plan() | ({"size": law_plan(_NO_LAW)} if self.size == "row" else {})


class Level(Planned):
    """In-line objects that those before make known, such as the images that a style sheet names."""

    inline: SizeLaw
    inline_count: CountLaw = Field(default=3, validate_default=True)

    planned: ClassVar[str] = "inline inline_count"


class WebPage(TcpApplication):
    """Pages of a primary object and in-line ones; the user thinks between them.

    `http_version` "1.0": a connection per object, `parallel` in-line ones at once (all, when left out). "1.1": one
    connection a page; `persistent` says how objects share it: "single_response" into one response (RFC 2415's rough
    model) or "pipelined" after the primary; or "keep_alive": up to `connections` to each host, each for one object at a
    time, that stay open for the next page unless idle for `keep_alive`. "2": one connection to each host that stays
    open, on which the responses take turns, a `frame` each. With these two the in-line objects are spread over `hosts`
    names, which the server hosts serve in turn. `then`: more in-line objects, level by level, each asked for once all
    of the level before have arrived. `dns`: each name is looked up first.

    In the place of `think_time`, `load` has pages begin at random times: all clients together ask for this share of the
    rate of link `of`, headers of full segments included. A page that is due before the one before is complete waits for
    it.
    """

    kind: Literal["web_page"] = "web_page"
    http_version: Literal["1.0", "1.1", "2"] = Field(
        default="1.0",
        description='HTTP version. `"1.0"`: one connection per object; `"1.1"`: one per page, or as `persistent` '
        'says; `"2"`: one for all pages, with interleaved responses',
    )
    primary: SizeLaw = Field(description="size of the primary object (distribution)")
    inline: SizeLaw = Field(description="size of an in-line object (distribution)")
    inline_count: CountLaw = Field(
        default=3, validate_default=True, description="in-line objects per page (distribution of numbers)"
    )
    request: PositiveBytes = Field(default=Bytes("300B"), description="size of a request")
    think_time: TimeLaw | None = Field(
        default=None,
        description="think time from the end of a page to the next (distribution); default: this or `load`",
    )
    load: float | None = Field(
        default=None,
        ge=LEAST_LOAD,
        le=MOST_LOAD,
        description="offered load of all clients together, as a fraction of the rate of link `of`: `load = 0.9`, `of "
        '= "cabinet"`. Pages start at random times. Headers of full segments count; requests, retransmissions and DNS '
        "lookups do not. A page waits until the client's previous page is complete, so use many clients; default: "
        "this or `think_time`",
    )
    of: str | None = Field(default=None, description="with `load`: name of the link, as in the records")
    parallel: Count | None = Field(
        default=None, description="version 1.0: maximum parallel connections for in-line objects; default: all"
    )
    persistent: Literal["single_response", "pipelined", "keep_alive"] = Field(
        default="single_response",
        description='version 1.1. `"single_response"`: all objects in one response; `"pipelined"`: the primary, then '
        'all in-line requests back to back; `"keep_alive"`: one object at a time on each of `connections`, which stay '
        "open for the next page",
    )
    then: list[Level] | None = Field(
        default=None,
        max_length=15,
        description="further levels of in-line objects: a list of `{ inline = ..., inline_count = ... }`; each level "
        "is requested when the previous one is complete",
    )
    hosts: Count | None = Field(
        default=None,
        description="keep-alive and version 2: number of host names, each with separate connections; objects are "
        "assigned to names round robin, names to `server_hosts` round robin; default: `1`",
    )
    connections: Count | None = Field(
        default=None, description='`"keep_alive"`: parallel connections per host name; default: `6`'
    )
    keep_alive: Duration | None = Field(
        default=None,
        description="keep-alive and version 2: idle timeout of a connection, checked when a page begins; default: none",
    )
    frame: Bytes | None = Field(
        default=None, description='version 2: payload of a frame, without its 9-byte header; default: `"16KiB"`'
    )
    dns: Names | None = Field(
        default=None,
        description="DNS lookup of each host name before a connection to it is opened: a table of the keys `query`, "
        "`answer`, `resolve`, `timeout`, `backoff`, `attempts` and `header_size` of [`dns`](#datagrams), and `ttl`, "
        "the lifetime of an answer (default: to the end of the run). `{}`: all defaults. Queries go to the first "
        "server of the client. If the lookup fails, the objects on that host are not loaded; default: no lookup",
    )

    planned: ClassVar[str] = (
        "version=http_version primary inline inline_count request_bytes think=think_time parallel persistent"
    )

    @model_validator(mode="after")
    def _paced(self) -> Self:
        if (self.think_time is None) == (self.load is None) or (self.load is None) != (self.of is None):
            raise ValueError(
                'pages have either a time between them, such as think_time = "5s", or a load and the link that it is '
                'of, such as load = 0.8 and of = "bottleneck"'
            )
        return self

    @model_validator(mode="after")
    def _of_the_version(self) -> Self:
        """A key that would do nothing is refused."""
        kept = self.http_version == "1.1" and self.persistent == "keep_alive"
        needs = {
            "hosts": (kept or self.http_version == "2", 'persistent = "keep_alive" or http_version = "2"'),
            "keep_alive": (kept or self.http_version == "2", 'persistent = "keep_alive" or http_version = "2"'),
            "connections": (kept, 'http_version = "1.1" with persistent = "keep_alive"'),
            "frame": (self.http_version == "2", 'http_version = "2"'),
            "parallel": (self.http_version == "1.0", 'http_version = "1.0"'),
        }
        for key, (has_use, where) in needs.items():
            if getattr(self, key) is not None and not has_use:
                raise ValueError(f"{key} has a meaning with {where} only; leave it out")
        if self.frame is not None and not 1 <= self.frame < 2**24:
            raise ValueError(f'frame is "{self.frame}", and a frame of HTTP/2 has 1 B to 16777215 B')
        return self

    def laws_of_bytes(self) -> list[tuple[str, Any, Any]]:
        """Each law of sizes by its key, with the law of the number of objects on a page."""
        levels = [
            (f"then[{index}].inline", level.inline, level.inline_count) for index, level in enumerate(self.then or ())
        ]
        return [("primary", self.primary, None), ("inline", self.inline, self.inline_count), *levels]

    def plan(self) -> dict[str, Any]:
        """As Planned; `think_time` is none where it follows from the load."""
        new = self._base_units("hosts connections keep_alive_ns frame_bytes") | {
            "then": [level.plan() for level in self.then or ()],
            "dns": None if self.dns is None else self.dns.plan(),
            "think_from_start": self.load is not None,
        }
        if self.persistent == "keep_alive" and self.connections is None:
            new["connections"] = 6
        plan = super().plan()
        plan["persistent"] = "joined" if self.persistent == "single_response" else self.persistent
        return {key: value for key, value in new.items() if value} | plan


class RequestResponse(TcpApplication):
    """Requests and responses in turn on one connection; `think_time` lies between a response and the next request."""

    kind: Literal["request_response"] = "request_response"
    request: SizeLaw = Field(description="size of a request (distribution)")
    response: SizeLaw = Field(description="size of a response (distribution)")
    think_time: TimeLaw = Field(
        default="0s", validate_default=True, description="think time from a response to the next request (distribution)"
    )

    planned: ClassVar[str] = "request response think=think_time"


class Video(TcpApplication):
    """A video in chunks on one connection: `buffer` chunks as fast as they come, then one each time that one has been
    played, which takes `interval`. Playing begins with the first request.
    """

    kind: Literal["video"] = "video"
    chunk: SizeLaw = Field(description="size of a chunk (distribution)")
    interval: Duration = Field(default=Duration("4s"), description="playback time of a chunk")
    buffer: Count = Field(
        default=3,
        description="player buffer, in chunks: the first ones are requested one after another, each further one when a "
        "chunk has been played; playback starts with the first request",
    )
    request: PositiveBytes = Field(default=Bytes("300B"), description="size of a request")

    planned: ClassVar[str] = "chunk request_bytes interval_ns buffer_chunks"

    @field_validator("interval")
    @classmethod
    def _lasts(cls, value: Duration) -> Duration:
        if value == 0:
            raise ValueError('chunks of "0s" have nothing to play: write for example "4s"')
        return value


class Arrivals(TcpApplication):
    """Files that arrive whether or not those before are done (an open loop), each on a new connection.

    `idle_time` is the time between the arrivals of a client. In its place, `load` makes them a Poisson process: all
    clients together ask for this share of the rate of link `of`, headers of full segments included.
    """

    kind: Literal["arrivals"] = "arrivals"
    size: SizeLaw = Field(description="file size (distribution)")
    request: PositiveBytes = Field(default=Bytes("80B"), description="size of a request")
    idle_time: TimeLaw | None = Field(
        default=None, description="interarrival time per client (distribution); default: this or `load`"
    )
    load: float | None = Field(
        default=None,
        ge=LEAST_LOAD,
        le=MOST_LOAD,
        description="offered load of all clients together (Poisson), as a fraction of the rate of link `of`: `load = "
        '0.8`, `of = "bottleneck"`. Headers of full segments count; requests and retransmissions do not; default: '
        "this or `idle_time`",
    )
    of: str | None = Field(default=None, description="with `load`: name of the link, as in the records")

    planned: ClassVar[str] = "size request_bytes gap=idle_time"

    @model_validator(mode="after")
    def _paced(self) -> Self:
        if (self.idle_time is None) == (self.load is None) or (self.load is None) != (self.of is None):
            raise ValueError(
                'arrivals have either idle_time = "50ms", or a load and the link that it is of, such as load = 0.8 '
                'and of = "bottleneck"'
            )
        return self

    def laws_of_bytes(self) -> list[tuple[str, Any, Any]]:
        """The law of sizes by its key, of one object."""
        return [("size", self.size, None)]
