"""Connections to servers, for migration and the tools of pipelines: URLs, commands and errors.

:class:`Connection` is one connection that never sends a command twice; :class:`Nodes` are those to
a server or to each primary of a cluster. :class:`RetryingClient` sends commands again while a
server or a cluster is away. Both raise the same errors. URLs, TLS, credentials and the texts of
errors are those of :mod:`pyspark_redis_streams`; only modules that work without PySpark are used of
it.

The pytest plugin (:mod:`penstock.testing`), which has to do without a client library, opens
connections of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from hiredis import pack_command
from redis.crc import key_slot
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,
    RedisError,
    ResponseError,
    WatchError,
)

from penstock.terminal import shown
from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.servers import Servers, connect, describe, error_code, url_arguments
from pyspark_redis_streams.streams import Stream, StreamInfo, info_of, pairs
from pyspark_redis_streams.values import ServerUrl, parse_url

# --- errors -----------------------------------------------------------------------------------


class ClientError(Exception):
    """Base of the errors about a server; the text is one line."""


class AddressError(ClientError):
    """A URL is invalid."""


class ServerFailed(ClientError):
    """A server can't be reached, or refuses what it would refuse for every key."""


class CommandRefused(ClientError):
    """A server answered one command with an error; other commands may succeed."""


ONE_KEY_ONLY: Final = ("ERR", "NOPERM", "WRONGTYPE", "NOGROUP", "BUSYGROUP")
"""Error codes that concern one key; any other is expected to meet the next key as well."""


def client_error(server: str, error: Exception) -> ServerFailed | CommandRefused:
    """Return what an error of redis-py means to the user; ``server`` is the name to begin with."""
    text = shown(describe(server, error))
    if isinstance(error, _ReplyTooLong):
        return ServerFailed(f"{server} sends {error}")
    if isinstance(error, AuthenticationError) or not isinstance(error, ResponseError):
        return ServerFailed(text)
    return CommandRefused(text) if _code(error) in ONE_KEY_ONLY else ServerFailed(text)


def reply_or_refusal(server: str, reply: Any) -> Any:
    """The reply, or the :class:`CommandRefused` of an error; raises :class:`ServerFailed`."""
    if not isinstance(reply, ResponseError):
        return reply
    failure = client_error(server, reply)
    if isinstance(failure, ServerFailed):
        raise failure
    return failure


def _code(error: ResponseError) -> str:
    """The first word of the server's error, which redis-py takes off some of them."""
    first = str(error).partition(" ")[0]
    return error_code(error) or (first if first.isupper() else "ERR")


# --- addresses --------------------------------------------------------------------------------


ALLOWED: Final = (
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path?db=0,"
    " redis+cluster:// or rediss+cluster:// with one or more host:port for a cluster;"
    " characters such as '/' and '@' in a password are written %2F and %40"
)


class Address(NamedTuple):
    """A server or a cluster as :func:`parse` found it in a URL."""

    server: ServerUrl
    db: int | None
    """The database that the URL names."""

    @property
    def place(self) -> str:
        """Host and port, the path of a socket, or the nodes of a cluster, to show."""
        if self.server.cluster:
            return self.server.label
        if self.server.path is not None:
            return self.server.path
        host, port = self.server.nodes[0]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str) -> Address:
    """Return the address that a URL such as ``redis://user:password@host:6379/0`` stands for.

    Raises :class:`AddressError`, which does not show the URL: any part of a malformed one may be
    half a password.
    """
    try:
        server = parse_url(text)
        url_arguments(server)
    except OptionError as error:
        raise AddressError(str(error)) from None
    except ValueError as error:
        raise _bad(str(error)) from None
    if len(server.nodes) > 1 and not server.cluster:
        raise _bad("one of several servers")
    parts = urlsplit(text)
    if not (server.path or parts.hostname):
        raise _bad("one without a host or path")
    is_named = parts.path.strip("/") if server.path is None else "db" in parse_qs(parts.query)
    return Address(server, server.database if is_named else None)


def _bad(what: str) -> AddressError:
    return AddressError(f"the URL is {what}; allowed: {ALLOWED}")


Argument = bytes | str | int

Command = Sequence[Argument]

Reply = Any
"""What a server answered, as RESP2 has it: bytes, numbers, ``None``, and lists of those."""

# --- one connection ---------------------------------------------------------------------------


TIMEOUTS_S: Final = {"socket_connect_timeout": "10", "socket_timeout": "120"}
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


