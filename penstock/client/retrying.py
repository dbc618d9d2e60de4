"""A server or a cluster whose commands are sent again while it is away, up to a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redis.exceptions import ResponseError

from penstock.client.connection import (
    AddressError,
    CommandRefused,
    ServerFailed,
    client_error,
    reply_or_refusal,
)
from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import Stream, StreamInfo, info_of, pairs


class RetryingClient:
    """A server or a cluster, the first of the settings.

    Methods raise :class:`ServerFailed`, and :class:`CommandRefused` if it is only this command that
    the server refuses; :class:`AddressError` if the settings are wrong.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._servers = Servers(settings)

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
        """The raw reply to a command."""
        with self._translated():
            return self._servers.call(0, *command)

    def try_all(self, commands: Sequence[tuple[Any, ...]]) -> list[Any | CommandRefused]:
        """The raw replies to commands sent at once, or the error in the place of a reply."""
        with self._translated():
            replies = self._servers.call_all(0, commands)
        return [reply_or_refusal(self.name, reply) for reply in replies]

    def scan(self, pattern: str) -> list[bytes]:
        """The keys of the streams that match a glob pattern, in order."""
        with self._translated():
            return sorted(set(self._servers.scan(0, pattern)))

    def info(self, key: bytes) -> StreamInfo:
        """The counters of a stream, all 0 if there is none."""
        with self._translated():
            return info_of(Stream(0, key), self._servers.call_all(0, [("XINFO STREAM", key)])[0])

    def groups(self, key: bytes) -> list[dict[bytes, Any]]:
        """Return what the server says about each consumer group of a stream."""
        return [pairs(group) for group in self.call("XINFO GROUPS", key)]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A pipeline of redis-py, for a transaction; its WatchError is left to the caller."""
        with (
            self._translated(),
            self._servers.translated(0),
            self._servers.client(0).pipeline(transaction=True) as pipeline,
        ):
            try:
                yield pipeline
            except ResponseError as error:
                raise client_error(self.name, error) from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OptionError as error:
            raise AddressError(str(error)) from None
        except RedisStreamsError as error:
            raise ServerFailed(str(error)) from None
        except ResponseError as error:
            raise client_error(self.name, error) from None
