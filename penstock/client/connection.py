"""One connection to one server: batches of commands that are sent once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hiredis import pack_command
from redis.exceptions import ConnectionError, RedisError, ResponseError

from penstock.client.errors import CommandRefused, ServerFailed, client_error, reply_or_refusal
from penstock.client.urls import Address
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.servers import connect

Argument = bytes | str | int
Command = Sequence[Argument]
Reply = Any
"""What a server answered, as RESP2 has it: bytes, numbers, ``None``, and lists of those."""

TIMEOUTS_S: Final = {"socket_connect_timeout": "10", "socket_timeout": "120"}
"""How long connecting and one batch may take, unless the URL says otherwise
(``?socket_timeout=600``)."""

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
        """What this one and an ``other``, seen before, have in common.

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


class Connection:
    """One database of one server, through one connection.

    ``role`` is ``source`` or ``target``; texts name the server so. Methods raise
    :class:`ServerFailed`, and :class:`CommandRefused` if it is only this command that the server
    refuses. A batch that was cut off is never sent again: the next run finds out what became of it.
    """

    def __init__(self, role: str, address: Address, db: int) -> None:
        self.db = db
        self.address = address
        self.name = f"{role} {address.place}/{db}"
        url = replace(address.server, database=db)
        given = dict(url.settings)
        defaults = {name: value for name, value in TIMEOUTS_S.items() if name not in given}
        client = connect(ServerSettings((url,), 0, defaults), url)
        self._connection = client.connection_pool.make_connection()
        try:
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
        """The identifier of the server process, ``None`` if INFO may not be used."""
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
        """The reply to one command."""
        return self.call_all([command])[0]

    def call_all(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to commands that are sent together; the first error is raised at the end."""
        replies = self._exchange(commands)
        for reply in replies:
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return replies

    def try_all(self, commands: Sequence[Command]) -> list[Reply | CommandRefused]:
        """The same with the error of each command that is refused in the place of its reply."""
        return [reply_or_refusal(f"the {self.name}", reply) for reply in self._exchange(commands)]

    def transact(self, commands: Sequence[Command]) -> list[Reply]:
        """The same as one transaction: a command that is refused when it is queued cancels all."""
        *queued, results = self._exchange([("MULTI",), *commands, ("EXEC",)])
        # The reason comes before EXEC's own error, which only says that there is one.
        for reply in (*queued, *_elements(results), results):
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return _elements(results)

    def call_timed(self, *command: Argument) -> Timed:
        """The reply to a command and when it was made, as the server's clock says."""
        before, reply, after = self.call_all([("TIME",), command, ("TIME",)])
        return Timed(reply, Moment(_milliseconds(before), _milliseconds(after)))

    def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies in order, errors of the server among them."""
        if not commands:
            return []
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


def _elements(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def _milliseconds(time: list[bytes]) -> int:
    """A reply to TIME in Unix milliseconds."""
    return int(time[0]) * 1000 + int(time[1]) // 1000
