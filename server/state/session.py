"""One client's state: who it is, how it speaks, what it has begun, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from protocol.requests import ARGUMENT_OVERHEAD
from server.acl.users import User
from server.core import reasons
from server.core.outcomes import Pieces, Wait, Work
from server.core.table import Arguments, Command
from server.runtime.addresses import is_loopback
from storage.keyspace.databases import Database

Place = tuple[int, bytes]
"""A database's index and a key."""

QUEUED_OVERHEAD: Final = 128
"""What a queued command takes apart from its arguments, in bytes."""


class Follower(Protocol):
    """A client that is sent the stream of replication, as fast as it takes it."""

    def cut_off(self, reason: str) -> None:
        """Ends its connection at once."""

    def pause(self) -> None:
        """Sends no more for now: the client does not read what was sent."""

    def resume(self) -> None:
        """Sends again: the client has read what was sent."""

    def resume_soon(self) -> None:
        """Some of what was held back has gone out; the rest of it goes first."""


CLIENT: Final = 0
EXEC: Final = 1
SCRIPT: Final = 2
FILE: Final = 3
"""Who has commands run: a client, its EXEC, a script of it, or an append-only file."""


class Script:
    """For which ``client`` a script runs, what it may not do (``reasons``), and whether it
    ``wrote`` anything."""

    __slots__ = ("client", "reasons", "wrote")

    def __init__(self, client: Session, why: int = 0) -> None:
        self.client = client
        self.reasons = why
        self.wrote = False


class Wire(Protocol):
    """What carries bytes between a session and its client."""

    def send(self, data: bytes) -> None:
        """Writes bytes that are no reply: pushes and pub/sub messages."""

    def close(self) -> None:
        """Ends the connection at once, without what is still to be sent."""

    def traffic(self) -> dict[str, int]:
        """Return the connection's buffers and its file descriptor, for CLIENT LIST."""

    def waiting_bytes(self) -> tuple[int, int]:
        """Return how many bytes of requests and of replies wait, for INFO, which asks all
        clients."""


class Link:
    """How a session reaches its client: over which addresses, since when and until when (Unix
    milliseconds, the latter 0 while it is there), and what has gone both ways. The link of a
    session without a client has no ``wire`` and leads nowhere, and has no address."""

    __slots__ = (
        "addr",
        "batched",
        "batches",
        "bytes_in",
        "bytes_out",
        "bytes_read",
        "closed_ms",
        "created_ms",
        "laddr",
        "reads",
        "wire",
    )

    def __init__(self, addr: str, laddr: str, now_ms: int) -> None:
        self.addr = addr
        self.laddr = laddr
        self.created_ms = now_ms
        self.closed_ms = 0
        self.wire: Wire | None = None
        self.bytes_in = self.bytes_out = self.reads = 0
        self.bytes_read = 0
        """How many the last read brought."""
        self.batches = self.batched = 0
        """How often what was read held whole requests, and how many these were."""

    def send(self, data: bytes) -> None:
        """Writes bytes that are no reply."""
        if self.wire is not None:
            self.wire.send(data)

    def close(self) -> None:
        """Ends the connection at once."""
        if self.wire is not None:
            self.wire.close()

    def traffic(self) -> dict[str, int]:
        """Return the connection's buffers and its file descriptor."""
        return {} if self.wire is None else self.wire.traffic()

    def waiting_bytes(self) -> tuple[int, int]:
        """Return how many bytes of requests and of replies wait."""
        return (0, 0) if self.wire is None else self.wire.waiting_bytes()


class Subscriptions:
    """What a client listens to."""

    __slots__ = ("channels", "patterns", "shards")

    def __init__(self) -> None:
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.shards: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self.channels) + len(self.patterns) + len(self.shards)


NOTHING: Final = Subscriptions()
"""What most clients listen to. Nothing is put in here: see :class:`.PubSub`."""


class Transaction:
    """What MULTI has begun: the commands in the ``queue``, the ``memory`` that they take, and
    whether one of them was refused, so that none will run (``broken``)."""

    __slots__ = ("broken", "memory", "queue")

    def __init__(self) -> None:
        self.queue: list[tuple[Command, Arguments]] = []
        self.memory = 0
        self.broken = False

    def add(self, command: Command, args: Arguments) -> None:
        """Queues a command."""
        self.queue.append((command, args))
        self.memory += QUEUED_OVERHEAD + sum(map(len, args)) + ARGUMENT_OVERHEAD * len(args)


class Watching:
    """The keys that a client watches, each with whether it was overdue already, and whether one of
    them has changed, see :mod:`server.clients.watch`."""

    __slots__ = ("dirty", "keys")

    def __init__(self) -> None:
        self.keys: dict[Place, bool] = {}
        self.dirty = False


