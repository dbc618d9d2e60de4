"""RDB files, as they were written or damaged.

Their checksum is left out (zero), or it would find every change before anything else does.

Invariants:

- A file is read whole, or refused with an offset within it and a reason of one line.
- What was read passes ``check()``, and is the same when it is written and read again.
- No other exception is raised, and no file takes long.
"""

from __future__ import annotations

from random import Random
from typing import Final

from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from fuzz.targets.base import require
from storage.aof.effect_commands import counter
from storage.engine.stream import Stream, signed
from storage.keyspace.databases import Keyspace
from storage.rdb import codes
from storage.rdb.read import Key, read_rdb
from storage.rdb.source import DamagedRDB, Source
from storage.rdb.write import write_rdb
from storage.types.collection import Collection
from tests.support.direct import Direct

LENGTH: Final = 40
"""How many requests a file is made from at most."""
_SUM: Final = 8
_LATEST: Final = 2**62


class RDBFiles:
    """Reads files."""

    name = "rdb"
    mutable = True

    def __init__(self) -> None:
        self._commands = [one for one in commands() if one.writes]

    def make(self, random: Random) -> bytes:
        """What a server would write, with changes or without."""
        direct = Direct()
        client = direct.client()
        requests = Requests(random, self._commands)
        for _ in range(random.randrange(1, LENGTH)):
            if not client.parked:
                client.send(*requests.one())
        version = random.choice((codes.REDIS_7_0, codes.REDIS_7_2, codes.NEWEST, codes.VALKEY))
        data = b"".join(write_rdb(direct.server.state.keyspace, version=version))
        body = data[:-_SUM]
        if random.random() < 0.9:
            body = mutated(random, body, [])
        return body + bytes(_SUM)

    def run(self, data: bytes) -> None:
        """Reads a file, and looks at what came of it."""
        try:
            keyspace = _read(data)
        except DamagedRDB as error:
            require(0 <= error.offset <= len(data), "an offset outside of the file")
            require("\n" not in error.reason, "a reason of several lines")
            return
        keyspace.check()
        again = _read(b"".join(write_rdb(keyspace, version=codes.NEWEST)))
        again.check()
        require(shown(again) == shown(keyspace), "what is written is read as other data")

    def close(self) -> None:
        """There is nothing to end."""


def _read(data: bytes) -> Keyspace:
    """What is in a file, as far as a keyspace can hold it."""
    keyspace = Keyspace()
    for item in read_rdb(Source([data]), keyspace.limits):
        if not isinstance(item, Key) or item.value is None or item.db >= len(keyspace.databases):
            continue
        database = keyspace.databases[item.db]
        if item.key in database.values:
            continue
        database.attach(item.key, item.value)
        if item.expires_at is not None and 0 < item.expires_at < _LATEST:
            database.expire_at(item.key, item.expires_at)
    keyspace.effects.clear()
    return keyspace


def shown(keyspace: Keyspace) -> object:
    """All that an RDB holds of the data, to be compared."""
    return [_shown(value) for db in keyspace.databases for value in db.values.values()], [
        (db.values.keys(), db.expires) for db in keyspace.databases
    ]


def _shown(value: object) -> object:
    if isinstance(value, Collection):
        return list(value.words(b"k"))
    if not isinstance(value, Stream):
        return value
    added = signed(value.entries_added)
    counters = (value.last_id, value.max_deleted_id, added, value.log.block_keys)
    groups = [
        (
            *(group.name, group.last_id, counter(group.entries_read)),
            sorted((one.name, one.seen, one.active) for one in group.consumers.values()),
            [(e.id, e.owner and e.owner.name, e.time, e.deliveries) for e in group.pending.scan(0)],
        )
        for group in value.groups_in_order()
    ]
    return counters, value.log.range(0, 2**128, 2**30), groups
