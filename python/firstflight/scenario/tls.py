"""What passes on a TCP connection before its first request: TLS 1.3 by the sizes of its parts, or flights in bytes.

Sizes are sums of parts: keys and signatures of ML-DSA by FIPS 204, the rest so that the sums are the server flights
that OpenSSL 4.0.3 sends with one and with two intermediates: 2,235 and 2,600 B of ECDSA, 11,774 and 15,736 B of
ML-DSA-44, 15,721 and 21,234 B of ML-DSA-65, 20,955 and 28,426 B of ML-DSA-87.
"""

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from firstflight.counted import nearest
from firstflight.scenario.laws import SizeLaw, law_plan, mean
from firstflight.scenario.paths_table import MOST_EXCHANGES
from firstflight.scenario.table import ScenarioTable
from firstflight.scenario.units import Bytes, Bytes32, Duration, PositiveBytes

# Of a certificate without its key and signature, in a Certificate message.
_CERTIFICATE = 230
# Records of ServerHello with 1120 B of the share of X25519MLKEM768, ChangeCipherSpec, EncryptedExtensions and Finished;
# headers of Certificate and CertificateVerify.
_SERVER_FLIGHT = 1430
# Headers and tags of the records of Certificate and CertificateVerify, which a resumed handshake does not have.
_AUTHENTICATION_HEADERS = 60
# draft-ietf-tls-ecdhe-mlkem: 1120 B for 32 of X25519 in the ServerHello.
HYBRID_SERVER_SHARE = 1088
"""Bytes that X25519MLKEM768 adds to a server's flight."""
# ClientHello: the middle of 243 to 301 B and of 1477 to 1535 B, for names of 4 to 62 B (OpenSSL 3.5).
_CLIENT_HELLO = {"x25519": 272, "x25519mlkem768": 1506}
# The pre_shared_key extension with a ticket of OpenSSL.
_PRE_SHARED_KEY = 270
# ChangeCipherSpec and Finished.
_CLIENT_FINISHED = 80
# A record: 5 B of header, 1 of content type, 16 of tag; the longest payload.
_RECORD, _RECORD_PAYLOAD = 22, 16_384
# RFC 8446 section 4.4.2.
_MOST_CERTIFICATES = 2**24 - 1


class Algorithm(NamedTuple):
    """Bytes of one of its keys with its signature in a certificate, and of a signature in CertificateVerify."""

    in_certificate: int
    signature: int


# The certificate of a Merkle tree has a proof of 700 to 800 B at web scale (second hand) in place of a signature, and
# needs no intermediate; its key here is ML-DSA-44's.
ALGORITHMS = {
    "ecdsa": Algorithm(135, 75),
    "rsa-2048": Algorithm(270 + 256, 256),
    "ml-dsa-44": Algorithm(1312 + 2420, 2420),
    "ml-dsa-65": Algorithm(1952 + 3309, 3309),
    "ml-dsa-87": Algorithm(2592 + 4627, 4627),
    "merkle-tree": Algorithm(1312 + 750, 2420),
}
# Bytes at quantiles of the chains that 8,152 of Tranco's first 10,000 hosts served in August 2026, and of the server
# flights that DannyBCarrJr/pqc-chain-budget projects for them: its medians, 95th percentiles and shares above 14,600
# and 29,200 B. The ends are sums of the parts without and with four intermediates; beyond them nothing is known.
_TRANCO: dict[str, tuple[tuple[float, float], ...]] = {
    "tranco-2026": ((0.0, 2456), (0.05, 2456), (0.5, 3754), (0.95, 6465), (1.0, 6465)),
    "tranco-2026-ml-dsa-44": ((0.0, 7812), (0.149, 14600), (0.5, 16810), (0.95, 21499), (1.0, 23682)),
    "tranco-2026-ml-dsa-65": ((0.0, 10230), (0.005, 14600), (0.5, 22282), (0.95, 28495), (0.985, 29200), (1.0, 32216)),
}
NAMES = (*ALGORITHMS, *_TRANCO)
"""Chains by name."""


def _chain(data: Any) -> Any:
    if isinstance(data, str) and data not in NAMES and not data[:1].isdigit():
        raise ValueError(f'unknown chain "{data}"; {nearest(data, NAMES)}; or write its bytes, such as "3754B"')
    return data


Chain = Annotated[Literal[NAMES] | SizeLaw, BeforeValidator(_chain)]  # type: ignore[valid-type]
Flight = tuple[Literal["client", "server"], SizeLaw]


class Compute(ScenarioTable):
    """Times that the ends compute. Real ends take their own: the defaults are those of OpenSSL behind Python programs
    in the emulated network, by which ECDSA's handshake takes 105 ms where the RTT is 100 ms.
    """

    sign: Duration = Field(default=Duration("2.5ms"), description="server: from the ClientHello to its flight")
    verify: Duration = Field(
        default=Duration("2.5ms"), description="client: from the last byte of the server's flight to its answer"
    )


