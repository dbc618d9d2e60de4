"""What becomes of all groups over time: a look at every stream now and then, in steps.

The overview puts groups in trouble first, and shows what lag and pending entries were during the
last minutes, so somebody has to look at all of them all the time. There may be ten thousand streams
and ten million pending entries, and one event loop for all clients: the look takes steps of a
millisecond, between which clients are answered, and the time until the next one depends on how long
the last one took.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import Any, Final, NamedTuple

from server.config.policies import GroupRules
from server.delivery.group_ref import GroupRef
from server.delivery.health import HealthFacts, age_of
from server.runtime import process
from server.runtime.clockwork import Slice
from server.runtime.histogram import MICROSECOND, Histogram, at_most
from server.services import Services
from server.state.server_state import Phase
from server.web.page.traces import CONSUMER, VITALS, History
from server.web.survey import STEP_NS, asked_last, stream_at, streams_of, summary_of
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import HIGHEST
from storage.engine.stream import Stream

IDLE_S: Final = 10.0
WATCHED_S: Final = 2.0
"""How often everything is looked at, while nobody looks at the page and while somebody does."""

WATCHED_FOR_S: Final = 30.0
REMEMBERED_FOR_S: Final = 3600.0
"""For how long after a request somebody is taken to be looking, and the past of consumers is kept:
a page that nobody opens does not cost that."""

SHARE: Final = 50
"""The time from one look to the next is at least so many times as long as the look."""

MOST_ROWS: Final = 100_000
"""How many rows there may be."""

MOST_TRACES: Final = 2000
"""Of how many rows the past is kept, those in trouble first, and of how many of their consumers."""

MOST_CONSUMERS: Final = 100
"""Of how many consumers of a group: those that came first."""

_CHUNK: Final = 500
"""How many rows are sorted at a time."""

LETTER_MARK: Final = b"$18\r\ndead-letter-stream\r\n"
_LOOKED_AT: Final = 512


NEVER: Final = HealthFacts().order()
"""How streams without groups are sorted, of which none is ever in trouble."""

Name = tuple[int, bytes, bytes]
"""A database, a key and a group, which is empty for a stream without groups."""


class Row(NamedTuple):
    """A group as it was at the last look; ``group`` is ``None`` for a stream without groups.

    ``behind_since`` is the time in the ID of the first entry that was not delivered yet, ``oldest``
    when the entry was delivered that has been pending for the longest time: Unix milliseconds, or
    ``None``. ``pending`` are the entries that consumers have, ``kept`` those that are pending and
    with nobody: kept back by a policy, or given back. ``deliveries`` are both by delivery count,
    ``most`` is the highest. ``target`` is where dead letters go, empty if nowhere, and ``tries``
    after how many deliveries, 0 if never. ``grows`` is by how many entries a second the lag grows,
    0 unless it has done so for two minutes. ``died`` are the entries that became dead letters since
    the group is in memory, ``died_lately`` those of the last ten minutes. ``asked`` is when one of
    its ``consumers`` asked last, ``None`` without any and while the client of one is connected.
    """

    db: int
    key: bytes
    group: bytes | None
    length: int
    added: int
    lag: int
    behind_since: int | None
    pending: int
    oldest: int | None
    most: int
    deliveries: tuple[int, ...]
    letters: bool
    kept: int = 0
    acked: int = 0
    paused: bool = False
    target: bytes = b""
    tries: int = 0
    grows: float = 0.0
    died: int = 0
    died_lately: int = 0
    consumers: int = 0
    asked: int | None = None

    @property
    def name(self) -> Name:
        """What identifies the row."""
        return self.db, self.key, self.group or b""

    def values(self, now: int) -> tuple[int, ...]:
        """Return what is remembered of it."""
        age = 0 if self.oldest is None else max(0, now - self.oldest)
        return now, self.added, self.acked, self.lag, self.pending, self.kept, age, self.length

    def facts(self, now: int) -> HealthFacts:
        """Return what it is judged by, at a time not before the look."""
        oldest = None if self.oldest is None else now - self.oldest
        waits = None if self.behind_since is None else now - self.behind_since
        silent = None if self.asked is None else now - self.asked
        counts = self.most, self.died_lately, self.pending, self.lag
        return HealthFacts(oldest, *counts, waits, self.consumers, silent, self.grows, self.paused)

    def state(self, now: int) -> str:
        """Return how it is, in a word."""
        return self.facts(now).state()


Key = Callable[[Row], Any]


class Sampler:
    """Looks at all streams of a server. ``rows`` is what there was, ``taken_ms`` when that was,
    ``left_out`` how many streams and groups there were no rows left for."""

    def __init__(
        self,
        server: Services,
        now: Callable[[], float] = time.monotonic,
        loop_lag: Histogram | None = None,
    ) -> None:
        self._server = server
        self._loop_lag = Histogram() if loop_lag is None else loop_lag
        self._lags = self._loop_lag.counts[:]
        self._now = now
        self._watched = -REMEMBERED_FOR_S
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self.rows: list[Row] = []
        self.left_out = 0
        self.taken_ms = 0
        self.index: dict[Name, Row] = {}
        self.traces: dict[Name, History] = {}
        self.whole = History()
        """What all rows together have been."""
        self.consumers: dict[tuple[Name, bytes], History] = {}
        """What consumers have been, by their groups and names."""
        self.vitals = History(VITALS)
        """What the server itself has been."""
        self.letters: dict[tuple[int, bytes], int] = {}
        """The streams of dead letters, with their lengths."""
        self.troubled = 0
        """How many of the groups whose past is kept are in trouble."""
        self.number = 0
        """How many looks there have been."""
        self.next = asyncio.Event()
        """Set when the next look is done; there is another one then."""
        self.closing = False

    # --- when -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begins; an event loop must be running."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends it, and lets those go who wait for the next look. It must have begun."""
        self.closing = True
        self._tell()
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def watch(self) -> None:
        """Somebody looks at the page: the next look comes sooner."""
        if not self._is_watched():
            self._hurry.set()
        self._watched = self._now()

    def _is_watched(self, for_s: float = WATCHED_FOR_S) -> bool:
        return self._now() - self._watched < for_s

    async def _run(self) -> None:
        while True:
            began = self._now()
            await self._try()
            least = SHARE * (self._now() - began)
            await self._wait(began, least)

    async def _try(self) -> None:
        """Looks, if there is anything to see and a page to show it; a failure is told in the log,
        and does not end it."""
        state = self._server.state
        if state.phase is not Phase.SERVING or not state.config.web_page:
            return
        try:
            await self.look()
        except Exception as error:
            state.log.warning(
                f"Unexpected error: the page could not look at all streams: {error!r}"
            )

    async def _wait(self, began: float, least: float) -> None:
        """Returns when the next look is due; sooner if somebody comes to look."""
        self._hurry.clear()
        if not self._is_watched() and self.number:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), max(IDLE_S, least))
        left = began + max(WATCHED_S, least) - self._now()
        await asyncio.sleep(max(left, 0.01) if self.number else 0.05)

    def _tell(self) -> None:
        self.next.set()
        self.next = asyncio.Event()

    # --- looking --------------------------------------------------------------------------

    async def look(self) -> None:
        """Looks at everything once; what there is may change meanwhile."""
        pace = Slice(STEP_NS)
        found = StreamScan(self._server, pace)
        await found.run()
        now = self._server.state.clock()
        index: dict[Name, Row] = {}
        traces: dict[Name, History] = {}
        consumers: dict[tuple[Name, bytes], History] = {}
        letters: dict[tuple[int, bytes], int] = {}
        remembers, troubled = self._is_watched(REMEMBERED_FOR_S), 0
        sums = Sums()
        rows = found.rows
        for at, row in enumerate(rows):
            trace = self.traces.get(row.name)
            if trace is not None:
                row = rows[at] = row._replace(grows=trace.growth())
            index[row.name] = row
            sums.add(row)
            if row.letters:
                letters[row.db, row.key] = row.length
            await pace.rest()
        async for row in ordered(rows, in_trouble(now), pace):
            if len(traces) == MOST_TRACES:
                break
            if troubled == len(traces) and row.facts(now).troubles():
                troubled += 1
            trace = traces[row.name] = self.traces.get(row.name) or History()
            trace.note(*row.values(now))
            if remembers:
                self._note_consumers(row, now, consumers)
            await pace.rest()
        self._note_vitals(now)
        self.consumers = consumers
        self.whole.note(*sums.values(now, sum(letters.values())))
        self.rows, self.index, self.traces, self.letters = rows, index, traces, letters
        self.left_out, self.troubled = found.left_out, troubled
        self.taken_ms = now
        self.number += 1
        self._tell()

    def _note_consumers(self, row: Row, now: int, found: dict[tuple[Name, bytes], History]) -> None:
        """Remembers what the first consumers of a group have been given and have acknowledged."""
        stream = stream_at(self._server.state.keyspace.databases[row.db], row.key, now)
        group = None if stream is None or row.group is None else stream.groups.get(row.group)
        most = min(MOST_CONSUMERS, MOST_TRACES - len(found))
        for each in islice(group.consumers.values(), most) if group is not None else ():
            name = row.name, each.name
            trace = found[name] = self.consumers.get(name) or History(CONSUMER)
            trace.note(now, each.acked + each.owned, each.acked, each.owned)

    def _note_vitals(self, now: int) -> None:
        counts, before = self._loop_lag.counts[:], self._lags
        self._lags = counts
        late = at_most([own - then for own, then in zip(counts, before, strict=True)], 99)
        state = self._server.state
        memory, clients = process.resident_memory(), len(state.sessions)
        self.vitals.note(now, state.commands_processed(), late // MICROSECOND, memory, clients)


class Sums:
    """What the rows of one look are together; entries of a stream with several groups are added
    once."""

    def __init__(self) -> None:
        self._added = self._acked = self._lag = self._pending = self._kept = 0
        self._oldest: int | None = None
        self._before: tuple[int, bytes] | None = None

    def add(self, row: Row) -> None:
        """Adds a row; the rows of a stream follow each other."""
        if self._before != (row.db, row.key):
            self._before = (row.db, row.key)
            self._added += row.added
        self._acked += row.acked
        self._lag += row.lag
        self._pending += row.pending
        self._kept += row.kept
        if row.oldest is not None:
            self._oldest = row.oldest if self._oldest is None else min(self._oldest, row.oldest)

    def values(self, now: int, letters: int) -> tuple[int, ...]:
        """Return the values of a trace; its length is the number of dead letters."""
        age = 0 if self._oldest is None else max(0, now - self._oldest)
        return now, self._added, self._acked, self._lag, self._pending, self._kept, age, letters


class StreamScan:
    """One look."""

    def __init__(self, server: Services, pace: Slice) -> None:
        self._server = server
        self._pace = pace
        self._now = server.state.clock()
        self.rows: list[Row] = []
        self.left_out = 0

    async def run(self) -> None:
        """Gathers the rows of all databases."""
        keyspace = self._server.state.keyspace
        async for index, key, stream in streams_of(keyspace, self._now, self._pace):
            await self._add_stream(index, key, stream)

    async def _add_stream(self, db: int, key: bytes, stream: Stream) -> None:
        letters = holds_letters(stream)
        if not stream.groups:
            self._add(without_groups(db, key, stream, letters))
        for group in list(stream.groups.values()):
            if len(self.rows) < MOST_ROWS:
                self._add(await self._row(db, key, stream, group, letters))
            else:
                self.left_out += 1
            await self._pace.rest()

    def _add(self, row: Row) -> None:
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        else:
            self.left_out += 1

    async def _row(self, db: int, key: bytes, stream: Stream, group: Group, letters: bool) -> Row:
        summary = await summary_of(group.pending, self._pace)
        oldest = None if summary.earliest == HIGHEST else summary.earliest
        kept = group.pending.unowned
        ref = GroupRef(self._server.state.keyspace.databases[db], key, stream, group)
        rules = rules_of(self._server, ref)
        return Row(
            db=db,
            key=key,
            group=group.name,
            length=stream.log.length,
            added=stream.entries_added,
            lag=await lag_of(stream, group, self._pace),
            behind_since=behind_since(stream, group, self._now),
            pending=len(group.pending) - kept,
            oldest=oldest,
            most=summary.most,
            deliveries=tuple(summary.counts),
            letters=letters,
            kept=kept,
            acked=group.acked,
            paused=rules is not None and rules.paused,
            target=b"" if rules is None else rules.dead_letter,
            tries=0 if rules is None else rules.max_deliveries,
            died=sum(group.counts.letters.values()),
            died_lately=group.counts.letters_lately.total(self._now),
            consumers=len(group.consumers),
            asked=await asked_last(group, self._pace),
        )


def rules_of(server: Services, ref: GroupRef) -> GroupRules | None:
    """What was in force when the group's policies were last looked at, ``None`` without any."""
    ruled = server.policies.known_as_ruled(ref)
    return None if ruled is None else ruled.agenda.rules


def without_groups(db: int, key: bytes, stream: Stream, letters: bool) -> Row:
    """The row of a stream without groups."""
    return Row(
        db=db,
        key=key,
        group=None,
        length=stream.log.length,
        added=stream.entries_added,
        lag=0,
        behind_since=None,
        pending=0,
        oldest=None,
        most=0,
        deliveries=(),
        letters=letters,
    )


def holds_letters(stream: Stream) -> bool:
    """Whether the last entry is a dead letter, as pipelines and the data source write them."""
    last = stream.log.reverse(ids.MIN, ids.MAX, 1)
    return bool(last) and last[0].find(LETTER_MARK, 0, _LOOKED_AT) >= 0


async def lag_of(stream: Stream, group: Group, pace: Slice) -> int:
    """How many entries were not delivered yet: as XINFO GROUPS tells it, and counted in steps where
    that cannot."""
    told = stream.lag(group)
    if told is not None:
        return max(0, told)
    log = stream.log
    at, place = log.place_behind(group.last_id)
    count = -place
    blocks = log.blocks[at:]
    for done in range(0, len(blocks), _CHUNK):
        count += sum([len(block) for block in blocks[done : done + _CHUNK]])
        await pace.rest()
    return max(0, count)


def behind_since(stream: Stream, group: Group, now: int) -> int | None:
    """The time in the ID of the first entry that was not delivered yet, if it may be a time."""
    if stream.log.last <= group.last_id:
        return None
    first = stream.log.ids_of(group.last_id + 1, ids.MAX, 1)
    ms = ids.split(first[0])[0] if first else 0
    return None if age_of(ms, now) is None else ms


# --- orders ----------------------------------------------------------------------------------


def in_trouble(now: int) -> Key:
    """Groups in trouble first, as :meth:`HealthFacts.order` says; those of a stream together."""

    def key(row: Row) -> Any:
        order = NEVER if row.group is None else row.facts(now).order()
        return *order, row.group is None, *row.name

    return key


async def ordered(rows: list[Row], key: Key, pace: Slice) -> AsyncIterator[Row]:
    """The rows in an order, which is made in steps; ``key`` is not the same of two rows."""
    chunks = []
    for at in range(0, len(rows), _CHUNK):
        chunks.append(sorted([(key(row), row) for row in rows[at : at + _CHUNK]]))
        await pace.rest()
    for _, row in heapq.merge(*chunks):
        yield row
        await pace.rest()
