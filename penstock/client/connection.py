"""One connection to a server, over which no command is ever sent twice.

The pytest plugin (:mod:`penstock.testing`), which has to do without a client library, opens
connections of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import redis
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.retry import Retry

from penstock.client.errors import (
    CommandRefused,
    ReplyTooLong,
    ServerFailed,
    client_error,
    reply_or_refusal,
)
from penstock.client.urls import Address
from penstock.terminal import shown

Argument = bytes | str | int

Command = Sequence[Argument]

Reply = Any
"""What a server answered, as RESP2 has it: bytes, numbers, ``None``, and lists of those."""

TIMEOUTS_S: Final = {"socket_connect_timeout": 10, "socket_timeout": 120}
"""How long connecting and one batch may take, unless the URL says otherwise
(``?socket_timeout=600``)."""

MOST_BYTES: Final = 1 << 30
"""How long a reply may be: twice the longest value that a server takes by default."""

MISREAD: Final = (TypeError, ValueError, LookupError, AttributeError)
"""What follows where a reply is of another type, or has other parts, than the command's has."""

Asked = tuple[int, str]
"""How many commands there were on all connections before, and the last one's first words."""

NOTHING_ASKED: Final[Asked] = (0, "")

_pack: Final[Callable[[tuple[Argument, ...]], bytes]] = pack_command  # type: ignore[assignment]
"""A command as bytes. (The stub of hiredis speaks of tuples of one element.)"""

_OPTIONAL: Final = ("XNACK", "XCFGSET", "PEXPIRETIME")


class Interval(NamedTuple):
    """When something happened: between two Unix times in ms, both included."""

    earliest: int
    latest: int

    @property
    def exact(self) -> bool:
        """Whether the millisecond is known."""
        return self.earliest == self.latest

    def narrowed(self, other: Interval | None) -> Interval:
        """Return what this one and an ``other``, seen before, have in common.

        If that is nothing, something has happened since, and this one stands.
        """
        if other is None:
            return self
        common = Interval(max(self.earliest, other.earliest), min(self.latest, other.latest))
        return common if common.earliest <= common.latest else self


class Timed(NamedTuple):
    """A reply, and when it was made as the server's clock says."""

    reply: Reply
    made: Interval

    def distant(self, milliseconds: int) -> Interval:
        """The moment that was so many milliseconds away when the reply was made, before if < 0."""
        return Interval(self.made.earliest + milliseconds, self.made.latest + milliseconds)


