"""Periodic work: expiry, idle clients, the disk, memory to free and to pack, rates."""

from __future__ import annotations

from typing import Final

from server.clients.blocking import BlockedClients
from server.clients.client_line import ClientEviction
from server.clients.client_pause import ClientPause
from server.delivery.due_work import DueWork
from server.dispatch.reactions import Reactions
from server.persistence.appender import passed
from server.persistence.manager import Persistence
from server.replication.primary import Primary
from server.runtime.memory import Freeing, Packing
from server.runtime.process import give_memory_back, peak_memory
from server.state.latency import EXPIRY
from server.state.server_state import ServerState
from server.traffic.output import OutputLimits
from server.traffic.tls import Tls
from server.traffic.turns import Turns, now_ns

EXPIRE_BATCH: Final = 1000
"""How many keys one round removes at most, so that no round takes long."""

MANY_ENDED: Final = 100
"""When so many connections have ended, what they had is given back to the system. The C library
would keep it, and spread what comes next over other parts of it."""

SAMPLE_EVERY_MS: Final = 1000
"""How often counters are noted for rates: those of all commands have to be added up."""

ALL_KEYS: Final = 2**62
"""More keys than there can be."""


class Cron:
    """The work that a server does now and then; :mod:`server.app` says when."""

    def __init__(
        self,
        state: ServerState,
        turns: Turns,
        output_limits: OutputLimits,
        blocking: BlockedClients,
        reactions: Reactions,
        pauses: ClientPause,
        persistence: Persistence,
        replication: Primary,
        due_work: DueWork,
        tls: Tls,
    ) -> None:
        self._state = state
        self._turns = turns
        self._output_limits = output_limits
        self._blocking = blocking
        self._reactions = reactions
        self._pauses = pauses
        self._persistence = persistence
        self._replication = replication
        self._due_work = due_work
        self._secure = tls.connections
        self._most_connections = 0
        self._client_eviction = ClientEviction(state)
        limits = state.keyspace.limits
        self.freeing = Freeing(limits.disposal)
        self.packing = Packing(limits.packer, lambda: state.clock())
        self.active_expiry = True
        """Whether keys go that are past their expiry and that nobody asks for."""
        self.peak_memory = 0
        """The most memory that was resident, in bytes, as far as periodic work has seen it."""
        self.peak_ms = state.instance.started_ms
        """When it was."""

    def run(self) -> None:
        """Do one round."""
        state = self._state
        now = state.clock()
        self._expire_keys(now, EXPIRE_BATCH)
        if state.config.timeout:
            self._close_idle(now)
        self._client_eviction.run()
        for outlet in self._output_limits.watched():
            outlet.check_output()
        if state.busy is None:
            self._persistence.cron(now)
        self._replication.cron(now)
        self.freeing.rounds.begin()
        self.packing.rounds.begin()
        self._follow_connections()
        self._watch_memory(now)
        samples = state.stats.samples
        if not samples or passed(samples[-1][0], now, SAMPLE_EVERY_MS):
            self.sample(now)

    def _follow_connections(self) -> None:
        """Gives memory back when many connections fewer are open than were."""
        count = len(self._state.sessions) + len(self._secure)
        if self._most_connections - count >= MANY_ENDED:
            self._most_connections = count
            give_memory_back()
        self._most_connections = max(self._most_connections, count)

    def _watch_memory(self, now: int) -> None:
        """Notes when the most memory was in use."""
        peak = peak_memory()
        if peak > self.peak_memory:
            self.peak_memory, self.peak_ms = peak, now

    def stop(self) -> None:
        """Ends the work that goes on between rounds."""
        self.packing.rounds.stop()
        self.freeing.rounds.stop()

    def _expire_keys(self, now: int, most: int) -> None:
        """Removes up to ``most`` keys of each database that are past their expiry."""
        began = now_ns()
        self._expire(now, most)
        nanoseconds = now_ns() - began
        self._state.stats.expiry_ns += nanoseconds
        self._state.timings.latency.note(EXPIRY, nanoseconds)

    def _expire(self, now: int, most: int) -> None:
        state = self._state
        if self._pauses.active or not self.active_expiry or state.busy is not None:
            return
        keyspace = state.keyspace
        keyspace.now_ms = now
        for database in keyspace.databases:
            if database.expires or database.field_times:
                database.expire_due(most)
        if keyspace.effects:
            self._reactions.apply()
            self._reactions.drain()

    def turn_clock(self, by_ms: int) -> None:
        """Moves the time forward at once, or back; what is due by then has happened afterwards.

        Times that were noted stay as they are. Only waits that are counted from their beginning do
        not become longer when the clock goes back.
        """
        state = self._state
        state.turn_clock(by_ms)
        # Rates are counts by time, and this time has not passed.
        state.stats.samples.clear()
        self._pauses.turn_clock(by_ms)
        self._expire_keys(state.clock(), ALL_KEYS)
        self._due_work.turn_clock()
        self._blocking.turn_clock(by_ms)
        self.run()

    def _close_idle(self, now: int) -> None:
        latest = self._state.timekeeper.due_by(now) - self._state.config.timeout * 1000
        for session in list(self._state.sessions.values()):
            waiting = session.is_blocked or session.parked is not None or session.subscriptions
            waiting = waiting or session.monitoring or session.follower is not None
            if not waiting and session.seen_ms <= latest:
                session.link.close()

    def sample(self, now: int) -> None:
        """Notes the counters from which the rates of INFO are made."""
        state, turns = self._state, self._turns
        stats = state.stats
        stats.samples.append(
            (
                now,
                state.commands_processed(),
                stats.bytes_in,
                stats.bytes_out,
                turns.cycles,
                turns.nanoseconds,
            )
        )
