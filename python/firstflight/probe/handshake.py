"""A server's TLS handshake: its flight, its certificates, its tickets and its records; and the flight of another chain.

A chain of ML-DSA keeps the names and extensions of each certificate and replaces its key, its signature and the one of
CertificateVerify.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firstflight.scenario.tls import ALGORITHMS, HYBRID_SERVER_SHARE

POST_QUANTUM = "ml-dsa-44"
MSS_BYTES = 1448
"""Of Linux with timestamps, on Ethernet."""
_HANDSHAKE, _APPLICATION_DATA = 22, 23
_HEADER_BYTES = 5
# RFC 8446 section 5.2: content type and tag; of 1.2, with AES-GCM (RFC 5288), a nonce and a tag.
_OVERHEAD_BYTES = {"TLSv1.3": 17, "TLSv1.2": 24}
# Tickets of common servers take 60 to 300 bytes, and are of one length.
_LONGEST_TICKET = 512
# An elliptic curve's key is shorter, one of RSA longer.
_LONGEST_CURVE_KEY = 140
_CURVE_SIGNATURE = 72


@dataclass(frozen=True)
class Handshake:
    """The handshake of a connection. `hello_bytes`: of the ClientHello; `flight_bytes`: from the server until the
    client could ask; `certificate_bytes`: of each certificate, the server's own first; `tickets`: bytes of each session
    ticket after the handshake; `record_bytes`: most payload of a record of the response, 0 if none came;
    `post_quantum_bytes`: the flight with the same chain of ML-DSA-44 and a hybrid key share.
    """

    hello_bytes: int
    flight_bytes: int
    certificate_bytes: tuple[int, ...]
    tickets: tuple[int, ...]
    record_bytes: int
    post_quantum_bytes: int

    @property
    def intermediates(self) -> int:
        """Certificates behind the server's own."""
        return max(0, len(self.certificate_bytes) - 1)


def read(hello_bytes: int, flight_bytes: int, data: bytes, chain: Sequence[bytes], version: str) -> Handshake:
    """From the server's bytes, of which the first `flight_bytes` are the handshake's, and its certificates (DER)."""
    records = list(_records(data))
    later = [length for kind, start, length in records if start >= flight_bytes and kind == _APPLICATION_DATA]
    tickets = 0
    if version == "TLSv1.3" and len(later) > 1 and later[0] <= _LONGEST_TICKET:
        tickets = next((place for place, length in enumerate(later) if length != later[0]), 0)
    is_hybrid = any(kind == _HANDSHAKE and length > HYBRID_SERVER_SHARE for kind, _, length in records[:1])
    return Handshake(
        hello_bytes,
        flight_bytes,
        tuple(map(len, chain)),
        tuple(_HEADER_BYTES + length for length in later[:tickets]),
        max(0, max(later[tickets:], default=0) - _OVERHEAD_BYTES.get(version, 0)),
        flight_bytes + sum(_more(chain)) + (0 if is_hybrid else HYBRID_SERVER_SHARE),
    )


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, start and length of each record that begins in `data`."""
    at = 0
    while at + _HEADER_BYTES <= len(data):
        kind, length = data[at], int.from_bytes(data[at + 3 : at + 5])
        if not 20 <= kind <= _APPLICATION_DATA or data[at + 1] != 3:
            return
        yield kind, at, length
        at += _HEADER_BYTES + length


def _more(chain: Sequence[bytes]) -> Iterator[int]:
    """Bytes that ML-DSA adds to each certificate, and to the signature by the first one's key."""
    new = ALGORITHMS[POST_QUANTUM]
    for place, certificate in enumerate(chain):
        key, signature = _key_and_signature(certificate)
        yield new.in_certificate - key - signature
        if place == 0:
            yield new.signature - (_CURVE_SIGNATURE if key <= _LONGEST_CURVE_KEY else key)


def _key_and_signature(certificate: bytes) -> tuple[int, int]:
    """Bytes of the public key and of the signature in a certificate (RFC 5280 section 4.1)."""
    (_, whole), *_ = _elements(certificate)
    (_, to_be_signed), _, (_, signature) = _elements(whole)
    fields = [content for tag, content in _elements(to_be_signed) if tag != 0xA0]
    # Serial number, algorithm, issuer, validity, subject, key.
    _, (_, key) = _elements(fields[5])
    return len(key), len(signature)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of DER elements one after the other."""
    at = 0
    while at < len(data):
        tag, length, begin = data[at], data[at + 1], at + 2
        if length & 0x80:
            begin += length & 0x7F
            length = int.from_bytes(data[at + 2 : begin])
        yield tag, data[begin : begin + length]
        at = begin + length
