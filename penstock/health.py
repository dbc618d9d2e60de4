"""``python -m penstock.health [--ready]`` asks the server of this container if it is alive.

It takes no address: it finds the sockets on which processes of its own user listen, TCP or Unix,
and sends PING to each at the address that it is bound to, with TLS where plain text is not
answered. The exit status is 0 if one answers as a server does that is alive, also while it loads
its data, runs a script, or asks for a password or a certificate first; else 1, with a line that
says why. With ``--ready`` only a server that could take a command now has status 0: this is for
those who wait for it, the other for those who would restart it.

It reads ``/proc``, as there is on Linux, and nothing of the server is imported: it starts in a few
milliseconds.
"""

from __future__ import annotations

import contextlib
import glob
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

PROC: Final = "/proc"
LISTENING: Final = "0A"
"""The state of a listening socket in ``/proc/net/tcp``."""

ACCEPTING: Final = 0x10000
"""The flag of a listening socket in ``/proc/net/unix``."""

TIMEOUT_S: Final = 2.0
"""How long a server may take to accept the connection, and then to answer."""

REQUEST: Final = b"PING\r\n\r\n"
"""The empty line is nothing to a server, and has a port that serves HTTP refuse this at once, which
would wait for more otherwise."""

NEEDS_CERTIFICATE: Final = b"it asks for a certificate"
"""What stands for the answer of a server that speaks TLS only with those who have one."""

READY: Final = (b"+PONG", b"-NOAUTH", b"-NOPERM", NEEDS_CERTIFICATE)
"""How the answer of a ready server begins, also of one that requires a password."""

HANDSHAKE: Final = b"\x16"
"""What the records begin with that TLS begins with (RFC 8446, section 5.1)."""

ALIVE: Final = (*READY, b"-LOADING", b"-BUSY")
"""How the answer of a server that is alive begins, also while it is busy."""

LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where to ask a server that listens on every address."""

Address = tuple[str, int] | str
"""A host and a port, or the path of a Unix socket."""


def main(arguments: Sequence[str] = (), proc: str = PROC) -> int:
    """Runs the check; returns the exit status. ``proc`` is where ``/proc`` is mounted."""
    accepted = READY if "--ready" in arguments else ALIVE
    lines: list[str] = []
    for address in sorted(set(listening(proc)), key=str):
        answer = ask(address)
        if answer.startswith(accepted):
            return 0
        lines.append(f"{text(address)}: {answer.decode('utf-8', 'replace')}")
    print("; ".join(lines) or "no process of this user listens on a socket", file=sys.stderr)
    return 1


def text(address: Address) -> str:
    """An address for messages."""
    if isinstance(address, str):
        return address.replace("\0", "@")
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# --- where it listens ------------------------------------------------------------------------


def listening(proc: str) -> Iterator[Address]:
    """The addresses on which processes listen whose open files this process may read."""
    owners = dict(_sockets(proc))
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for words in _rows(f"{proc}/net/{name}"):
            if words[3] == LISTENING and words[9] in owners:
                yield _tcp(words[1], family)
    for words in _rows(f"{proc}/net/unix", columns=8):
        if int(words[3], 16) & ACCEPTING and words[6] in owners:
            yield _unix(words[7], owners[words[6]])


def _tcp(local: str, family: socket.AddressFamily) -> Address:
    """An address in a table of the kernel: words of 32 bits in the machine's byte order."""
    digits, _, port = local.partition(":")
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    host = socket.inet_ntop(family, packed)
    return LOOPBACK.get(host, host), int(port, 16)


def _unix(path: str, process: str) -> str:
    """The path of a socket, relative to the process's folder; ``@`` begins an abstract name."""
    if path.startswith("@"):
        return "\0" + path[1:]
    try:
        return os.path.join(os.readlink(f"{process}/cwd"), path)
    except OSError:
        return path


def _sockets(proc: str) -> Iterator[tuple[str, str]]:
    """The inode numbers of the sockets of all readable processes, with the process's folder."""
    for link in glob.iglob(f"{proc}/[0-9]*/fd/*"):
        try:
            kind, _, inode = os.readlink(link).partition(":")
        except OSError:  # the process has ended, or belongs to another user
            continue
        if kind == "socket":
            yield inode.strip("[]"), link.rpartition("/fd/")[0]


def _rows(path: str, columns: int = 0) -> list[list[str]]:
    """The lines of a table of the kernel without the header; none if it does not exist.

    With a number of ``columns``, the last one may contain spaces."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as table:
            return [line.rstrip("\n").split(None, columns - 1) for line in table][1:]
    except FileNotFoundError:
        return []


# --- what it says ----------------------------------------------------------------------------


def ask(address: Address) -> bytes:
    """The first line of the answer to PING, or the error."""
    try:
        return _ask(address) or _ask_with_tls(address) or b"it hangs up"
    except OSError as error:
        return (str(error) or type(error).__name__).encode()


def _connect(address: Address) -> socket.socket:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    if isinstance(address, tuple) and ":" in address[0]:
        family = socket.AF_INET6
    connection = socket.socket(family)
    try:
        connection.settimeout(TIMEOUT_S)
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _ask(address: Address) -> bytes:
    """The answer in plain text; nothing from a server that does not speak it."""
    with _connect(address) as connection:
        connection.sendall(REQUEST)
        try:
            return connection.recv(512).partition(b"\r\n")[0]
        except ConnectionResetError:
            return b""


def _ask_with_tls(address: Address) -> bytes:
    """The answer to PING within TLS; whose certificate the server has does not matter here."""
    # Imported here, because most servers do not need it, and it takes longer than all else.
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if not _speaks_tls(address, context):
        return b""
    try:
        with _connect(address) as plain, context.wrap_socket(plain) as connection:
            connection.sendall(REQUEST)
            return connection.recv(512).partition(b"\r\n")[0] or NEEDS_CERTIFICATE
    except (ssl.SSLError, ConnectionResetError):
        return NEEDS_CERTIFICATE


def _speaks_tls(address: Address, context: ssl.SSLContext) -> bool:
    """Whether the server answers the beginning of a handshake with its part of one."""
    from ssl import MemoryBIO, SSLWantReadError

    outgoing = MemoryBIO()
    handshake = context.wrap_bio(MemoryBIO(), outgoing)
    with contextlib.suppress(SSLWantReadError):
        handshake.do_handshake()
    with _connect(address) as connection:
        connection.sendall(outgoing.read())
        return connection.recv(1) == HANDSHAKE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
