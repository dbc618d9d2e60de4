"""Servers that give the same answer to whatever they are asked."""

from __future__ import annotations

import contextlib
import re
import socketserver
import threading
from collections.abc import Callable, Iterator

COMMANDS = b"*4\r\n*2\r\n$6\r\nxsetid\r\n:-3\r\n$-1\r\n$-1\r\n$-1\r\n"
"""That XSETID takes the counters of a stream, and that no other newer command is there."""


@contextlib.contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A server that answers each read of a client's requests; yields its URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):
                while request := self.request.recv(1 << 16):
                    self.request.sendall(answer(request))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"redis://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def with_reply(reply: bytes) -> Callable[[bytes], bytes]:
    """Answers what a client asks when it connects, and all else with a reply for each command."""

    def answer(request: bytes) -> bytes:
        if b"SETINFO" in request:
            return b"+OK\r\n" * request.count(b"SETINFO")
        if b"XSETID" in request:
            return COMMANDS
        return reply * len(re.findall(rb"(?:^|\r\n)\*\d+\r\n", request))

    return answer
