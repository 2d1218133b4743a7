"""Applications over UDP."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from firstflight.scenario.applications import Application, Count
from firstflight.scenario.laws import SizeLaw, TimeLaw, largest
from firstflight.scenario.queries import UDP_BYTES, Header, Interval, Payload, Queries
from firstflight.scenario.table import ScenarioTable
from firstflight.scenario.units import BitsPerSecond, Bytes, Duration, within

Direction = Literal["download", "upload", "both"]


class DatagramApplication(Application):
    """Clients that exchange datagrams with servers, with headers of `header_size`; the emulator runs all but `dns`."""

    header_size: Header | None = Field(
        default=None, description='header bytes per datagram: UDP and IP; default: `"28B"`, with IPv6 `"48B"`'
    )

    # Bytes of headers above IP's.
    over_ip: ClassVar[int] = UDP_BYTES
    # Keys that only applications over TCP have.
    response_header: ClassVar[None] = None
    service_time: ClassVar[None] = None
    tls: ClassVar[None] = None
    tcp: ClassVar[None] = None
    client_tcp: ClassVar[None] = None
    server_tcp: ClassVar[None] = None

    @abstractmethod
    def payloads(self) -> dict[str, float | None]:
        """The most bytes of a datagram, by the key that gives them; None where there is no bound."""


class StreamApplication(DatagramApplication):
    """Clients and servers that send at intervals: for `length`; left out, to the end of the run."""

    length: Duration | None = Field(
        default=None,
        description="sending time of each client and its server (not `dns`); default: to the end of the run",
    )


class ConstantRate(StreamApplication):
    """Datagrams of one size at a constant `rate`, headers included; one that takes longer than `deadline` is late."""

    kind: Literal["constant_rate"] = "constant_rate"
    rate: Annotated[BitsPerSecond, within((">", 0))] = Field(description="rate, headers included")
    payload: Payload = Field(default=Bytes("1200B"), description="payload of a datagram")
    direction: Direction = Field(default="download", description='`"upload"`, `"download"` or `"both"`')
    deadline: Duration | None = Field(
        default=None, description="delay above which a datagram counts as late; default: none"
    )

    planned: ClassVar[str] = "rate_bps payload_bytes direction length_ns deadline_ns"

    def payloads(self) -> dict[str, float | None]:
        """See DatagramApplication."""
        return {"payload": float(self.payload)}


class Impairment(ScenarioTable):
    """The effect of a codec by ITU-T G.107: the impairment `ie` without losses, and the robustness `bpl` to them."""

    ie: float = Field(ge=0, lt=95)
    bpl: float = Field(gt=0)


# Of the header (RFC 3550 section 5.1).
_RTP_BYTES = 12

# ITU-T G.113 appendix I: G.711 without concealment of losses, and with that of its own appendix I.
_G711 = {False: Impairment(ie=0.0, bpl=4.3), True: Impairment(ie=0.0, bpl=25.1)}
_G711_RATE = BitsPerSecond("64kbit")
# RFC 6716 section 2.1.1: in the middle of the range for fullband speech.
_OPUS_RATE = BitsPerSecond("32kbit")
# RFC 6716 section 2.1.4, and the packets of several frames in RFC 7587 section 4.2.
_OPUS_FRAMES = [Duration(f"{milliseconds}ms") for milliseconds in (2.5, 5, 10, 20, 40, 60, 80, 100, 120)]


class Voice(StreamApplication):
    """Calls: a datagram of voice each `frame`, with a header of RTP, UDP and IP.

    The receiver plays the first datagram `playout` after it arrived and the others in their time; a datagram that has
    not arrived by then is late and counts as lost. `bitrate` is for "opus"; "g711" has 64kbit. Calls are rated by the
    E-model (ITU-T G.107): of "g711" with the values of G.113 appendix I, those with `concealment` of losses unless it
    is false; of "opus" if its `impairment` is given, for which the ITU has published no values on that scale.
    """

    kind: Literal["voice"] = "voice"
    codec: Literal["g711", "opus"] = Field(default="g711", description='`"g711"` (64 kbit/s) or `"opus"`')
    frame: Interval = Field(default=Duration("20ms"), description="voice per datagram, and time between datagrams")
    bitrate: BitsPerSecond | None = Field(default=None, description='of `"opus"`; default: `"32kbit"`')
    playout: Duration = Field(
        default=Duration("60ms"),
        description="playout delay: time that the receiver buffers the first datagram; a later one that misses its "
        "playout time counts as late",
    )
    concealment: bool = Field(default=True, description='packet loss concealment of `"g711"`')
    impairment: Impairment | None = Field(
        default=None,
        description='impairment of the codec by ITU-T G.107: `{ ie = ..., bpl = ... }`; default: for `"g711"` from '
        'G.113 appendix I; for `"opus"` none',
    )
    direction: Direction = Field(
        default="both", description='speaker: `"upload"` the client, `"download"` the server, or `"both"`'
    )
    header_size: Header | None = Field(
        default=None, description='header bytes per datagram: RTP, UDP and IP; default: `"40B"`, with IPv6 `"60B"`'
    )

    over_ip: ClassVar[int] = _RTP_BYTES + UDP_BYTES
    planned: ClassVar[str] = "codec frame_ns playout_ns direction length_ns"

    @model_validator(mode="after")
    def _frames_that_the_codec_has(self) -> "Voice":
        if self.codec == "g711" and self.bitrate not in (None, _G711_RATE):
            raise ValueError(f'bitrate: "g711" has 64kbit, not "{self.bitrate}"; leave it out')
        if self.codec == "opus" and self.frame not in _OPUS_FRAMES:
            known = ", ".join(map(str, _OPUS_FRAMES))
            raise ValueError(f'frame: "opus" has no frames of "{self.frame}"; it has {known}')
        return self

    def _bit_rate(self) -> int:
        return int(_G711_RATE if self.codec == "g711" else self.bitrate or _OPUS_RATE)

    def payloads(self) -> dict[str, float | None]:
        """See DatagramApplication."""
        return {"frame": self._bit_rate() * self.frame.seconds / 8}

    def plan(self) -> dict[str, Any]:
        """As Planned, with what the codec decides."""
        impairment = self.impairment or (_G711[self.concealment] if self.codec == "g711" else None)
        return super().plan() | {
            "bit_rate_bps": self._bit_rate(),
            "impairment": None if impairment is None else impairment.model_dump(),
        }


class Game(StreamApplication):
    """Games: each client sends every `client_interval`, and its server to all of them at each `tick`.

    The defaults are assumed: a server of 30 ticks a second, and datagrams of about the size that first-person shooters
    were measured to send (J. Färber, "Network game traffic modelling", NetGames 2002).
    """

    kind: Literal["game"] = "game"
    client_interval: Interval = Field(default=Duration("40ms"), description="time between datagrams of a client")
    tick: Interval = Field(
        default=Duration("33ms"),
        description="time between ticks of the server; at each it sends one datagram to every client",
    )
    client_payload: SizeLaw = Field(
        default="80B", validate_default=True, description="payload of a client's datagram (distribution)"
    )
    server_payload: SizeLaw = Field(
        default="150B", validate_default=True, description="payload of a server's datagram (distribution)"
    )
    deadline: Duration | None = Field(
        default=None, description="delay above which a datagram counts as late; default: none"
    )

    planned: ClassVar[str] = "client_interval_ns tick_ns client_payload server_payload length_ns deadline_ns"

    def payloads(self) -> dict[str, float | None]:
        """See DatagramApplication."""
        return {"client_payload": largest(self.client_payload), "server_payload": largest(self.server_payload)}


class Dns(Queries, DatagramApplication):
    """Look-ups of names, one after the other with `think_time` between; each is a row of `transfers`, too.

    `count` look-ups; left out, to the end of the run.
    """

    kind: Literal["dns"] = "dns"
    think_time: TimeLaw = Field(description="time from a lookup to the next (distribution)")
    count: Count | None = Field(default=None, description="lookups per client; default: to the end of the run")

    planned: ClassVar[str] = f"{Queries.planned} think=think_time"
