"""How lives of workers end that do not return."""

from __future__ import annotations


class LifeOver(BaseException):
    """Ends a worker where it is; no ``except Exception`` of it sees that."""


class Unexplorable(AssertionError):
    """A worker does what cannot be explored; the text says what."""


class Crash(LifeOver):
    """The process of the worker has died."""


class AtRest(LifeOver):
    """The worker waits for what does not come any more."""
