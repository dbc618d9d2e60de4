# Compiled by mypyc.
"""WATCH: who watches which key, and whose transaction must not run.

With each key that a session watches it is noted whether the key was past its expiry already, and
only not removed yet: that it is removed then is no change.
"""

from __future__ import annotations

from collections.abc import Collection

from server.road.session import Session
from storage.keyspace.databases import Database, Keyspace


class WatchedKeys:
    """Watched keys of a keyspace, each with the sessions that watch it."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.watchers: dict[tuple[int, bytes], dict[Session, None]] = {}

    def watch(self, session: Session, key: bytes) -> None:
        """Lets ``session`` watch ``key`` of its database."""
        place = (session.db.index, key)
        if place in session.watching:
            return
        session.watching[place] = session.db.is_overdue(key)
        self.watchers.setdefault(place, {})[session] = None

    def forget(self, session: Session) -> None:
        """Ends all watching of ``session``."""
        for place in session.watching:
            sessions = self.watchers[place]
            del sessions[session]
            if not sessions:
                del self.watchers[place]
        session.watching.clear()

    def end_transaction(self, session: Session) -> None:
        """Takes ``session`` out of MULTI, and ends all its watching."""
        self.forget(session)
        session.clear_transaction()

    def touch(self, db: int, key: bytes) -> None:
        """The key has been modified: transactions of those who watch it will not run."""
        for session in self.watchers.get((db, key), ()):
            session.dirty = True

    def expire(self, db: int, key: bytes) -> None:
        """A key that was past its expiry has been removed: for those who began to watch it in that
        state, nothing has changed."""
        for session in self.watchers.get((db, key), ()):
            if session.watching[(db, key)]:
                session.watching[(db, key)] = False
            else:
                session.dirty = True

    def replace(self, database: Database, before: Collection[bytes]) -> None:
        """A database has other contents now; ``before`` are the keys that were in it."""
        if not before and not database.values:
            return
        for (db, key), sessions in self.watchers.items():
            if db == database.index:
                for session in sessions:
                    self._replace_key(session, database, key, key in before)

    def _replace_key(
        self, session: Session, database: Database, key: bytes, was_there: bool
    ) -> None:
        """A key that has expired unnoticed is as good as none, before and after."""
        place = (database.index, key)
        if key not in database.values:
            session.dirty = session.dirty or (was_there and not session.watching[place])
            session.watching[place] = False
        elif database.is_overdue(key) and (session.watching[place] or not was_there):
            session.watching[place] = True
        else:
            session.dirty = True

    def has_expired(self, session: Session) -> bool:
        """Whether a key has expired since ``session`` began to watch it."""
        databases = self._keyspace.databases
        return any(
            not overdue and databases[db].is_overdue(key)
            for (db, key), overdue in session.watching.items()
        )
