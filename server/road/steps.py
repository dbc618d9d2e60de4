# Compiled by mypyc.
"""Commands that take long, in steps: others are answered between them.

A handler that may have much to do returns :class:`Steps` in place of its reply: work that gives way
from time to time. What takes a moment is done at once. For longer work the client is parked, like
one that waits for a key, and all such work takes turns with the event loop. Inside a transaction or
a script it is done at once, however long it takes.

What the reply tells of has to be one moment: a handler takes hold of that before it returns, and
leaves to the steps what takes time with it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from protocol.encoder import encode
from protocol.replies import Reply
from storage.engine.stepwise import result

PIECE: Final = 256 * 1024
"""About how many bytes of a long reply are put together at a time."""

LONG: Final = 64 * 1024
"""A string of more bytes is gone through in steps."""

Pieces = list[bytes]
"""A reply, encoded, in pieces that follow each other."""

Work = Generator[None, None, Pieces]
"""Work that yields wherever it may be interrupted, and returns the reply. Between two steps
anything may happen to the keyspace."""


class Steps:
    """What a command returns that may take long."""

    __slots__ = ("work",)

    def __init__(self, work: Work) -> None:
        self.work = work


def finish(steps: Steps) -> bytes:
    """Does the work without giving way."""
    return b"".join(result(steps.work))


def reply_of(work: Generator[None, None, Reply], resp3: bool, *, long: bool) -> Reply | Steps:
    """The reply that the work returns: at once, if it is not ``long``. It is then never put behind
    the work of others."""
    return Steps(_encoded(work, resp3)) if long else result(work)


def _encoded(work: Generator[None, None, Reply], resp3: bool) -> Work:
    reply = yield from work
    return [encode(reply, resp3)]