class Ending:
    """How a fault ends a connection: after so many bytes of the reply to the present command, or
    after all of them (``None``), and whether with a reset of TCP."""

    __slots__ = ("reply_bytes", "resets")

    def __init__(self, reply_bytes: int | None = None, *, resets: bool = False) -> None:
        self.reply_bytes = reply_bytes
        self.resets = resets


class Session:
    """The state of one client.

    What a feature needs to know of a client is an object of its own, which is there only while the
    client uses it; the feature makes and drops it, and notes its bit in ``reasons``. There
    is no socket here: ``link`` leads to it.
    """

    __slots__ = (
        "account",
        "authenticated",
        "caller",
        "closing",
        "command",
        "commands",
        "db",
        "ending",
        "follower",
        "id",
        "library",
        "link",
        "listening",
        "muting",
        "name",
        "no_evict",
        "no_touch",
        "noted",
        "parked",
        "paused",
        "reading",
        "reasons",
        "replicated",
        "resp3",
        "script",
        "seen_ms",
        "tracking",
        "transaction",
        "watching",
    )

    def __init__(
        self, identity: int, link: Link, database: Database, user: User, authenticated: bool
    ) -> None:
        self.id = identity
        self.link = link
        self.seen_ms = link.created_ms
        self.ending: Ending | None = None
        """What a fault has done to the present command."""
        self.parked: Waiter | Job | None = None
        """The command whose reply comes later."""
        self.reading: object = None
        """The options of the last XREADGROUP, which a worker sends again and again."""
        self.noted = 0
        """The unit of the journal that has the client's last change."""
        self.follower: Follower | None = None
        """The replica that the client is, if it is one."""
        self.replicated = 0
        """How much the stream of replication had when the client's last change was in it."""
        self.caller = CLIENT
        """Who has the session's commands run."""
        self.script: Script | None = None
        """What may be done by the script whose session it is; ``None`` for that of a client."""
        self.command: Command | None = None
        self.listening = NOTHING
        self.watching: Watching | None = None
        self.tracking: ClientTracking | None = None
        """What the client is told of keys that it keeps copies of."""
        self.commands = 0
        """How many requests have been answered, or have begun to wait for their answer."""
        self.reasons = 0
        self.library = b"", b""
        """The name and the version of what the client is made with, as it says itself."""
        # Where they are compiled, flags that follow each other take a byte each.
        self.closing = False
        """Set by a command after whose reply the connection ends."""
        self.paused = False
        """Whether a request of the client waits for the end of a pause, or for a test."""
        self.reset(database, user, authenticated)

    def reset(self, database: Database, user: User, authenticated: bool) -> None:
        """The state of a client that has just connected (subscriptions are ended elsewhere, and so
        is the watching of keys). It is ``user``, whose password it has to say first unless it is
        ``authenticated``."""
        self.resp3 = False
        self.authenticated = authenticated
        self.no_evict = False
        self.no_touch = False
        self.db = database
        self.name = b""
        self.account = user
        self.muting: str | None = None
        self.transaction: Transaction | None = None
        self.update_reasons()

    def begin_transaction(self) -> None:
        """Enters MULTI."""
        self.transaction = Transaction()
        self.reasons |= reasons.MULTI

    def clear_transaction(self) -> None:
        """Leaves MULTI. Watched keys are forgotten by :meth:`.WatchedKeys.end_transaction`."""
        self.transaction = None
        self.reasons &= ~reasons.MULTI

    @property
    def queue(self) -> Sequence[tuple[Command, Arguments]]:
        """The commands that EXEC would run."""
        return () if self.transaction is None else self.transaction.queue

    @property
    def queue_bytes(self) -> int:
        """How much memory the queue takes."""
        return 0 if self.transaction is None else self.transaction.memory

    @property
    def user(self) -> bytes:
        """The name of the user that the client is."""
        return self.account.name

    @property
    def executing(self) -> bool:
        """Whether it is not the client itself that has a command run, which cannot wait then."""
        return self.caller != CLIENT

    @property
    def is_local(self) -> bool:
        """Whether the client is on the same host: at a loopback address or a Unix socket."""
        host = self.link.addr.rpartition(":")[0].strip("[]")
        try:
            return is_loopback(host)
        except ValueError:
            return True

    @property
    def is_debugging(self) -> bool:
        """Whether the last command of the client was DEBUG."""
        return self.command is not None and self.command.name == "debug"

    @property
    def waiter(self) -> Waiter | None:
        """The command that is blocked, if one is."""
        return self.parked if isinstance(self.parked, Waiter) else None

    @property
    def is_blocked(self) -> bool:
        """Whether the client waits: with a command that blocks, or one that is held back."""
        return self.paused or self.waiter is not None

    @property
    def subscriptions(self) -> int:
        """How many channels, patterns and shard channels the client listens to."""
        return len(self.listening)

    @property
    def monitoring(self) -> bool:
        """Whether the client is shown every command, instead of using the data itself."""
        return bool(self.reasons & reasons.MONITORING)

    @property
    def is_pushed_to(self) -> bool:
        """Whether the client is sent what it has not asked for, command by command."""
        return self.listening is not NOTHING or bool(self.reasons & reasons.MONITORING)

    def monitor(self, begins: bool) -> None:
        """Begins or ends to be shown every command."""
        self.reasons = (self.reasons & ~reasons.MONITORING) | (reasons.MONITORING * begins)

    def update_reasons(self) -> None:
        """Computes ``reasons`` anew; for whoever changes what it stands for."""
        tracking = self.tracking
        self.reasons = (
            (0 if self.authenticated else reasons.STRANGER)
            | (0 if self.transaction is None else reasons.MULTI)
            | (reasons.SUBSCRIBED if not self.resp3 and self.subscriptions else 0)
            | (self.reasons & reasons.MONITORING)
            | (0 if self.follower is None else reasons.REPLICA)
            | (reasons.LIMITED if self.account.limited else 0)
            | (0 if self.account.rate is None else reasons.RATED)
            | (0 if self.muting is None else reasons.MUTED)
            | (0 if tracking is None else reasons.TRACKING)
            | (reasons.CACHING if tracking is not None and tracking.caching else 0)
            | (0 if self.script is None else self.script.reasons)
        )

    def log_in(self, user: User) -> None:
        """The client is this user from now on."""
        self.account = user
        self.authenticated = True
        self.update_reasons()

    def swallow_reply(self) -> None:
        """Notes that a reply was not sent: SKIP holds for one."""
        if self.muting == "skip":
            self.muting = None
            self.update_reasons()


