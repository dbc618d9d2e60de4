"""Parked readers: who waits for which key, until when, and who is served first.

A command that finds nothing to read returns a :class:`Block`. The client is then parked: it stands
in a first-in-first-out queue for each of its keys, and its connection awaits a future. When a key
is signalled, the command of each waiter in the queue runs again; the one that finds something is
answered through its future, the others go on waiting until their first deadline.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from protocol.encoder import encode, error_line
from protocol.replies import NULL_ARRAY, Reply

if TYPE_CHECKING:
    from server.app import Server
    from server.command_table import Command
    from server.session import Session
    from server.steps import Steps

Place = tuple[int, bytes]
"""A database's index and a key."""

SYNCED: Final[Place] = (-1, b"")
"""Where those wait who want their changes on the disk; no database has this index."""

_FEW_TIMERS: Final = 64

AGAIN_AFTER_MS: Final = 50
"""While a script takes long no command runs again: after so long it is tried once more."""


def _nothing() -> None:
    """An attempt that leaves no trace."""


class Block:
    """What a reading command returns instead of a reply when it must wait.

    ``retry`` runs the command again and returns a reply, or a ``Block`` to wait on. ``deadline`` is
    the time in Unix milliseconds at which the wait ends with ``on_timeout``, ``None`` for never.
    ``wake_at`` is a time at which the command is worth running again though nothing signalled its
    keys. ``needs_key`` tells that it also ends, with an error, when its key goes or changes type.
    ``group`` names the consumer group of the one key whose new entries are all that the reader
    waits for; where another reader of the group has just found none, ``note_attempt`` is called in
    place of ``retry``. With ``for_sync`` it waits for the append-only file and not for keys.
    """

    __slots__ = (
        "deadline",
        "for_sync",
        "group",
        "keys",
        "needs_key",
        "note_attempt",
        "on_timeout",
        "retry",
        "wake_at",
    )

    def __init__(
        self,
        keys: list[bytes],
        deadline: int | None,
        retry: Callable[[], Reply | Block | Steps],
        *,
        needs_key: bool,
        group: bytes | None = None,
        wake_at: int | None = None,
        on_timeout: Reply = NULL_ARRAY,
        note_attempt: Callable[[], None] = _nothing,
        for_sync: bool = False,
    ) -> None:
        self.keys = keys
        self.deadline = deadline
        self.retry = retry
        self.needs_key = needs_key
        self.group = group
        self.wake_at = wake_at
        self.on_timeout = on_timeout
        self.note_attempt = note_attempt
        self.for_sync = for_sync


class Waiter:
    """A parked client: its command, its places in the queues, and the future its connection awaits.

    ``deadline`` is that of the first ``block``; running the command again never puts it off.
    """

    __slots__ = ("block", "command", "deadline", "future", "places", "session")

    def __init__(
        self, session: Session, command: Command, block: Block, future: asyncio.Future[bytes]
    ) -> None:
        self.session = session
        self.command = command
        self.block = block
        self.deadline = block.deadline
        self.future = future
        places = [SYNCED] if block.for_sync else [(session.db.index, key) for key in block.keys]
        self.places = list(dict.fromkeys(places))


