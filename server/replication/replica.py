"""Serve one replica: what it has said of itself, how far it has come, and what is sent to it.

**Phases.** A replica is sent a snapshot first, unless it can go on where it was, and then the
stream. Its phase is what INFO shows of it; :data:`_NEXT` has all ways from one to another, so that
anything else is an error at once::

    phase            what it is sent      what is kept for it
    WAITING          line breaks          once it is placed, the stream from there on
    SENDING          the snapshot         the snapshot, and the stream
    ONLINE           the stream           the stream that it has not been sent yet
    SATISFIED        nothing              nothing

It is *placed* when it is known where the stream begins for it: at the moment of which its snapshot
is, or where it was. That may come before the snapshot is there to be sent (the child process writes
it meanwhile), so it is no phase. One that wants only a snapshot (REPLCONF rdb-only) needs nothing
of the stream, in whatever phase. A replica may go at any time (:meth:`Replica.leave`), and is then
in no phase any more.

**Pace.** It is sent as much as it reads, in all phases alike: what it has not been sent yet stays
in the file of the snapshot and in the backlog, where all replicas share it, so one that is slow
takes no memory of its own but for what the backlog must keep for it.
"""

from __future__ import annotations

from typing import BinaryIO, Final, NamedTuple, cast

from server.replication.feed import Feed
from server.runtime.clockwork import EndOfRound
from server.state.server_state import ServerState
from server.state.session import Session
from server.traffic.output import OutputLimits
from storage.aof.disk import Disk
from storage.rdb import codes

WAITING: Final = "wait_bgsave"
"""It needs a snapshot, which is being made or will be."""
SENDING: Final = "send_bulk"
"""It is sent a snapshot."""
ONLINE: Final = "online"
"""It is sent the stream."""
SATISFIED: Final = "rdb_transmitted"
"""It wanted nothing but a snapshot, and was sent one."""

_RESUMED: Final = "it goes on where it was"
_SNAPSHOT_BEGAN: Final = "a snapshot is there for it"
_SNAPSHOT_ENDED: Final = "it was sent the snapshot"
_HAS_ALL: Final = "it was sent the snapshot, and wants no more"

_NEXT: Final = {
    (WAITING, _RESUMED): ONLINE,
    (WAITING, _SNAPSHOT_BEGAN): SENDING,
    (SENDING, _SNAPSHOT_ENDED): ONLINE,
    (SENDING, _HAS_ALL): SATISFIED,
}
"""Which phase follows, by the present one and what happens."""

FIRST_OF_VALKEY: Final = 9
"""The first version of Valkey that has an RDB version of its own."""

UNSENT: Final = 256 * 1024
"""A replica is sent no more while so many bytes wait in its connection."""
AT_ONCE: Final = 1024 * 1024
"""How many bytes it is sent before others have their turn."""

READ_AT_ONCE: Final = 64 * 1024
"""How many bytes of a snapshot are read at a time."""

EVERYTHING: Final = frozenset({"keys", "functions"})
"""What a snapshot holds for a replica."""


class SnapshotId(NamedTuple):
    """Which snapshot it is."""

    version: int
    contents: frozenset[str]


class Introduction:
    """The words of a client about itself with REPLCONF, before it becomes a replica."""

    __slots__ = ("address", "capabilities", "contents", "only_snapshot", "port", "version")

    def __init__(self) -> None:
        self.port = 0
        self.address = ""
        """Where it listens, if that is not where it connects from."""
        self.capabilities: set[bytes] = set()
        self.only_snapshot = False
        self.contents = EVERYTHING
        self.version = ""
        """Which version of Valkey it is, if it is one."""

    @property
    def snapshot(self) -> SnapshotId:
        """The snapshot that it needs; those who need the same one can share it."""
        return SnapshotId(self.rdb_version, self.contents)

    @property
    def rdb_version(self) -> int:
        """The newest version of RDB files that it is known to read: Redis 8 tells what only it can
        do, Valkey tells its version, and the others may be Redis 7.0."""
        if self.version:
            major = int(self.version.partition(".")[0])
            return codes.VALKEY if major >= FIRST_OF_VALKEY else codes.REDIS_7_2
        newer = b"rdb-channel-repl" in self.capabilities
        return codes.NEWEST if newer else codes.REDIS_7_0


class SnapshotFile:
    """A snapshot on its way to replicas: a file without a name, which goes when nobody needs it.

    ``users`` of it each call :meth:`release` once.
    """

    def __init__(self, folder: str, disk: Disk) -> None:
        """Makes the file in a folder, or where the system keeps temporary files if nothing can be
        written there; raises :class:`OSError`."""
        self._disk = disk
        self._file = _new_file(folder)
        self.users = 1
        self.size = 0

    @property
    def fd(self) -> int:
        """Where it is written to."""
        return self._file.fileno()

    def complete(self) -> None:
        """All has been written."""
        self.size = self._disk.size(self.fd)

    def read(self, at: int) -> bytes:
        """Some bytes from a place on; none at the end. Raises :class:`OSError`."""
        return self._disk.read(self.fd, READ_AT_ONCE, at)

    def release(self) -> None:
        """Count one less that needs it."""
        self.users -= 1
        if not self.users:
            self._file.close()


def _new_file(folder: str) -> BinaryIO:
    import tempfile

    for place in (folder, None):
        try:
            return cast(BinaryIO, tempfile.TemporaryFile(dir=place, buffering=0))
        except OSError:
            if place is None:
                raise
    raise AssertionError


