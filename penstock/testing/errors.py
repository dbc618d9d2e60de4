"""Errors of servers for tests."""


class PenstockError(Exception):
    """The server could not be started, has ended, or refused a command; the text says which."""
