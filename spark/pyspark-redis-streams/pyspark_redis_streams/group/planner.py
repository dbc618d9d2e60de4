"""Mode ``group``: makes batches of what is pending for a consumer that is named for the batch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from redis.exceptions import ResponseError

from pyspark_redis_streams.group.losses import GroupLosses
from pyspark_redis_streams.group.pending import Consumers, Delivered, PendingEntries, consumers_of
from pyspark_redis_streams.group.positions import GroupOffset, GroupPosition
from pyspark_redis_streams.ids import format_id, parse_id, parse_ids
from pyspark_redis_streams.losses import entries, report_loss
from pyspark_redis_streams.offsets.planner import starts
from pyspark_redis_streams.offsets.positions import by_server
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.limits import Limits, MinRowsWait, Turns, byte_shares
from pyspark_redis_streams.read.ranges import Partition, PendingRange, Range, gather
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import (
    NOTHING,
    Catalog,
    Group,
    Stream,
    StreamInfo,
    ask_each,
    groups_of,
    place_of,
)
from pyspark_redis_streams.write.idempotence import Memory

LOG = logging.getLogger("pyspark_redis_streams")

CLAIMS_PER_IDLE_TIME = 4
"""How often, in one claimMinIdleMs, entries are looked for that others have left."""

REMEMBERED_S = 86_400
"""For how long the stream of dead letters remembers which it has."""

Groups = Mapping[Stream, tuple[StreamInfo, Group]]
"""The replies of XINFO about streams, and about the query's group in each."""


