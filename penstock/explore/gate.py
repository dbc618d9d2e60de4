"""A client of redis-py whose commands pass a gate, which lets faults strike them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol

from hiredis import Reader
from redis import Connection, ConnectionError, Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.explore.results import Unexplorable
from penstock.explore.traces import UNCOUNTED

Request = tuple[bytes, ...]
"""The words of a command."""

_OF_CONNECTIONS: Final = frozenset(
    b"AUTH ASKING CLIENT HELLO READONLY READWRITE RESET SELECT WATCH".split()
)
"""Commands whose effect lasts as long as the connection; of a new one the client sends some."""


_SUBSCRIBING: Final = frozenset(b"MONITOR PSUBSCRIBE SSUBSCRIBE SUBSCRIBE".split())


class WorkerGone(ConnectionError):
    """What a client raises whose worker has ended."""


class Gate(Protocol):
    """What the commands of a worker pass."""

    def enter(self) -> None:
        """Raises what ends the worker, if it has ended."""

    def send(self, connection: GatedConnection, requests: Sequence[Request]) -> None:
        """Sends requests, or lets something else happen."""

    def before_reply(self, connection: GatedConnection) -> None:
        """Waits until there is a reply to read."""

    def after_reply(self, connection: GatedConnection, reply: object) -> None:
        """Takes notice of a reply; an error is one, too."""


class GatedConnection(Connection):
    """A connection of redis-py that asks the gate of its client before it sends and reads."""

    def __init__(self, *args: Any, owner: GatedClient, **kwargs: Any) -> None:
        self._owner = owner
        self.replies = 0
        """How many replies are expected to commands that the gate has seen."""
        self.in_transaction = False
        self._leaves_a_mark = False
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]

    @property
    def gate(self) -> Gate:
        """Return what the commands pass now."""
        return self._owner.gate

    @property
    def can_be_kept(self) -> bool:
        """Whether the server has the connection in the state of a new one."""
        return not (self.replies or self.in_transaction or self._leaves_a_mark)

    def connect(self, *args: Any, **kwargs: Any) -> None:
        """Connects, if the worker is still there."""
        self.gate.enter()
        new = self._sock is None
        super().connect(*args, **kwargs)  # type: ignore[no-untyped-call]
        if new:
            self._leaves_a_mark = False

    def disconnect(self, *args: Any, **kwargs: Any) -> None:
        """Ends the connection, with all that the server knew of it."""
        self.replies, self.in_transaction, self._leaves_a_mark = 0, False, False
        super().disconnect(*args, **kwargs)  # type: ignore[no-untyped-call]

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Sends packed commands through the gate, if there is one that counts among them."""
        self.gate.enter()
        requests = unpacked(command)
        names = {words[0].upper() for words in requests}
        if not names.isdisjoint(_SUBSCRIBING):
            raise Unexplorable("a worker that subscribes cannot be explored: it waits for no reply")
        self._leaves_a_mark = self._leaves_a_mark or not names.isdisjoint(_OF_CONNECTIONS)
        if all(is_uncounted(words) for words in requests):
            super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call]
            return
        if self._sock is None:
            self.connect()
        self._owner.opened(self)
        self.gate.send(self, requests)

    def transmit(self, requests: Sequence[Request]) -> None:
        """Sends requests at last."""
        if requests:
            self.replies += len(requests)
            packed = self.pack_commands(requests)  # type: ignore[no-untyped-call]
            super().send_packed_command(packed, check_health=False)  # type: ignore[no-untyped-call]

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return a reply, or raise the error that it is."""
        if not self.replies:
            return super().read_response(*args, **kwargs)
        self.gate.before_reply(self)
        try:
            reply = super().read_response(*args, **kwargs)
        except RedisError as error:
            if not isinstance(error, ConnectionError):
                self._note(error)
            raise
        self._note(reply)
        return reply

    def _note(self, reply: object) -> None:
        self.replies -= 1
        self.gate.after_reply(self, reply)

    def lose(self) -> None:
        """Loses the connection; raises what redis-py does then."""
        self.disconnect()
        raise ConnectionError("Connection closed by server.")


def unpacked(command: Any) -> list[Request]:
    """Return the requests in what redis-py is about to send."""
    reader = Reader()
    for chunk in [command] if isinstance(command, bytes | str | memoryview) else command:
        reader.feed(chunk.encode() if isinstance(chunk, str) else bytes(chunk))
    found: list[Request] = []
    while (request := reader.gets()) is not False:
        found.append(tuple(request))
    return found


def is_uncounted(words: Request) -> bool:
    """Whether client libraries send this by themselves."""
    return words[0].decode("ascii", "replace").upper() in UNCOUNTED


def texts(words: Request) -> tuple[str, ...]:
    """Return the words of a request as text, its name in capital letters."""
    name, *rest = (word.decode("utf-8", "backslashreplace") for word in words)
    return (name.upper(), *rest)


class GatedClient:
    """A client as the fixture has it, behind a gate that may be another one for each life.

    A new client costs more than a life, so it is used again, as its connections are that the
    server has in the state of new ones. It does not wait before it tries again.
    """

    def __init__(self, url: str, name: str, gate: Gate) -> None:
        self.gate = gate
        self.client = Redis.from_url(
            url,
            decode_responses=True,
            connection_class=GatedConnection,
            owner=self,
            client_name=name,
            retry=Retry(NoBackoff(), retries_by_default()),
        )
        self._known: dict[GatedConnection, None] = {}

    def opened(self, connection: GatedConnection) -> None:
        """Notes a connection that was used."""
        self._known[connection] = None

    def disconnect(self) -> None:
        """Ends all connections."""
        for connection in self._known:
            connection.disconnect()

    def can_be_used_again(self) -> bool:
        """Whether another life would not notice that there was one before. What the last one has
        left behind may hold a connection, and send something when Python finds it."""
        return all(connection.can_be_kept for connection in self._known)

    def close(self) -> None:
        """Ends it."""
        self.disconnect()
        self.client.close()


@cache
def retries_by_default() -> int:
    """Return how often a client of this version of redis-py tries again."""
    default = inspect.signature(Redis.__init__).parameters["retry"].default
    return default._retries if isinstance(default, Retry) else 0