class Replica:
    """A client that follows. Positions are in bytes of the stream."""

    def __init__(
        self,
        session: Session,
        introduction: Introduction,
        state: ServerState,
        feed: Feed,
        limits: OutputLimits,
    ) -> None:
        self.session = session
        self.introduction = introduction
        self._state = state
        self._feed = feed
        self._limits = limits
        self.phase = WAITING
        self.speaks = True
        """Whether it says how far it is: one that came with SYNC may not."""
        self.placed = False
        """Whether it is known where the stream begins for it."""
        self.position = 0
        """What it has been sent of the stream; where that begins while it gets a snapshot."""
        self.acknowledged = 0
        self.acknowledged_on_disk = 0
        self.heard_ms = state.clock()
        """When it last said how far it is, or last made progress."""
        self._snapshot: SnapshotFile | None = None
        self._read = 0
        self._choked = False
        self._soon = EndOfRound(self._go_on)

    # --- what it is -----------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The address that it is to be reached at."""
        host = self.session.link.addr.rpartition(":")[0].strip("[]")
        return self.introduction.address or host

    @property
    def needs_from(self) -> int | None:
        """From which position on it needs the stream; ``None`` if it does not, or not yet."""
        follows = self.placed and not self.introduction.only_snapshot
        return self.position if follows else None

    @property
    def behind(self) -> int:
        """How much of the stream it has not been sent yet."""
        needs_from = self.needs_from
        return 0 if needs_from is None else self._feed.end - needs_from

    def _enter_next(self, event: str) -> None:
        self.phase = _NEXT[self.phase, event]

    # --- sending --------------------------------------------------------------------------

    def begin_snapshot(self, snapshot: SnapshotFile) -> None:
        """Sends it a snapshot, then the stream from its position on."""
        self._snapshot = snapshot
        self._read = 0
        self._enter_next(_SNAPSHOT_BEGAN)
        self.heard_ms = self._state.clock()
        self.session.link.send(b"$%d\r\n" % snapshot.size)
        self.resume()

    def place(self, position: int) -> None:
        """The stream begins for it at this position."""
        self.placed = True
        self.position = position

    def follow_from(self, position: int) -> None:
        """Sends it the stream from a position on, up to which it has it."""
        self.place(position)
        self.acknowledged = position
        self._enter_next(_RESUMED)
        self.heard_ms = self._state.clock()
        self.resume()

    def pause(self) -> None:
        """Send no more for now: it does not read what was sent."""
        self._choked = True

    def resume(self) -> None:
        """Send more, if there is more: it has read what was sent."""
        self._choked = False
        self.pump()

    def pump(self) -> None:
        """Sends what there is, as far as it takes it."""
        sent = 0
        while not self._choked and self.session.link.waiting_bytes()[1] < UNSENT:
            try:
                data = self._next()
            except OSError as error:
                self.cut_off(f"the snapshot cannot be read: {error.strerror}")
                return
            if not data or self.session.closing:
                return
            self.session.link.send(data)
            self._state.stats.bytes_to_replicas += len(data)
            sent += len(data)
            if self._snapshot is None and self.position == self._feed.end:
                return
            if sent >= AT_ONCE:
                self.resume_soon()
                return

    def resume_soon(self) -> None:
        """Sends more, once what is going on now has been done."""
        self._soon.schedule()

    def _go_on(self) -> None:
        if self.session.follower is self:
            self.pump()

    def _next(self) -> bytes:
        """The next bytes for it, of the snapshot or of the stream."""
        if self._snapshot is not None:
            data = self._snapshot.read(self._read)
            self._read += len(data)
            self.heard_ms = self._state.clock()
            if self._read == self._snapshot.size:
                self._end_snapshot()
            return data
        backlog = self._feed.backlog
        if self.phase is not ONLINE or backlog is None:
            return b""
        data = backlog.read(self.position)
        self.position += len(data)
        return data

    def _end_snapshot(self) -> None:
        self._enter_next(_HAS_ALL if self.introduction.only_snapshot else _SNAPSHOT_ENDED)
        self._let_snapshot_go()

    def _let_snapshot_go(self) -> None:
        if self._snapshot is not None:
            self._snapshot.release()
            self._snapshot = None

    # --- the end --------------------------------------------------------------------------

    def check_output(self, more: int = 0) -> bool:
        """Cuts it off if more waits for it than client-output-buffer-limit allows; whether it was.

        What the backlog holds anyway costs nothing, so a lower limit does not count."""
        waiting = self.session.link.waiting_bytes()[1] + self.behind + more
        if waiting <= self._state.config.repl_backlog_size:
            return False
        if not self._limits.exceeded(self, "slave", waiting):
            return False
        self._state.stats.output_limit_disconnections += 1
        self.cut_off(f"{waiting} bytes wait for it, more than client-output-buffer-limit allows")
        return True

    def cut_off(self, reason: str) -> None:
        """Ends its connection at once."""
        self._state.log.warning(f"Replica {self.name} is cut off: {reason}")
        self.session.link.close()

    def leave(self) -> None:
        """Forget the replica, which is gone."""
        self._limits.forget(self)
        self._let_snapshot_go()

    @property
    def name(self) -> str:
        """Return the name that messages call it by."""
        return f"{self.address}:{self.introduction.port}"
