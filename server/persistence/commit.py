"""The commit: what happens goes to the append-only file, and output to clients waits for it.

**The promise.** With ``appendfsync always`` a change that was reported survives a loss of power;
with ``everysec`` and ``no`` it survives the end of the process. So from the first change of a round
of the event loop on, all output to clients is held back, be it a reply, a message or the entries of
a woken reader, until what the round has changed is in the file. A reader is never shown what could
be lost.

**Group commit.** One write takes the changes of a round, from whichever clients they came:

- The event loop writes when the round ends.
- ``always``: the thread for the disk syncs right after. Commands that arrive meanwhile are executed
  at once and share the next sync, so a slow disk makes groups larger and not queues longer. That
  begins when the round has ended in which the disk answers, with all that this round has read.
- otherwise it syncs in the background (:mod:`server.persistence.appender`). While it does, a second
  thread writes: a write may then have to wait for the disk, and the event loop must not.

**States.** What takes its time (a write in the second thread, a sync under ``always``, the files of
a rewrite that change) is a *flight*; there is one at most. Output waits for it if it was held
before the flight began, or if nothing has happened since; all other output waits for the next::

    state     output            what is going on
    FREE      goes out          no file, or one that has no base yet: nothing is promised
    IDLE      goes out          the file holds all that has happened
    DIRTY     waits for a write something has happened; the round will end, or the disk be free
    WRITING   waits for it      a flight, and nothing has happened since it began
    BEHIND    waits for a write a flight, and something has happened since it began
    BROKEN    goes out          the disk has refused, and so are commands that write

    event            FREE   IDLE     DIRTY    WRITING  BEHIND   BROKEN   is told by
    change           FREE   DIRTY    DIRTY    BEHIND   BEHIND   BROKEN   changed
    round ends       FREE   IDLE     rest     WRITING  BEHIND   BROKEN   write
    flight begins    FREE   WRITING  WRITING  never    never    BROKEN   depart
    flight ends      FREE   never    never    rest     rest     rest     arrive
    write fails      FREE   never    never    BROKEN   BROKEN   BROKEN   fail
    sync fails       FREE   BROKEN   BROKEN   WRITING  BEHIND   BROKEN   distrust
    base is there    rest   never    never    never    never    never    end_provisional
    file turned off  FREE   FREE     FREE     never    never    FREE     close

*rest* is FREE without a file that has a base, else BROKEN while the disk refuses, else DIRTY if
anything is still to be written, else IDLE. A round that ends writes before that, which begins a
flight under ``always`` or beside a sync, and waits for the disk if that is busy otherwise.

**Failures.** A write that fails is undone and retried every second; until then commands that write
are refused with MISCONF. Clients whose changes were in the failed write get no answer: OK would be
a promise, an error would be a lie, so their connections are closed. After a sync that fails the
state of the disk is unknown; a later success says nothing about it, so all files are replaced from
memory. A flight that was under way beside that sync is in the file all the same.

**Invariants.**

- Output is released in the order in which it was held, and never before what was held earlier.
- Something waits to be written only while the round will end (DIRTY, FREE), while a job of the disk
  will (DIRTY, BEHIND), or until the disk is tried again (BROKEN): each of these writes.
- ``session.noted`` is the last unit of the journal in which a client has written, so it is known
  whom a failed write concerns.
- A script that takes long has not happened before it ends: those who are told meanwhile that the
  server is busy need not wait for it.

Decisions 11, 14 and 16 have what was rejected.
"""

from __future__ import annotations

import os
import time
from typing import Final

from server.clients.blocking import SYNCED, BlockedClients
from server.dispatch.reactions import Reactions
from server.persistence.disk_thread import DiskThread
from server.persistence.journal import Journal, JournalReader
from server.runtime.clockwork import EndOfRound
from server.runtime.histogram import Histogram
from server.state.latency import FSYNC, WRITE, WRITE_ALONE, WRITE_BESIDE_CHILD, WRITE_WAITS
from server.state.server_state import ServerState
from server.traffic.output_gate import LARGE, Held, Outlet, OutputGate
from storage.aof.writer import Writer

FREE: Final = 0
IDLE: Final = 1
BROKEN: Final = 2
DIRTY: Final = 3
"""From here on output waits."""
WRITING: Final = 4
"""From here on there is a flight."""
BEHIND: Final = 5


