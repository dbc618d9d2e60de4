# Compiled by mypyc.
"""The feed: what happens becomes the stream that replicas follow.

The commands of the stream are those of the append-only file (:mod:`storage.aof.encode_effects`): a
real Redis runs them. They are gathered while a round of the event loop lasts, and go to the backlog
when it ends, a transaction or a script as a whole. Nothing is encoded, and nothing is kept, before
the first replica comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from server.road.reactions import Reactions
from server.road.session import Session
from server.road.state import ServerState
from storage.aof.commands import command
from storage.aof.encode_effects import EffectEncoder
from storage.engine.effects import Effect

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

    def __init__(
        self, state: ServerState, reactions: Reactions, on_news: Callable[[], None]
    ) -> None:
        self._state = state
        self._reactions = reactions
        self._on_news = on_news
        self._forms = EffectEncoder(state.keyspace)
        self._buffer: list[bytes] = []
        self._unit: list[Effect] | None = None
        self._units_open = 0
        self._authors: dict[Session, None] = {}
        self._scheduled = False
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
        self._reactions.replicate = self._note
        return self.backlog

    def stop(self) -> None:
        """Forgets what was kept of the stream; what happens from now on is not part of it."""
        self._reactions.replicate = None
        self.backlog = None
        self._buffer.clear()
        self._authors.clear()

    # --- taking effects -------------------------------------------------------------------

    def _note(self, effects: Sequence[Effect], session: Session | None) -> None:
        """Takes the effects of one command; inside a unit they are kept until its end."""
        if session is not None:
            self._authors[session] = None
        if self._unit is None:
            self._forms.append(effects, self._buffer)
        else:
            self._unit.extend(effects)
        self._schedule()

    def begin_unit(self) -> None:
        """What follows counts as a whole; units within count as part of it."""
        self._units_open += 1
        if self._unit is None:
            self._unit = []

    def end_unit(self) -> None:
        """The unit is complete."""
        self._units_open -= 1
        if not self._units_open:
            self._close_unit()
            self._unit = None

    def _close_unit(self) -> None:
        """What the unit holds so far becomes part of the stream."""
        if self._unit and self.active:
            self._forms.append(self._unit, self._buffer)
            self._schedule()
        if self._unit is not None:
            self._unit = []

    def say(self, *words: bytes) -> None:
        """Adds a command that is no effect."""
        self._forms.split()
        self._buffer.append(command(*words))
        self._schedule()

    def note_seen(self) -> None:
        """Adds when consumers were last seen, as far as that was not said yet."""
        self._forms.flush_seen(self._buffer)
        if self._buffer:
            self._schedule()

    # --- the stream -----------------------------------------------------------------------

    def cut(self) -> int:
        """The position up to which the stream says what has happened so far.

        What follows depends on nothing before: whoever has the data of now can follow from here.
        """
        self._close_unit()
        self._forms.flush_seen(self._buffer)
        self._forms.split()
        self.flush()
        position = self.end
        self._forms.begin(self._buffer)
        self._schedule()
        return position

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._end_round)

    def _end_round(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        """Adds what was gathered to the backlog. What a transaction that is not complete has done
        waits for its end."""
        backlog = self.backlog
        if backlog is None:
            return
        if self._buffer:
            backlog.append(b"".join(self._buffer))
            self._buffer.clear()
            self.end = backlog.end
            self._on_news()
        if not self._unit:
            for session in self._authors:
                session.replicated = self.end
            self._authors.clear()
