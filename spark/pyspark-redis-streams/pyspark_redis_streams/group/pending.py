"""Mode ``group``: the consumers of a group, one a batch, and what is pending for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from redis.exceptions import ResponseError

from pyspark_redis_streams.ids import format_id, parse_id, parse_ids
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.fetching import Portions
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import Stream, ask_each, bytes_of, pairs
from pyspark_redis_streams.write.idempotence import Memory, once


@dataclass(frozen=True)
class Consumers:
    """How much is pending for each batch that has a consumer; whether there are other consumers."""

    batches: Mapping[int, int]
    others: bool


def consumers_of(
    servers: Servers, settings: ReadSettings, streams: Iterable[Stream]
) -> dict[Stream, Consumers]:
    """Return the consumers of the query's group in each of the streams that has it."""
    replies = ask_each(
        servers, streams, lambda stream: ("XINFO CONSUMERS", stream.key, settings.group)
    )
    return {
        stream: _sorted(f"{settings.consumer}-".encode(), [pairs(each) for each in reply])
        for stream, reply in replies.items()
        if not isinstance(reply, ResponseError)
    }


def _sorted(prefix: bytes, consumers: list[dict[bytes, Any]]) -> Consumers:
    names = {each[b"name"]: each[b"pending"] for each in consumers}
    batches = {
        int(name.removeprefix(prefix)): pending
        for name, pending in names.items()
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit()
    }
    return Consumers(batches, others=len(batches) < len(names))


class Delivered:
    """Remembers what the replies have said, so that it need not be asked for again.

    Only the batch that was made last is remembered, and nothing of it after a restart.
    """

    def __init__(self) -> None:
        self._batch = 0
        self._ids: dict[Stream, list[bytes]] = {}
        self._mixed: set[Stream] = set()

    def begin(self, batch: int) -> None:
        """Forgets the batch of before."""
        self._batch = batch
        self._ids = {}
        self._mixed = set()

    def mix(self, stream: Stream) -> None:
        """Tells that the batch holds others of a stream, too, whose IDs are not known."""
        self._mixed.add(stream)

    def add(self, stream: Stream, ids: Sequence[bytes]) -> None:
        """Remembers entries of the batch."""
        self._ids.setdefault(stream, []).extend(ids)

    def all_of(self, stream: Stream, batch: int, pending: int) -> Sequence[bytes] | None:
        """Return the IDs of what a batch has pending, if these are all that there are.

        ``pending`` is how many the server says that there are: fewer when others have claimed some.
        """
        ids = self._ids.get(stream, [])
        known = batch == self._batch and stream not in self._mixed
        return ids if known and ids and len(ids) == pending else None


PAGE: Final = 10_000
"""Pending entries that are listed at once; they come without their fields."""

CLAIM_PAGE: Final = 1000

AT_ONCE: Final = 2
"""Requests for new entries that are under way together."""


class Pending(NamedTuple):
    """A pending entry: its ID as an integer, and how often it has been delivered."""

    id: int
    deliveries: int


