"""The appender: the journal goes to the current increment, and output to clients waits for it.

**The promise.** With ``appendfsync always`` a change that was reported survives a loss of power;
with ``everysec`` and ``no`` it survives the end of the process. So from the first change of a round
of the event loop on, all output to clients is held back, be it a reply, a message or the entries of
a woken reader, until what the round has changed is in the file. A reader is never shown what could
be lost.

**Group commit.** One write takes the changes of a round, from whichever clients they came:

- The event loop writes when the round ends.
- ``always``: the thread for the disk syncs right after. Commands that arrive meanwhile are executed
  at once and share the next sync, so a slow disk makes groups larger and not queues longer.
- otherwise it syncs in the background. While it does, a second thread writes: a write may then have
  to wait for the disk, and the event loop must not.

**Failures.** A write that fails is undone and retried every second; until then commands that write
are refused with MISCONF. Clients whose changes were in the failed write get no answer: OK would be
a promise, an error would be a lie, so their connections are closed. After a sync that fails the
state of the disk is unknown; a later success says nothing about it, so all files are replaced from
memory.

**Invariants.**

- Output is released in the order in which it was held, and never before what was held earlier.
- At most one commit is in flight. Output waits either for it, or for the next one if changes have
  been made since it began.
- ``session.noted`` is the last unit of the journal in which a client has written, so it is known
  whom a failed write concerns. Nothing is promised while ``provisional``: there is no base to
  follow yet.

**Rejected.** Syncing in the event loop: every client would wait for each access to the disk.
Writing before each client's replies: a system call for each command. Holding replies until the sync
under ``everysec``: each second, all clients would wait for the disk. Answering first and writing
later, as Redis may: a kill loses what was answered. Decisions 11 and 16.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from server.clients.blocking import SYNCED, BlockedClients
from server.clients.client_pause import ClientPause
from server.dispatch.reactions import Reactions
from server.persistence.disk_thread import DiskThread
from server.persistence.journal import Journal, Reader
from server.runtime.histogram import Histogram
from server.state.latency import FSYNC, WRITE, WRITE_ALONE, WRITE_BESIDE_CHILD, WRITE_WAITS
from server.state.server_state import ServerState
from server.state.session import Session
from server.traffic.output_gate import OutputGate
from storage.aof.writer import Writer

SYNC_WITHIN_MS: Final = 800
"""With ``everysec``, a sync of what was written begins within so long: it may take some time, and a
second is what was promised."""
STALLED_AFTER_MS: Final = 2000
"""When the disk has not answered for so long, commands that write have to wait."""
RETRY_AFTER_MS: Final = 1000
"""How long it takes after a failure until the disk is tried again."""
SEEN_EVERY_MS: Final = 1000
"""How often it is written when consumers were last seen."""


class Appender:
    """Writes the journal to the increment, and knows what of it is safe.

    ``provisional`` is set while there is no base yet for the increment to follow: nothing is
    promised then. ``rewriting`` is set while a new base is made. ``replace_broken`` is called when
    the increment cannot be trusted any more.
    """

    def __init__(
        self,
        state: ServerState,
        gate: OutputGate,
        blocking: BlockedClients,
        reactions: Reactions,
        pauses: ClientPause,
        jobs: DiskThread,
        journal: Journal,
        replace_broken: Callable[[], None],
    ) -> None:
        self._state = state
        self._gate = gate
        self._blocking = blocking
        self._reactions = reactions
        self._pauses = pauses
        self._jobs = jobs
        self._journal = journal
        self._reader = Reader(journal, self._end_round, self._hold, dated=True)
        self._replace_broken = replace_broken
        self.sync_within_ms = SYNC_WITHIN_MS
        self.stalled_after_ms = STALLED_AFTER_MS
        self.retry_after_ms = RETRY_AFTER_MS
        self.writer: Writer | None = None
        self.provisional = False
        self.rewriting = False
        self.delayed_syncs = 0
        self.sync_times = Histogram()
        """How long each sync of the increment took."""
        self._begun = self._written = self._synced = 0
        """Up to which unit of the journal a write has begun, all is in the file, and all is on the
        disk."""
        self._always = False
        self._unsynced_since: int | None = None
        self._syncing_since: int | None = None
        self._tried_ms = 0
        self._seen_ms = 0
        self._told_of_delay = False
        self._latency = state.timings.latency
        self._watched = False
        """Whether the latency monitor is on."""
        state.config.listen("appendfsync", self._set_policy)
        state.config.listen("latency-monitor-threshold", self._set_threshold)

    def _set_policy(self, policy: str) -> None:
        self._always = policy == "always"

    def _set_threshold(self, milliseconds: int) -> None:
        self._watched = milliseconds > 0

    @property
    def failure(self) -> str | None:
        """Return what the system said when a write or a sync failed, ``None`` while all is well."""
        return self._state.disk_error

    @property
    def size(self) -> int:
        """Bytes of the increment, with those that wait to be written."""
        written = 0 if self.writer is None else self.writer.size
        return written + self.buffered

    @property
    def buffered(self) -> int:
        """How many bytes wait to be written."""
        return self._reader.size

    @property
    def needs_base(self) -> bool:
        """Whether the increment is of no use without a new base: there is none yet, or nobody knows
        what of the files is on the disk."""
        return self.provisional or (self.writer is not None and self.writer.broken)

    @property
    def syncing(self) -> bool:
        """Whether something waits for the disk."""
        return self._jobs.busy

    # --- the increment --------------------------------------------------------------------

    def begin(self, writer: Writer) -> None:
        """Appends to an increment from now on, the first or another, after what it has already."""
        if not self._reader.attached:
            self._begun = self._written = self._synced = self._journal.count
            self._reader.attach()
        self.writer = writer
        self._reader.begin()

    def cut(self) -> bytes:
        """Takes what waits to be written, and begins what the next increment will hold."""
        self._journal.split_unit()
        tail = self._reader.take()
        self._reader.begin()
        return tail

    def give_back(self, tail: bytes) -> None:
        """Lets what was taken be written before all that came after it."""
        self._reader.give_back(tail)

    def begin_provisional(self, writer: Writer) -> None:
        """From now on everything goes to an increment that has no base yet."""
        if self.writer is not None:
            self.writer.close()
        self._journal.split_unit()
        if self._reader.attached:
            self._reader.take()
        self.begin(writer)
        self.provisional = True
        self._update_holding()

    def end_provisional(self) -> None:
        """The increment has a base: what it holds is safe from now on."""
        self.provisional = False
        self.clear_failure()
        self._update_holding()
        self._tell_waiters()

    # --- holding replies back -------------------------------------------------------------

    def has_news(self) -> bool:
        """Whether anything has happened that no write has begun for."""
        return self._reader.has_news or (self._reader.attached and bool(self._journal.unit))

    def is_waiting(self) -> bool:
        """Whether something is on its way to the file that replies may speak of: it is then written
        at the end of the round.

        What a script has done that takes long is not on its way before it ends: those who are told
        meanwhile that the server is busy need not wait for it."""
        reader, journal = self._reader, self._journal
        if self._state.disk_error is not None or self.provisional or not reader.attached:
            return False
        waiting = bool(journal.log or reader.pieces)
        waiting = waiting or (bool(journal.unit) and self._state.busy is None)
        if waiting and not journal.round.scheduled:
            journal.round.schedule()
        return waiting

    def _hold(self) -> None:
        """Holds replies from the first change of a round on."""
        if not self._gate.holding:
            self._gate.holding = self.is_waiting()

    def _update_holding(self) -> None:
        """Sees whether replies have to wait."""
        self._gate.update(self.is_waiting())

    def _end_round(self) -> None:
        if self._journal.log or self._reader.pieces:
            self.flush()
        elif self._gate.flight is None:
            self._let_go()  # Nothing has come of what replies were held for.

    def _let_go(self) -> None:
        """Releases replies whose commit completed."""
        self._gate.let_go(self.is_waiting())

    def _lose(self, lost: int) -> None:
        """Give up what happened after the unit ``lost``: it is not safe.

        Nobody can say that it has not happened either, so clients that wrote then get no answer at
        all, as if the server had died. All others are answered."""
        for session in list(self._state.sessions.values()):
            if session.noted > lost:
                session.link.close()
        self._gate.drop_ended()
        self._let_go()

    # --- writing --------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes what is new, or lets it be written after what the disk is busy with."""
        writer, jobs = self.writer, self._jobs
        if writer is None or not (self._journal.log or self._reader.pieces):
            return
        if not jobs.busy:
            self._write_now(writer)
        elif jobs.shares and not self._always:
            self._write_beside(writer)

    def _write_now(self, writer: Writer) -> None:
        """Writes; replies go out then, or else after the sync that begins now."""
        kind = WRITE_BESIDE_CHILD if self.rewriting else WRITE_ALONE
        began = self._latency.begin() if self._watched else 0
        before = self.begin_flight()
        data = self._reader.take()
        try:
            writer.write(data)
        except OSError as error:
            self.give_back(data)
            self.end_flight(error, before)
            return
        self._note_write(kind, began)
        self._written = self._begun
        if self._always and not self.provisional and self._may_sync:
            self._sync_flight(writer, before)
        else:
            self._note_unsynced()
            self.end_flight(None, before)

    def _sync_flight(self, writer: Writer, before: int) -> None:
        """Syncs in the other thread what was written; replies are held until then."""
        began = self._latency.begin() if self._watched else 0
        written = self._written

        def then(error: OSError | None) -> None:
            self._latency.end(FSYNC, began)
            self.end_flight(error, before)
            if error is None:
                self._note_synced(written)
                self.flush()

        self._jobs.run(lambda: self._sync_file(writer), then)

    def _write_beside(self, writer: Writer) -> None:
        """Writes in the second thread while a sync is going on; replies are held until then."""
        began = self._latency.begin() if self._watched else 0
        before = self.begin_flight()
        data, taken = self._reader.take(), self._begun

        def then(error: OSError | None) -> None:
            self._note_write(WRITE_WAITS, began)
            if error is not None and not writer.broken:
                self.give_back(data)
            self._note_unsynced()
            self.end_flight(error, before)
            if error is None:
                self._written = taken
                self.flush()

        self._jobs.run_beside(lambda: writer.write(data), then)

    def _note_write(self, kind: bytes, began: int) -> None:
        """Lets the latency monitor know of a write that has ended, under the name of all writes and
        under that of what it may have had to wait for."""
        if began:
            self._latency.end(WRITE, began)
            self._latency.end(kind, began)

    def _note_unsynced(self) -> None:
        if self._unsynced_since is None:
            self._unsynced_since = self._state.timekeeper.source()

    def begin_flight(self) -> int:
        """From now on replies wait for the write that is about to begin, for all there is to take;
        returns up to which unit other writes were for."""
        if self._state.disk_error is None and not self.provisional:
            self._gate.begin_flight()
        else:
            self._update_holding()
        before, self._begun = self._begun, self._journal.count
        return before

    def end_flight(self, error: OSError | None, before: int) -> None:
        """The write has ended, well or with an error; others were for what was ``before``."""
        if error is not None:
            self.fail(error)
            self._lose(before)
            return
        if self._state.disk_error is not None:
            assert self.writer is not None
            self._recover(self.writer)
        if self._state.disk_error is None:
            self._let_go()
        else:  # A sync has failed meanwhile: what came later will not be written to this file.
            self._lose(self._begun)

    # --- syncing --------------------------------------------------------------------------

    def unsynced_ms(self, now: int) -> int:
        """For how long the oldest of the changes has been in the file that may not be on the disk
        yet, at this real time; 0 if all are."""
        since = self._unsynced_since if self._syncing_since is None else self._syncing_since
        return 0 if since is None else max(0, now - since)

    def _sync_file(self, writer: Writer) -> None:
        """Syncs, and notes how long that took. This is called in other threads, but never in two
        at once."""
        started = time.perf_counter_ns()
        try:
            writer.sync()
        finally:
            self.sync_times.observe(time.perf_counter_ns() - started)

    def is_synced(self, session: Session) -> bool:
        """Whether everything that the client has changed is on the disk, a base included."""
        return not self.provisional and session.noted <= self._synced

    def _note_synced(self, noted: int) -> None:
        """Everything is on the disk up to this unit."""
        if noted > self._synced:
            self._synced = noted
            if self._blocking.waiting:
                self._tell_waiters()

    def _tell_waiters(self) -> None:
        """WAITAOF sees whether what it waits for has come."""
        if self._blocking.waiting:
            self._blocking.signal(*SYNCED)
            self._reactions.drain()

    @property
    def _may_sync(self) -> bool:
        """Whether the disk is free for it (``no-appendfsync-on-rewrite``)."""
        return not (self._state.config.no_appendfsync_on_rewrite and self.rewriting)

    def cron(self, now: int) -> None:
        """Periodic work: syncing, seen-times, trying again what failed, and stalling writers.

        ``now`` is the real time, here and in what is noted: a disk knows no other."""
        if self.writer is not None and passed(self._seen_ms, now, SEEN_EVERY_MS):
            self._seen_ms = now
            self._journal.note_seen()
        if self._jobs.busy:
            self._watch_delay()
        elif self._state.disk_error is not None:
            self._try_again(now)
        elif self._unsynced_since is None:
            if not self._reader.has_news:
                self._note_synced(self._journal.count)
        elif self._is_time_to_sync(now):
            self._sync()

    def _is_time_to_sync(self, now: int) -> bool:
        """Whether the next round of periodic work may be too late for it."""
        assert self._unsynced_since is not None
        until_next: int = 1000 // self._state.config.hz
        return passed(self._unsynced_since, now, self.sync_within_ms - until_next)

    def _sync(self) -> None:
        """Syncs in the other thread what was written without."""
        writer = self.writer
        if writer is None or self._state.config.appendfsync == "no" or not self._may_sync:
            return
        self._syncing_since, self._unsynced_since = self._unsynced_since, None
        written = self._written

        def then(error: OSError | None) -> None:
            if error is not None:
                self.fail(error)
                if self._gate.flight is None:
                    self._lose(self._begun)
            else:
                self._syncing_since = None
                self._note_synced(written)
            self.flush()

        self._jobs.run(lambda: self._sync_file(writer), then, shares=True)

    def _watch_delay(self) -> None:
        """Lets commands that write wait while the disk does not answer."""
        if self._jobs.running_ms < self.stalled_after_ms:
            return
        if not self._told_of_delay:
            self._told_of_delay = True
            self.delayed_syncs += 1
            self._state.log.warning(
                "The disk takes more than two seconds for the append-only file:"
                " commands that write have to wait"
            )
            self._pauses.stall()

    def disk_answered(self) -> None:
        """Lets commands go on that had to wait."""
        if self._told_of_delay and self._jobs.running_ms < self.stalled_after_ms:
            self._told_of_delay = False
            self._pauses.unstall()

    def keep_stalled(self) -> None:
        """Leaves commands waiting that had to: the server ends."""
        self._told_of_delay = False

    # --- failures -------------------------------------------------------------------------

    def fail(self, error: OSError) -> None:
        """Refuses commands that write from now on, until the disk does what it should."""
        if self._state.disk_error is None:
            self._state.log.warning(
                f"Error writing to the append-only file: {reason(error)}."
                " Commands that write are refused until that is over"
            )
        self._state.set_disk_error(reason(error))
        self._tried_ms = self._state.timekeeper.source()
        self._update_holding()

    def give_up(self, error: OSError) -> None:
        """The increment is of no use any more, though it can be written to. The disk must not be
        busy."""
        assert self.writer is not None
        self.writer.broken = True
        self.fail(error)
        self._lose(self._begun)

    def _recover(self, writer: Writer) -> None:
        if not writer.broken and not self.provisional:
            self.clear_failure()

    def clear_failure(self) -> None:
        """The append-only file can be written to again, and holds everything."""
        if self._state.disk_error is not None:
            self._syncing_since = None
            self._state.set_disk_error(None)
            self._state.log.notice("The append-only file can be written to again")
            self._update_holding()

    def _try_again(self, now: int) -> None:
        writer = self.writer
        if writer is None or not passed(self._tried_ms, now, self.retry_after_ms):
            return
        self._tried_ms = now
        if writer.broken:
            self._replace_broken()
        elif self._reader.has_news:
            self.flush()
        else:
            self._recover(writer)

    # --- the end --------------------------------------------------------------------------

    def drain(self) -> bool:
        """Writes and syncs everything, and waits for that; whether it is safe."""
        self._jobs.wait()
        if self.writer is None:
            return True
        if self._state.busy is None:  # What a script has begun is not whole.
            self._journal.split_unit()
        self._journal.note_seen()
        self.flush()
        self._jobs.wait()
        if self._state.disk_error is None:
            try:
                self.writer.sync()
            except OSError as error:
                self.fail(error)
        return self._state.disk_error is None

    def close(self) -> None:
        """Gives the increment back; nothing is noted any more."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self._reader.detach()
        self._state.set_disk_error(None)
        self.provisional = False
        self._unsynced_since = self._syncing_since = None
        self._let_go()


def passed(since: int, now: int, milliseconds: int) -> bool:
    """Whether so much time has passed; it has if the clock was set back in the meantime."""
    return not 0 <= now - since < milliseconds


def reason(error: OSError) -> str:
    """Return what the system said."""
    return os.strerror(error.errno) if error.errno else str(error)
