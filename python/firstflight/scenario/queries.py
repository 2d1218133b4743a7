"""Look-ups of names, by a separate application or before a page's connections; sizes of datagrams."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from firstflight.scenario.laws import Planned, SizeLaw, TimeLaw, largest
from firstflight.scenario.units import Bytes, Duration


def _in_an_ip_packet(payload: Bytes) -> Bytes:
    if not 1 <= payload <= 65_507:
        raise ValueError(f'"{payload}" does not fit: a UDP datagram carries 1B to 65507B')
    return payload


def _not_zero(time: Duration) -> Duration:
    if time == 0:
        raise ValueError('"0s" leaves no time between datagrams: write for example "20ms"')
    return time


def _in_16_bits(header: Bytes) -> Bytes:
    if header > 65_535:
        raise ValueError(f'"{header}" is too long: headers have at most 65535B')
    return header


# Of the header (RFC 768).
UDP_BYTES = 8

Header = Annotated[Bytes, AfterValidator(_in_16_bits)]
Payload = Annotated[Bytes, AfterValidator(_in_an_ip_packet)]
Interval = Annotated[Duration, AfterValidator(_not_zero)]


class Queries(Planned):
    """Queries and answers over UDP, each with a header of `header_size`.

    A query without an answer is retransmitted after `timeout`, the next after `backoff` times as long, until `attempts`
    have been sent and waited for. The defaults are those of glibc with one server (resolv.conf(5); `res_send.c` doubles
    the time). `resolve` is how long the server works at each query.
    """

    query: Payload = Field(default=Bytes("40B"), description="payload of a query")
    answer: SizeLaw = Field(default="120B", validate_default=True, description="payload of an answer (distribution)")
    resolve: TimeLaw = Field(
        default="0s", validate_default=True, description="processing time of the server per query (distribution)"
    )
    timeout: Interval = Field(
        default=Duration("5s"),
        description="time without an answer after which a query is retransmitted (glibc's default)",
    )
    backoff: float = Field(default=2.0, ge=1, description="factor from each timeout to the next")
    attempts: int = Field(default=2, ge=1, le=100, description="maximum number of times that a query is sent")
    header_size: Header | None = Field(
        default=None, description='header bytes per datagram: UDP and IP; default: `"28B"`, with IPv6 `"48B"`'
    )

    over_ip: ClassVar[int] = UDP_BYTES
    planned: ClassVar[str] = "query_bytes answer resolve timeout_ns backoff attempts"

    def payloads(self) -> dict[str, float | None]:
        """The most bytes of a datagram, by key; None where there is no bound."""
        return {"query": float(self.query), "answer": largest(self.answer)}


class Names(Queries):
    """The names of a page's hosts: each is looked up before a connection is opened to it, unless an answer still holds.

    An answer holds for `ttl`; left out, to the end of the run.
    """

    ttl: Duration | None = None

    planned: ClassVar[str] = f"{Queries.planned} ttl_ns"
