"""The runner's side of the connection to a testbed: commands out, answers in, and notice of the testbed's end."""

import base64
import contextlib
import json
import os
import queue
import socket
import threading
from itertools import count
from typing import Any

from firstflight.errors import FirstflightError, MachineError, RequestError

_ERRORS: dict[str, type[FirstflightError]] = {"request": RequestError, "machine": MachineError}
_PIECE = 1 << 16
_MOST_FDS = 8

Answer = dict[str, Any]


class Connection:
    """Many questions may be open at the same time, from many threads; each call waits for its own answer."""

    def __init__(self, line: socket.socket) -> None:
        self.fds: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._line = line
        self._numbers = count()
        self._waiting: dict[int, queue.SimpleQueue[Answer | None]] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._gone = False
        self._reason = ""
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, name="testbed", daemon=True)
        self._reader.start()

    def wait_until_ready(self, timeout_s: float) -> bool:
        """Whether the other end said that it is; it may have ended instead, or not be heard of in time."""
        self._ready.wait(timeout_s)
        with self._lock:
            return self._ready.is_set() and not self._gone

    @property
    def reason(self) -> str:
        """Why the testbed ended, as it said itself; empty if it said nothing."""
        with self._lock:
            return self._reason

    def call(self, command: str, parameters: dict[str, Any], timeout_s: float) -> Any:
        """The command's answer. RequestError and MachineError as raised inside; MachineError after `timeout_s`
        without an answer, or if the testbed has ended.
        """
        number = next(self._numbers)
        mailbox: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self._lock:
            if self._gone:
                raise self._end(command)
            self._waiting[number] = mailbox
        try:
            self._send({"id": number, "do": command, "with": parameters})
            answer = mailbox.get(timeout=timeout_s)
        except queue.Empty:
            raise MachineError(f"the testbed did not answer to {command} within {timeout_s:g} s") from None
        except OSError:
            # The reader learns of the end, and of its reason, by itself.
            answer = mailbox.get(timeout=timeout_s)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise self._end(command)
        if "error" in answer:
            raise _ERRORS.get(answer["kind"], FirstflightError)(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        """Hang up, which ends the testbed."""
        # The reader holds the descriptor: shut down, it reads the end and is done.
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._line.close()
        while not self.fds.empty():
            os.close(self.fds.get())

    def _end(self, command: str) -> MachineError:
        return MachineError(self._reason or f"the testbed was killed before it answered to {command}")

    def _send(self, message: dict[str, Any]) -> None:
        with self._sending:
            self._line.sendall(json.dumps(message).encode() + b"\n")

    def _read(self) -> None:
        # Joined when their line is complete: an answer with a capture of a minute has more than a thousand.
        pieces: list[bytes] = []
        while True:
            try:
                piece, fds, _, _ = socket.recv_fds(self._line, _PIECE, _MOST_FDS)
            except OSError:
                break
            for fd in fds:
                self.fds.put(fd)
            if not piece:
                break
            *ends, rest = piece.split(b"\n")
            for end in ends:
                self._take(json.loads(b"".join([*pieces, end]), object_hook=_text_as_bytes))
                pieces.clear()
            pieces.append(rest)
        with self._lock:
            self._gone = True
            for mailbox in self._waiting.values():
                mailbox.put(None)
        self._ready.set()

    def _take(self, message: dict[str, Any]) -> None:
        with self._lock:
            if "ended" in message:
                self._reason = message["ended"]
            elif "ready" in message:
                self._ready.set()
            elif message["id"] in self._waiting:
                self._waiting[message["id"]].put(message)


def _text_as_bytes(table: dict[str, Any]) -> Any:
    return base64.b64decode(table["base64"]) if table.keys() == {"base64"} else table
