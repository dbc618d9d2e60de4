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
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

from server.road.state import Phase
from server.runtime.clockwork import Slice
from server.services import Services
from server.web.page.wording import EARLIEST_MS
from server.web.survey import STEP_NS, streams_of, summary_of
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import MOST
from storage.engine.stream import Stream

IDLE_S: Final = 10.0
WATCHED_S: Final = 2.0
"""How often everything is looked at, while nobody looks at the page and while somebody does."""

WATCHED_FOR_S: Final = 30.0
"""For how long after a request somebody is taken to be looking."""

SHARE: Final = 50
"""The time from one look to the next is at least so many times as long as the look."""

MOST_ROWS: Final = 100_000
"""How many rows there may be."""

POINTS: Final = 180
"""How many values of the past are kept of a row."""

MOST_TRACES: Final = 2000
"""Of how many rows, those in trouble first."""

FAILING_AGE_MS: Final = 5 * 60_000
FAILING_DELIVERIES: Final = 5
"""A group is in trouble when an entry has been waiting so long, or was delivered so often."""

_CHUNK: Final = 500
"""How many rows are sorted at a time."""

LETTER_MARK: Final = b"$18\r\ndead-letter-stream\r\n"
_LOOKED_AT: Final = 512


Name = tuple[int, bytes, bytes]
"""A database, a key and a group, which is empty for a stream without groups."""


class Row(NamedTuple):
    """A group as it was at the last look; ``group`` is ``None`` for a stream without groups.

    ``behind_since`` is the time in the ID of the first entry that was not delivered yet, ``oldest``
    when the entry was delivered that has been pending for the longest time: Unix milliseconds, or
    ``None``. ``deliveries`` are the pending entries by delivery count, ``most`` is the highest.
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

    @property
    def name(self) -> Name:
        """What identifies the row."""
        return self.db, self.key, self.group or b""

    def troubles(self, now: int) -> list[str]:
        """What is wrong with the group."""
        found = []
        if self.oldest is not None and now - self.oldest >= FAILING_AGE_MS:
            found.append("stuck")
        if self.most >= FAILING_DELIVERIES:
            found.append("redelivered")
        if self.behind_since is not None and now - self.behind_since >= FAILING_AGE_MS:
            found.append("behind")
        return found


class Trace:
    """What lag, pending entries and entries ever added have been, the newest last."""

    __slots__ = ("added", "lag", "pending", "times")

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=POINTS)
        self.lag: deque[int] = deque(maxlen=POINTS)
        self.pending: deque[int] = deque(maxlen=POINTS)
        self.added: deque[int] = deque(maxlen=POINTS)

    def note(self, row: Row, now: int) -> None:
        """Adds what the row says."""
        self.times.append(now)
        self.lag.append(row.lag)
        self.pending.append(row.pending)
        self.added.append(row.added)

    def rate(self) -> float | None:
        """Entries added a second during the last minute, ``None`` if that is not known yet."""
        if len(self.times) < 2:
            return None
        last = self.times[-1]
        at = next(at for at, then in enumerate(self.times) if last - then <= 60_000)
        passed = last - self.times[at]
        return (self.added[-1] - self.added[at]) * 1000 / passed if passed > 0 else None


Key = Callable[[Row], Any]


class Sampler:
    """Looks at all streams of a server. ``rows`` is what there was, ``taken_ms`` when that was,
    ``left_out`` how many streams and groups there were no rows left for."""

    def __init__(self, server: Services, now: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._now = now
        self._watched = -WATCHED_FOR_S
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self.rows: list[Row] = []
        self.left_out = 0
        self.taken_ms = 0
        self.index: dict[Name, Row] = {}
        self.traces: dict[Name, Trace] = {}
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

    def _is_watched(self) -> bool:
        return self._now() - self._watched < WATCHED_FOR_S

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
        traces: dict[Name, Trace] = {}
        for row in found.rows:
            index[row.name] = row
            await pace.rest()
        async for row in ordered(found.rows, in_trouble(now), pace):
            if len(traces) == MOST_TRACES:
                break
            trace = traces[row.name] = self.traces.get(row.name) or Trace()
            trace.note(row, now)
            await pace.rest()
        self.rows, self.index, self.traces = found.rows, index, traces
        self.left_out = found.left_out
        self.taken_ms = now
        self.number += 1
        self._tell()


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
            self._add(Row(db, key, None, *_size(stream), 0, None, 0, None, 0, (), letters))
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
        oldest = None if summary.earliest == MOST else summary.earliest
        return Row(
            db,
            key,
            group.name,
            *_size(stream),
            await lag_of(stream, group, self._pace),
            behind_since(stream, group, self._now),
            len(group.pending),
            oldest,
            summary.most,
            tuple(summary.counts),
            letters,
        )


def _size(stream: Stream) -> tuple[int, int]:
    return stream.log.length, stream.entries_added


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
    return ms if EARLIEST_MS <= ms <= now else None


# --- orders ----------------------------------------------------------------------------------


def in_trouble(now: int) -> Key:
    """Groups in trouble first: by the age of the oldest pending entry, lag, and deliveries."""

    def key(row: Row) -> Any:
        oldest = now if row.oldest is None else row.oldest
        return not row.troubles(now), oldest, -row.lag, -row.most, row.group is None, *row.name

    return key


async def ordered(rows: list[Row], key: Key, pace: Slice) -> AsyncIterator[Row]:
    """The rows in an order, which is made in steps."""
    chunks = []
    for at in range(0, len(rows), _CHUNK):
        chunks.append(sorted(rows[at : at + _CHUNK], key=key))
        await pace.rest()
    for row in heapq.merge(*chunks, key=key):
        yield row
        await pace.rest()
