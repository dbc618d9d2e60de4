"""Servers that are Python packages: ``python -m benchmarks.fake_server PACKAGE PORT``.

``fakeredis`` is that package's. ``uvloop`` answers what a few workloads send with constant bytes: a
server that is written in Python and on uvloop cannot take less for them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Final, cast

_ID: Final = b"$15\r\n1000000000000-0\r\n"
_DELIVERY: Final = (
    b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n" + _ID + b"*4\r\n$9\r\nsensor-id\r\n$4\r\n1234\r\n"
    b"$11\r\ntemperature\r\n$4\r\n19.8\r\n"
)
_PLACE: Final = slice(8, 12)
"""Where the words of a request differ that have fewer than ten words."""
_READING: Final = b"\nXRE"
_ADDING: Final = b"XADD"
_REFUSAL: Final = b"-ERR constant bytes tell nothing\r\n"
_ANSWERS: Final = {
    b"PING": b"+PONG\r\n",
    b"XGRO": b"+OK\r\n",
    b"XACK": b":1\r\n",
    _ADDING: _ID,
}


class Constant(asyncio.Protocol):
    """Takes each read for one request, and knows it by four bytes. An XREADGROUP waits for the next
    XADD of anybody."""

    waiting: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answers."""
        word = data[_PLACE]
        if word == _READING:
            Constant.waiting = self._transport
            return
        answer = _ANSWERS.get(word)
        # Of what clients ask before they begin they send several at a time.
        self._transport.write(answer or _REFUSAL * (1 + data.count(b"\r\n*")))
        if word == _ADDING and Constant.waiting is not None:
            Constant.waiting.write(_DELIVERY)
            Constant.waiting = None


def serve_constants(port: int) -> None:
    """Serves constant bytes until it is killed."""
    import uvloop

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Constant, "127.0.0.1", port)
        await server.serve_forever()

    uvloop.install()
    asyncio.run(serve())


def serve_fakeredis(port: int) -> None:
    """Serves fakeredis until it is killed."""
    from fakeredis import TcpFakeServer

    TcpFakeServer.request_queue_size = 511  # so many clients may connect at once, as elsewhere
    TcpFakeServer.daemon_threads = True
    TcpFakeServer(("127.0.0.1", port), server_type="redis").serve_forever()


SERVERS: Final[dict[str, Callable[[int], None]]] = {
    "fakeredis": serve_fakeredis,
    "uvloop": serve_constants,
}


if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
