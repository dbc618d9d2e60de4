"""Errors about servers, with messages for the user. None contains a password."""

from __future__ import annotations

from typing import Any, Final

from redis.exceptions import AuthenticationError, ResponseError

from pyspark_redis_streams.servers import describe, error_code


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
    """What an error of redis-py means to the user; ``server`` is the name to begin with."""
    text = describe(server, error)
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
