# Compiled by mypyc.
"""Exceptions of the engine; the server maps each to an error text.

The state is unchanged whenever one of these is raised.
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
