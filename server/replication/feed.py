"""The feed: what happens becomes the stream that replicas follow.

The stream is read from the journal (:mod:`server.persistence.journal`), so its commands are those
of the append-only file, and a real Redis runs them. They go to the backlog when a round of the
event loop ends, a transaction or a script as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from server.persistence.journal import Journal, JournalReader
from server.runtime.clockwork import EndOfRound
from storage.aof.commands import command

BLOCK: Final = 64 * 1024
"""How many bytes a block has, the last one apart: bytes are dropped by whole blocks."""


class Backlog:
    """The bytes of the stream from ``start`` to ``end``, which are positions: how many bytes came
    before.

    Every replica follows the same stream. Its last bytes are kept here, once for all replicas: one
    that is behind reads from here what it lacks, and one whose link broke may go on where it was.
    """

    __slots__ = ("_blocks", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._blocks: list[bytearray] = []

    def append(self, data: bytes) -> None:
        """Adds bytes at the end."""
        blocks = self._blocks
        at = 0
        while at < len(data):
            used = (self.end - self.start) % BLOCK
            if not used:
                blocks.append(bytearray())
            piece = data[at : at + BLOCK - used]
            blocks[-1] += piece
            at += len(piece)
            self.end += len(piece)

    def holds(self, position: int) -> bool:
        """Whether all bytes behind a position are there."""
        return self.start <= position <= self.end

    def read(self, position: int) -> bytes:
        """Bytes behind a position that is held: up to the end of a block. None at the end."""
        if position == self.end:
            return b""
        index, offset = divmod(position - self.start, BLOCK)
        return bytes(self._blocks[index][offset:])

    def drop(self, position: int) -> None:
        """Drops whole blocks before a position that is held."""
        count = (position - self.start) // BLOCK
        if count:
            del self._blocks[:count]
            self.start += count * BLOCK


class Feed:
    """The stream of one server. ``on_news`` is called when there is more of it.

    ``backlog`` is there from the first replica on, until nobody has needed it for long.
    """

    def __init__(self, journal: Journal, on_news: Callable[[], None]) -> None:
        self._journal = journal
        self._round = EndOfRound(self.flush)
        self._reader = JournalReader(journal, self._round.schedule)
        self._on_news = on_news
        self.backlog: Backlog | None = None
        self.end = 0
        """How many bytes the stream has so far; it stays when the backlog is given up."""

    @property
    def active(self) -> bool:
        """Whether what happens becomes part of the stream."""
        return self.backlog is not None

    def begin(self) -> Backlog:
        """Begins the stream, or begins it again."""
        self.backlog = Backlog(self.end)
        self._journal.authors = {}
        self._reader.attach()
        return self.backlog

    def stop(self) -> None:
        """Forgets what was kept of the stream; what happens from now on is not part of it."""
        self._reader.detach()
        self._journal.authors = None
        self.backlog = None

    def say(self, *words: bytes) -> None:
        """Adds a command that is no effect."""
        self._reader.say(command(*words))

    def cut(self) -> int:
        """The position up to which the stream says what has happened so far.

        What follows depends on nothing before: whoever has the data of now can follow from here.
        """
        self._journal.split_unit()
        self._journal.note_seen()
        self.flush()
        self._reader.begin()
        self._round.schedule()
        return self.end

    def flush(self) -> None:
        """Adds what is new to the backlog. What a transaction that is not complete has done waits
        for its end."""
        backlog, authors = self.backlog, self._journal.authors
        if backlog is None or authors is None:
            return
        if self._reader.has_news:
            backlog.append(self._reader.take())
            self.end = backlog.end
            self._on_news()
        if not self._journal.unit:
            for session in authors:
                session.replicated = self.end
            authors.clear()
