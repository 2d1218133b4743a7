"""A client of the guard's benchmark: connections one after the other. `guard_client.py SERVER SECONDS NUMBER`."""

import json
import socket
import sys
import time

_PREFIXES = 5000
"""In 10.64.0.0/15, of the guard's usual length."""
_REQUEST = b"GET /file HTTP/1.0\r\n\r\n"
# linux/in.h; the socket module lacks it. The port is chosen at connect, so that addresses share them.
_IP_BIND_ADDRESS_NO_PORT = 24


def main() -> None:
    """Fetch until the time is over, then print how often and with how much CPU time."""
    server, seconds, number = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    made, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        address = (number * 997 + made * 31) % _PREFIXES * 16 + made % 16
        with socket.socket() as connection:
            connection.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            connection.bind((f"10.{64 + (address >> 16)}.{address >> 8 & 255}.{address & 255}", 0))
            connection.connect((server, 80))
            connection.send(_REQUEST)
            while connection.recv(65536):
                pass
        made += 1
    print(json.dumps({"connections": made, "cpu_s": time.process_time()}))


if __name__ == "__main__":
    main()
