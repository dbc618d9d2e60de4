"""``python -m server.health``: asks the server of this container whether it answers.

It takes no address: it finds the TCP ports on which processes of its own user listen, sends PING to
each, and ends with status 0 if one answers as a server does that is ready, else with 1 and a line
that says why. So it is right whatever port the server was given. It reads ``/proc``, as there is on
Linux, and nothing of the server is imported: it starts in a few milliseconds.
"""

from __future__ import annotations

import glob
import os
import socket
import sys
from collections.abc import Iterator
from typing import Final

PROC: Final = "/proc"
LISTENING: Final = "0A"
"""The state of a listening socket in ``/proc/net/tcp``."""

TIMEOUT_S: Final = 2.0
"""How long a server may take to accept the connection, and then to answer."""

READY: Final = (b"+PONG", b"-NOAUTH", b"-NOPERM")
"""How the answer of a ready server begins; one that asks for a password first is ready, too."""


def main(proc: str = PROC) -> int:
    """Asks, says what is wrong, and returns the exit status; ``proc`` is where the kernel tells."""
    ports = sorted(set(listening_ports(proc)))
    answers = [f"port {port}: {answer}" for port in ports if (answer := ask(port)) != "ready"]
    if len(answers) < len(ports):
        return 0
    print("; ".join(answers) or "no process of this user listens on a TCP port", file=sys.stderr)
    return 1


def listening_ports(proc: str) -> Iterator[int]:
    """The TCP ports on which processes listen whose files this process may look at."""
    own = set(_sockets(proc))
    for name in ("tcp", "tcp6"):
        for words in _rows(f"{proc}/net/{name}"):
            if words[3] == LISTENING and words[9] in own:
                yield int(words[1].rpartition(":")[2], 16)


def _sockets(proc: str) -> Iterator[str]:
    """The inode numbers of the sockets of every process that can be looked at."""
    for link in glob.iglob(f"{proc}/[0-9]*/fd/*"):
        try:
            kind, _, inode = os.readlink(link).partition(":")
        except OSError:  # the process has ended, or belongs to somebody else
            continue
        if kind == "socket":
            yield inode.strip("[]")


def _rows(path: str) -> list[list[str]]:
    """The lines of a table of the kernel without its head; none where there is no such table."""
    try:
        with open(path, encoding="ascii") as table:
            return [line.split() for line in table.readlines()[1:]]
    except FileNotFoundError:
        return []


def ask(port: int) -> str:
    """``ready``, or what is wrong with the answer to PING at a port of this host."""
    try:
        with socket.create_connection(("localhost", port), TIMEOUT_S) as connection:
            connection.sendall(b"PING\r\n")
            answer = connection.recv(512)
    except OSError as error:
        return str(error) or type(error).__name__
    if answer.startswith(READY):
        return "ready"
    return answer.decode("utf-8", "replace").strip() or "it hangs up"


if __name__ == "__main__":
    sys.exit(main())
