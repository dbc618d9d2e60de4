"""Connections to the two servers: batches of commands, and errors that name the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from penstock.migration.addresses import Address
from penstock.migration.errors import CommandRefused, EndFailed

Argument = bytes | str | int
Command = Sequence[Argument]
Reply = Any
"""What a server answered, as RESP2 has it: bytes, numbers, ``None``, and lists of those."""

CONNECT_TIMEOUT_S: Final = 10.0
REPLY_TIMEOUT_S: Final = 120.0
"""How long one batch may take, unless the URL says otherwise (``?socket_timeout=600``)."""

ONE_STREAM_ONLY: Final = ("ERR", "NOPERM", "WRONGTYPE", "NOGROUP", "BUSYGROUP")
"""Error codes that concern one key; any other is expected to meet the next key as well."""

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


class End:
    """One database of one server, through one connection.

    ``role`` is ``source`` or ``target``; texts name the server so. Methods raise :class:`EndFailed`
    if the server cannot be worked with, and :class:`CommandRefused` if it is only this command that
    it refuses. A batch that was cut off is never sent again: the next run looks what has become of
    it.
    """

    def __init__(self, role: str, address: Address, db: int) -> None:
        self.db = db
        self.name = f"{role} {address.place}/{db}"
        self._pool = ConnectionPool.from_url(
            address.url,
            db=db,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=REPLY_TIMEOUT_S,
        )
        try:
            self._connection = self._pool.get_connection()
            self._known = self._look_up_commands()
        except (RedisError, CommandRefused) as error:
            self._pool.disconnect()
            failure = self._failure(error) if isinstance(error, RedisError) else error
            raise EndFailed(str(failure)) from error

    def close(self) -> None:
        """Disconnects."""
        self._pool.disconnect()

    def __enter__(self) -> End:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what the server can do --------------------------------------------------------------

    def _look_up_commands(self) -> dict[str, int]:
        """The arities of commands that not every server has."""
        names = ("XSETID", *_OPTIONAL)
        found = self.ask("COMMAND", "INFO", *names)
        return {name: info[1] for name, info in zip(names, found, strict=True) if info is not None}

    def knows(self, command: str) -> bool:
        """Whether the server has this one of the newer commands."""
        return command in self._known

    def run_id(self) -> bytes | None:
        """What tells this server from any other, ``None`` if it does not say."""
        try:
            info: bytes = self.ask("INFO", "server")
        except CommandRefused:
            return None
        found = re.search(rb"^run_id:(\w+)", info, re.MULTILINE)
        return found[1] if found else None

    def require_counters(self) -> None:
        """Raises :class:`EndFailed` unless a stream's counters can be set here."""
        if self._known.get("XSETID", 0) >= 0:
            raise EndFailed(
                f"the {self.name} cannot take the counters of a stream (XSETID ... ENTRIESADDED):"
                " Redis 7.0 or newer, Valkey or Penstock is needed there"
            )

    # --- commands ----------------------------------------------------------------------------

    def ask(self, *command: Argument) -> Reply:
        """The reply to one command."""
        return self.ask_all([command])[0]

    def ask_all(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to commands that are sent together; the first error is raised at the end."""
        replies = self._exchange(commands)
        for reply in replies:
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return replies

    def attempt_all(self, commands: Sequence[Command]) -> list[Reply | CommandRefused]:
        """The same with the error of each command that is refused in the place of its reply."""
        return [self._attempted(reply) for reply in self._exchange(commands)]

    def _attempted(self, reply: Reply) -> Reply | CommandRefused:
        if not isinstance(reply, RedisError):
            return reply
        failure = self._failure(reply)
        if isinstance(failure, EndFailed):
            raise failure
        return failure

    def transact(self, commands: Sequence[Command]) -> list[Reply]:
        """The same as one transaction, so that a command that is refused takes all with it."""
        *queued, results = self._exchange([("MULTI",), *commands, ("EXEC",)])
        # The reason comes before EXEC's own error, which only says that there is one.
        for reply in (*queued, *_elements(results), results):
            if isinstance(reply, RedisError):
                raise self._failure(reply)
        return _elements(results)

    def ask_timed(self, *command: Argument) -> Timed:
        """The reply to a command and when it was made, as the server's clock says."""
        before, reply, after = self.ask_all([("TIME",), command, ("TIME",)])
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

    # --- errors ------------------------------------------------------------------------------

    def _failure(self, error: RedisError) -> EndFailed | CommandRefused:
        """The error as the user sees it."""
        if isinstance(error, AuthenticationError):
            return EndFailed(f"the {self.name}: authentication failed: {_text(error)}")
        if isinstance(error, NoPermissionError):
            return CommandRefused(f"the {self.name} does not permit it: {_text(error)}")
        if isinstance(error, ResponseError):
            text = f"the {self.name} answered: {_text(error)}"
            return CommandRefused(text) if _code(error) in ONE_STREAM_ONLY else EndFailed(text)
        return EndFailed(f"the {self.name} cannot be reached: {_cause(error)}")


def _elements(reply: Reply) -> list[Reply]:
    return reply if isinstance(reply, list) else []


def _milliseconds(time: list[bytes]) -> int:
    """A reply to TIME in Unix milliseconds."""
    return int(time[0]) * 1000 + int(time[1]) // 1000


def _code(error: ResponseError) -> str:
    """The first word of the server's error, which redis-py takes off some of them."""
    first = str(error).partition(" ")[0]
    return getattr(error, "status_code", None) or (first if first.isupper() else "ERR")


def _text(error: RedisError) -> str:
    """The server's error with its first word."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if code and code != "ERR" else f"{error}"


def _cause(error: BaseException) -> str:
    """Why a connection failed, without the address, which is told before."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, OSError) and str(cause):
        return cause.strerror or str(cause)
    return str(error).rstrip(".")