class _Metered:
    """A socket that is read from, up to a number of bytes a reply."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.read = 0

    def recv_into(self, buffer: bytearray) -> int:
        """Reads into the buffer; raises :class:`ReplyTooLong`."""
        found: int = self._sock.recv_into(buffer)
        self.read += found
        if self.read > MOST_BYTES:
            raise ReplyTooLong(f"a reply of more than {MOST_BYTES:,} bytes")
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


def _meter(connection: Any) -> None:
    """Have a connection of redis-py read no reply that is longer than :data:`MOST_BYTES`."""
    metered = connection._sock = _Metered(connection._sock)
    read_response = type(connection).read_response

    def read(*args: Any, **others: Any) -> Any:
        metered.read = 0
        return read_response(connection, *args, **others)

    connection.read_response = read


class ServerConnection:
    """A database of a server, through one connection.

    ``role`` is ``source`` or ``target``; texts name the server so. Methods raise
    :class:`ServerFailed`, and :class:`CommandRefused` if it is only this command that the server
    refuses. A batch that was cut off is never sent again: the next run finds out what became of it.
    """

    def __init__(self, role: str, address: Address, db: int) -> None:
        self.db = db
        self.address = address
        self.name = f"{role} {shown(address.place)}/{db}"
        self.asked = NOTHING_ASKED
        self._connection = _client(address, db).connection_pool.make_connection()
        try:
            with readable(self):
                self._connection.connect()
                self._known = self._look_up_commands()
        except (RedisError, CommandRefused) as error:
            self.close()
            failure = self._failure(error) if isinstance(error, RedisError) else error
            raise ServerFailed(str(failure)) from error

    def close(self) -> None:
        """Disconnects."""
        self._connection.disconnect()

    def __enter__(self) -> ServerConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what the server can do --------------------------------------------------------------

    def _look_up_commands(self) -> dict[str, int]:
        """The arities of commands that not every server has."""
        names = ("XSETID", *_OPTIONAL)
        found = self.call("COMMAND", "INFO", *names)
        return {name: info[1] for name, info in zip(names, found, strict=True) if info is not None}

    def knows(self, command: str) -> bool:
        """Whether the server has this one of the newer commands."""
        return command in self._known

    def run_id(self) -> bytes | None:
        """Return the identifier of the server process, ``None`` if INFO may not be used."""
        try:
            info: bytes = self.call("INFO", "server")
        except CommandRefused:
            return None
        found = re.search(rb"^run_id:(\w+)", info, re.MULTILINE)
        return found[1] if found else None

    def require_counters(self) -> None:
        """Raises :class:`ServerFailed` unless a stream's counters can be set here."""
        if self._known.get("XSETID", 0) >= 0:
            raise ServerFailed(
                f"the {self.name} cannot take the counters of a stream (XSETID ... ENTRIESADDED):"
                " Redis 7.0 or newer, Valkey or Penstock is needed there"
            )

    # --- commands ----------------------------------------------------------------------------

    def call(self, *command: Argument) -> Reply:
        """Return the reply to one command."""
        return self.call_all([command])[0]

    def call_all(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to commands that are sent together; the first error is raised at the end."""
        replies = self._exchange(commands)
        for reply in replies:
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return replies

    def try_all(self, commands: Sequence[Command]) -> list[Reply | CommandRefused]:
        """Return the replies, with the error of each command that is refused in its place."""
        return [reply_or_refusal(f"the {self.name}", reply) for reply in self._exchange(commands)]

    def transact(self, commands: Sequence[Command]) -> list[Reply]:
        """Return the replies of a transaction: a command refused when it is queued cancels all."""
        *queued, results = self._exchange([("MULTI",), *commands, ("EXEC",)])
        # The reason comes before EXEC's own error, which only says that there is one.
        for reply in (*queued, *_elements(results), results):
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return _elements(results)

    def call_timed(self, *command: Argument) -> Timed:
        """Return the reply to a command and when it was made, as the server's clock says."""
        before, reply, after = self.call_all([("TIME",), command, ("TIME",)])
        return Timed(reply, Interval(_milliseconds(before), _milliseconds(after)))

    def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies in order, errors of the server among them."""
        if not commands:
            return []
        self.asked = _asked(commands[-1])
        try:
            packed = b"".join([_pack(tuple(command)) for command in commands])
            self._connection.send_packed_command([packed], check_health=False)
            return [self._reply() for _ in commands]
        except RedisError as error:
            raise self._failure(error) from error

    def _reply(self) -> Reply:
        try:
            return self._connection.read_response(disable_decoding=True)
        except ConnectionError:
            raise
        except ResponseError as error:
            return error

    def _failure(self, error: RedisError) -> ServerFailed | CommandRefused:
        return client_error(f"the {self.name}", error)


_commands: Final = itertools.count(1)


def _asked(command: Command) -> Asked:
    words = [shown(word) if isinstance(word, bytes | str) else str(word) for word in command[:2]]
    return next(_commands), " ".join(words)


def _client(address: Address, db: int) -> redis.Redis:
    """The client of redis-py that makes connections of one server, and sends nothing itself."""

    def begin(connection: Any) -> None:
        _meter(connection)
        connection.on_connect()

    arguments: dict[str, Any] = {
        **TIMEOUTS_S,
        **dict(address.options),
        "db": db,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "redis_connect_func": begin,
        **_driver_info(),
    }
    for name in ("username", "password"):
        if value := getattr(address, name):
            arguments[name] = value
    if address.path is not None:
        return redis.Redis(unix_socket_path=address.path, **arguments)
    host, port = address.nodes[0]
    return redis.Redis(host=host, port=port, **(arguments | ({"ssl": True} if address.tls else {})))


def _driver_info() -> dict[str, Any]:
    """The version of redis-py, which every client of a newer one looks up in the files of the
    installation unless it is told."""
    try:
        from redis.driver_info import DriverInfo
    except ModuleNotFoundError:
        return {}
    return {"driver_info": DriverInfo(lib_version=redis.__version__)}


@contextmanager
def readable(*connections: ServerConnection) -> Iterator[None]:
    """Raise :class:`ServerFailed` where what is done with replies meets one of another form than
    its command has; the connection that was asked last has sent it."""
    try:
        yield
    except MISREAD as error:
        last = max(connections, key=lambda each: each.asked)
        text = f"the {last.name} answers {last.asked[1]} as no Redis, Valkey or Penstock does"
        raise ServerFailed(text) from error


def _elements(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def _milliseconds(time: list[bytes]) -> int:
    """A reply to TIME in Unix milliseconds."""
    return int(time[0]) * 1000 + int(time[1]) // 1000
