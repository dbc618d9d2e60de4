# Compiled by mypyc.
"""A consumer group with policies, where it is, and what is kept of it."""

from __future__ import annotations

from typing import NamedTuple

from server.delivery.agenda import Agenda
from server.delivery.retention import StreamAgenda
from server.delivery.tally import Tally
from storage.groups import Group
from storage.keyspace import Database
from storage.stream import Stream


class GroupPlace(NamedTuple):
    """A group at a key of a database; ``of_stream`` are the policies of the stream, if any."""

    db: Database
    key: bytes
    stream: Stream
    group: Group
    agenda: Agenda
    of_stream: StreamAgenda | None
    tally: Tally

    @property
    def now(self) -> int:
        """The time of the running command."""
        return self.db.keyspace.now_ms
