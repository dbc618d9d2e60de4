"""DEBUG GROUP: how often what happened to the entries of a consumer group."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Map, Reply
from server.commands.testing.debug_table import Subcommand
from server.road.session import Session
from server.road.table import Arguments
from server.services import Services
from storage.engine.stream import Stream


def describe(server: Services, session: Session, args: Arguments) -> Reply:
    """The counters of a group, from when it came into memory on, and how many entries are pending.

    Looking at it is no use of the key."""
    key, name = args[2], args[3]
    stream = session.db.get(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if not isinstance(stream, Stream):
        raise CommandError(errors.WRONG_TYPE)
    group = stream.groups.get(name)
    if group is None:
        raise CommandError(errors.no_group_for_key(name, key))
    return Map(
        [
            ("delivered", group.delivered),
            ("redelivered", group.redelivered),
            ("acked", group.acked),
            ("claimed", group.claimed),
            ("released", group.released),
            ("pending", len(group.pending)),
        ]
    )


SUBCOMMANDS: Final[dict[bytes, Subcommand]] = {
    b"GROUP": Subcommand(
        describe,
        range(2, 3),
        (
            (
                "GROUP <key> <group>",
                "Counts what has happened to the entries of a group since it is in memory.",
            ),
        ),
        "GROUP key group",
    ),
}
