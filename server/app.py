"""A running server: listening sockets, clients, periodic work, and the parts they share."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from protocol.requests import ChunkReader
from server import command_table
from server.auth import Users
from server.clients.blocking import Blocking
from server.clients.client_pause import Pausing
from server.clients.keyspace_events import Notifier
from server.clients.pubsub import PubSub
from server.clients.reactions import settle
from server.clients.watch import Watching
from server.commands import load as register_commands
from server.config.registry import BadSetting, Config
from server.dispatcher import Dispatcher
from server.net.connection import Connection
from server.net.listener import Listening, address_text
from server.net.output_limits import OutputLimits
from server.net.turns import Turns, now_ns
from server.persistence.manager import Persistence, PersistenceError
from server.runtime.change_count import changes_of
from server.runtime.clock import Clock, Reading, system_clock
from server.runtime.lazy_free_scheduler import Disposing
from server.runtime.log import Log
from server.runtime.packing_scheduler import Resting
from server.runtime.phase import Phase
from server.runtime.process import resident_memory
from server.runtime.stats import Stats
from server.scripting.engine import Scripting
from server.session import Session
from server.steps import Working
from storage.aof.disk import Disk
from storage.effects import Effect
from storage.keyspace import Keyspace
from storage.stream import Stream

if TYPE_CHECKING:
    from protocol.requests import Request

EXPIRE_BATCH: Final = 1000
"""How many keys one round removes at most, so that no round takes long."""

ALL_KEYS: Final = 2**62
"""More keys than there can be."""


class Server:
    """Everything that one server's clients share.

    ``clock`` gives Unix milliseconds; messages go to ``log``, and the append-only file to ``disk``.
    Once started it does its periodic work by itself if ``periodic``, else when :meth:`cron` is
    called.
    """

    def __init__(
        self,
        config: Config | None = None,
        clock: Reading = system_clock,
        log: Log | None = None,
        disk: Disk | None = None,
        periodic: bool = True,
    ) -> None:
        register_commands()
        self.phase: Phase
        self.config = config or Config()
        self.timekeeper = Clock(clock)
        self.clock = self.timekeeper.read
        self.log = log or Log()
        self.started_ms = clock()
        self.startup_memory = resident_memory()
        self.run_id = secrets.token_hex(20)
        self.replication_id = secrets.token_hex(20)
        self.keyspace = Keyspace(self.config.databases)
        self.keyspace.now_ms = self.started_ms
        self.stats = Stats()
        self.chunk_reader = ChunkReader()
        self.sessions: dict[int, Session] = {}
        self.connections: dict[Session, Connection] = {}
        self.transports: set[asyncio.Transport] = set()
        """Every open connection's, those included that are only being closed."""
        self._last_id = 0
        self.table = command_table.new_table()
        self.users = Users()
        self.watching = Watching()
        self.blocking = Blocking(self)
        self.working = Working(self)
        self.pubsub = PubSub(self)
        self.notifier = Notifier(self)
        self.output_limits = OutputLimits(lambda: self.clock())
        self.pauses = Pausing(self)
        self.pausing = False
        self.turns = Turns()
        self.active_expiry = True
        self.holding = False
        """Whether what goes out to clients has to wait for the disk."""
        self.changes = 0
        """How much has changed since a base of the append-only file was last made."""
        self.record: Callable[[list[Effect], Session | None], None] | None = None
        """Takes the effects of each command before anything follows from them, with the session of
        the client whose command it was: the appender of an append-only file does."""
        self.persistence = Persistence(self, disk or Disk())
        self.dispatcher = Dispatcher(self)
        self.scripting = Scripting(self)
        self.resting = Resting(self)
        self.disposing = Disposing(self)
        self.listening = Listening(self)
        self._cron: asyncio.TimerHandle | None = None
        self._periodic = periodic
        self.stopping = asyncio.Event()
        self._follow_settings()
        self.enter(Phase.STARTING)

    def _follow_settings(self) -> None:
        listen, limits = self.config.listen, self.keyspace.limits
        listen("stream-node-max-entries", lambda value: setattr(limits, "max_entries", value))
        listen("stream-node-max-bytes", lambda value: setattr(limits, "max_bytes", value))
        listen("stream-idmp-duration", lambda value: setattr(limits, "idmp_duration", value))
        listen("stream-idmp-maxsize", lambda value: setattr(limits, "idmp_maxsize", value))
        listen("notify-keyspace-events", self.notifier.configure)
        listen("client-output-buffer-limit", self.output_limits.configure)
        listen("loglevel", self.log.set_level)
        for setting in ("proto-max-bulk-len", "client-query-buffer-limit"):
            listen(setting, self._limit_arguments)

    def _limit_arguments(self, length: int) -> None:
        for connection in self.connections.values():
            connection.limit_arguments()

    # --- clients --------------------------------------------------------------------------

    def welcome(self, connection: Connection) -> Session:
        """A session for a client that has just connected."""
        transport = connection.transport
        sock = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            self._tune(sock)
        self._last_id += 1
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        # The own address is the same for most clients: one copy of it is enough.
        laddr = sys.intern(address_text(own, own))
        session = Session(self, self._last_id, address_text(peer, own), laddr)
        self.sessions[session.id] = session
        self.connections[session] = connection
        return session

    def _tune(self, sock: socket.socket) -> None:
        keepalive = self.config.tcp_keepalive
        if keepalive:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, keepalive)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, keepalive // 3))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)

    def farewell(self, session: Session) -> None:
        """Forgets a client that is gone, and everything it waits for and listens to."""
        self.sessions.pop(session.id, None)
        if session.waiter is not None:
            self.blocking.abandon(session.waiter)
        if session.job is not None:
            self.working.abandon(session.job)
        connection = self.connections.pop(session, None)
        if connection is not None:
            self.output_limits.forget(connection)
        session.end_transaction()
        self.pubsub.leave_all(session)
        self.pauses.release(session)

    def hold(self, connection: Connection, session: Session, request: Request) -> bool:
        """Whether CLIENT PAUSE holds the request back; if so the connection is resumed later."""
        return self.pauses.hold(connection, session, request)

    def holds_stream(self, db: int, key: bytes) -> bool:
        """Whether there is a stream at the key."""
        return type(self.keyspace.databases[db].values.get(key)) is Stream

    def settle(self, session: Session | None = None) -> None:
        """Lets the effects of what has just run have their consequences.

        ``session`` is the client whose command it was."""
        effects = self.keyspace.effects
        self.changes += changes_of(effects)
        if self.record is not None:
            self.record(effects, session)
        if self.watching.watchers or self.blocking.waiting or self.notifier.active:
            for effect in effects:
                settle(self, effect)
        effects.clear()

    def bar(self) -> None:
        """Sees whether the state of the server forbids some commands."""
        self.dispatcher.barred = (
            self.phase is not Phase.SERVING
            or self.persistence.refusal is not None
            or self.scripting.busy
        )

    def enter(self, phase: Phase) -> None:
        """Goes on to another phase."""
        self.phase = phase
        self.bar()

    # --- life -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Listens on the configured addresses and loads what is on the disk.

        Raises :class:`ListenError` and :class:`PersistenceError`. Clients that come before the data
        is there are told so, and after a failure nobody is answered."""
        failure: Exception | None = None
        # What is loaded comes to rest now, not in 1970.
        self.keyspace.limits.packer.now_ms = self.clock()
        try:
            await self.listening.start()
            self.enter(Phase.LOADING)
            await self.persistence.load()
            if not self.stopping.is_set():
                self._follow_appendonly()
        except Exception as error:
            failure = error
        # Not in the handler: once compiled, it could not raise the error again after an await.
        if failure is not None:
            await self.stop()
            raise failure
        if not self.stopping.is_set():
            self.enter(Phase.SERVING)
            if self._periodic:
                self._schedule_cron()

    def _follow_appendonly(self) -> None:
        """Only now: a client may have changed it while data was loaded."""
        try:
            self.config.listen("appendonly", self.persistence.turn)
        except BadSetting as error:
            raise PersistenceError(error.reason) from None

    @property
    def port(self) -> int:
        """The TCP port, 0 before the start."""
        return self.listening.port

    def addresses(self) -> list[str]:
        """Where the server listens: ``host:port``, ``[host]:port``, or the path of a socket."""
        return self.listening.addresses()

    async def stop(self) -> None:
        """Stops listening and closes every connection; nobody is answered from now on."""
        self.enter(Phase.STOPPED)
        self.listening.close()
        if self._cron is not None:
            self._cron.cancel()
        self.resting.stop()
        self.disposing.stop()
        # A script that has not ended is lost: the file is closed before what it did so far.
        self.persistence.close()
        self.scripting.close()
        self.blocking.close()
        self.working.close()
        self.pauses.close()
        for connection in list(self.connections.values()):
            connection.dismiss()
        for transport in list(self.transports):
            transport.close()
        await asyncio.sleep(0)
        # What has not gone out by now never may: nobody reads it.
        for transport in list(self.transports):
            transport.abort()
        await self.listening.wait_closed()
        await asyncio.sleep(0)

    def _schedule_cron(self) -> None:
        loop = asyncio.get_running_loop()
        self._cron = loop.call_later(1 / self.config.hz, self._run_cron)

    def _run_cron(self) -> None:
        started = now_ns()
        self._schedule_cron()
        self.cron()
        self.turns.count(started)

    def cron(self) -> None:
        """One round of periodic work: expiry, idle clients, memory to free and to pack, rates."""
        now = self.clock()
        self._expire_keys(now, EXPIRE_BATCH)
        if self.config.timeout:
            self._close_idle(now)
        self._close_those_who_do_not_read()
        if not self.scripting.busy:
            self.persistence.cron(now)
        self.disposing.cron()
        self.resting.cron(now)
        self.sample(now)

    def _expire_keys(self, now: int, most: int) -> None:
        """Removes up to ``most`` keys of each database that are past their expiry."""
        if self.pausing or not self.active_expiry or self.scripting.busy:
            return
        self.keyspace.now_ms = now
        for database in self.keyspace.databases:
            if database.expires:
                database.expire_due(most)
        if self.keyspace.effects:
            self.settle()
            self.blocking.serve()

    def turn_clock(self, by_ms: int) -> None:
        """Moves the time forward at once, or back; what is due by then has happened afterwards.

        Times that were noted stay as they are. Only waits that are counted from their beginning do
        not become longer when the clock goes back.
        """
        self.timekeeper.turn(by_ms)
        self.clock = self.timekeeper.read
        # Rates are counts by time, and this time has not passed.
        self.stats.samples.clear()
        self.pauses.turn_clock(by_ms)
        self._expire_keys(self.clock(), ALL_KEYS)
        self.blocking.turn_clock(by_ms)
        self.cron()

    def _close_those_who_do_not_read(self) -> None:
        for connection in self.output_limits.watched():
            connection.check_output()

    def _close_idle(self, now: int) -> None:
        limit = self.config.timeout * 1000
        for session in list(self.sessions.values()):
            waiting = session.is_blocked or session.job is not None or session.subscriptions
            if not waiting and now - session.seen_ms > limit:
                session.close()

    def sample(self, now: int) -> None:
        """Notes the counters from which the rates of INFO are made."""
        stats = self.stats
        turns = self.turns
        stats.samples.append(
            (
                now,
                self.commands_processed(),
                stats.bytes_in,
                stats.bytes_out,
                turns.cycles,
                turns.nanoseconds,
            )
        )

    def forget_counts(self) -> None:
        """Sets the counters of INFO to zero."""
        self.stats.reset()
        self.turns.forget_counts()
        self.keyspace.hits = self.keyspace.misses = self.keyspace.expired = 0
        self.keyspace.limits.disposal.freed = 0
        for entry in command_table.every(self.table):
            entry.forget_calls()

    def commands_processed(self) -> int:
        """How many commands have run."""
        return sum(entry.calls for entry in command_table.every(self.table))

    def command_nanoseconds(self) -> int:
        """How long commands have run."""
        return sum(entry.nanoseconds for entry in command_table.every(self.table))
