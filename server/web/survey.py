"""Gather what there is to say about every stream, group and consumer, in steps.

There may be ten thousand streams and ten million pending entries, and one event loop for all
clients, so it is left again after each millisecond. A stream or group is read at a moment of its
own; whatever is added or removed meanwhile is in it or not.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Final

from server.config.registry import Config
from server.delivery.group_ref import GroupRef
from server.delivery.stats import is_attended
from server.runtime.clockwork import Slice
from server.services import Services
from server.state.session import Place
from server.web.metrics.stream_series import (
    CONSUMERS,
    DELIVERY_BOUNDS,
    GROUPS,
    STREAMS,
    consumer_values,
    group_values,
    stream_values,
)
from server.web.metrics.text import Value, labels, readable
from storage.engine.groups import Group
from storage.engine.pending import PendingList
from storage.engine.pending_summary import PendingSummary
from storage.engine.stream import Stream
from storage.keyspace.databases import Database, Keyspace
from storage.keyspace.glob import matcher

STEP_NS: Final = 1_000_000
"""How long such work goes on before others have their turn."""

_SOME: Final = 500
"""How many consumers are looked at before the time is."""

_HISTOGRAM_LINES: Final = len(DELIVERY_BOUNDS) + 3

KINDS: Final = ("streams", "groups", "consumers")


async def streams_of(
    keyspace: Keyspace, now: int, pace: Slice
) -> AsyncIterator[tuple[int, bytes, Stream]]:
    """Yields every stream behind the index of its database and its key."""
    for database in keyspace.databases:
        for bucket in database.scan.buckets() if len(database) else ():
            for key in bucket:
                stream = stream_at(database, key, now)
                if stream is not None:
                    yield database.index, key, stream
            await pace.rest()


def stream_at(database: Database, key: bytes, now: int) -> Stream | None:
    """Return the stream at a key, if there is one; nothing is changed, not even the time of its
    use."""
    value = database.values.get(key)
    if type(value) is not Stream or is_past(database, key, now):
        return None
    return value


def is_past(database: Database, key: bytes, now: int) -> bool:
    """Return whether a key has expired by a time."""
    return database.expires.get(key, now + 1) <= database.keyspace.due_by(now)


async def summary_of(pending: PendingList, pace: Slice) -> PendingSummary:
    """Return what a group's pending entries amount to."""
    summary = PendingSummary(DELIVERY_BOUNDS)
    while summary.step(pending):
        await pace.rest()
    return summary


async def asked_last(group: Group, pace: Slice) -> int | None:
    """Return when a consumer asked last, in Unix milliseconds; ``None`` without consumers, and
    while the client of one is connected."""
    last: int | None = None
    consumers = list(group.consumers.values())
    for at in range(0, len(consumers), _SOME):
        some = consumers[at : at + _SOME]
        if is_attended(some):
            return None
        latest = max([each.seen for each in some])
        last = latest if last is None else max(last, latest)
        await pace.rest()
    return last


class Rows:
    """The labels of streams, groups or consumers, and a column of values for each of their series.

    Objects that the garbage collector has to look at, one for each stream, would make it stop
    everything for ten milliseconds while they are young: labels and values are none.
    """

    def __init__(self, columns: int) -> None:
        self.labels: list[str] = []
        self.columns: list[list[Value]] = [[] for _ in range(columns)]

    def add(self, labels: str, values: Sequence[Value]) -> None:
        """Adds a value to each column."""
        self.labels.append(labels)
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)


class Survey:
    """Everything that was gathered; ``left_out`` counts what there were no series left for."""

    def __init__(self, config: Config) -> None:
        self.streams = Rows(len(STREAMS))
        self.groups = Rows(len(GROUPS))
        self.consumers = Rows(len(CONSUMERS))
        self.deliveries = Rows(len(DELIVERY_BOUNDS) + 2)
        """How many pending entries are in each bucket, and how often they were delivered."""
        self.left_out = dict.fromkeys(KINDS, 0)
        self._room: int = config.metrics_max_series

    def takes(self, kind: str, members: int, series: int) -> bool:
        """Whether there may be so many series more; if not, so many of the kind are left out."""
        if series > self._room:
            self.left_out[kind] += members
            return False
        self._room -= series
        return True


class Surveyor:
    """Gathers a :class:`Survey` of a server, as of now: ages are counted from then."""

    def __init__(self, server: Services, pace: Slice) -> None:
        config = server.state.config
        self._survey = Survey(config)
        self._server = server
        self._now = server.state.clock()
        self._pace = pace
        self._with_consumers: bool = config.metrics_consumers
        self._parked: Counter[tuple[Place, bytes]] = Counter()
        words = config.metrics_streams.split()
        # A star fits the empty name only where nothing is compared.
        self._every = "*" in words
        self._patterns = [matcher(os.fsencode(word)) for word in words]

    async def run(self) -> Survey:
        """Gathers it; nothing is changed, not even the time of use of a key."""
        await self._count_parked()
        keyspace = self._server.state.keyspace
        async for index, key, stream in streams_of(keyspace, self._now, self._pace):
            if self._every or any(fits(key) for fits in self._patterns):
                await self._add_stream(keyspace.databases[index], key, stream)
        return self._survey

    async def _count_parked(self) -> None:
        for waiter in list(self._server.blocking.waiters):
            group = waiter.wait.reader_of
            if group is not None:
                self._parked.update((place, group) for place in waiter.places)
            await self._pace.rest()

    async def _add_stream(self, db: Database, key: bytes, stream: Stream) -> None:
        if not self._survey.takes("streams", 1, len(STREAMS)):
            return
        names = {"db": f"db{db.index}", "stream": readable(key)}
        self._survey.streams.add(labels(names), stream_values(stream))
        for group in list(stream.groups.values()):
            await self._add_group(GroupRef(db, key, stream, group), names)
            await self._pace.rest()

    async def _add_group(self, ref: GroupRef, around: dict[str, str]) -> None:
        group = ref.group
        lines = len(GROUPS) + (_HISTOGRAM_LINES if len(group.pending) else 0)
        if not self._survey.takes("groups", 1, lines):
            return
        names = {**around, "group": readable(group.name)}
        own = labels(names)
        summary = await summary_of(group.pending, self._pace)
        seen = await self._add_consumers(names, group)
        asked = await asked_last(group, self._pace)
        parked = self._parked[(ref.db.index, ref.key), group.name]
        ruled = self._server.policies.known_as_ruled(ref)
        values = group_values(ref, summary, seen, asked, ruled, parked, self._now)
        self._survey.groups.add(own, values)
        if any(summary.counts):
            self._survey.deliveries.add(own, [*summary.counts, summary.deliveries])

    async def _add_consumers(self, around: dict[str, str], group: Group) -> int | None:
        """Adds the consumers of a group, if they are wanted; returns when the one was seen that was
        not seen for the longest time, ``None`` if there are none."""
        consumers = list(group.consumers.values())
        series = len(CONSUMERS) * len(consumers)
        wanted = self._with_consumers and self._survey.takes("consumers", len(consumers), series)
        seen: int | None = None
        for at in range(0, len(consumers), _SOME):
            some = consumers[at : at + _SOME]
            earliest = min([consumer.seen for consumer in some])
            seen = earliest if seen is None else min(seen, earliest)
            for consumer in some if wanted else ():
                own = labels({**around, "consumer": readable(consumer.name)})
                self._survey.consumers.add(own, consumer_values(consumer, self._now))
                await self._pace.rest()
            await self._pace.rest()
        return seen
