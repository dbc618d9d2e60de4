"""A link passes bytes on, can be broken and mended, and leaves nothing open."""

from __future__ import annotations

import asyncio
import gc
import socket
import socketserver
import threading
from collections.abc import AsyncIterator

import pytest

from tests.replication.links import Link


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(data)


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    """A link to a server that says what it is told."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        made = Link(server.server_address[1])
        await made.open()
        yield made
        await made.close()
        server.shutdown()
        serving.join()


async def _ask(port: int) -> bytes:
    """What comes back through the link; nothing if the connection is ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"text")
        return await reader.read(100)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_link_passes_bytes_on_unless_it_is_broken(link: Link) -> None:
    assert await _ask(link.port) == b"text"
    link.cut()
    assert await _ask(link.port) == b""
    link.mend()
    assert await _ask(link.port) == b"text"


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_comes_while_a_link_closes_is_closed_too(
    link: Link, turns: int, recwarn: pytest.WarningsRecorder
) -> None:
    with socket.create_connection(("127.0.0.1", link.port)):
        for _ in range(turns):
            await asyncio.sleep(0)
        await link.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if "Link" in repr(task.get_coro())]
    gc.collect()
    assert not recwarn.list
