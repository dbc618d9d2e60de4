"""Everything a keyspace holds, as plain values that can be compared."""

from __future__ import annotations

from typing import Any, Final

from storage.engine.groups import Group
from storage.engine.pending_segment import Consumer
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace
from storage.types.collection import Collection
from storage.types.kinds import Value

PICTURED: Final = {
    Stream: "entries_added groups idempotency _last_id log max_deleted_id policy",
    Group: "consumers entries_read last_id name pending policy",
    Consumer: "active name owned seen",
}
"""The state of a stream: what its copies, the snapshot of a rewrite and replicas have, too."""

LEFT_OUT: Final = {
    Stream: "_last_ms _last_seq _limits used_ms",
    Group: "acked claimed counts cursor delivered redelivered released",
    Consumer: "acked bases link redelivered",
}
"""What follows from that or from the settings, when it was used, and statistics."""


def picture(keyspace: Keyspace) -> dict[int, Any]:
    """The contents of every database that is not empty."""
    return {db.index: _database(db) for db in keyspace.databases if db.values}


def _database(db: Database) -> dict[bytes, Any]:
    return {key: (_plain(key, value), db.expires.get(key)) for key, value in db.values.items()}


def _plain(key: bytes, value: Value) -> Any:
    """A collection is pictured by the commands that make it anew, with its encoding."""
    if isinstance(value, Collection):
        return [*value.words(key), value.encoding()]
    return _stream(value) if isinstance(value, Stream) else bytes(value)


def _stream(stream: Stream) -> dict[str, Any]:
    table = stream.idempotency
    return {
        "blocks": [(b.first, b.last, b.taken, *b.contents()) for b in stream.log.blocks],
        "sizes": [block.node_size() for block in stream.log.blocks],
        "policy": stream.policy.copy(),
        "counters": (stream.last_id, stream.max_deleted_id, stream.entries_added),
        "groups": {name: _group(group) for name, group in stream.groups.items()},
        "retention": (table.duration, table.maxsize),
        "records": table.records(),
        "lifetime": (table.added, table.duplicates),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "position": (group.last_id, group.entries_read),
        "consumers": {
            name: (each.seen, each.active, group.pending.owned_ids(each, 0, each.owned))
            for name, each in group.consumers.items()
        },
        "pending": [
            (entry.id, entry.owner and entry.owner.name, entry.time, entry.deliveries)
            for entry in group.pending.scan(0)
        ],
        "released": list(group.pending.extras.released),
        "histories": {
            each: list(group.pending.extras.histories.lines(each))
            for each in group.pending.extras.histories.ids()
        },
        "policy": group.policy.copy(),
    }
