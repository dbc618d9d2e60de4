"""WATCH: who watches which key, and whose transaction must not run.

With each key that a session watches it is noted whether the key was past its expiry already, and
only not removed yet: that it is removed then is no change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from server.state.session import Place, Session, Watching
from storage.keyspace.databases import Database, Keyspace


class WatchedKeys:
    """Watched keys of a keyspace, each with the sessions, or the work, that watch it."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.watchers: dict[Place, dict[Session | Watching, Watching]] = {}

    def watch(self, session: Session, key: bytes) -> None:
        """Lets ``session`` watch ``key`` of its database."""
        if session.watching is None:
            session.watching = Watching()
        self._add(session, session.watching, session.db, key)

    def begin(self, database: Database, keys: Iterable[bytes]) -> Watching:
        """Watches keys for work that goes on for a while, until :meth:`end`."""
        watching = Watching()
        for key in keys:
            self._add(watching, watching, database, key)
        return watching

    def _add(
        self, watcher: Session | Watching, watching: Watching, database: Database, key: bytes
    ) -> None:
        place = (database.index, key)
        if place not in watching.keys:
            watching.keys[place] = database.is_overdue(key)
            self.watchers.setdefault(place, {})[watcher] = watching

    def forget(self, session: Session) -> None:
        """Ends all watching of ``session``."""
        watching, session.watching = session.watching, None
        if watching is not None:
            self._remove(session, watching)

    def end(self, watching: Watching) -> None:
        """Ends the watching of work."""
        self._remove(watching, watching)

    def _remove(self, watcher: Session | Watching, watching: Watching) -> None:
        for place in watching.keys:
            watchers = self.watchers[place]
            del watchers[watcher]
            if not watchers:
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
        for (db, key), watchers in self.watchers.items():
            if db == database.index:
                for watching in watchers.values():
                    _replace_key(watching, database, key, key in before)

    def has_changed(self, watching: Watching | None) -> bool:
        """Whether a key has changed, or expired, since it is watched."""
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