class PendingEntries:
    """The pending entries list of the query's group in one stream.

    ``memory`` is that of the dead letters' server, where there are any.
    """

    def __init__(
        self,
        servers: Servers,
        settings: ReadSettings,
        stream: Stream,
        memory: Memory | None = None,
    ) -> None:
        self._memory = memory
        self._servers = servers
        self._settings = settings
        self.stream = stream

    def _call(self, command: str, *arguments: Any) -> Any:
        place = (self.stream.key, self._settings.group)
        return self._servers.call(self.stream.server, command, *place, *arguments)

    def _pages(self, consumer: str) -> Iterator[list[Any]]:
        """Yield the rows of XPENDING of a consumer, in the order of their IDs."""
        lowest = "-"
        while page := self._call("XPENDING", lowest, "+", PAGE, consumer):
            yield page
            lowest = f"({page[-1][0].decode()}"

    def of(self, consumer: str) -> Iterator[Pending]:
        """Yield the entries of a consumer, in the order of their IDs."""
        for page in self._pages(consumer):
            yield from (Pending(parse_id(entry[0]), int(entry[3])) for entry in page)

    def ids_of(self, consumer: str) -> list[int]:
        """Return the IDs of the entries of a consumer, in their order."""
        pages = self._pages(consumer)
        return [id for page in pages for id in parse_ids([entry[0] for entry in page])]

    def acknowledge_all(self, consumer: str, known: Sequence[bytes] = ()) -> None:
        """Acknowledges whatever the consumer has pending, and removes the consumer.

        ``known`` are IDs that are pending for it: these are not listed before.
        """
        for start in range(0, len(known), PAGE):
            self.acknowledge(known[start : start + PAGE])
        while page := self._call("XPENDING", "-", "+", PAGE, consumer):
            self.acknowledge([entry[0] for entry in page])
        # Only now: removing a consumer drops what it has pending without acknowledging it.
        self._call("XGROUP DELCONSUMER", consumer)

    def acknowledge(self, ids: Sequence[bytes] | Sequence[str]) -> None:
        """Acknowledges entries."""
        self._call("XACK", *ids)

    def claim(self, consumer: str, most: int) -> tuple[int, int]:
        """Takes over entries that others have left pending for long enough.

        Returns how many were taken, and how many were found to be removed from the stream.
        """
        taken = removed = 0
        cursor = b"0-0"
        idle = self._settings.claim_min_idle_ms
        while taken < most:
            count = min(CLAIM_PAGE, most - taken)
            # JUSTID leaves the number of deliveries alone: the task's own read will count.
            reply = self._call("XAUTOCLAIM", consumer, idle, cursor, "COUNT", count, "JUSTID")
            cursor, ids, gone = reply
            taken, removed = taken + len(ids), removed + len(gone)
            if cursor == b"0-0":
                break
        return taken, removed

    def deliver(
        self, consumer: str, most: int, most_bytes: int | None, size: int
    ) -> tuple[list[bytes], bool]:
        """Has new entries delivered to the consumer, of about so many bytes if that is limited.

        ``size`` is what an entry is likely to have. Returns the IDs, and whether there may be more.
        """
        if most_bytes is None:
            return self._deliver_all(consumer, most)
        taken: list[bytes] = []
        left = most_bytes
        portions = Portions(self._settings.fetch_count, self._settings.fetch_bytes)
        while len(taken) < most and (left > 0 or not taken):
            count = min(portions.count, most - len(taken))
            count = max(min(count, left // max(size, 1)), 1)
            found = self._new(consumer, count)
            taken += [entry[0] for entry in found]
            if len(found) < count:
                return taken, False
            total = bytes_of(found)
            portions.learn(count, total)
            left, size = left - total, total // count
            if left < size:
                break
        return taken, True

    def _deliver_all(self, consumer: str, most: int) -> tuple[list[bytes], bool]:
        """Have new entries delivered without a limit of bytes.

        Two requests are under way: the server works on one while the reply to the other is parsed.
        """
        taken: list[bytes] = []
        asked, more = 0, True
        portions = Portions(self._settings.fetch_count, self._settings.fetch_bytes)
        under_way: deque[tuple[int, Future[list[Any]]]] = deque()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while under_way or (more and asked < most):
                while len(under_way) < AT_ONCE and more and asked < most:
                    count = min(portions.count, most - asked)
                    asked += count
                    under_way.append((count, pool.submit(self._new, consumer, count)))
                count, reply = under_way.popleft()
                found = reply.result()
                taken += [entry[0] for entry in found]
                portions.learn(len(found), bytes_of(found))
                more = more and len(found) == count
        return taken, more

    def _new(self, consumer: str, count: int) -> list[Any]:
        group = ("GROUP", self._settings.group, consumer)
        where = ("COUNT", count, "STREAMS", self.stream.key, ">")
        reply = self._servers.call(self.stream.server, "XREADGROUP", *group, *where)
        found: list[Any] = reply[0][1] if reply else []
        return found

    def move_to_dead_letters(self, entry: Pending, consumer: str) -> bool:
        """Moves an entry to the dead letters, and says whether it was still in the stream.

        It is written there before it is acknowledged here: after a crash in between it is tried a
        second time.
        """
        id = format_id(entry.id)
        found = self._servers.call(self.stream.server, "XRANGE", self.stream.key, id, id)
        if not found:
            return False
        history = {
            "dead-letter-stream": self.stream.key,
            "dead-letter-id": id,
            "dead-letter-group": self._settings.group,
            "dead-letter-consumer": consumer,
            "dead-letter-deliveries": entry.deliveries,
            "dead-letter-reason": "delivered more than maxDeliveries times",
        }
        told = [part for pair in history.items() for part in pair]
        self._servers.call(self.stream.server, *self._letter(id, [*told, *found[0][1]]))
        self.acknowledge([id])
        return True

    def _letter(self, id: str, fields: Sequence[Any]) -> Sequence[Any]:
        """The command that adds a dead letter, once if the server can do so.

        Each is acknowledged before the next is written, so only the last may be written twice: it
        is enough that one is remembered.
        """
        letters = (self._settings.dead_letters or "").encode()
        producer = f"{self._settings.group}/{self._settings.consumer}"
        name = b"/".join((self.stream.key, id.encode()))
        plain = ("XADD", letters, "*", *fields)
        if self._memory is not None and self._memory.size(letters) is not None:
            return ("XADD", letters, "IDMP", producer, name, "*", *fields)
        if self._memory is not None and self._memory.is_marked:
            return once(plain, producer, name)
        return plain
