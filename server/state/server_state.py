"""What is true of a server at this moment: the facts that its parts share.

Every part of a server (blocking, persistence, scripting ...) takes this object, and by name the
other parts that it calls. It has no life cycle of its own: :mod:`server.app` has.
"""

from __future__ import annotations

from enum import Enum

from server.acl.users import Users
from server.config.registry import Config
from server.core import reasons
from server.core.table import every, new_table
from server.runtime.clock import Clock, Reading, Stopwatch
from server.runtime.log import Log
from server.runtime.memory import MemoryLimit
from server.runtime.process import Instance
from server.runtime.stats import Stats
from server.state.session import Link, Session
from server.state.timings import Timings
from storage.keyspace.databases import Keyspace


class Phase(Enum):
    """What a server is doing. It goes through these in their order, and may leave some out.

    Clients can connect as soon as the first socket listens, which is before the data is there, and
    are answered as a real server answers while it loads: commands with the flag ``loading`` run,
    all others get ``LOADING``. Once it is stopped nobody is answered at all.
    """

    STARTING = "the sockets are being opened"
    LOADING = "the data is being loaded"
    SERVING = "every command is run"
    STOPPED = "connections are being closed, after a failed start as well"


class ServerState:
    """Settings, time, messages, data, counters, commands, users and clients of one server.

    ``clock`` gives Unix milliseconds; it is replaced when the clock is turned, so it is read from
    here each time. Some states forbid some commands: a ``phase`` other than serving, a script that
    takes long (``busy``), a disk that fails (``disk_error``). They are entered by methods, which
    note them in ``reasons``: that is all that the fast path looks at (:mod:`server.core.reasons`).
    """

    __slots__ = (
        "_commands",
        "busy",
        "changes",
        "clock",
        "config",
        "disk_error",
        "instance",
        "keyspace",
        "last_id",
        "log",
        "memory",
        "phase",
        "reasons",
        "sessions",
        "stats",
        "stopwatch",
        "table",
        "timekeeper",
        "timings",
        "users",
    )

    def __init__(self, config: Config, clock: Reading, log: Log) -> None:
        self.config = config
        self.timekeeper = Clock(clock)
        self.clock = self.timekeeper.read
        self.stopwatch = Stopwatch(self.timekeeper)
        """When the present command began, and what time it is for it."""
        self.log = log
        self.instance = Instance(clock())
        self.keyspace = Keyspace(config.databases)
        self.keyspace.now_ms = self.instance.started_ms
        self.keyspace.due_by = self.timekeeper.due_by
        self.stats = Stats()
        self.reasons = reasons.LOADING
        """Why requests may not run plainly: bits of :mod:`server.core.reasons`."""
        self.timings = Timings(config, lambda: self.clock(), self._note_watched)
        self.table = new_table()
        self._commands = list(every(self.table))
        self.users = Users(self.table)
        self.sessions: dict[int, Session] = {}
        self.last_id = 0
        """The number of the client that connected last."""
        self.changes = 0
        """How much has changed since a base of the append-only file was last made."""
        self.phase = Phase.STARTING
        self.busy: str | None = None
        """What other clients are told while a script takes long."""
        self.disk_error: str | None = None
        """What the system said when the append-only file could not be written."""
        self.memory = MemoryLimit(self._note_memory)
        """Whether memory is full, so that commands which may take more are refused."""

    # --- why requests may not run plainly -------------------------------------------------

    def note(self, reason: int, holds: bool) -> None:
        """Notes that a reason of :mod:`.reasons` holds from now on, or does not any more."""
        self.reasons = self.reasons | reason if holds else self.reasons & ~reason

    def _note_memory(self, exceeded: bool) -> None:
        self.note(reasons.MEMORY, exceeded)

    def _note_watched(self, watched: bool) -> None:
        self.note(reasons.WATCHED, watched)

    def enter(self, phase: Phase) -> None:
        """Goes on to another phase."""
        self.phase = phase
        self.note(reasons.LOADING, phase is not Phase.SERVING)

    def set_busy(self, refusal: str | None) -> None:
        """A script takes long, and others are refused with this text; ``None`` when it ends."""
        self.busy = refusal
        self.note(reasons.BUSY, refusal is not None)

    def set_disk_error(self, reason: str | None) -> None:
        """The append-only file cannot be written, for this reason; ``None`` when it can."""
        self.disk_error = reason
        self.note(reasons.DISK, reason is not None)

    # --- clients --------------------------------------------------------------------------

    def new_session(self, identity: int, addr: str = "", laddr: str = "") -> Session:
        """The session of a client that has just connected, or of nobody (0)."""
        first, users = self.keyspace.databases[0], self.users
        link = Link(addr, laddr, self.clock())
        return Session(identity, link, first, users.default, users.default_is_open())

    # --- time and counters ----------------------------------------------------------------

    def turn_clock(self, by_ms: int) -> None:
        """Moves the time that ``clock`` tells; nothing else follows from it here."""
        self.timekeeper.turn(by_ms)
        self._take_clock()

    def freeze_clock(self) -> None:
        """Lets the time stand still, until it is turned or released."""
        self.timekeeper.freeze()
        self._take_clock()

    def release_clock(self) -> None:
        """Lets a time that stands still run on."""
        self.timekeeper.release()
        self._take_clock()

    def _take_clock(self) -> None:
        self.clock = self.timekeeper.read
        self.stopwatch.forget()

    def commands_processed(self) -> int:
        """How many commands have run."""
        return sum([entry.calls for entry in self._commands])

    def command_nanoseconds(self) -> int:
        """How long commands have run."""
        return sum([entry.nanoseconds for entry in self._commands])

    def forget_counts(self) -> None:
        """Sets the counters of commands, of keys and of clients to zero."""
        self.stats.reset()
        self.timings.forget_counts()
        self.keyspace.forget_counts()
        self.keyspace.limits.disposal.freed = 0
        for entry in self._commands:
            entry.forget_calls()
