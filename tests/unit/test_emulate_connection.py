"""Answers of a testbed over a socket, whatever the pieces in which they arrive."""

import base64
import json
import socket
import threading
from collections.abc import Callable

import pytest

from firstflight.engines.emulate.start import ControlConnection
from firstflight.errors import MachineError, RequestError

CAPTURE = bytes(range(256)) * 4096


def _answered(answers: Callable[[int], bytes], piece_bytes: int) -> object:
    """The answer to one command, when the other end sends `answers(id)` in pieces of this length."""
    ours, theirs = socket.socketpair()
    connection = ControlConnection(ours)

    def serve() -> None:
        with theirs, theirs.makefile("rb") as commands:
            sent = answers(json.loads(commands.readline())["id"])
            for start in range(0, len(sent), piece_bytes):
                theirs.sendall(sent[start : start + piece_bytes])

    server = threading.Thread(target=serve)
    server.start()
    try:
        return connection.call("take", {}, timeout_s=30.0)
    finally:
        server.join()
        connection.close()


def _line(number: int, **answer: object) -> bytes:
    return json.dumps({"id": number, **answer}).encode() + b"\n"


@pytest.mark.parametrize("piece_bytes", [1000, 1 << 20, 1 << 24])
def test_a_capture_arrives_whole_between_other_answers(piece_bytes: int) -> None:
    capture = {"base64": base64.b64encode(CAPTURE).decode()}

    def answers(number: int) -> bytes:
        return _line(-1, answer=1) + _line(number, answer={"segments": capture}) + _line(-2, answer=2)

    assert _answered(answers, piece_bytes) == {"segments": CAPTURE}


def test_an_error_is_raised_as_it_was_inside() -> None:
    with pytest.raises(RequestError, match="no such host"):
        _answered(lambda number: _line(number, error="no such host", kind="request"), 7)


def test_the_testbeds_end_is_reported_with_its_reason() -> None:
    with pytest.raises(MachineError, match="nginx was killed"):
        _answered(lambda _number: b'{"ended": "nginx was killed"}\n', 5)
