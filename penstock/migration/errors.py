"""Errors, with messages for the person who runs the command. None contains a password."""

from __future__ import annotations


class MigrationError(Exception):
    """Base of everything that is told to the user in one line."""


class BadAddress(MigrationError):
    """A URL, or an option about databases, is invalid."""


class EndFailed(MigrationError):
    """One of the servers cannot be worked with, so nothing more can be copied."""


class CommandRefused(MigrationError):
    """A server answered one command with an error; other streams may still be copied."""


class StreamGone(MigrationError):
    """The source has no stream of this name any more."""


class StreamRefused(MigrationError):
    """What the target has under this name is left alone; the text says why."""
