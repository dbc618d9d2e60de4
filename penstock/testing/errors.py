"""Errors of servers for tests."""


class PenstockError(Exception):
    """The server could not be started, has ended, or refused a command; the text says which."""


class WaitTimeout(PenstockError, TimeoutError):
    """What was waited for has not happened in time; the text says what that was, and what there was
    instead."""
