"""Full synchronisation: a snapshot for replicas that cannot go on where they were.

A child process writes an RDB file from the memory that it shares with the server at one moment; the
stream begins at the same moment. Everybody else goes on meanwhile. Replicas that come while the
child works share its snapshot, if it is the one that they need; others wait for the next one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from server.persistence.base_writer import FAILED, fork_writer
from server.persistence.commit import reason
from server.replication.feed import Feed
from server.replication.replica import Replica, SnapshotFile, SnapshotId
from server.runtime.version import REDIS_VERSION
from server.state.latency import FORK
from server.state.server_state import ServerState
from storage.aof.disk import Disk
from storage.rdb.write import write_rdb

NO_CHILD: Final = 0


class FullSync:
    """The snapshot that is being made, and for whom; ``replication_id`` tells of which stream."""

    def __init__(
        self, state: ServerState, disk: Disk, feed: Feed, replication_id: Callable[[], str]
    ) -> None:
        self._state = state
        self._disk = disk
        self._feed = feed
        self._replication_id = replication_id
        self._child = NO_CHILD
        self._file: SnapshotFile
        self._snapshot: SnapshotId
        self._position = 0
        self.waiting: list[Replica] = []
        """Those that have not been sent anything of a snapshot."""
        self.count = 0
        """How often a replica was sent a snapshot's beginning, for INFO."""

    def add(self, replica: Replica) -> None:
        """Lets a replica have a snapshot: that which is being made, or the next one."""
        self.waiting.append(replica)
        self.count += 1
        if self._child != NO_CHILD and replica.introduction.snapshot == self._snapshot:
            self._announce(replica)

    def remove(self, replica: Replica) -> None:
        """The replica is gone; a snapshot that nobody waits for any more is given up."""
        if replica in self.waiting:
            self.waiting.remove(replica)
            if self._child != NO_CHILD and not any(self._sharing()):
                self.close()

    def _sharing(self) -> Iterator[Replica]:
        """Return who waits for the snapshot that is being made."""
        return (replica for replica in self.waiting if replica.placed)

    def _announce(self, replica: Replica) -> None:
        """Tells a replica where the stream begins for it."""
        replica.place(self._position)
        if replica.speaks:
            text = f"+FULLRESYNC {self._replication_id()} {self._position}\r\n"
            replica.session.link.send(text.encode())

    # --- periodic work --------------------------------------------------------------------

    def cron(self) -> None:
        """Sees whether the child has ended, and makes one if it is needed."""
        if self._child != NO_CHILD:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                self._child = NO_CHILD
                self._ended(os.waitstatus_to_exitcode(status))
        if self._child == NO_CHILD and self.waiting and self._state.busy is None:
            self._start()

    def keep_alive(self) -> None:
        """Lets those that wait see that the server is there."""
        for replica in self.waiting:
            replica.session.link.send(b"\n")

    def _start(self) -> None:
        """Makes a child that writes a snapshot for the first that waits, and others like it."""
        self._snapshot = self.waiting[0].introduction.snapshot
        try:
            self._file = SnapshotFile(self._state.config.dir, self._disk)
        except OSError as error:
            self._fail(self.waiting[:], reason(error))
            return
        self._position = self._feed.cut()
        try:
            self._fork()
        except OSError as error:
            self._file.release()
            self._fail(self.waiting[:], reason(error))
            return
        for replica in self.waiting[:]:
            if replica.introduction.snapshot == self._snapshot:
                self._announce(replica)

    def _fork(self) -> None:
        started = time.perf_counter_ns()
        aux = ((b"redis-ver", REDIS_VERSION.encode()),)
        version, contents = self._snapshot
        chunks = write_rdb(
            self._state.keyspace,
            version=version,
            aux=aux,
            libraries="functions" in contents,
            keys="keys" in contents,
        )
        self._child = fork_writer(self._disk, self._file.fd, chunks)
        nanoseconds = time.perf_counter_ns() - started
        self._state.stats.count_fork(nanoseconds // 1000)
        self._state.timings.latency.note(FORK, nanoseconds)
        self._state.log.notice(f"Full synchronisation: process {self._child} writes the snapshot")

    def _ended(self, code: int) -> None:
        """The child has ended: the snapshot is sent to those that waited for it."""
        ready = list(self._sharing())
        if code:
            said = os.strerror(code) if 0 < code < FAILED else f"it ended with status {code}"
            self._file.release()
            self._fail(ready, f"the process that wrote the snapshot failed: {said}")
            return
        self._file.complete()
        self._state.log.notice(f"The snapshot for replicas is there: {self._file.size} bytes")
        for replica in ready:
            self.waiting.remove(replica)
            self._file.users += 1
            replica.begin_snapshot(self._file)
        self._file.release()

    def _fail(self, replicas: Iterable[Replica], text: str) -> None:
        for replica in replicas:
            replica.cut_off(text)

    def close(self) -> None:
        """Ends the child, if there is one."""
        if self._child != NO_CHILD:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = NO_CHILD
            self._file.release()
