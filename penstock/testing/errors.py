"""What may go wrong with a server that a test needs."""


class PenstockError(Exception):
    """The server could not be started, has ended, or refused what it was asked; the text says."""
