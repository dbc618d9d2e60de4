"""WATCH: who watches which key, and whose transaction must not run.

With each key that a session watches it is noted whether the key was past its expiry already, and
only not removed yet: that it is removed then is no change.
"""

from __future__ import annotations

from collections.abc import Collection

from server.state.session import Place, Session, Watching
from storage.keyspace.databases import Database, Keyspace


class WatchedKeys:
    """Watched keys of a keyspace, each with the sessions that watch it."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.watchers: dict[Place, dict[Session, Watching]] = {}

    def watch(self, session: Session, key: bytes) -> None:
        """Lets ``session`` watch ``key`` of its database."""
        place = (session.db.index, key)
        watching = session.watching
        if watching is None:
            watching = session.watching = Watching()
        if place not in watching.keys:
            watching.keys[place] = session.db.is_overdue(key)
            self.watchers.setdefault(place, {})[session] = watching

    def forget(self, session: Session) -> None:
        """Ends all watching of ``session``."""
        watching, session.watching = session.watching, None
        for place in () if watching is None else watching.keys:
            sessions = self.watchers[place]
            del sessions[session]
            if not sessions:
                del self.watchers[place]

    def end_transaction(self, session: Session) -> None:
        """Takes ``session`` out of MULTI, and ends all its watching."""
        self.forget(session)
        session.clear_transaction()

    def touch(self, db: int, key: bytes) -> None:
        """The key has been modified: transactions of those who watch it will not run."""
        watchers = self.watchers.get((db, key))
        for watching in () if watchers is None else watchers.values():
            watching.dirty = True

    def expire(self, db: int, key: bytes) -> None:
        """A key that was past its expiry has been removed: for those who began to watch it in that
        state, nothing has changed."""
        place = (db, key)
        watchers = self.watchers.get(place)
        for watching in () if watchers is None else watchers.values():
            if watching.keys[place]:
                watching.keys[place] = False
            else:
                watching.dirty = True

    def replace(self, database: Database, before: Collection[bytes]) -> None:
        """A database has other contents now; ``before`` are the keys that were in it."""
        if not before and not database.values:
            return
        for (db, key), sessions in self.watchers.items():
            if db == database.index:
                for watching in sessions.values():
                    _replace_key(watching, database, key, key in before)

    def has_changed(self, session: Session) -> bool:
        """Whether a key has changed, or expired, since ``session`` began to watch it."""
        watching = session.watching
        if watching is None:
            return False
        databases = self._keyspace.databases
        return watching.dirty or any(
            not overdue and databases[db].is_overdue(key)
            for (db, key), overdue in watching.keys.items()
        )


def _replace_key(watching: Watching, database: Database, key: bytes, was_there: bool) -> None:
    """A key that has expired unnoticed is as good as none, before and after."""
    keys, place = watching.keys, (database.index, key)
    if key not in database.values:
        watching.dirty = watching.dirty or (was_there and not keys[place])
        keys[place] = False
    elif database.is_overdue(key) and (keys[place] or not was_there):
        keys[place] = True
    else:
        watching.dirty = True
