"""A running server: its start, its periodic work, its end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from server.commands import load as register_commands
from server.config.registry import UNSUPPORTED, BadSetting, Config
from server.faults.disk import FaultyDisk
from server.net.listener import Listener, ListenError
from server.persistence.manager import PersistenceError
from server.runtime.clock import Reading, system_clock
from server.runtime.log import Log
from server.runtime.memory import INTERVAL_S
from server.services import Services
from server.state.server_state import Phase, ServerState
from server.traffic.turns import now_ns
from storage.aof.disk import Disk

if TYPE_CHECKING:
    from server.web.http import WebServer

ENCODINGS: Final = (
    *("hash-max-listpack-entries", "hash-max-listpack-value"),
    "list-max-listpack-size",
    *("set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value"),
    *("zset-max-listpack-entries", "zset-max-listpack-value"),
    "hll-sparse-max-bytes",
)
"""Settings that tell up to which size a value has a compact encoding."""


class Server:
    """Starts, runs and stops one server; what its clients share is in ``state`` and ``services``.

    ``clock`` gives Unix milliseconds; messages go to ``log``, and the append-only file to ``disk``.
    Once started it does its periodic work by itself if ``periodic``, else when :meth:`cron` is
    called. Raises :class:`ConfigError` where the users of the configuration cannot be made.
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
        self.state = ServerState(config or Config(), clock, log or Log())
        self.services = Services(self.state, disk or _new_disk(self.state.config))
        self.listening = Listener(self.services)
        self._web: WebServer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._memory_timer: asyncio.TimerHandle | None = None
        self._periodic = periodic
        self._follow_settings()
        self.services.access.configure()
        self.state.config.remember()

    def _follow_settings(self) -> None:
        listen, limits = self.state.config.listen, self.state.keyspace.limits
        listen("stream-node-max-entries", lambda value: setattr(limits, "max_entries", value))
        listen("stream-node-max-bytes", lambda value: setattr(limits, "max_bytes", value))
        listen("stream-idmp-duration", lambda value: setattr(limits, "idmp_duration", value))
        listen("stream-idmp-maxsize", lambda value: setattr(limits, "idmp_maxsize", value))
        for setting in ENCODINGS:
            listen(setting, partial(setattr, limits.collections, setting.replace("-", "_")))
        listen("client-output-buffer-limit", self.services.traffic.limits.configure)
        listen("loglevel", self.state.log.set_level)
        listen("maxmemory", self._limit_memory)
        listen("save", self._warn_of_saving)
        self.state.config.listen_to_all(
            ("maxmemory", "maxmemory-policy", *(each.name for each in UNSUPPORTED)),
            self.state.config.check,
        )

    # --- life -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Listens on the configured addresses and loads what is on the disk; that it does is told
        on the port of metrics, if there is one.

        Raises :class:`ListenError` and :class:`PersistenceError`. Clients that come before the data
        is there are told so, and after a failure nobody is answered."""
        failure: Exception | None = None
        state = self.state
        # Stamp loaded blocks with the current time, so that they do not look idle since the epoch.
        state.keyspace.limits.packer.now_ms = state.clock()
        try:
            await self._start_web()
            await self.listening.start()
            state.enter(Phase.LOADING)
            await self.services.persistence.load()
            if not state.instance.stopping.is_set():
                self._follow_appendonly()
        except Exception as error:
            failure = error
        # Not in the handler: once compiled, it could not raise the error again after an await.
        if failure is not None:
            if self._web is not None:
                self._web.failure = str(failure)
            await self.stop()
            raise failure
        if not state.instance.stopping.is_set():
            state.enter(Phase.SERVING)
            self.services.policies.reload()
            if self._periodic:
                self._schedule_cron()
                self._watch_memory()

    async def _start_web(self) -> None:
        web = new_web_server(self.services)
        if web is not None:
            await web.start()
        self._web = web

    def _follow_appendonly(self) -> None:
        """Only now: a client may have changed it while data was loaded."""
        try:
            self.state.config.listen("appendonly", self.services.persistence.turn)
        except BadSetting as error:
            raise PersistenceError(error.reason) from None

    @property
    def port(self) -> int:
        """The TCP port, 0 before the start."""
        return self.state.instance.port

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server is to end."""
        return self.state.instance.stopping

    def addresses(self) -> list[str]:
        """Where the server listens: ``host:port``, ``[host]:port``, or the path of a socket."""
        return self.listening.addresses()

    async def stop(self) -> None:
        """Stops listening and closes every connection; nobody is answered from now on."""
        services, connections = self.services, self.listening.connections
        self.listening.close()
        if services.replication.replicas and self.state.phase is Phase.SERVING:
            services.pauses.stall()
            await services.replication.settle(self.state.config.shutdown_timeout)
        if self.state.phase is Phase.SERVING:
            services.persistence.save_at_end()
        self.state.enter(Phase.STOPPED)
        for timer in (self._timer, self._memory_timer):
            if timer is not None:
                timer.cancel()
        services.cron.stop()
        services.interception.close()
        # A script that has not ended is lost: the file is closed before what it did so far.
        services.persistence.close()
        services.replication.close()
        services.scripting.close()
        services.blocking.close()
        services.policies.close()
        services.stepped.close()
        services.pauses.close()
        for connection in list(connections.open):
            connection.dismiss()
        for connection in list(connections.open):
            connection.transport.close()
        await asyncio.sleep(0)
        # What has not gone out by now never may: nobody reads it.
        for connection in list(connections.open):
            connection.transport.abort()
        await self.listening.wait_closed()
        await asyncio.sleep(0)
        if self._web is not None:
            await self._web.stop()

    # --- periodic work --------------------------------------------------------------------

    def _schedule_cron(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(1 / self.state.config.hz, self._run_cron)

    def _run_cron(self) -> None:
        started = now_ns()
        self._schedule_cron()
        self.cron()
        self.services.traffic.turns.count(started)

    def _limit_memory(self, limit: int) -> None:
        """Takes the value of maxmemory."""
        memory = self.state.memory
        memory.set(limit)
        if memory.exceeded:
            self.state.log.warning(
                f"The process takes more memory than maxmemory ({limit} bytes) allows:"
                " commands that may need more are refused"
            )
        if self._timer is not None and self._memory_timer is None:
            self._watch_memory()

    def _warn_of_saving(self, points: object) -> None:
        """Warns where data would be saved by itself on Redis, and is not here."""
        config, log = self.state.config, self.state.log
        if points and not config.appendonly and not config.dbfilename:
            log.warning(
                f"save is '{config.get_text('save')}', but nothing is saved by itself until there"
                " is 'appendonly yes' or a 'dbfilename': all data is in memory only"
            )
        if not points and not config.appendonly and config.dbfilename:
            log.warning(
                f"'{config.dbfilename}' is written by SAVE and BGSAVE only, as save has no points"
                " of time"
            )

    def _watch_memory(self) -> None:
        """Looks at the memory at short intervals, as long as there is a limit."""
        self._memory_timer = None
        memory = self.state.memory
        if memory.limit:
            memory.check()
            loop = asyncio.get_running_loop()
            self._memory_timer = loop.call_later(INTERVAL_S, self._watch_memory)

    def cron(self) -> None:
        """Do a round of periodic work."""
        self.services.cron.run()


def _new_disk(config: Config) -> Disk:
    """The file system, which may fail where somebody may ask for that."""
    return Disk() if config.enable_debug_command == "no" else FaultyDisk()


def new_web_server(server: Services) -> WebServer | None:
    """Return what serves metrics, ``None`` if there is no port for it.

    Raises :class:`.ListenError`, which says what to install, if packages are missing.
    """
    if not server.state.config.metrics_port:
        return None
    try:
        from server.web.http import WebServer
    except ModuleNotFoundError as error:
        from server.runtime.packages import extra_missing

        raise ListenError(extra_missing("metrics-port", error.name, "web")) from None
    return WebServer(server)
