"""WATCH: who watches which key, and whose transaction must not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.session import Session


class Watching:
    """Watched keys, each with the sessions that watch it."""

    def __init__(self) -> None:
        self.watchers: dict[tuple[int, bytes], dict[Session, None]] = {}

    def watch(self, session: Session, key: bytes) -> None:
        """Lets ``session`` watch ``key`` of its database."""
        place = (session.db.index, key)
        session.watching[place] = None
        self.watchers.setdefault(place, {})[session] = None

    def forget(self, session: Session) -> None:
        """Ends all watching of ``session``."""
        for place in session.watching:
            sessions = self.watchers[place]
            del sessions[session]
            if not sessions:
                del self.watchers[place]
        session.watching.clear()

    def touch(self, db: int, key: bytes) -> None:
        """The key has been modified: transactions of those who watch it will not run."""
        for session in self.watchers.get((db, key), ()):
            session.dirty = True
