"""A server that pretends to be another one: it answers some commands itself, others not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import hiredis

Request = list[bytes]
Answer = Callable[[Request], bytes | None]
"""The raw reply to a request, or ``None`` to let the server behind answer."""


class Pretender:
    """Listens on a port of its own and asks ``answer`` before it passes a request on.

    With an SSL ``context`` it speaks TLS.
    """

    def __init__(self, port: int, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._behind = ("127.0.0.1", port)
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._listen, name="pretender")]

    @property
    def port(self) -> int:
        """Where clients connect."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Pretender:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="pretender")
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        if self._context is not None:
            try:
                client = self._context.wrap_socket(client, server_side=True)
            except OSError:
                client.close()
                return
        with client, socket.create_connection(self._behind) as server:
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader = hiredis.Reader()
            while data := client.recv(1 << 16):
                reader.feed(data)
                behind: list[Request] = []
                while (request := reader.gets()) is not False:
                    if (reply := self._answer(request)) is None:
                        behind.append(request)
                        continue
                    client.sendall(_asked(server, behind) + reply)
                    behind = []
                client.sendall(_asked(server, behind))


def _asked(server: socket.socket, requests: list[Request]) -> bytes:
    """The raw replies of the server behind, to requests that leave together as they came."""
    server.sendall(b"".join(hiredis.pack_command(tuple(each)) for each in requests))  # type: ignore[arg-type]
    reader, data = hiredis.Reader(), b""
    missing = len(requests)
    while missing:
        piece = server.recv(1 << 16)
        data += piece
        reader.feed(piece)
        while missing and reader.gets() is not False:
            missing -= 1
    return data


def refusing(name: str, error: str) -> Answer:
    """Answers the command ``name`` with an error."""
    return lambda request: f"-{error}\r\n".encode() if request[0] == name.encode() else None


def without(*names: str) -> Answer:
    """Says that there are no such commands."""
    absent = [name.encode() for name in names]

    def answer(request: Request) -> bytes | None:
        if request[:2] == [b"COMMAND", b"INFO"]:
            return b"*%d\r\n" % len(request[2:]) + b"".join(
                b"*-1\r\n" if name in absent else b"*2\r\n$1\r\nx\r\n:-3\r\n"
                for name in request[2:]
            )
        return b"-ERR unknown command\r\n" if request[0] in absent else None

    return answer


NEW_FIELDS = (
    *(b"max-deleted-entry-id", b"entries-added", b"recorded-first-entry-id", b"idmp-duration"),
    *(b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates"),
    *(b"entries-read", b"lag", b"inactive", b"nacked-count"),
)
"""What XINFO did not tell before Redis 7.0."""


def as_redis_6(request: Request, ask: Callable[..., Any]) -> bytes | None:
    """The replies of a Redis 6.2; ``ask`` asks the server behind."""
    if request[0] == b"XINFO":
        reply = ask(*request)
        maps = [reply] if request[1] == b"STREAM" else reply
        shown = [_encoded(_older(fields)) for fields in maps]
        return shown[0] if request[1] == b"STREAM" else b"*%d\r\n" % len(shown) + b"".join(shown)
    return without("XNACK", "XCFGSET", "PEXPIRETIME")(request)


def _older(fields: list[Any]) -> list[Any]:
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return [part for pair in pairs if pair[0] not in NEW_FIELDS for part in pair]


def _encoded(reply: Any) -> bytes:
    if isinstance(reply, list):
        return b"*%d\r\n" % len(reply) + b"".join(map(_encoded, reply))
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    return b"$-1\r\n" if reply is None else b"$%d\r\n%s\r\n" % (len(reply), reply)
