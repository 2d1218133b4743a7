"""A server and a client over QUIC on aioquic, with the commands, settings and answers of crates/quic.

    python -I aioquic_programs.py serve|fetch ADDRESS:PORT SETTINGS

aioquic's initial window is a constant, 10 datagrams.
"""

import asyncio
import contextlib
import json
import socket
import ssl
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from aioquic import tls
from aioquic._buffer import Buffer
from aioquic.asyncio.client import connect
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

_NAME, _PROTOCOL = "server", "firstflight"
# Not critical, so that it is ignored.
_PADDING = ObjectIdentifier("1.3.6.1.4.1.32473.1")
# Of the transport parameters, which are part of a ClientHello and of a server's flight.
_TRANSPORT_PARAMETERS = (tls.ExtensionType.QUIC_TRANSPORT_PARAMETERS, bytes(80))
# A signature with ECDSA has 70 to 72 bytes, and the lengths in a certificate's headers grow with it.
_NEAR_BYTES, _MOST_STEPS = 4, 8
_MOST_FLIGHT_BYTES, _MOST_NAME_BYTES = 1 << 16, 255


def _protocols(padding: int) -> list[str]:
    """With names that the server does not speak; a byte of each is its length, and none may be empty."""
    names = [_PROTOCOL]
    while padding > 1:
        name = _MOST_NAME_BYTES - 1 if padding == _MOST_NAME_BYTES + 2 else min(_MOST_NAME_BYTES, padding - 1)
        names.append("x" * name)
        padding -= name + 1
    return names


def _certificate(padding: int) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1 << 64, now, now + timedelta(days=30))
    builder = builder.add_extension(x509.UnrecognizedExtension(_PADDING, bytes(padding)), critical=False)
    return builder.sign(key, hashes.SHA256()), key


def _flights(protocols: list[str], certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> tuple[int, int]:
    """Bytes of the ClientHello and of the server's flight, by a handshake in memory."""
    client = tls.Context(is_client=True, alpn_protocols=protocols, server_name=_NAME, verify_mode=ssl.CERT_NONE)
    server = tls.Context(is_client=False, alpn_protocols=[_PROTOCOL])
    server.certificate, server.certificate_private_key = certificate, key
    sent = []
    data = b""
    for end in (client, server):
        end.handshake_extensions = [_TRANSPORT_PARAMETERS]
        written = {epoch: Buffer(capacity=_MOST_FLIGHT_BYTES) for epoch in tls.Epoch}
        end.handle_message(data, written)
        data = b"".join(buffer.data for buffer in written.values())
        sent.append(len(data))
    return sent[0], sent[1]


async def _serve(address: str, port: int, settings: dict[str, Any]) -> None:
    padding = flight = 0
    for _ in range(_MOST_STEPS):
        certificate, key = _certificate(padding)
        _, flight = _flights([_PROTOCOL], certificate, key)
        if abs(flight - settings["flight_bytes"]) <= _NEAR_BYTES:
            break
        padding += settings["flight_bytes"] - flight
        if padding < 0:
            sys.exit(f"the server's flight has {flight} bytes without padding, not {settings['flight_bytes']}")
    configuration = QuicConfiguration(
        is_client=False,
        alpn_protocols=[_PROTOCOL],
        max_datagram_size=settings["datagram_bytes"],
        congestion_control_algorithm=settings["congestion_control"],
    )
    configuration.certificate, configuration.private_key = certificate, key

    def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(_answer(reader, writer)))

    tasks: list[asyncio.Future[None]] = []
    await serve(address, port, configuration=configuration, stream_handler=answer)
    print(json.dumps({"flight_bytes": flight}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"x" * int(await reader.read()))
    writer.write_eof()


def _free_port() -> int:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as free:
        free.bind(("::", 0))
        port: int = free.getsockname()[1]
        return port


async def _fetch(address: str, port: int, asked: dict[str, Any]) -> None:
    certificate, key = _certificate(0)
    bare, _ = _flights([_PROTOCOL], certificate, key)
    configuration = QuicConfiguration(
        alpn_protocols=_protocols(max(0, asked["hello_bytes"] - bare)),
        max_datagram_size=asked["datagram_bytes"],
        server_name=_NAME,
        verify_mode=ssl.CERT_NONE,
    )
    report: dict[str, Any] = {
        "port": _free_port(),
        "connect_s": 0.0,
        "first_byte_s": 0.0,
        "body_bytes": 0,
        "completed": False,
    }
    start = time.monotonic()

    async def exchange() -> None:
        async with connect(address, port, configuration=configuration, local_port=report["port"]) as connection:
            report["connect_s"] = time.monotonic() - start
            reader, writer = await connection.create_stream()
            writer.write(str(asked["response_bytes"]).ljust(asked["request_bytes"]).encode())
            writer.write_eof()
            while more := await reader.read(1 << 16):
                if not report["body_bytes"]:
                    report["first_byte_s"] = time.monotonic() - start
                report["body_bytes"] += len(more)
            report["total_s"] = time.monotonic() - start
            report["completed"] = report["body_bytes"] == asked["response_bytes"]
            print(json.dumps(report), flush=True)

    with contextlib.suppress(TimeoutError, ConnectionError):
        await asyncio.wait_for(exchange(), asked["within_s"])
    if not report["completed"]:
        print(json.dumps(report | {"total_s": time.monotonic() - start}), flush=True)


def main() -> None:
    """One server, or one transfer."""
    what, where, settings = sys.argv[1:]
    address, _, port = where.rpartition(":")
    run = {"serve": _serve, "fetch": _fetch}[what]
    asyncio.run(run(address.strip("[]"), int(port), json.loads(settings)))


if __name__ == "__main__":
    main()