class Parked:
    """A client's command whose reply comes later: a future of that reply. It has run for
    ``nanoseconds`` so far.

    Those of :mod:`asyncio` call back in the next turn of the event loop. This one does so at once:
    the reply of a client that was woken leaves in the turn that woke it (decision 6).
    """

    __slots__ = ("args", "callback", "command", "nanoseconds", "result", "session")

    def __init__(
        self, session: Session, command: Command, args: Arguments, nanoseconds: int
    ) -> None:
        self.session = session
        self.command = command
        self.args = args
        """What the client has sent."""
        self.nanoseconds = nanoseconds
        self.result: Pieces | None = None
        """The reply; ``None`` until it is there."""
        self.callback: Callable[[], None] | None = None

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Lets this be called, once, when the reply is there."""
        self.callback = callback

    def set_result(self, reply: Pieces) -> None:
        """The reply is there: whoever waits for it is called."""
        self.result = reply
        if self.callback is not None:
            self.callback()


class Waiter(Parked):
    """A client that waits with a command that blocks, and its places in the queues.

    ``deadline`` is that of the first ``wait``; running the command again never puts it off.
    """

    __slots__ = ("deadline", "places", "wait")

    def __init__(
        self,
        session: Session,
        command: Command,
        args: Arguments,
        nanoseconds: int,
        wait: Wait,
        places: list[Place],
    ) -> None:
        super().__init__(session, command, args, nanoseconds)
        self.wait = wait
        self.deadline = wait.deadline
        self.places = places


class Job(Parked):
    """A client's command that is being worked on."""

    __slots__ = ("work",)

    def __init__(
        self, session: Session, command: Command, args: Arguments, nanoseconds: int, work: Work
    ) -> None:
        super().__init__(session, command, args, nanoseconds)
        self.work = work


class ClientTracking:
    """How a client is told of keys that it keeps copies of, see :mod:`server.clients.tracking`.

    ``client`` is its number. Notices go to the client with the number ``redirect``, or to itself
    (0), and not for its own changes with ``noloop``. With ``bcast`` it is told of all keys with its
    ``prefixes``, else of those that it has read: with ``optin`` only by a command that
    follows CLIENT CACHING YES, with ``optout`` not by one that follows CLIENT CACHING NO.
    ``caching`` is whether that was the last command.
    """

    __slots__ = (
        "bcast",
        "broken",
        "caching",
        "client",
        "noloop",
        "optin",
        "optout",
        "prefixes",
        "redirect",
    )

    def __init__(self, client: int) -> None:
        self.client = client
        self.redirect = 0
        self.bcast = self.optin = self.optout = self.noloop = False
        self.caching = False
        self.broken = False
        """Whether the client that it redirects to was found to be gone."""
        self.prefixes: list[bytes] = []

    def take(self, options: ClientTracking) -> None:
        """Takes the options of CLIENT TRACKING ON, but for its prefixes, which add up."""
        self.redirect = options.redirect
        self.bcast, self.noloop = options.bcast, options.noloop
        self.optin, self.optout = options.optin, options.optout
        self.broken = False

    @property
    def notes_reads(self) -> bool:
        """Whether the keys are noted that the client's command reads."""
        if self.bcast:
            return False
        if self.optin:
            return self.caching
        return not (self.optout and self.caching)
