"""What the append-only file needs from time to time: syncs, another try, and its end.

What happens is written by :mod:`server.persistence.commit`. Under ``everysec`` what was written is
synced here in the background, within a second; and under ``always`` too where a rewrite was exempt
from syncs. A disk that does not answer for two seconds stalls commands that write, and one that has
refused is tried again every second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from server.clients.client_pause import ClientPause
from server.persistence.commit import Commit
from server.persistence.disk_thread import DiskThread
from server.persistence.journal import Journal
from server.state.server_state import ServerState
from server.state.session import Session

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
    """Looks after the increment; ``replace_broken`` is called when nobody can trust it any more."""

    def __init__(
        self,
        state: ServerState,
        commit: Commit,
        pauses: ClientPause,
        jobs: DiskThread,
        journal: Journal,
        replace_broken: Callable[[], None],
    ) -> None:
        self._state = state
        self._commit = commit
        self._pauses = pauses
        self._jobs = jobs
        self._journal = journal
        self._replace_broken = replace_broken
        self.sync_within_ms = SYNC_WITHIN_MS
        self.stalled_after_ms = STALLED_AFTER_MS
        self.retry_after_ms = RETRY_AFTER_MS
        self.delayed_syncs = 0
        self._stalled = False
        self._seen_ms = 0

    @property
    def size(self) -> int:
        """Bytes of the increment, with those that wait to be written."""
        writer = self._commit.writer
        return (0 if writer is None else writer.size) + self.buffered

    @property
    def buffered(self) -> int:
        """How many bytes wait to be written."""
        return self._commit.reader.size

    @property
    def needs_base(self) -> bool:
        """Whether the increment is of no use without a new base: there is none yet, or nobody knows
        what of the files is on the disk."""
        writer = self._commit.writer
        return self._commit.provisional or (writer is not None and writer.broken)

    @property
    def syncing(self) -> bool:
        """Whether something waits for the disk."""
        return self._jobs.busy > 0

    # --- syncing --------------------------------------------------------------------------

    def unsynced_ms(self, now: int) -> int:
        """For how long the oldest of the changes has been in the file that may not be on the disk
        yet, at this real time; 0 if all are."""
        commit = self._commit
        since = commit.unsynced_since if commit.syncing_since is None else commit.syncing_since
        return 0 if since is None else max(0, now - since)

    def is_synced(self, session: Session) -> bool:
        """Whether everything that the client has changed is on the disk, a base included."""
        return not self._commit.provisional and session.noted <= self._commit.synced

    def cron(self, now: int) -> None:
        """Periodic work: syncing, seen-times, trying again what failed, and stalling writers.

        ``now`` is the real time, here and in what is noted: a disk knows no other."""
        commit = self._commit
        if commit.writer is not None and passed(self._seen_ms, now, SEEN_EVERY_MS):
            self._seen_ms = now
            self._journal.note_seen()
        if self._jobs.busy:
            self._watch_delay()
        elif self._state.disk_error is not None:
            self._try_again(now)
        elif commit.unsynced_since is None:
            if not commit.reader.has_news:
                commit.note_synced(self._journal.count)
        elif self._is_time_to_sync(now, commit.unsynced_since):
            self._sync()

    def _is_time_to_sync(self, now: int, since: int) -> bool:
        """Whether the next round of periodic work may be too late for it."""
        until_next: int = 1000 // self._state.config.hz
        return passed(since, now, self.sync_within_ms - until_next)

    def _sync(self) -> None:
        """Syncs in the other thread what was written without."""
        commit = self._commit
        if commit.writer is None or self._state.config.appendfsync == "no" or not commit.may_sync:
            return
        commit.syncing_since, commit.unsynced_since = commit.unsynced_since, None
        written = commit.written

        def then(error: OSError | None) -> None:
            if error is not None:
                commit.distrust(error)
            else:
                commit.syncing_since = None
                commit.note_synced(written)
            commit.write()

        self._jobs.run(commit.sync, then, shares=True)

    def _watch_delay(self) -> None:
        """Lets commands that write wait while the disk does not answer."""
        if self._is_stuck and not self._stalled:
            self._stalled = True
            self._jobs.waiting.append(self._answered)
            self.delayed_syncs += 1
            self._state.log.warning(
                "The disk takes more than two seconds for the append-only file:"
                " commands that write have to wait"
            )
            self._pauses.stall()

    @property
    def _is_stuck(self) -> bool:
        return self._jobs.running_ms >= self.stalled_after_ms

    def _answered(self) -> None:
        """Lets commands go on that had to wait."""
        if self._is_stuck:
            self._jobs.waiting.append(self._answered)
        elif self._stalled:
            self._stalled = False
            self._pauses.unstall()

    def keep_stalled(self) -> None:
        """Leaves commands waiting that had to: the server ends."""
        self._stalled = False

    # --- failures -------------------------------------------------------------------------

    def give_up(self, error: OSError) -> None:
        """The increment is of no use any more, though it can be written to. The disk must not be
        busy."""
        assert self._commit.writer is not None
        self._commit.writer.broken = True
        self._commit.distrust(error)

    def _try_again(self, now: int) -> None:
        commit = self._commit
        writer = commit.writer
        if writer is None or not passed(commit.tried_ms, now, self.retry_after_ms):
            return
        commit.tried_ms = now
        if writer.broken:
            self._replace_broken()
        elif commit.reader.has_news:
            commit.write()
        else:
            commit.arrive()

    # --- the end --------------------------------------------------------------------------

    def drain(self) -> bool:
        """Writes and syncs everything, and waits for that; whether it is safe."""
        commit = self._commit
        self._jobs.wait()
        if commit.writer is None:
            return True
        if self._state.busy is None:  # What a script has begun is not whole.
            self._journal.split_unit()
        self._journal.note_seen()
        commit.write()
        self._jobs.wait()
        if self._state.disk_error is None:
            try:
                commit.writer.sync()
            except OSError as error:
                commit.distrust(error)
        return self._state.disk_error is None


def passed(since: int, now: int, milliseconds: int) -> bool:
    """Whether so much time has passed; it has if the clock was set back in the meantime."""
    return not 0 <= now - since < milliseconds
