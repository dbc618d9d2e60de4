# Compiled by mypyc.
"""A consumer group with policies, where it is, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from server.delivery.agenda import Agenda
from server.delivery.retention import StreamAgenda
from server.delivery.tally import Tally
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database


class GroupPlace(NamedTuple):
    """A group at a key of a database; ``of_stream`` are the policies of the stream, if any, and
    ``circle_of`` tells through which streams dead letters would come back."""

    db: Database
    key: bytes
    stream: Stream
    group: Group
    agenda: Agenda
    of_stream: StreamAgenda | None
    tally: Tally
    circle_of: Callable[[Database, bytes, bytes], list[bytes]]

    @property
    def now(self) -> int:
        """The time of the running command."""
        return self.db.keyspace.now_ms

    def circle(self) -> list[bytes]:
        """The streams through which dead letters would come back to this one now: keys may have
        got other names, and policies with them, since where they go was set."""
        return self.circle_of(self.db, self.key, self.agenda.rules.dead_letter)
