"""Where something is: a stream, a group or a consumer by its name, an entry by its ID."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from server.commands.keys.scan import type_name
from server.web.page.drawing import Screen
from server.web.page.page_request import (
    PageRequest,
    consumer_url,
    entry_url,
    group_url,
    key_url,
    stream_url,
)
from server.web.page.sampling import Row
from server.web.page.wording import id_text, shown
from server.web.survey import is_past, stream_at
from storage.engine import ids
from storage.engine.stream import Stream
from storage.errors import InvalidID
from storage.keyspace.databases import Database

HITS_SHOWN: Final = 50
"""How much is listed."""

MOST_KEYS: Final = 200_000
"""How many keys of other types are looked at; beyond that one is found by its whole name."""

MOST_CONSUMERS: Final = 50_000
"""How many consumers are looked at; of groups beyond that one is found by its whole name."""

_CHUNK: Final = 500


class Hit(NamedTuple):
    """Something with that name or ID: what it is, its name, its address, and where it is."""

    kind: str
    name: str
    address: str
    where: str


class _Search:
    """Goes through the streams and groups that the sampler has seen."""

    def __init__(self, request: PageRequest) -> None:
        self._request = request
        self.text = request.fields.text("match")
        self._word = self.text.encode()
        self._id = _id_of(self.text)
        self._left = MOST_CONSUMERS
        self.hits: list[Hit] = []

    async def run(self) -> None:
        """Finds as much as is listed, and one more if there is more."""
        before: tuple[int, bytes] | None = None
        for row in self._request.sampler.rows if self.text else ():
            await self._request.pace.rest()
            if not self._request.viewer.may_see(row.key):
                continue
            database = self._request.server.state.keyspace.databases[row.db]
            stream = stream_at(database, row.key, self._request.now)
            if stream is None:
                continue
            if before != (row.db, row.key):  # The rows of a stream follow each other.
                before = (row.db, row.key)
                self._look_at_stream(row, stream)
            await self._look_at_group(row, stream)
            if len(self.hits) > HITS_SHOWN:
                return
        await self._look_at_keys()

    async def _look_at_keys(self) -> None:
        """Finds keys of other types, by the whole name or a part of it."""
        left = MOST_KEYS if self.text else 0
        for database in self._request.server.state.keyspace.databases:
            if left and self._word in database.values:
                self._look_at_key(database, self._word)
            for bucket in database.scan.buckets() if left and len(database) else ():
                left -= len(bucket)
                for key in bucket:
                    if key != self._word and self.text in shown(key):
                        self._look_at_key(database, key)
                if left <= 0 or len(self.hits) > HITS_SHOWN:
                    return
                await self._request.pace.rest()

    def _look_at_key(self, database: Database, key: bytes) -> None:
        value, now = database.values.get(key), self._request.now
        if value is None or isinstance(value, Stream) or is_past(database, key, now):
            return
        if self._request.viewer.may(b"TYPE", key):
            kind = type_name(value).replace("zset", "sorted set").capitalize()
            address, where = key_url(database.index, key), f"database {database.index}"
            self.hits.append(Hit(kind, shown(key), address, where))

    def _look_at_stream(self, row: Row, stream: Stream) -> None:
        key, where = shown(row.key), f"database {row.db}"
        if self.text in key:
            self.hits.append(Hit("Stream", key, stream_url(row.db, row.key), where))
        readable = self._id is not None and self._request.viewer.may(b"XRANGE", row.key, b"-", b"+")
        if self._id is not None and readable and stream.log.get(self._id) is not None:
            name = id_text(self._id)
            self.hits.append(Hit("Entry", name, entry_url(row.db, row.key, name), key))

    async def _look_at_group(self, row: Row, stream: Stream) -> None:
        group = None if row.group is None else stream.groups.get(row.group)
        if group is None:
            return
        key, name = shown(row.key), shown(group.name)
        if self.text in name:
            self.hits.append(Hit("Group", name, group_url(row.db, row.key, group.name), key))
        if not self._request.viewer.may(b"XINFO", b"CONSUMERS", row.key, group.name):
            return
        names = list(islice(group.consumers, self._left))
        self._left -= len(names)
        found = [self._word] if self._word in group.consumers and self._word not in names else []
        for at in range(0, len(names), _CHUNK):
            found += [each for each in names[at : at + _CHUNK] if self._word in each]
            await self._request.pace.rest()
        for each in found[: HITS_SHOWN + 1]:
            address = consumer_url(row.db, row.key, group.name, each)
            self.hits.append(Hit("Consumer", shown(each), address, f"{key} / {name}"))


def _id_of(text: str) -> int | None:
    """The ID that a text is, whole or without its second part; none is shorter than a digit."""
    try:
        return ids.parse(text.encode()) if text[:1].isdigit() else None
    except InvalidID:
        return None


async def find_screen(request: PageRequest) -> Screen:
    """What there is with that name or ID."""
    search = _Search(request)
    await search.run()
    hits, more = search.hits[:HITS_SHOWN], len(search.hits) > HITS_SHOWN
    given = {"text": search.text, "hits": hits, "more": more}
    return Screen("find.html", shown(request.fields.text("match").encode()), given)