class GroupPlanner:
    """Does the driver's part of a query of mode ``group``; ``clock`` counts seconds."""

    def __init__(
        self, servers: Servers, settings: ReadSettings, clock: Callable[[], float]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._clock = clock
        self.catalog = Catalog(servers, settings, clock)
        self._initial: GroupOffset | None = None
        self._memories: dict[int, Memory] = {}
        self._turns = Turns()
        self._min_rows_wait = MinRowsWait(settings.max_trigger_delay, clock)
        self._losses = GroupLosses(servers, settings)
        self._claimed: float | None = None
        self._budgets: dict[Stream, int] | None = None
        self._delivered: dict[Stream, int] = {}
        self._fresh = Delivered()
        self._seen: dict[Stream, tuple[StreamInfo, Group]] = {}
        self._waited: dict[Stream, GroupPosition] = {}
        self._shared: set[Stream] = set()

    def consumer(self, batch: int) -> str:
        """Return the consumer whose pending entries are a batch."""
        return f"{self._settings.consumer}-{batch}"

    def initial(self) -> GroupOffset:
        """Return the batch before the first: before any that has been left pending.

        Creates the group where it is missing, at the place that the options say. It is decided
        once: Spark asks several times.
        """
        if self._initial is None:
            self._create_groups(lambda infos: starts(self._servers, self._settings, infos))
            pending = self._pending_by_batch()
            waiting = [batch for batch, count in pending.items() if count]
            batch = min(waiting) - 1 if waiting else max(pending, default=0)
            self._initial = self._offset(batch, {})
        return self._initial

    def stop_at_what_is_there(self) -> None:
        """From now on no more new entries are taken than there are now."""
        # The groups of new streams are created later, when it is known whether there is a
        # checkpoint: until then all that such a stream holds counts.
        found = self._groups()
        self._budgets = {
            stream: info.length if group is None else _most(info, group)
            for stream, (info, group) in found.items()
        }

    def latest(self, done: GroupOffset, limits: Limits) -> GroupOffset | None:
        """The next batch, filled as far as the limits allow; None without any entry, or too few.

        What the batches up to ``done`` hold is acknowledged. Raises DataLossError if entries
        were removed that had not been delivered to anyone, or the group was.
        """
        consumers = self._consumers()
        # Not only after a batch: a failover may have lost the acknowledgements of earlier ones,
        # and what is pending for those would be claimed like a rival's.
        self._acknowledge(consumers, done.batch)
        following = done.batch + 1
        begins = self._begins(done, consumers)
        has_told, self._losses.has_told = self._losses.has_told, False
        kept = {s for s, each in consumers.items() if each.batches.get(following)}
        if kept:
            # A crash has kept the batch from getting into the checkpoint.
            known = done.positions or {}
            return self._offset(following, {**begins, **{s: known[s] for s in kept & {*known}}})
        least = limits.least if self._budgets is None else None
        lag = sum(_lag(*seen) for seen in self._seen.values())
        if not has_told and self._min_rows_wait.has_to_wait(lag, least):
            self._waited = self._places(_uncounted(self._seen), begins)
            return None
        self._waited = {}
        self._fresh.begin(following)
        taken = self._claim(following, limits.rows)
        taken += self._deliver(following, limits, taken)
        if taken:
            self._min_rows_wait.end()
        return self._offset(following, begins) if taken or has_told else None

    def _begins(
        self, done: GroupOffset, consumers: Mapping[Stream, Consumers]
    ) -> dict[Stream, GroupPosition]:
        """Where the batch after ``done`` begins in each stream; raises DataLossError."""
        known = done.positions or {}
        self._look(done)
        self._shared |= {stream for stream, found in consumers.items() if found.others}
        begins = dict(known)
        for stream, (info, group) in self._seen.items():
            left = self._waited.get(stream, known.get(stream))
            if left is not None and stream in self._shared:
                left = replace(left, shared=True)
            begin = self._losses.checked(stream, info, group, left, done.batch + 1)
            begins[stream] = replace(begin, shared=begin.shared or stream in self._shared)
        # One that is there is only no longer subscribed to.
        absent = [stream for stream in known if stream not in self._seen]
        for stream, info in self.catalog.infos(absent).items():
            if info == NOTHING:
                is_named = self.catalog.is_named(stream)
                begins[stream] = self._losses.gone(stream, known[stream], is_named)
        if self._losses.has_told:
            self._seen = self._there()
        return begins

    def _offset(self, batch: int, before: Mapping[Stream, GroupPosition]) -> GroupOffset:
        """A batch as it is pending now, which begins where the group stood before."""
        consumers = self._consumers()
        positions = {}
        for stream, place in self._places(self._there(), before).items():
            mine = consumers.get(stream, Consumers({}, others=False))
            end = place.after(before.get(stream, place), mine.batches.get(batch, 0))
            positions[stream] = replace(end, shared=end.shared or mine.others)
        for stream, position in before.items():
            if stream not in positions and self.catalog.is_named(stream):
                # It may come again, and is not to be read from its start then.
                positions[stream] = replace(position, count=0)
        return GroupOffset(batch, positions)

    def _places(
        self, found: Groups, known: Mapping[Stream, GroupPosition]
    ) -> dict[Stream, GroupPosition]:
        """Where groups stand; what tells a loss is asked where servers have no number for it."""
        after = {s: place_of(group)[0] for s, (_, group) in _uncounted(found).items()}
        replies = ask_each(
            self._servers,
            after,
            lambda stream: ("XRANGE", stream.key, f"({format_id(after[stream])}", "+", "COUNT", 1),
        )
        unread = {
            stream: parse_id(reply[0][0]) if reply else 0
            for stream, reply in replies.items()
            if not isinstance(reply, ResponseError)
        }
        return {
            s: GroupPosition.of(*seen, known.get(s), unread.get(s), self._delivered.get(s, 0))
            for s, seen in found.items()
        }

    def acknowledge(self, done: int) -> None:
        """Acknowledges the entries of the batches up to that number."""
        self._acknowledge(self._consumers(), done)

    def _acknowledge(self, found: Mapping[Stream, Consumers], done: int) -> None:
        for stream, consumers in found.items():
            mine = PendingEntries(self._servers, self._settings, stream)
            for batch, pending in consumers.batches.items():
                if batch <= done:
                    known = self._fresh.all_of(stream, batch, pending) or ()
                    mine.acknowledge_all(self.consumer(batch), known)

    def _consumers(self, more: Iterable[Stream] = ()) -> dict[Stream, Consumers]:
        """The group's consumers; ``more`` are streams that may no longer be subscribed to."""
        return consumers_of(self._servers, self._settings, [*self.catalog.streams(), *more])

    def _pending_by_batch(self) -> dict[int, int]:
        """How much is pending for each batch over all streams."""
        total: dict[int, int] = {}
        for consumers in self._consumers().values():
            for batch, pending in consumers.batches.items():
                total[batch] = total.get(batch, 0) + pending
        return total

    def _there(self) -> dict[Stream, tuple[StreamInfo, Group]]:
        """Return what XINFO says of the streams that have the group."""
        return {s: (info, group) for s, (info, group) in self._groups().items() if group}

    def _groups(
        self, read: Mapping[Stream, int] | None = None
    ) -> dict[Stream, tuple[StreamInfo, Group | None]]:
        """Return what the servers say about each stream that is there and the group in it."""
        infos = self.catalog.infos(self.catalog.streams(), read)
        there = [stream for stream, info in infos.items() if info != NOTHING]
        found = groups_of(self._servers, there, self._settings.group)
        return {stream: (infos[stream], found.get(stream)) for stream in there}

    def _create_groups(
        self,
        where: Callable[[dict[Stream, StreamInfo]], Mapping[Stream, tuple[int, int]]],
        read: Mapping[Stream, int] | None = None,
    ) -> bool:
        found = self._groups(read)
        missing = {stream: info for stream, (info, group) in found.items() if group is None}
        for stream, (after, number) in where(missing).items():
            self._losses.put(stream, after, number)
        self._delivered = {}
        self._seen = {s: (info, group) for s, (info, group) in found.items() if group is not None}
        return bool(missing)

    def _look(self, done: GroupOffset) -> None:
        """Asks where streams and groups stand, and creates the group in streams without it."""

        def where(missing: dict[Stream, StreamInfo]) -> dict[Stream, tuple[int, int]]:
            return {
                stream: self._losses.place_of_missing(stream, info, done)
                for stream, info in missing.items()
            }

        read = {stream: position.id for stream, position in (done.positions or {}).items()}
        while self._create_groups(where, read):
            pass

    def _claim(self, batch: int, limit: int | None) -> int:
        interval = self._settings.claim_min_idle_ms / 1000 / CLAIMS_PER_IDLE_TIME
        now = self._clock()
        if self._claimed is not None and now - self._claimed < interval:
            return 0
        self._claimed = now
        taken = 0
        for stream, (_, group) in self._seen.items():
            most = group[b"pending"] if limit is None else limit - taken
            if group[b"pending"] and most > 0:
                taken += self._claim_from(stream, batch, most)
        return taken

    def _claim_from(self, stream: Stream, batch: int, most: int) -> int:
        mine = PendingEntries(self._servers, self._settings, stream)
        taken, removed = mine.claim(self.consumer(batch), most)
        if taken:
            self._fresh.mix(stream)
        if removed:
            report_loss(
                self._settings,
                f"stream '{stream.shown}': {entries(removed)} removed while pending for another "
                f"consumer of group '{self._settings.group}'",
            )
        return taken

    def _deliver(self, batch: int, limits: Limits, taken: int) -> int:
        """Has new entries delivered, beside those that were claimed; returns how many."""
        lags = {stream: _most(*seen) for stream, seen in self._seen.items()}
        if self._budgets is not None:
            lags = {s: min(lag, self._budgets.get(s, 0)) for s, lag in lags.items()}
        self._delivered = dict.fromkeys(lags, 0)
        left = sum(lags.values()) if limits.rows is None else max(limits.rows - taken, 0)
        sizes = {stream: info.size for stream, (info, _) in self._seen.items()}
        size_parts = byte_shares(limits.bytes, lags, sizes)
        while left and lags:
            for stream, part in self._turns.rows(left, lags).items():
                most_bytes = None if size_parts is None else size_parts[stream]
                got, more = self._deliver_from(stream, batch, part, most_bytes)
                left -= got
                # A server that can't tell a lag may seem to have more than it has.
                lags[stream] = lags[stream] - got if more and size_parts is None else 0
            lags = {stream: lag for stream, lag in lags.items() if lag > 0}
        return sum(self._delivered.values())

    def _deliver_from(
        self, stream: Stream, batch: int, part: int, most_bytes: int | None
    ) -> tuple[int, bool]:
        if not part:
            return 0, True
        mine = PendingEntries(self._servers, self._settings, stream)
        size = self._seen[stream][0].size
        ids, more = mine.deliver(self.consumer(batch), part, most_bytes, size)
        self._fresh.add(stream, ids)
        got = len(ids)
        self._delivered[stream] += got
        if self._budgets is not None:
            # Where rivals were faster nothing more may be taken for what they took.
            self._budgets[stream] = self._budgets.get(stream, 0) - got if more else 0
        return got, more

    def partitions(self, offset: GroupOffset) -> list[Partition]:
        """Return the tasks of a batch: about equal parts of its pending entries.

        Raises DataLossError if there are fewer of them than there were, and nobody has claimed
        them.
        """
        consumer = self.consumer(offset.batch)
        positions = offset.positions or {}
        found = self._consumers(positions)
        ranges: list[Range | PendingRange] = [
            part
            for stream, position in positions.items()
            for part in self._losses.check_batch(stream, position, offset.batch, found.get(stream))
        ]
        pending = {
            stream: self._alive(stream, offset.batch, consumers.batches.get(offset.batch, 0))
            for stream, consumers in found.items()
        }
        total = sum(map(len, pending.values()))
        size = max(1, ceil(total / (self._settings.min_partitions or 1)))
        ends = {stream: position.id for stream, position in positions.items()}
        ranges += [
            PendingRange(
                *(stream, consumer, part[0] - 1, part[-1], len(part)), end=ends.get(stream, 0)
            )
            for stream, ids in pending.items()
            for part in (ids[i : i + size] for i in range(0, len(ids), size))
        ]
        return gather(ranges, self._settings.max_partitions)

    def _alive(self, stream: Stream, batch: int, pending: int) -> list[int]:
        """The IDs of a batch, once those delivered too often have gone to the dead letters."""
        most = self._settings.max_deliveries
        if most is not None:
            return self._sorted_out(stream, self.consumer(batch), most)
        known = self._fresh.all_of(stream, batch, pending)
        if known is not None:
            # Requests may have overtaken each other, and a server may deliver some again.
            return sorted(parse_ids(known))
        mine = PendingEntries(self._servers, self._settings, stream)
        return mine.ids_of(self.consumer(batch))

    def _sorted_out(self, stream: Stream, consumer: str, most: int) -> list[int]:
        """Return what a consumer has pending, without what goes to the dead letters now."""
        mine = PendingEntries(self._servers, self._settings, stream, self._memory(stream.server))
        ids = []
        moved_away = 0
        for entry in list(mine.of(consumer)):
            if entry.deliveries > most and mine.move_to_dead_letters(entry, consumer):
                moved_away += 1
            else:
                ids.append(entry.id)
        if moved_away:
            LOG.warning(
                "stream '%s': %s delivered more than %s times went to '%s'",
                *(mine.stream.shown, entries(moved_away), most, self._settings.dead_letters),
            )
        return ids

    def _memory(self, server: int) -> Memory:
        if server not in self._memories:
            self._memories[server] = Memory(self._servers, server, "auto", REMEMBERED_S)
        return self._memories[server]

    def report(self) -> dict[str, Any] | None:
        """Where the streams ended when last asked, and what the group lagged behind after that.

        Before the first look, as for a batch that is repeated, that is asked.
        """
        if not self._seen:
            self._seen = self._there()
        ends = {
            stream: {
                "id": format_id(info.last),
                "n": info.added,
                "lag": max(_lag(info, group) - self._delivered.get(stream, 0), 0),
                "pending": group[b"pending"] + self._delivered.get(stream, 0),
            }
            for stream, (info, group) in self._seen.items()
        }
        return {"servers": by_server(ends, self._settings.servers)} if ends else None


def _uncounted(found: Groups) -> Groups:
    """Return the streams of which no server knows how many entries the group has been given."""
    return {s: (info, group) for s, (info, group) in found.items() if place_of(group)[1] is None}


def _lag(info: StreamInfo, group: Group) -> int:
    """How many entries have not been delivered; the server does not always know exactly."""
    if info.last <= parse_id(group[b"last-delivered-id"]):
        return 0
    lag: int | None = group.get(b"lag")
    return info.length if lag is None else max(lag, 0)


def _most(info: StreamInfo, group: Group) -> int:
    """How many entries may be there to be delivered: the lag, unless it is 0 before the last ID.

    A server believes whatever ENTRIESREAD has said. If that was too high, none seem to be left
    while there are some, and nobody would read them.
    """
    if info.last <= parse_id(group[b"last-delivered-id"]):
        return 0
    return _lag(info, group) or info.length