class Commit:
    """Writes the journal to the increment, and holds output back until that is done.

    ``provisional`` is set while there is no base yet for the increment to follow. ``rewriting`` is
    set while a new base is made.
    """

    def __init__(
        self,
        state: ServerState,
        gate: OutputGate,
        blocking: BlockedClients,
        reactions: Reactions,
        jobs: DiskThread,
        journal: Journal,
    ) -> None:
        self._server_state = state
        self._gate = gate
        self._blocking = blocking
        self._reactions = reactions
        self._jobs = jobs
        self._journal = journal
        self.reader = JournalReader(journal, self.changed, dated=True)
        self._round = EndOfRound(self.write)
        self.state = FREE
        self.holding = False
        """Whether output has to wait."""
        self._held: Held = []
        """What waits for a write that has not begun."""
        self._flight: Held = []
        """What waits for the flight."""
        self.writer: Writer | None = None
        self.provisional = False
        self.rewriting = False
        self.begun = self.written = self.synced = 0
        """Up to which unit of the journal a write has begun, all is in the file, and all is on the
        disk."""
        self._before = 0
        """Up to which unit writes before the present one were for."""
        self.unsynced_since: int | None = None
        self.syncing_since: int | None = None
        """Since when what is not on the disk has been in the file, as far as no sync has begun, and
        as far as one has."""
        self.tried_ms = 0
        """When the disk last refused, or was tried again after that."""
        self.sync_times = Histogram()
        """How long each sync of the increment took."""
        self._always = False
        self._watched = False
        """Whether the latency monitor is on."""
        self._latency = state.timings.latency
        self._sync_began = 0
        state.config.listen("appendfsync", self._set_policy)
        state.config.listen("latency-monitor-threshold", self._set_threshold)

    def _set_policy(self, policy: str) -> None:
        self._always = policy == "always"

    def _set_threshold(self, milliseconds: int) -> None:
        self._watched = milliseconds > 0

    @property
    def flying(self) -> bool:
        """Whether there is a flight for which output waits."""
        return self.state >= WRITING

    @property
    def may_sync(self) -> bool:
        """Whether a rewrite leaves the disk free for syncs (``no-appendfsync-on-rewrite``)."""
        return not (self.rewriting and self._server_state.config.no_appendfsync_on_rewrite)

    # --- the increment ----------------------------------------------------------------------

    def begin(self, writer: Writer) -> None:
        """Writes to an increment from now on, the first or another, after what it has already."""
        if not self.reader.attached:
            self.begun = self.written = self.synced = self._journal.count
            self.reader.attach()
            self.state = IDLE
        self.writer = writer
        self.reader.begin()

    def begin_provisional(self, writer: Writer) -> None:
        """From now on everything goes to an increment that has no base yet."""
        if self.writer is not None:
            self.writer.close()
        self._journal.split_unit()
        self.reader.take()
        self.begin(writer)
        self.provisional = True
        self.settle()

    def end_provisional(self) -> None:
        """The increment has a base: what it holds is safe from now on."""
        self.provisional = False
        self.forget_failure()
        self.settle()
        self.tell_waiters()

    def cut(self) -> bytes:
        """Begins the flight in which the increment ends with what is returned; what follows is for
        the next one."""
        self._journal.split_unit()
        tail = self.depart()
        self.reader.begin()
        return tail

    def close(self) -> None:
        """Gives the increment back; nothing is noted any more."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self.reader.detach()
        self._server_state.set_disk_error(None)
        self.provisional = False
        self.unsynced_since = self.syncing_since = None
        self.settle()

    # --- output -----------------------------------------------------------------------------

    def hold(self, outlet: Outlet, data: bytes | None) -> None:
        """Sends what is for a client once all is safe that has happened so far, and never before
        what was held earlier."""
        if not self.holding:
            self._gate.send([(outlet, data)])
        elif self.state == WRITING:
            self._flight.append((outlet, data))
        else:
            self._held.append((outlet, data))
            # What has happened in a unit that is not complete is not written before its end.
            if data is not None and len(data) >= LARGE and not self._journal.unit:
                self.write()

    def settle(self) -> None:
        """There is no flight: lets its output go, and all other too if that need not wait."""
        held, self._flight = self._flight, []
        journal, server = self._journal, self._server_state
        if self.writer is None or self.provisional:
            self.state = FREE
        elif server.disk_error is not None:
            self.state = BROKEN
        elif self.reader.pieces or journal.log or (journal.unit and server.busy is None):
            self.state = DIRTY
            self._round.schedule()
        else:
            self.state = IDLE
        self.holding = self.state == DIRTY
        if self._held and not self.holding:
            held += self._held
            self._held = []
        self._gate.send(held)

    def _lose(self, lost: int) -> None:
        """Gives up what happened after the unit ``lost``: it is not safe.

        Nobody can say that it has not happened either, so clients that wrote then get no answer at
        all, as if the server had died. All others are answered."""
        for session in list(self._server_state.sessions.values()):
            if session.noted > lost:
                session.link.close()
        for outlet, _ in self._flight + self._held:
            if outlet.ended:
                outlet.abandon()  # It was to end when all was sent: that may not be said now.
        self.settle()

    # --- what happens -----------------------------------------------------------------------

    def changed(self) -> None:
        """Something is on its way to the file that output may speak of."""
        if self.state == IDLE:
            self.state = DIRTY
            self.holding = True
            self._round.schedule()
        elif self.state == WRITING:
            self.state = BEHIND
        elif self.state == FREE:
            self._round.schedule()

    def write(self) -> None:
        """Writes what is new, or lets it be written after what the disk is busy with: at the end of
        a round, and where much output waits."""
        writer, jobs = self.writer, self._jobs
        if writer is None or not (self._journal.log or self.reader.pieces):
            if self.state == DIRTY:
                self.settle()  # Nothing has come of what output was held for.
        elif not jobs.busy:
            self._write_now(writer)
        elif jobs.shares and not self._always:
            self._write_beside(writer)

    def _write_now(self, writer: Writer) -> None:
        """Writes; output goes out then, or else after the sync that begins now."""
        began = self._latency.begin() if self._watched else 0
        data = self.depart()
        try:
            writer.write(data)
        except OSError as error:
            self.reader.give_back(data)
            self.fail(error)
            return
        if began:
            self._note_write(WRITE_BESIDE_CHILD if self.rewriting else WRITE_ALONE, began)
        self.written = self.begun
        if self._always and not self.provisional and (not self.rewriting or self.may_sync):
            self._sync_began = self._latency.begin() if self._watched else 0
            self._jobs.run(self.sync, self._synced)
        else:
            self._note_unsynced()
            self.arrive()

    def _synced(self, error: OSError | None) -> None:
        """The flight of ``always`` has ended."""
        if self._sync_began:
            self._latency.end(FSYNC, self._sync_began)
        if error is not None:
            self.fail(error)
            return
        written = self.written  # What goes out now may have more written.
        self.arrive()
        self.synced = written
        if self._blocking.waiting:
            self.tell_waiters()

    def _write_beside(self, writer: Writer) -> None:
        """Writes in the second thread while a sync is going on."""
        began = self._latency.begin() if self._watched else 0
        data = self.depart()

        def then(error: OSError | None) -> None:
            if began:
                self._note_write(WRITE_WAITS, began)
            self._note_unsynced()
            if error is None:
                self.written = self.begun
                self.arrive()
            else:
                if not writer.broken:
                    self.reader.give_back(data)
                self.fail(error)

        self._jobs.run_beside(lambda: writer.write(data), then)

    def _note_write(self, kind: bytes, began: int) -> None:
        """Lets the latency monitor know of a write that has ended, under the name of all writes and
        under that of what it may have had to wait for."""
        self._latency.end(WRITE, began)
        self._latency.end(kind, began)

    def _note_unsynced(self) -> None:
        if self.unsynced_since is None:
            self.unsynced_since = self._server_state.timekeeper.source()

    # --- flights ----------------------------------------------------------------------------

    def depart(self) -> bytes:
        """Begins a flight, for all that has happened so far; returns what is to be written."""
        self._before, self.begun = self.begun, self._journal.count
        if self.state == DIRTY or self.state == IDLE:
            self.state = WRITING
            self.holding = True
            self._flight, self._held = self._held, []
        return self.reader.take()

    def arrive(self) -> None:
        """What was to be written is safe."""
        server, writer = self._server_state, self.writer
        if server.disk_error is not None and writer is not None:
            if writer.broken or self.provisional:  # A sync has failed meanwhile: what came later
                self._lose(self.begun)  # will not be written to this file.
                return
            self.forget_failure()
        self.settle()

    # --- syncing ----------------------------------------------------------------------------

    def sync(self) -> None:
        """Syncs, and notes how long that took. This is called in other threads, but never in two
        at once."""
        writer = self.writer
        assert writer is not None
        started = time.perf_counter_ns()
        try:
            writer.sync()
        finally:
            self.sync_times.observe(time.perf_counter_ns() - started)

    def note_synced(self, noted: int) -> None:
        """Everything is on the disk up to this unit."""
        if noted > self.synced:
            self.synced = noted
            self.tell_waiters()

    def tell_waiters(self) -> None:
        """WAITAOF sees whether what it waits for has come."""
        self._blocking.signal(*SYNCED)
        self._reactions.drain()

    # --- failures ---------------------------------------------------------------------------

    def fail(self, error: OSError) -> None:
        """The present write, or the sync that belongs to it, has failed."""
        self._refuse(error)
        self._lose(self._before)

    def distrust(self, error: OSError) -> None:
        """Nobody knows what of the file is on the disk. What is in the file was promised to be no
        more than that; a flight goes on."""
        self._refuse(error)
        if not self.flying:
            self._lose(self.begun)

    def _refuse(self, error: OSError) -> None:
        """Refuses commands that write from now on, until the disk does what it should."""
        server = self._server_state
        if server.disk_error is None:
            server.log.warning(
                f"Error writing to the append-only file: {reason(error)}."
                " Commands that write are refused until that is over"
            )
        server.set_disk_error(reason(error))
        self.tried_ms = server.timekeeper.source()

    def forget_failure(self) -> None:
        """The append-only file can be written to again, and holds everything."""
        if self._server_state.disk_error is not None:
            self.syncing_since = None
            self._server_state.set_disk_error(None)
            self._server_state.log.notice("The append-only file can be written to again")


def reason(error: OSError) -> str:
    """Return what the system said."""
    return os.strerror(error.errno) if error.errno else str(error)
