"""A server with chains of ML-DSA, for nginx has none: TLS 1.3 of pyOpenSSL, and of HTTP as much as nginx is asked for.

It runs as a separate program in a server host's namespace:

    python -I real.py ADDRESS PORT NODELAY RECORD_BYTES CHAINS

ADDRESS is that of all hosts, "::" or "0.0.0.0"; CHAINS a list [[name, intermediates, flight bytes]] as JSON: the leaf
has a comment so long that the server's flight has these bytes, by which a ClientHello names it (`nginx.called`). It
writes a line to stdout when it listens.
"""

import contextlib
import datetime
import itertools
import json
import re
import socket
import sys
import tempfile
import threading
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import mldsa
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

_ALGORITHMS: dict[str, Any] = {
    "ml-dsa-44": mldsa.MLDSA44PrivateKey,
    "ml-dsa-65": mldsa.MLDSA65PrivateKey,
    "ml-dsa-87": mldsa.MLDSA87PrivateKey,
}
_BY_NAME: dict[bytes, SSL.Context] = {}
_COMMENT = x509.ObjectIdentifier("2.16.840.1.113730.1.13")
# A long serial number, as public certificates have.
_SERIAL = 1 << 150
_VALID = datetime.timedelta(days=30)
_READ_BYTES = 1 << 16
_BACKLOG = 4096
# Nginx on the same host refuses headers that are too short for it, whose own is longer.
_SHORTEST_PAD = len("X: \r\n")


def _chain(algorithm: str, intermediates: int, comment_bytes: int) -> SSL.Context:
    """A server's context with a new chain, whose root is not sent."""
    keys = [_ALGORITHMS[algorithm].generate() for _ in range(intermediates + 2)]
    now = datetime.datetime.now(datetime.UTC)
    certificates = []
    for at, (issuer, key) in enumerate(itertools.pairwise(keys)):
        certificate = (
            x509.CertificateBuilder()
            .issuer_name(_name(at))
            .subject_name(_name(at + 1))
            .public_key(key.public_key())
            .serial_number(_SERIAL + at)
            .not_valid_before(now - _VALID)
            .not_valid_after(now + _VALID)
        )
        if comment_bytes and at == intermediates:
            certificate = certificate.add_extension(x509.UnrecognizedExtension(_COMMENT, bytes(comment_bytes)), False)
        certificates.append(certificate.sign(issuer, None))
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_tlsext_servername_callback(_select)
    leaf, *others = reversed(certificates)
    context.use_certificate(leaf)
    for other in others:
        context.add_extra_chain_cert(other)
    # It takes such a key from a file only.
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(
            keys[-1].private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        file.flush()
        context.use_privatekey_file(file.name)
    return context


def _select(connection: SSL.Connection) -> None:
    connection.set_context(_BY_NAME.get(connection.get_servername() or b"", connection.get_context()))


def _name(at: int) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"certificate {at}")])


def _flight(context: SSL.Context) -> int:
    """Bytes of a server's flight."""
    client, server = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), None), SSL.Connection(context, None)
    client.set_connect_state()
    # The server's answer to it takes its bytes.
    client.set_tlsext_host_name(b"s")
    server.set_accept_state()
    for end in (client, server):
        with contextlib.suppress(SSL.WantReadError):
            end.do_handshake()
        if end is client:
            server.bio_write(client.bio_read(_READ_BYTES))
    return len(server.bio_read(_READ_BYTES))


def padded(algorithm: str, intermediates: int, flight_bytes: int) -> SSL.Context:
    """A server's context whose flight has so many bytes, if its own has not more."""
    comment = 0
    for _ in range(4):
        context = _chain(algorithm, intermediates, comment)
        missing = flight_bytes - _flight(context)
        if missing == 0 or comment + missing < 0:
            break
        comment += missing
    return context


def _serve(end: socket.socket, context: SSL.Context, record_bytes: int) -> None:
    with end, contextlib.suppress(OSError, SSL.Error):
        connection = SSL.Connection(context, end)
        connection.set_accept_state()
        connection.do_handshake()
        asked = b""
        while True:
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(_READ_BYTES)
            request, _, asked = asked.partition(b"\r\n\r\n")
            header, size = map(int, re.match(rb"GET /(\d+)/(\d+)", request).groups())  # type: ignore[union-attr]
            response = _head(size, header)
            left = size
            while left or response:
                content = bytes(min(left, record_bytes - len(response)))
                connection.sendall(response + content)
                left -= len(content)
                response = b""


def _head(size: int, header: int) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n"
    missing = header - len(head) - len("\r\n") - _SHORTEST_PAD
    pad = f"X: {'x' * missing}\r\n" if missing >= 0 else ""
    return f"{head}{pad}\r\n".encode()


def main() -> None:
    """Serve until it is ended."""
    address, port, no_delay, record_bytes = sys.argv[1], *map(int, sys.argv[2:5])
    chains: list[Any] = json.loads(sys.argv[5])
    contexts = [padded(*chain) for chain in chains]
    _BY_NAME.update({f"s{chain[2]:09d}".encode(): context for chain, context in zip(chains, contexts, strict=True)})
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, backlog=_BACKLOG) as listening:
        print(flush=True)
        while True:
            end, _ = listening.accept()
            if no_delay:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(end, contexts[0], record_bytes), daemon=True).start()


if __name__ == "__main__":
    main()
