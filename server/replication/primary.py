"""The primary's side of replication: who follows, from where, and how far each has come.

**The idea.** There is one stream of commands (:mod:`server.replication.feed`), kept for some time
in one backlog, and every replica is a position in it. A replica that comes for the first time, or
back after too long, is given a snapshot first (:mod:`server.replication.full_sync`); then it is
only sent bytes (:mod:`server.replication.replica`). What a real Redis cannot know is in the stream
as it is in the append-only file: as ECHO of a record, which changes nothing there.

**Invariants.**

- The bytes of the stream never change once they have a position, and a replication ID names one
  stream: when the data change in a way that is not in the stream, there is a new ID.
- What a replica is sent has passed the gate of all output, so with an append-only file a replica
  never has what the primary could still lose.
- The backlog holds whatever a connected replica still needs; one that needs more than
  ``client-output-buffer-limit replica`` allows is cut off. Clients never wait for a replica, but
  with WAIT, WAITAOF and ``min-replicas-to-write``.

Decision 41.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from server.clients.blocking import SYNCED, BlockedClients
from server.core import reasons
from server.persistence.journal import Journal
from server.replication.feed import Feed
from server.replication.full_sync import FullSync
from server.replication.replica import ONLINE, Introduction, Replica
from server.state.server_state import ServerState
from server.state.session import Session
from server.traffic.output import OutputLimits
from storage.aof.disk import Disk

SECOND_MS: Final = 1000


class Primary:
    """The replicas of a server."""

    def __init__(
        self,
        state: ServerState,
        disk: Disk,
        journal: Journal,
        blocking: BlockedClients,
        limits: OutputLimits,
    ) -> None:
        self._state = state
        self._journal = journal
        self._blocking = blocking
        self._limits = limits
        self.feed = Feed(journal, self._send_news)
        self.id = secrets.token_hex(20)
        """The name of the stream that replicas follow; another one when the data are others."""
        self.full_sync = FullSync(state, disk, self.feed, lambda: self.id)
        self.replicas: dict[Session, Replica] = {}
        self.partial_syncs = self.refused_partial_syncs = 0
        self._introductions: dict[Session, Introduction] = {}
        self._left_ms = 0
        """When the last replica left."""
        self._second_ms = self._pinged_ms = 0
        self._caught_up: asyncio.Event | None = None
        self.hurried = False
        """Whether the server ends without waiting for replicas."""
        self._end = 0
        """Up to where replicas are to have the stream before the server ends."""
        for name in ("min-replicas-to-write", "min-replicas-max-lag"):
            state.config.listen(name, self._count_good)

    # --- coming and going -----------------------------------------------------------------

    def introduction_of(self, session: Session) -> Introduction:
        """Return what a client has said of itself; it may be changed."""
        replica = self.replicas.get(session)
        if replica is not None:
            return replica.introduction
        return self._introductions.setdefault(session, Introduction())

    def resume_from(self, session: Session, replication_id: str, position: int) -> bytes:
        """Makes a client a replica that has the stream of this ID up to a position, if it can go on
        from there; returns the reply. If it cannot, that is empty, and nothing has happened."""
        backlog = self.feed.backlog
        self.feed.flush()
        known = replication_id == self.id
        if backlog is None or not known or not backlog.holds(position):
            self.refused_partial_syncs += replication_id != "?"
            return b""
        replica = self._add(session)
        self.partial_syncs += 1
        self._state.log.notice(f"Replica {replica.name} goes on from {position}")
        # The reply goes out before: what is sent now follows it.
        replica.follow_from(position)
        self._count_good()
        shown = f" {replication_id}" if b"psync2" in replica.introduction.capabilities else ""
        return f"+CONTINUE{shown}\r\n".encode()

    def synchronise(self, session: Session, *, speaks: bool) -> None:
        """Makes a client a replica that needs everything; it ``speaks`` if it came with PSYNC."""
        replica = self._add(session)
        replica.speaks = speaks
        if not self.feed.active:
            self._begin_history()
        self._state.log.notice(f"Replica {replica.name} asks for everything")
        self.full_sync.add(replica)

    def _add(self, session: Session) -> Replica:
        introduction = self._introductions.pop(session, None) or Introduction()
        replica = Replica(session, introduction, self._state, self.feed, self._limits)
        self.replicas[session] = replica
        session.follower = replica
        session.update_reasons()
        return replica

    def detach(self, session: Session) -> None:
        """The client is gone, whether it was a replica or not."""
        self._introductions.pop(session, None)
        replica = self.replicas.pop(session, None)
        if replica is None:
            return
        session.follower = None
        session.update_reasons()
        replica.leave()
        self.full_sync.remove(replica)
        self._left_ms = self._state.clock()
        self._state.log.notice(f"Replica {replica.name} is gone")
        self._count_good()
        self._note_caught_up()

    def following(self) -> list[Replica]:
        """Return the replicas that are sent the stream."""
        return [replica for replica in self.replicas.values() if replica.phase is ONLINE]

    @property
    def backlog_bytes(self) -> int:
        """How many bytes of the stream are kept."""
        backlog = self.feed.backlog
        return 0 if backlog is None else backlog.end - backlog.start

    # --- the stream -----------------------------------------------------------------------

    def _begin_history(self) -> None:
        """Begins a stream that nobody has any of yet."""
        self.id = secrets.token_hex(20)
        self.feed.begin()

    def forget(self) -> None:
        """The data are others from now on, which the stream does not say: whoever follows needs
        everything anew."""
        if not self.feed.active:
            return
        for replica in list(self.replicas.values()):
            replica.cut_off("the data have been replaced: it has to synchronise anew")
        self.feed.stop()
        self.id = secrets.token_hex(20)

    def _send_news(self) -> None:
        """There is more of the stream: it goes to those who have read all before."""
        for replica in list(self.replicas.values()):
            replica.pump()
            replica.check_output()
        self._trim()

    def _trim(self) -> None:
        """Lets go what neither a connected replica needs nor one that may come back."""
        backlog = self.feed.backlog
        if backlog is None:
            return
        keep = backlog.end - self._state.config.repl_backlog_size
        if keep <= backlog.start:
            return
        for replica in self.replicas.values():
            needs = replica.needs_from
            if needs is not None:
                keep = min(keep, needs)
        backlog.drop(keep)

    def publish(self, *words: bytes) -> None:
        """Lets those hear a message who listen at replicas."""
        if self.replicas:
            self.feed.say(*words)

    # --- how far they are -----------------------------------------------------------------

    def acknowledge(self, session: Session, position: int, on_disk: int | None) -> None:
        """A replica says how much of the stream it has, and how much of that is on its disk."""
        replica = self.replicas.get(session)
        if replica is None:
            return
        replica.acknowledged = max(replica.acknowledged, position)
        if on_disk is not None:
            replica.acknowledged_on_disk = max(replica.acknowledged_on_disk, on_disk)
        late = self._is_late(replica)
        replica.heard_ms = self._state.clock()
        if late:
            self._count_good()
        self._blocking.signal(*SYNCED)
        self._note_caught_up()

    def written_by(self, session: Session) -> int:
        """Up to where the stream holds what a client has changed."""
        self.feed.flush()
        return session.replicated

    def count_acknowledged(self, position: int, *, on_disk: bool = False) -> int:
        """How many replicas have the stream up to a position, perhaps on their disks."""
        having = [
            replica.acknowledged_on_disk if on_disk else replica.acknowledged
            for replica in self.following()
        ]
        return sum(acknowledged >= position for acknowledged in having)

    def ask(self) -> None:
        """Asks replicas how far they are, which they would say within a second anyway."""
        if self.replicas:
            self.feed.say(b"REPLCONF", b"GETACK", b"*")

    def _is_late(self, replica: Replica) -> bool:
        lag: int = self._state.config.min_replicas_max_lag
        return bool(lag) and self._state.clock() - replica.heard_ms > lag * SECOND_MS

    def good_replicas(self) -> int:
        """How many follow that have been heard of lately."""
        return sum(not self._is_late(replica) for replica in self.following())

    @property
    def is_short(self) -> bool:
        """Whether commands that write are refused because fewer replicas follow than
        ``min-replicas-to-write`` asks for."""
        wanted: int = self._state.config.min_replicas_to_write
        return bool(wanted) and self.good_replicas() < wanted

    def _count_good(self, setting: int = 0) -> None:
        self._state.note(reasons.REPLICAS, self.is_short)

    # --- periodic work --------------------------------------------------------------------

    def cron(self, now: int) -> None:
        """Periodic work."""
        self.full_sync.cron()
        if not 0 <= now - self._second_ms < SECOND_MS:
            self._second_ms = now
            self._each_second(now)

    def _each_second(self, now: int) -> None:
        self._count_good()
        self.full_sync.keep_alive()
        if not self.feed.active:
            return
        self._journal.note_seen()
        if self.replicas:
            self._ping(now)
            self._cut_off_silent(now)
        elif self._is_given_up(now):
            self.feed.stop()
            self.id = secrets.token_hex(20)

    def _ping(self, now: int) -> None:
        period = self._state.config.repl_ping_replica_period * SECOND_MS
        if not 0 <= now - self._pinged_ms < period:
            self._pinged_ms = now
            self.feed.say(b"PING")

    def _cut_off_silent(self, now: int) -> None:
        limit = self._state.config.repl_timeout * SECOND_MS
        for replica in list(self.replicas.values()):
            heard = max(replica.heard_ms, replica.session.seen_ms)
            if replica.speaks and now - heard > limit and replica not in self.full_sync.waiting:
                replica.cut_off("nothing was heard of it for repl-timeout")

    def _is_given_up(self, now: int) -> bool:
        """Whether nobody has followed for so long that nobody will go on."""
        ttl = self._state.config.repl_backlog_ttl * SECOND_MS
        return bool(ttl) and now - self._left_ms > ttl

    # --- the end --------------------------------------------------------------------------

    def _all_caught_up(self) -> bool:
        return all(one.acknowledged >= self._end for one in self.following() if one.speaks)

    def _note_caught_up(self) -> None:
        """Lets the server end if no replica is left that it waits for."""
        if self._caught_up is not None and self._all_caught_up():
            self._caught_up.set()

    async def settle(self, seconds: float) -> None:
        """Waits until replicas have all of the stream, or for so long."""
        self.feed.flush()
        self._end = self.feed.end
        self.ask()
        self.feed.flush()
        if not (self.hurried or self._all_caught_up()):
            self._caught_up = asyncio.Event()
            try:
                await asyncio.wait_for(self._caught_up.wait(), seconds)
            except TimeoutError:
                late = [one.name for one in self.replicas.values() if one.acknowledged < self._end]
                self._state.log.warning(f"Replicas lack the last changes: {', '.join(late)}")

    def close(self) -> None:
        """Ends what is going on."""
        self.full_sync.close()
        for replica in self.replicas.values():
            replica.leave()
