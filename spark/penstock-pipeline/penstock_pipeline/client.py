"""A client of a server or a cluster, for the tools of pipelines: its commands are sent again while
the server is away, its replies have a bound, and its errors are one line each.

URLs, TLS, credentials and topology are those of :mod:`pyspark_redis_streams`; only modules that
work without PySpark are used of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from redis.exceptions import AuthenticationError, RedisError, ResponseError, WatchError

from penstock_pipeline.terminal import shown
from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.servers import Servers, describe, error_code
from pyspark_redis_streams.streams import Stream, StreamInfo, info_of

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
    if isinstance(error, ReplyTooLong):
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


# --- what is read ------------------------------------------------------------------------------


MOST_BYTES: Final = 1 << 30
"""How long a reply may be: twice the longest value that a server takes by default."""

MISREAD: Final = (TypeError, ValueError, LookupError, AttributeError)
"""What follows where a reply is of another type, or has other parts, than the command's has."""


class ReplyTooLong(RedisError):
    """A server goes on and on with a reply."""


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


def _asked(command: Sequence[Any]) -> str:
    """The first words of a command, for messages."""
    return " ".join(
        shown(word) if isinstance(word, bytes | str) else str(word) for word in command[:2]
    )


@contextmanager
def readable(client: RetryingClient) -> Iterator[None]:
    """Raise :class:`ServerFailed` where what is done with replies meets one of another form than
    its command has."""
    try:
        yield
    except OptionError:
        raise  # A ValueError, about what the user has given.
    except MISREAD as error:
        text = f"{client.name} answers {client.asked} as no Redis, Valkey or Penstock does"
        raise ServerFailed(text) from error


# --- the client --------------------------------------------------------------------------------


class RetryingClient:
    """A server or a cluster, the first of the settings, whose commands are sent again while it is
    away, up to a limit.

    Methods raise :class:`ServerFailed`, and :class:`CommandRefused` if it is only this command that
    the server refuses; :class:`AddressError` if the settings are wrong.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._servers = Servers(settings, _meter)
        self.asked = ""
        """The first words of the last command."""

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
    def _translated(self, command: Sequence[Any]) -> Iterator[None]:
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
