"""Begins the user namespace of a testbed that root starts, and becomes the command that makes the others.

    python -I -S enter.py SOCKET COMMAND...

Only root may say that a namespace knows more than one id, and only from outside. So this asks over the socket, and goes
on when the runner has written which ids there are: 0, which builds the testbed, and one for the programs in it.
"""

import ctypes
import os
import socket
import sys

_CLONE_NEWUSER = 0x10000000


def main() -> None:
    """Ask, wait, and become the command."""
    line = socket.socket(fileno=os.dup(int(sys.argv[1])))
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        # In the words of util-linux, which the runner explains.
        sys.exit(f"unshare: unshare failed: {os.strerror(ctypes.get_errno())}")
    line.sendall(b"?")
    if not line.recv(1):
        sys.exit(1)
    os.setgroups([])
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