class Moment(NamedTuple):
    """When something happened: between two Unix times in ms, both included."""

    earliest: int
    latest: int

    @property
    def exact(self) -> bool:
        """Whether the millisecond is known."""
        return self.earliest == self.latest

    def narrowed(self, other: Moment | None) -> Moment:
        """Return what this one and an ``other``, seen before, have in common.

        If that is nothing, something has happened since, and this one stands.
        """
        if other is None:
            return self
        common = Moment(max(self.earliest, other.earliest), min(self.latest, other.latest))
        return common if common.earliest <= common.latest else self


class Timed(NamedTuple):
    """A reply, and when it was made as the server's clock says."""

    reply: Reply
    made: Moment

    def distant(self, milliseconds: int) -> Moment:
        """The moment that was so many milliseconds away when the reply was made, before if < 0."""
        return Moment(self.made.earliest + milliseconds, self.made.latest + milliseconds)


class _ReplyTooLong(RedisError):
    """A server goes on and on with a reply."""


class _Metered:
    """A socket that is read from, up to a number of bytes a reply."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.read = 0

    def recv_into(self, buffer: bytearray) -> int:
        """Reads into the buffer; raises :class:`_ReplyTooLong`."""
        found: int = self._sock.recv_into(buffer)
        self.read += found
        if self.read > MOST_BYTES:
            raise _ReplyTooLong(f"a reply of more than {MOST_BYTES:,} bytes")
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


class Connection:
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
        url = replace(address.server, database=db)
        given = dict(url.settings)
        defaults = {name: value for name, value in TIMEOUTS_S.items() if name not in given}
        client = connect(ServerSettings((url,), 0, defaults), url, _meter)
        self._connection = client.connection_pool.make_connection()
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

    def __enter__(self) -> Connection:
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
        return Timed(reply, Moment(_milliseconds(before), _milliseconds(after)))

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


@contextmanager
def readable(*connections: Connection | RetryingClient) -> Iterator[None]:
    """Raise :class:`ServerFailed` where what is done with replies meets one of another form than
    its command has; the connection that was asked last has sent it."""
    try:
        yield
    except OptionError:
        raise  # A ValueError, about what the user has given.
    except MISREAD as error:
        last = max(connections, key=lambda each: each.asked)
        name = last.name if isinstance(last, RetryingClient) else f"the {last.name}"
        text = f"{name} answers {last.asked[1]} as no Redis, Valkey or Penstock does"
        raise ServerFailed(text) from error


def _elements(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def _milliseconds(time: list[bytes]) -> int:
    """A reply to TIME in Unix milliseconds."""
    return int(time[0]) * 1000 + int(time[1]) // 1000


# --- a server, or the nodes of a cluster ------------------------------------------------------


SLOTS: Final = 16384
"""How many slots the primaries of a cluster share."""

_UNKNOWN: Final = (None, b"", b"?")
"""What stands for the address of a node that does not know it, or may not tell its name."""

Place = tuple[str, int]
"""Host and port."""


class Nodes:
    """A server, or every primary of a cluster, with a connection to each.

    ``role`` is ``source`` or ``target``; texts name the server so. A cluster is asked once who has
    which slots. Redirections are not followed: a node that has given a slot away refuses its keys,
    which raises :class:`ServerFailed` as everything does that concerns more than one key.
    """

    def __init__(self, role: str, address: Address, db: int) -> None:
        self._role, self._address = role, address
        self._open = ExitStack()
        self.name = f"{role} {shown(address.place)}" + ("" if address.server.cluster else f"/{db}")
        try:
            self._by_slot = self._connect_all() if address.server.cluster else None
            self.all = (
                [self._open.enter_context(Connection(role, address, db))]
                if self._by_slot is None
                else list(dict.fromkeys(self._by_slot))
            )
        except ServerFailed:
            self.close()
            raise

    def close(self) -> None:
        """Disconnects."""
        self._open.close()

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, key: bytes) -> Connection:
        """Return the connection to the server that has the key, or would have it."""
        return self.all[0] if self._by_slot is None else self._by_slot[key_slot(key)]

    def require_settled(self) -> None:
        """Raises :class:`ServerFailed` if slots have moved since the cluster was asked, or are
        about to: a key may then have been on no node that was looked at."""
        if self._by_slot is None:
            return
        now = self._ask_slots(self.all[0], _place_of(self.all[0].address))
        moved = [_place_of(node.address) for node in self._by_slot] != now
        if moved or any(_has_open_slots(node) for node in self.all):
            raise ServerFailed(f"the {self.name} is moving slots: run it again when that is done")

    # --- a cluster ---------------------------------------------------------------------------

    def _connect_all(self) -> list[Connection]:
        """For each slot a connection to its primary."""
        seed, place = self._reach_any()
        with readable(seed):
            owners = self._ask_slots(seed, place)
        nodes = {owner: self._connect(owner) for owner in dict.fromkeys(owners)}
        return [nodes[owner] for owner in owners]

    def _reach_any(self) -> tuple[Connection, Place]:
        """The first node of the URL that answers."""
        failure: ServerFailed | None = None
        for place in self._address.server.nodes:
            try:
                return self._connect(place), place
            except ServerFailed as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _connect(self, place: Place) -> Connection:
        server = replace(self._address.server, nodes=(place,), cluster=False)
        return self._open.enter_context(Connection(self._role, Address(server, None), 0))

    def _ask_slots(self, seed: Connection, place: Place) -> list[Place]:
        """The address of the primary of each slot, as a node knows them."""
        owners: list[Place | None] = [None] * SLOTS
        for first, last, primary, *_ in seed.call("CLUSTER", "SLOTS"):
            owners[first : last + 1] = [_address(primary, place)] * (last + 1 - first)
        served = [owner for owner in owners if owner is not None]
        if len(served) < SLOTS:
            lacking = SLOTS - len(served)
            raise ServerFailed(f"the {self.name} has no server for {lacking:,} of its slots")
        return served


def _address(node: list[Reply], asked: Place) -> Place:
    """Where a node is; one without an address that it could tell is where it was asked."""
    known = node[0] not in _UNKNOWN
    return (node[0].decode() if known else asked[0], node[1])


def _place_of(address: Address) -> Place:
    return address.server.nodes[0]


def _has_open_slots(node: Connection) -> bool:
    """Whether keys of a slot are on their way from this node, or to it."""
    lines: Iterable[bytes] = node.call("CLUSTER", "NODES").splitlines()
    return any(b"myself" in line and b" [" in line for line in lines)


# --- commands that are sent again --------------------------------------------------------------


class RetryingClient:
    """A server or a cluster, the first of the settings, whose commands are sent again while it is
    away, up to a limit.

    Methods raise :class:`ServerFailed`, and :class:`CommandRefused` if it is only this command that
    the server refuses; :class:`AddressError` if the settings are wrong.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._servers = Servers(settings, _meter)
        self.asked = NOTHING_ASKED

    def close(self) -> None:
        """Disconnects."""
        self._servers.close()

    @property
    def name(self) -> str:
        """The address, without credentials."""
        return self._servers.name(0)

    @property
    def is_cluster(self) -> bool:
        """Whether keys may be on different servers, so that no transaction can hold them all."""
        return self._servers.settings.urls[0].cluster

    def call(self, *command: Any) -> Any:
        """Return the raw reply to a command."""
        with self._translated(command):
            return self._servers.call(0, *command)

    def try_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any | CommandRefused]:
        """Return the raw replies to commands sent at once, or the error in place of a reply."""
        with self._translated(commands[-1]):
            replies = self._servers.call_all(0, commands)
        return [reply_or_refusal(self.name, reply) for reply in replies]

    def scan(self, pattern: str) -> list[bytes]:
        """Return the keys of the streams that match a glob pattern, in order."""
        with self._translated(("SCAN",)):
            return sorted(set(self._servers.scan(0, pattern)))

    def info(self, key: bytes) -> StreamInfo:
        """Return the counters of a stream, all 0 if there is none."""
        command = ("XINFO STREAM", key)
        with self._translated(command):
            return info_of(Stream(0, key), self._servers.call_all(0, [command])[0])

    def groups(self, key: bytes) -> list[dict[bytes, Any]]:
        """Return what the server says about each consumer group of a stream."""
        return [pairs(group) for group in self.call("XINFO GROUPS", key)]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Yield a pipeline of redis-py, for a transaction; its WatchError is left to the caller."""
        with (
            self._translated(("EXEC",)),
            self._servers.translated(0),
            self._servers.client(0).pipeline(transaction=True) as pipeline,
        ):
            try:
                yield pipeline
            except ResponseError as error:
                raise client_error(self.name, error) from None

    @contextmanager
    def _translated(self, command: Command) -> Iterator[None]:
        self.asked = _asked(command)
        try:
            yield
        except OptionError as error:
            raise AddressError(str(error)) from None
        except RedisStreamsError as error:
            raise ServerFailed(shown(str(error))) from None
        except WatchError:
            raise
        except RedisError as error:
            raise client_error(self.name, error) from None