class Tls(ScenarioTable):
    """TLS 1.3 on each connection, or any other dialog before the first request, by its `flights`.

    A server whose chain is "ml-dsa-44" with one intermediate sends 11,774 bytes before the first response. A client
    that resumes gets no chain; with early data (0-RTT) its request follows its first flight.
    """

    chain: Chain = Field(
        default="ecdsa",
        description="certificates of the server: `"
        + "`, `".join(f'"{name}"' for name in NAMES)
        + "`, or the bytes of the chain (distribution)",
    )
    intermediates: int | None = Field(
        default=None, ge=0, le=10, description="intermediate certificates that the server sends; default: `1`"
    )
    key_share: Literal["x25519", "x25519mlkem768"] = Field(
        default="x25519mlkem768", description="key exchange; the hybrid one makes a ClientHello of two segments"
    )
    client_certificate: Literal[tuple(ALGORITHMS)] | None = Field(  # type: ignore[valid-type]
        default=None,
        description="mutual TLS: the client sends a chain of this algorithm with one intermediate; default: none",
    )
    resumption: float = Field(default=0.0, ge=0, le=1, description="fraction of the connections that are resumed")
    early_data: float = Field(
        default=0.0, ge=0, le=1, description="fraction of the resumed connections with early data (0-RTT)"
    )
    tickets: Bytes32 | None = Field(
        default=None, description="session tickets, sent before the first response; default: `510B` (two of OpenSSL)"
    )
    record_size: PositiveBytes | None = Field(
        default=None,
        description="largest payload of a TLS record; no byte is usable before its whole record has arrived; default: "
        "`16KiB`, with `flights` no records",
    )
    write_size: PositiveBytes = Field(
        default=Bytes("4096B"),
        description="bytes per write of a flight; the last segment of each write may be short; OpenSSL has 4096",
    )
    compute: Compute = Field(
        default_factory=Compute, description="times to sign and to verify: a table; default: both `2.5ms`"
    )
    flights: Annotated[list[Flight], Field(min_length=1, max_length=255)] | Literal["row"] | None = Field(
        default=None,
        description='all flights in order, instead of all keys above except `tickets`: `[["client", "1554B"], '
        '["server", "11774B"], ["client", "80B"]]`; `"row"`: those of the columns `tls_bytes` and `tls_exchanges` of a '
        "population's table",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.flights is not None:
            # A scenario that was written out has the defaults, too.
            used = {"flights", "tickets", "record_size"}
            used |= {"key_share", "write_size"} if self.flights == "row" else set()
            others = type(self).model_fields.keys() - used
            odd = sorted(name for name in others if getattr(self, name) != getattr(_DEFAULT, name))
            if odd:
                raise ValueError(f"flights are given in bytes, so {', '.join(odd)} would do nothing; leave it out")
            return self
        if self.early_data and not self.resumption:
            raise ValueError(
                f"early_data is {self.early_data:g} and resumption 0: only a resumed connection can send early data; "
                "set resumption above 0"
            )
        if self.intermediates is not None and not (isinstance(self.chain, str) and self.chain in ALGORITHMS):
            raise ValueError(
                "a chain by its bytes or of measured hosts has its own intermediates; leave intermediates out"
            )
        if not isinstance(self.chain, str) and mean(self.chain) > _MOST_CERTIFICATES:
            raise ValueError(
                f"the mean of chain is above {_MOST_CERTIFICATES}B, the longest list of certificates (RFC 8446 section "
                "4.4.2)"
            )
        if self.record_size is not None and self.record_size > _RECORD_PAYLOAD:
            raise ValueError(f'record_size is "{self.record_size}"; a record holds 1 B to 16KiB (RFC 8446 section 5.1)')
        return self

    def of_row(self, size: float, exchanges: int) -> dict[str, Any] | str:
        """The key `tls` with `flights = "row"` written out for a row of the table."""
        if not size:
            return "none"
        flights = [[flight["from"], f"{flight['bytes']['value']}B"] for flight in self._exchanges(exchanges)["flights"]]
        flights[1][1] = f"{size:.0f}B"
        return self.model_dump(include={"tickets", "record_size"}, exclude_none=True) | {"flights": flights}

    def plan(self) -> dict[str, Any]:
        """The handshakes as the native module reads them."""
        if self.flights is not None:
            if self.flights == "row":
                kinds = [self._exchanges(number) for number in range(1, MOST_EXCHANGES + 1)]
            else:
                flights = [{"from": end, "bytes": law_plan(size)} for end, size in self.flights]
                kinds = [{"fraction": 1.0, "flights": flights, "tickets_bytes": int(self.tickets or 0)}]
            written = {"kinds": kinds, "from_row": self.flights == "row"}
            return written | ({} if self.record_size is None else {"record_bytes": int(self.record_size)})
        most = _RECORD_PAYLOAD if self.record_size is None else int(self.record_size)
        return {"kinds": self._kinds(), "record_bytes": most}

    def _kinds(self) -> list[dict[str, Any]]:
        tickets = 510 if self.tickets is None else int(self.tickets)
        early, resumed = self.resumption * self.early_data, self.resumption * (1 - self.early_data)
        server = _SERVER_FLIGHT - (HYBRID_SERVER_SHARE if self.key_share == "x25519" else 0)
        kinds = [self._kind(1 - self.resumption, self._full(server), tickets)]
        # BoringSSL sends the tickets of early data with its flight.
        short = _constant(server - _AUTHENTICATION_HEADERS)
        kinds.append(self._kind(resumed, short, tickets, "resumed"))
        kinds.append(self._kind(early, _constant(server - _AUTHENTICATION_HEADERS + tickets), 0, "early_data"))
        return [kind for kind in kinds if kind["fraction"] > 0]

    def _exchanges(self, number: int) -> dict[str, Any]:
        """A handshake of this many exchanges, written as OpenSSL does; its first server flight has the row's bytes."""
        client, server = ({"from": end, **_constant(_CLIENT_FINISHED)} for end in ("client", "server"))
        flights = [client | _constant(_CLIENT_HELLO[self.key_share]), *[server, client] * number]
        flights = [flight | {"write_bytes": int(self.write_size)} for flight in flights]
        return {"fraction": 1 / MOST_EXCHANGES, "flights": flights, "tickets_bytes": int(self.tickets or 0)}

    def _kind(self, fraction: float, server: dict[str, Any], tickets: int, resumption: str = "none") -> dict[str, Any]:
        hello = _CLIENT_HELLO[self.key_share] + (0 if resumption == "none" else _PRE_SHARED_KEY)
        authentication = 0
        if self.client_certificate is not None and resumption == "none":
            authentication = _authentication(self.client_certificate, 1) + _AUTHENTICATION_HEADERS
        flights = [
            {"from": "client", **_constant(hello)},
            {"from": "server", **server, "compute_ns": int(self.compute.sign)},
            {"from": "client", **_constant(_CLIENT_FINISHED + authentication), "compute_ns": int(self.compute.verify)},
        ]
        flights = [flight | {"write_bytes": int(self.write_size)} for flight in flights]
        return {"fraction": fraction, "flights": flights, "tickets_bytes": tickets, "resumption": resumption}

    def _full(self, without: int) -> dict[str, Any]:
        """Size of the server's flight in full handshakes; `without`: bytes of its other parts."""
        if not isinstance(self.chain, str):
            return {"bytes": law_plan(self.chain), "more_bytes": without + ALGORITHMS["ecdsa"].signature}
        if self.chain in _TRANCO:
            served = self.chain == "tranco-2026"
            more = ALGORITHMS["rsa-2048"].signature if served else 0
            points = [(at, size - (0 if served else _SERVER_FLIGHT)) for at, size in _TRANCO[self.chain]]
            law = {"distribution": "empirical", "points": points, "interpolation": "log"}
            return {"bytes": law, "more_bytes": without + more}
        default = 0 if self.chain == "merkle-tree" else 1
        intermediates = default if self.intermediates is None else self.intermediates
        return _constant(without + _authentication(self.chain, intermediates))


_DEFAULT = Tls()


def segments(flight: Any, mss_bytes: int) -> Any:
    """Number of segments of a flight of this many bytes (a number, an array or an expression), by OpenSSL's writes."""
    size = int(_DEFAULT.write_size)
    return flight // size * -(-size // mss_bytes) + (flight % size + mss_bytes - 1) // mss_bytes


def server_flight(chain: str | None, intermediates: int = 1) -> int:
    """Bytes of a server's flight with a hybrid key share; `chain`: of `NAMES`, the median if it is a distribution, or
    None for a resumed connection.
    """
    if chain is None:
        return _SERVER_FLIGHT - _AUTHENTICATION_HEADERS
    if chain in _TRANCO:
        served = _SERVER_FLIGHT + ALGORITHMS["rsa-2048"].signature if chain == "tranco-2026" else 0
        return int(dict(_TRANCO[chain])[0.5]) + served
    return _SERVER_FLIGHT + _authentication(chain, intermediates)


def _authentication(name: str, intermediates: int) -> int:
    """Bytes of a chain of certificates and of a signature by its key."""
    algorithm = ALGORITHMS[name]
    chain = (1 + intermediates) * (_CERTIFICATE + algorithm.in_certificate)
    return chain + algorithm.signature + _RECORD * (chain // _RECORD_PAYLOAD)


def _constant(size: int) -> dict[str, Any]:
    return {"bytes": {"distribution": "constant", "value": size}}


def _by_name(data: Any) -> Any:
    if not isinstance(data, str):
        return data
    if data not in (*NAMES, "none"):
        raise ValueError(f'unknown chain "{data}"; {nearest(data, (*NAMES, "none"))}, or write a table')
    return None if data == "none" else {"chain": data}


TlsKey = Annotated[Tls | None, BeforeValidator(_by_name, json_schema_input_type=Literal[(*NAMES, "none")] | Tls | None)]
