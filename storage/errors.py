"""Exceptions of the engine, and of what reads files.

The state is unchanged whenever one of the engine is raised; the server maps each to an error text.
"""

from __future__ import annotations


class StorageFailure(Exception):
    """Base of all refusals of the engine."""


class WrongType(StorageFailure):
    """The key holds another kind of value than the operation works on."""


class InvalidID(StorageFailure):
    """A text is no stream ID, or not one that is allowed in this place."""


class InvalidIntervalStart(StorageFailure):
    """An exclusive start lies above every ID."""


class InvalidIntervalEnd(StorageFailure):
    """An exclusive end lies below every ID."""


class StreamExhausted(StorageFailure):
    """The stream's last-generated-id is the highest there is."""


class IDTooSmall(StorageFailure):
    """A new entry's ID is not above the stream's last-generated-id."""


class EntryTooLarge(StorageFailure):
    """The fields and values of an entry are more than fits into one."""


class IdempotentIDTaken(StorageFailure):
    """An idempotent ID is recorded for another entry already."""


class BadBytes(Exception):
    """Base of what is raised for bytes that cannot be read: ``offset`` is the place of the first
    that does not fit, and ``reason`` says why, in one line."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason
