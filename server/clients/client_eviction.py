"""maxmemory-clients: the clients that take the most memory go when all take too much."""

from __future__ import annotations

from server.clients.client_line import client_line, client_memory
from server.road.session import Session
from server.road.state import ServerState


class ClientEviction:
    """Closes clients, those with the largest buffers first, until the others fit."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def limit(self) -> int:
        """How many bytes clients may take together; 0 for any number."""
        size, percent = self._state.config.maxmemory_clients
        return int(size or self._state.config.maxmemory * percent // 100)

    def run(self) -> None:
        """One round; clients with CLIENT NO-EVICT stay, and count.

        Replicas have a limit of their own."""
        limit = self.limit()
        if not limit:
            return
        clients = [one for one in self._state.sessions.values() if one.follower is None]
        sizes = {session: client_memory(session) for session in clients}
        total = sum(sizes.values())
        for session in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if total <= limit:
                return
            if not session.no_evict:
                total -= sizes[session]
                self._evict(session)

    def _evict(self, session: Session) -> None:
        state = self._state
        line = client_line(session, state.clock()).decode("utf-8", "replace").rstrip()
        state.log.notice(f"Evicting client: {line}")
        state.stats.evicted_clients += 1
        session.close()
