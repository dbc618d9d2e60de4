"""The appender: effects go to the current increment, and output to clients waits for them.

**The promise.** With ``appendfsync always`` a change that was reported survives a loss of power;
with ``everysec`` and ``no`` it survives the end of the process. So from the first change of a round
of the event loop on, all output to clients is held back, be it a reply, a message or the entries of
a woken reader, until what the round has changed is in the file. A reader is never shown what could
be lost.

**Group commit.** One write takes the changes of a round, from whichever clients they came:

- ``always``: the thread for the disk writes and syncs. Commands that arrive meanwhile are executed
  at once and share the next sync, so a slow disk makes groups larger and not queues longer.
- otherwise the event loop writes when the round ends, and the thread syncs in the background. While
  it does, a second thread writes: a write may then have to wait for the disk, and the event loop
  must not.

**Units.** A command, a transaction or a script is one unit, which is in the file as a whole or not
at all. Units may be nested; the outermost counts. What cuts the file (a rewrite, DEBUG RELOAD)
splits an open unit first.

**Failures.** A write that fails is undone and retried every second; until then commands that write
are refused with MISCONF. Clients whose changes were in the failed write get no answer: OK would be
a promise, an error would be a lie, so their connections are closed. After a sync that fails the
state of the disk is unknown; a later success says nothing about it, so all files are replaced from
memory.

**Invariants.**

- Output is released in the order in which it was held, and never before what was held earlier.
- At most one commit is in flight. Output waits either for it, or for the next one if changes have
  been made since it began.
- ``session.unsaved`` is the last round in which a client has written, so it is known whom a failed
  round concerns. Nothing is promised while ``provisional``: there is no base to follow yet.

**Rejected.** Syncing in the event loop: every client would wait for each access to the disk.
Writing before each client's replies: a system call for each command. Holding replies until the sync
under ``everysec``: each second, all clients would wait for the disk. Answering first and writing
later, as Redis may: a kill loses what was answered. Decisions 11 and 16.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import Final

from server.clients.blocking import SYNCED, BlockedClients
from server.clients.client_pause import ClientPause
from server.monitoring.latency import FSYNC, WRITE, WRITE_ALONE, WRITE_BESIDE_CHILD, WRITE_WAITS
from server.net.output_gate import OutputGate
from server.persistence.disk_thread import DiskThread
from server.road.reactions import Reactions
from server.road.session import Session
from server.road.state import ServerState
from server.runtime.histogram import Histogram
from storage.aof.encode_effects import EffectEncoder
from storage.aof.folder import Writer
from storage.engine.effects import Effect

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
    """Writes effects to the increment, and knows what of it is safe.

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
        replace_broken: Callable[[], None],
    ) -> None:
        self._state = state
        self._gate = gate
        self._blocking = blocking
        self._reactions = reactions
        self._pauses = pauses
        self._jobs = jobs
        self._replace_broken = replace_broken
        self.forms = EffectEncoder(state.keyspace)
        self.buffer: list[bytes] = []
        self.writer: Writer | None = None
        self.provisional = False
        self.rewriting = False
        self.delayed_syncs = 0
        self.sync_times = Histogram()
        """How long each sync of the increment took."""
        self._unit: list[Effect] | None = None
        self._units_open = 0
        self._authors: dict[Session, None] = {}
        self._noted = self._written = self._synced = 0
        self._scheduled = False
        self._always = False
        self._round = 1
        self._unsynced_since: int | None = None
        self._syncing_since: int | None = None
        self._tried_ms = 0
        self._seen_ms = 0
        self._second = 0
        self._told_of_delay = False
        self._latency = state.timings.latency
        state.config.listen("appendfsync", self._set_policy)

    def _set_policy(self, policy: str) -> None:
        self._always = policy == "always"

    @property
    def failure(self) -> str | None:
        """What the system said when a write or a sync failed, ``None`` while all is well."""
        return self._state.disk_error

    @property
    def size(self) -> int:
        """Bytes of the increment, with those that wait to be written."""
        written = 0 if self.writer is None else self.writer.size
        return written + self.buffered

    @property
    def buffered(self) -> int:
        """How many bytes wait to be written."""
        return sum(map(len, self.buffer))

    @property
    def needs_base(self) -> bool:
        """Whether the increment is of no use without a new base: there is none yet, or nobody knows
        what of the files is on the disk."""
        return self.provisional or (self.writer is not None and self.writer.broken)

    @property
    def syncing(self) -> bool:
        """Whether something waits for the disk."""
        return self._jobs.busy

    # --- taking effects -------------------------------------------------------------------

    def note(self, effects: Sequence[Effect], session: Session | None) -> None:
        """Takes the effects of one command; inside a unit they are kept until its end."""
        if self._unit is None:
            self._append(effects)
            if session is not None:
                session.unsaved = self._round
                session.noted = self._noted
        else:
            self._unit.extend(effects)
            if session is not None:
                session.unsaved = self._round
                self._authors[session] = None
            self._schedule()

    def split_unit(self) -> None:
        """What the unit holds so far is to be written now; what follows is another."""
        effects, self._unit = self._unit, None if self._unit is None else []
        self._append_unit(effects)

    def begin_unit(self) -> None:
        """What follows counts as a whole or not at all; units within count as part of it."""
        self._units_open += 1
        if self._unit is None:
            self._unit = []

    def end_unit(self) -> None:
        """The unit is complete."""
        self._units_open -= 1
        if self._units_open:
            return
        effects, self._unit = self._unit, None
        self._append_unit(effects)

    def _append_unit(self, effects: Sequence[Effect] | None) -> None:
        if effects and self.writer is not None:
            self._append(effects)
        for session in self._authors:  # What took many rounds is written in this one.
            session.unsaved = self._round
            session.noted = self._noted
        self._authors.clear()

    def _append(self, effects: Sequence[Effect]) -> None:
        self._noted += 1
        before = len(self.buffer)
        dated = self._state.config.aof_timestamp_enabled
        if dated:  # The time may have to stand before it.
            self.forms.split()
        self.forms.append(effects, self.buffer)
        if len(self.buffer) > before:
            if dated:
                self._date(before)
            self._schedule()

    def _date(self, place: int) -> None:
        """Puts the time in front of what was just appended, once a second."""
        second = self._state.keyspace.now_ms // 1000
        if second != self._second:
            self._second = second
            self.buffer.insert(place, b"#TS:%d\r\n" % second)

    def note_seen(self) -> None:
        """Appends when consumers were last seen, as far as that was not said yet."""
        self.forms.flush_seen(self.buffer)
        if self.buffer:
            self._schedule()

    def _schedule(self) -> None:
        """Lets the buffer be written at the end of this round of the event loop."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._end_round)
        if not self._gate.holding:
            self._update_holding()

    def _end_round(self) -> None:
        self._scheduled = False
        if self.buffer:
            self.flush()
        elif self._gate.flight is None:
            self._let_go()  # Nothing has come of what replies were held for.

    # --- holding replies back -------------------------------------------------------------

    def has_news(self) -> bool:
        """Whether anything has happened that no write has begun for."""
        return bool(self.buffer) or bool(self._unit)

    def is_waiting(self) -> bool:
        """Whether something is on its way to the file that replies may speak of: it is then written
        at the end of the round.

        What a script has done that takes long is not on its way before it ends: those who are told
        meanwhile that the server is busy need not wait for it."""
        if self._state.disk_error is not None or self.provisional:
            return False
        waiting = bool(self.buffer) or (bool(self._unit) and self._state.busy is None)
        if waiting and not self._scheduled:
            self._schedule()
        return waiting

    def _update_holding(self) -> None:
        """Sees whether replies have to wait."""
        self._gate.update(self.is_waiting())

    def _let_go(self) -> None:
        """Releases replies whose commit completed."""
        self._gate.let_go(self.is_waiting())

    def _lose(self, lost: int) -> None:
        """What happened from the round ``lost`` on is not safe.

        Nobody can say that it has not happened either, so clients that wrote then get no answer at
        all, as if the server had died. All others are answered."""
        for session in list(self._state.sessions.values()):
            if session.unsaved >= lost:
                session.link.close()
        self._gate.drop_ended()
        self._let_go()

    # --- writing --------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes the buffer, or lets it be written after what the disk is busy with."""
        writer = self.writer
        if not self.buffer or writer is None:
            return
        if self._jobs.busy:
            if self._jobs.shares and not self._always:
                self._commit(writer, syncing=False)
        elif self._always and not self.provisional:
            self._commit(writer, syncing=self._may_sync)
        else:
            self._write_now(writer)

    def _take_buffer(self) -> bytes:
        data = b"".join(self.buffer)
        self.buffer.clear()
        return data

    def _write_now(self, writer: Writer) -> None:
        number = self._round
        self._round += 1
        data = self._take_buffer()
        began = self._latency.begin()
        try:
            writer.write(data)
        except OSError as error:
            self.buffer.insert(0, data)
            self.fail(error)
            self._lose(number)
            return
        self._note_write(self._kind_of_write(), began)
        self._written = self._noted
        self._note_unsynced()
        self._recover(writer)
        self._let_go()

    def _kind_of_write(self) -> bytes:
        """What a write of this moment may have had to wait for."""
        if self._jobs.busy:
            return WRITE_WAITS
        return WRITE_BESIDE_CHILD if self.rewriting else WRITE_ALONE

    def _note_write(self, kind: bytes, began: int) -> None:
        """Lets the latency monitor know of a write that has ended: under its kind, and, unless it
        was a sync as well, under the name of all writes."""
        if kind != FSYNC:
            self._latency.end(WRITE, began)
        self._latency.end(kind, began)

    def _note_unsynced(self) -> None:
        if self._unsynced_since is None:
            self._unsynced_since = self._state.timekeeper.source()

    def _commit(self, writer: Writer, *, syncing: bool) -> None:
        """Writes, and syncs if that is wanted, in another thread; replies are held until then."""
        data = self._take_buffer()
        noted = self._noted
        kind = FSYNC if syncing else self._kind_of_write()
        began = self._latency.begin()
        number = self.begin_flight()

        def work() -> None:
            writer.write(data)
            if syncing:
                self._sync_file(writer)

        def then(error: OSError | None) -> None:
            self._note_write(kind, began)
            if error is not None and not writer.broken:
                self.buffer.insert(0, data)
            if not syncing:
                self._note_unsynced()
            self.end_flight(error, number)
            if error is None:
                self._written = noted
                self._note_synced(noted if syncing else self._synced)
                self.flush()

        run = self._jobs.run_beside if self._jobs.busy else self._jobs.run
        run(work, then)

    def begin_flight(self) -> int:
        """From now on replies wait for the job that is about to begin; returns its number."""
        if self._state.disk_error is None and not self.provisional:
            self._gate.begin_flight()
        self._round += 1
        self._update_holding()
        return self._round - 1

    def end_flight(self, error: OSError | None, number: int) -> None:
        """The job has ended, well or with an error."""
        if error is not None:
            self.fail(error)
            self._lose(number)
            return
        assert self.writer is not None
        self._recover(self.writer)
        if self._state.disk_error is None:
            self._let_go()
        else:  # A sync has failed meanwhile: what came later will not be written to this file.
            self._lose(number + 1)

    def cut(self) -> bytes:
        """Takes what waits to be written, and begins what the next increment will hold."""
        self.split_unit()
        tail = self._take_buffer()
        self.forms.begin(self.buffer)
        return tail

    def begin_provisional(self, writer: Writer) -> None:
        """From now on everything goes to an increment that has no base yet."""
        if self.writer is not None:
            self.writer.close()
        self.cut()
        self.writer = writer
        self.provisional = True
        self._update_holding()

    def end_provisional(self) -> None:
        """The increment has a base: what it holds is safe from now on."""
        self.provisional = False
        self.clear_failure()
        self._update_holding()
        self._tell_waiters()

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
        """Everything is on the disk up to what was the ``noted``-th to be appended."""
        if noted > self._synced:
            self._synced = noted
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
            self.note_seen()
        if self._jobs.busy:
            self._watch_delay()
        elif self._state.disk_error is not None:
            self._try_again(now)
        elif self._unsynced_since is None:
            if not self.buffer:
                self._note_synced(self._noted)
        elif self._is_time_to_sync(now):
            self._sync()

    def _is_time_to_sync(self, now: int) -> bool:
        """Whether the next round of periodic work may be too late for it."""
        assert self._unsynced_since is not None
        until_next: int = 1000 // self._state.config.hz
        return passed(self._unsynced_since, now, SYNC_WITHIN_MS - until_next)

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
                    self._lose(self._round)
            else:
                self._syncing_since = None
                self._note_synced(written)
            self.flush()

        self._jobs.run(lambda: self._sync_file(writer), then, shares=True)

    def _watch_delay(self) -> None:
        """Lets commands that write wait while the disk does not answer."""
        if self._jobs.running_ms < STALLED_AFTER_MS:
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
        if self._told_of_delay and self._jobs.running_ms < STALLED_AFTER_MS:
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
        self._lose(self._round)

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
        if writer is None or not passed(self._tried_ms, now, RETRY_AFTER_MS):
            return
        self._tried_ms = now
        if writer.broken:
            self._replace_broken()
        elif self.buffer:
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
            self.split_unit()
        self.note_seen()
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
        self.buffer.clear()
        self._state.set_disk_error(None)
        self.provisional = False
        self._unsynced_since = self._syncing_since = None
        self._let_go()


def passed(since: int, now: int, milliseconds: int) -> bool:
    """Whether so much time has passed; it has if the clock was set back in the meantime."""
    return not 0 <= now - since < milliseconds


def reason(error: OSError) -> str:
    """What the system said."""
    return os.strerror(error.errno) if error.errno else str(error)
