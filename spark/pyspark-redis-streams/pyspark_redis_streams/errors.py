"""Errors, with messages that a user can act on and that contain no credentials."""

from __future__ import annotations


class RedisStreamsError(Exception):
    """The one kind of error that this package raises on purpose."""


class OptionError(RedisStreamsError, ValueError):
    """An option that is missing, unknown or has a value that is not allowed."""

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(f"option '{option}' is {_quoted(value)}; allowed: {allowed}")
        self.option = option

    def __reduce__(self) -> tuple[type[RedisStreamsError], tuple[str]]:
        return RedisStreamsError, (str(self),)


class SchemaError(RedisStreamsError, ValueError):
    """A schema with a column that can't be filled from, or written to, a stream."""


class ServerError(RedisStreamsError):
    """A server that can't be reached, or that refuses what has to be done."""


class DataLossError(RedisStreamsError):
    """Entries that had not been read yet have gone, or entries that were read would come again."""


class CheckpointError(RedisStreamsError):
    """A checkpoint that is not the one which belongs to what has been written."""


def _quoted(value: object) -> str:
    return "missing" if value is None else f"'{value}'"
