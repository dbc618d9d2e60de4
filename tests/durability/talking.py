"""Clients of servers that are killed: replies are texts, and errors among them are values."""

from __future__ import annotations

from typing import Any, Final

from tests.support.direct import Argument, DirectClient, parsed
from tests.support.wire import AsyncClient, Client

ENCODING: Final = "latin-1"


class Talker(Client):
    """A client that waits for each reply."""

    def __init__(self, port: int) -> None:
        super().__init__(port, ENCODING)


class AsyncTalker(AsyncClient):
    """A client in the event loop that is told of each reply alone."""

    def __init__(self, port: int) -> None:
        super().__init__(port, ENCODING)


def ask_directly(client: DirectClient, *words: Argument) -> Any:
    """The parsed reply of a server without sockets."""
    return parsed(client.send(*words), ENCODING)
