"""Errors about servers, in one line each: what redis-py raises, and what a server refuses."""

from __future__ import annotations

import re
from typing import Any, Final

from redis import exceptions
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from penstock.terminal import shown


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

_CODES: Final[dict[type[Exception], str]] = {
    exceptions.BusyLoadingError: "LOADING",
    exceptions.ExecAbortError: "EXECABORT",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MovedError: "MOVED",
    exceptions.AskError: "ASK",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.NoScriptError: "NOSCRIPT",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.TryAgainError: "TRYAGAIN",
    exceptions.MasterDownError: "MASTERDOWN",
}
"""The first word of the errors of each class, which redis-py takes off before version 8."""


class ReplyTooLong(RedisError):
    """A server goes on and on with a reply."""


def client_error(server: str, error: Exception) -> ServerFailed | CommandRefused:
    """Return what an error of redis-py means to the user; ``server`` is the name to begin with."""
    text = shown(_described(server, error))
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


def _described(server: str, error: Exception) -> str:
    if not isinstance(error, ResponseError | AuthenticationError):
        return f"{server} can't be reached: {_reason(error)}"
    code = _taken_off(error)
    return f"{server} refuses: {f'{code} ' if code and code != 'ERR' else ''}{error}"


def _code(error: ResponseError) -> str:
    """The first word of the server's error, which redis-py takes off some of them."""
    first = str(error).partition(" ")[0]
    return _taken_off(error) or (first if first.isupper() else "ERR")


def _taken_off(error: Exception) -> str | None:
    """The first word of the server's error if redis-py has taken it off.

    Before redis-py 8 the class of the error alone tells of it.
    """
    if code := getattr(error, "status_code", None):
        return str(code)
    if isinstance(error, AuthenticationError):
        return "NOAUTH" if "Authentication required" in str(error) else "WRONGPASS"
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), None)


def _reason(error: Exception) -> str:
    """Why a connection failed, without the address, which is told before."""
    cause = error.__cause__ or error.__context__
    if _is_tls(error):
        why = re.sub(r"\s*\(?_ssl\.c:\d+\)?:?\s*", "", str(cause or error)).strip(". ")
        return f"TLS fails: {why}; does the server speak TLS on this port, with such a certificate?"
    if isinstance(cause, OSError) and str(cause):
        return cause.strerror or str(cause)
    return str(error).rstrip(".") or (str(cause) if cause else type(error).__name__)


def _is_tls(error: BaseException | None) -> bool:
    """Whether a handshake of TLS has failed: OpenSSL's errors name their place in its binding."""
    if error is None:
        return False
    return "_ssl.c" in str(error) or _is_tls(error.__cause__ or error.__context__)