class Blocking:
    """All waiters of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.waiting: dict[Place, dict[Waiter, None]] = {}
        self.waiters: dict[Waiter, None] = {}
        self._ready: dict[Place, None] = {}
        self._timers: list[tuple[int, int, Waiter]] = []
        self._timer_count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0

    # --- parking --------------------------------------------------------------------------

    def park(self, session: Session, command: Command, block: Block) -> None:
        """Lets the client wait; its connection finds the waiter in ``session.waiter``."""
        waiter = Waiter(session, command, block, asyncio.get_running_loop().create_future())
        session.waiter = waiter
        self.waiters[waiter] = None
        self._enqueue(waiter)
        if waiter.deadline is not None:
            self._schedule(waiter.deadline, waiter)
        self._schedule_retry(waiter)

    def _enqueue(self, waiter: Waiter) -> None:
        """Puts the waiter at the end of the queue of each of its keys."""
        for place in waiter.places:
            queue = self.waiting.setdefault(place, {})
            queue.pop(waiter, None)
            queue[waiter] = None

    def _forget(self, waiter: Waiter) -> None:
        """Takes the waiter out of every queue: it was served, or its client is gone."""
        del self.waiters[waiter]
        waiter.session.waiter = None
        for place in waiter.places:
            queue = self.waiting[place]
            del queue[waiter]
            if not queue:
                del self.waiting[place]
        if not self.waiters:
            self._timers.clear()
            self.close()
        elif len(self._timers) > max(_FEW_TIMERS, 4 * len(self.waiters)):
            self._timers = [timer for timer in self._timers if timer[2] in self.waiters]
            heapq.heapify(self._timers)

    def abandon(self, waiter: Waiter) -> None:
        """The waiting client is gone: nobody wants the reply."""
        self._forget(waiter)
        waiter.future.cancel()

    def finish(self, waiter: Waiter, reply: bytes) -> None:
        """Answers the waiting command."""
        self._forget(waiter)
        waiter.future.set_result(reply)

    def time_out(self, waiter: Waiter) -> None:
        """Answers as a command does that waited in vain."""
        waiter.command.calls += 1
        self.finish(waiter, encode(waiter.block.on_timeout, waiter.session.resp3))

    def fail(self, waiter: Waiter, text: str) -> None:
        """Answers with an error."""
        waiter.command.calls += 1
        waiter.command.failed += 1
        self._server.stats.count_error(text)
        self.finish(waiter, error_line(text))

    # --- waking ---------------------------------------------------------------------------

    def signal(self, db: int, key: bytes) -> None:
        """The key has changed in a way that may end somebody's wait."""
        if (db, key) in self.waiting:
            self._ready[(db, key)] = None

    def signal_database(self, db: int) -> None:
        """Every key of the database may have changed."""
        for place in self.waiting:
            if place[0] == db:
                self._ready[place] = None

    def serve(self) -> None:
        """Runs the waiting commands of every key signalled, in the order they began to wait."""
        while self._ready and not self._server.scripting.busy:
            place = next(iter(self._ready))
            del self._ready[place]
            if place in self.waiting:
                self._serve_key(place)

    def _serve_key(self, place: Place) -> None:
        drained: set[bytes] = set()
        for waiter in list(self.waiting[place]):
            block = waiter.block
            if waiter not in self.waiters or not self._may_serve(block, place):
                continue
            if block.group in drained:
                block.note_attempt()
                self._enqueue(waiter)
            elif not self._retry(waiter) and block.group is not None:
                drained.add(block.group)
        self._server.settle()

    def _may_serve(self, block: Block, place: Place) -> bool:
        """Readers without a group wait for a stream, whatever else is put in its place."""
        return block.needs_key or block.for_sync or self._server.holds_stream(*place)

    def _retry(self, waiter: Waiter) -> bool:
        """Runs the command again; false if it has to go on waiting."""
        reply = self._server.dispatcher.rerun(waiter)
        if reply is not None:
            self.finish(waiter, reply)
            return True
        self._enqueue(waiter)
        self._schedule_retry(waiter)
        return False

    # --- time -----------------------------------------------------------------------------

    def _schedule_retry(self, waiter: Waiter) -> None:
        """A command that asks to be run again does so later than now, or time would not pass."""
        if waiter.block.wake_at is not None:
            self._schedule(max(waiter.block.wake_at, self._server.clock() + 1), waiter)

    def _schedule(self, at: int, waiter: Waiter) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (at, self._timer_count, waiter))
        self._arm()

    def _arm(self) -> None:
        """Sets the one timer of the loop to the earliest time somebody waits for."""
        if not self._timers:
            return
        at = self._timers[0][0]
        if self._timer is not None:
            if at >= self._timer_at:
                return
            self._timer.cancel()
        delay = max(0, at - self._server.clock()) / 1000
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.pass_time(self._server.clock())
        self._arm()

    def turn_clock(self, by_ms: int) -> None:
        """The clock has been moved: waits whose deadline has come end, and none lasts longer.

        A time at which a command is worth running again belongs to its data, which has not moved.
        """
        if by_ms < 0:
            self._timers.clear()
            for waiter in self.waiters:
                if waiter.deadline is not None:
                    waiter.deadline += by_ms
                    self._schedule(waiter.deadline, waiter)
                self._schedule_retry(waiter)
        self.pass_time(self._server.clock())
        self.close()
        self._arm()

    def pass_time(self, now_ms: int) -> None:
        """Ends the waits whose deadline has come, and runs commands whose time it is."""
        while self._timers and self._timers[0][0] <= now_ms:
            at, _, waiter = heapq.heappop(self._timers)
            if waiter not in self.waiters:
                continue
            if waiter.deadline is not None and waiter.deadline <= at:
                self.time_out(waiter)
            elif self._server.scripting.busy:
                self._schedule(now_ms + AGAIN_AFTER_MS, waiter)
            else:
                self._retry(waiter)
        self.serve()

    def close(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
