"""Writes that add nothing twice: idempotent IDs, and markers on servers without them.

A server that knows IDMP remembers, for each stream and producer, the IDs used last: 100 for 100
seconds by default. A task may write more, and may be repeated later. Its rows are therefore spread
over producers, each with no more rows of one batch than the stream remembers, and the time is
raised.

On other servers each query has a key beside each stream that it writes, in the stream's slot: a
hash with the batch that it writes and what is there of it, of each part the number of rows, or else
the names of the rows. A script adds what is not there yet and notes it, in one step. The next batch
begins anew. docs/decisions/0022-spark-idempotent-writes.md says more.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Any, Final, TypeVar
from urllib.parse import quote
from zlib import crc32

from redis.crc import key_slot
from redis.exceptions import ResponseError, WatchError

from pyspark_redis_streams.batches import BatchMark, is_written
from pyspark_redis_streams.errors import RedisStreamsError, ServerError
from pyspark_redis_streams.options import WriteSettings
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import pairs, shown

BUCKETS: Final = 4096
"""Producers among which rows with names are spread, by the name alone: a repeated batch may have
fewer rows, in other partitions. With 100 IDs for each, 200,000 rows of a batch are remembered."""


class Idempotence:
    """Names the producer of each row, once the stream is known to remember it long enough.

    ``producer`` begins every name, and must be the same when the rows are written again;
    ``query`` does so for rows that have a name of their own, in whichever partition they are.
    """

    def __init__(
        self, servers: Servers, settings: WriteSettings, producer: str, query: str = ""
    ) -> None:
        how = (settings.idempotence, settings.idempotence_seconds)
        self._memory = Memory(servers, 0, *how)
        self._producer = producer
        self._query = query
        self._named: Counter[tuple[bytes, int]] = Counter()
        self.is_marked = self._memory.is_marked

    def producer(self, key: bytes, row: int) -> str | None:
        """The producer of a task's row, counted from 0; None where the server knows none."""
        size = self._memory.size(key)
        return None if size is None else f"{self._producer}-{row // size}"

    def producer_of(self, key: bytes, name: bytes) -> str | None:
        """The producer of a row that has a name; None where the server knows none.

        Raises RedisStreamsError for more rows than the stream remembers.
        """
        size = self._memory.size(key)
        if size is None:
            return None
        bucket = crc32(name) % BUCKETS
        self._named[key, bucket] += 1
        if self._named[key, bucket] > size:
            raise RedisStreamsError(
                "a batch has more rows than the stream remembers idempotent IDs for: read less at "
                "once (maxOffsetsPerTrigger), or raise IDMP-MAXSIZE of the stream"
            )
        return f"{self._query}-{bucket}"


class Memory:
    """Has streams of a server remember idempotent IDs for so many ``seconds``, if it knows them.

    ``has_ids`` says that it does, ``is_marked`` that it does not, but knows scripts. Raises
    ServerError if ``how`` is ``required`` and it does neither.
    """

    def __init__(self, servers: Servers, server: int, how: str, seconds: int) -> None:
        self._servers = servers
        self._server = server
        self._seconds = seconds
        self._sizes: dict[bytes, int] = {}
        self.has_ids = how != "off" and servers.knows(server, "XCFGSET")
        self.is_marked = how != "off" and not self.has_ids and servers.knows(server, "EVAL")
        if how == "required" and not (self.has_ids or self.is_marked):
            raise ServerError(
                f"{servers.name(server)} knows neither idempotent IDs (XADD IDMP, Redis 8.6) nor "
                "scripts (EVAL), one of which the option idempotence=required asks for; with "
                "'auto' a repeated batch may add entries twice"
            )

    def size(self, key: bytes) -> int | None:
        """How many IDs the stream remembers of each producer; None if the server knows none."""
        if not self.has_ids:
            return None
        if key not in self._sizes:
            self._sizes[key] = self._prepare(key)
        return self._sizes[key]

    def _prepare(self, key: bytes) -> int:
        """Has the stream remember long enough; returns how many IDs it remembers a producer."""
        while True:
            try:
                return self._prepare_once(key)
            except WatchError:
                # Another task was at it: changing the time forgets the IDs, so look again.
                continue

    def _prepare_once(self, key: bytes) -> int:
        client = self._servers.client(self._server)
        with self._servers.translated(self._server), client.pipeline(transaction=True) as pipeline:
            pipeline.watch(key)
            try:
                info = pairs(pipeline.execute_command("XINFO STREAM", key))
            except ResponseError as error:
                if "no such key" not in str(error):
                    text = f"key '{shown(key)}' can't be written as a stream: {error}"
                    raise ServerError(text) from None
                self._create(pipeline, key)
                raise WatchError from None
            if info[b"idmp-duration"] < self._seconds:
                pipeline.multi()
                duration = self._seconds
                pipeline.execute_command("XCFGSET", key, "IDMP-DURATION", duration)
                pipeline.execute()
            return int(info[b"idmp-maxsize"])

    @staticmethod
    def _create(pipeline: Any, key: bytes) -> None:
        """Creates an empty stream: there is no way to configure one that is not there."""
        group = f"pyspark-{uuid.uuid4()}"
        pipeline.multi()
        pipeline.execute_command("XGROUP CREATE", key, group, "$", "MKSTREAM")
        pipeline.execute_command("XGROUP DESTROY", key, group)
        pipeline.execute()


T = TypeVar("T")

MOST_WORDS: Final = 7900
"""Words of XADD that a script can pass on: Lua's stack has 8,000 places."""

MOST_BYTES: Final = 4 << 20
"""About how much a script adds at most, so that others need not wait for long."""

A_DAY_S: Final = 86_400

_SCRIPT: Final = """\
local stream, marker = KEYS[1], KEYS[2]
local batch, seconds, parts, finish, part, row = unpack(ARGV, 1, 6)
local kind = redis.pcall('XLEN', stream)
if type(kind) == 'table' then return kind end
local begun, divided, ended, done =
  unpack(redis.call('HMGET', marker, 'batch', 'parts', 'end', 'part ' .. part))
ended = ended or ''
if begun ~= batch then
  if (tonumber(begun) or 0) > (tonumber(batch) or math.huge) then
    return {begun, divided, ended}
  end
  redis.call('DEL', marker)
  redis.call('HSET', marker, 'batch', batch, 'parts', parts, 'end', finish)
  done = 0
elseif divided ~= parts or
  (ended ~= '' and finish ~= '' and string.sub(ended, 1, 8) ~= string.sub(finish, 1, 8)) then
  return {begun, divided, ended}
end
redis.call('EXPIRE', marker, seconds)
row, done = tonumber(row), tonumber(done) or 0
local added, at = 0, 7
while ARGV[at] do
  local name, last = ARGV[at], at + 1 + ARGV[at + 1]
  local known = row < done
  if name ~= '' then known = redis.call('HGET', marker, 'row ' .. name) end
  if not known then
    redis.call('XADD', stream, unpack(ARGV, at + 2, last))
    if name ~= '' then redis.call('HSET', marker, 'row ' .. name, '') end
    added = added + 1
  end
  at, row = last + 1, row + 1
end
if row > done then redis.call('HSET', marker, 'part ' .. part, row) end
return added
"""
"""Gives the number of rows added, or what the marker says of the batch if the rows don't fit."""


class Markers:
    """The rows of a batch that one task adds: those of ``part``, of so many ``parts``.

    ``query`` is the same over restarts. Batches that are numbers only rise; any other text stands
    for a batch of its own. ``seconds`` is for how long a marker is kept after the last row, and
    ``end`` what tells the batch from others of its number, if that is known.
    """

    def __init__(
        self, query: str, batch: str, seconds: int, part: str = "", parts: str = "", end: str = ""
    ) -> None:
        self._query = query
        self._batch = batch
        self._common = (batch, seconds, parts, end, part)
        self._parts = parts
        self._end = end
        self._rows: Counter[bytes] = Counter()

    def scripts(self, rows: Iterable[tuple[T, bytes, Sequence[Any]]]) -> list[tuple[list[Any], T]]:
        """The commands that add rows, in their order in each stream, with the first row of each.

        Of a row is given what stands for it, its name or nothing, and the command XADD. Raises
        RedisStreamsError for one with too many fields.
        """
        made: list[tuple[list[Any], T]] = []
        begun: dict[bytes, list[Any]] = {}
        sizes: Counter[bytes] = Counter()
        for row, name, (_, key, *words) in rows:
            if len(words) > MOST_WORDS:
                raise _too_wide(key)
            if key not in begun or sizes[key] > MOST_BYTES:
                begun[key], sizes[key] = self._begun(key), 0
                made.append((begun[key], row))
            begun[key] += (name, len(words), *words)
            sizes[key] += sum(len(word) for word in words if isinstance(word, bytes))
            self._rows[key] += 1
        return made

    def _begun(self, key: bytes) -> list[Any]:
        marker = marker_of(key, self._query)
        return ["EVAL", _SCRIPT, 2, key, marker, *self._common, self._rows[key]]

    def check(self, key: bytes, reply: Any) -> None:
        """Raises RedisStreamsError if a script has added nothing because the rows do not fit."""
        if not isinstance(reply, list):
            return
        batch, parts, end = (text.decode() for text in reply)
        stream, marker = shown(key), shown(marker_of(key, self._query))
        if batch != self._batch or end != self._end:
            this = BatchMark(int(self._batch), self._end)
            is_written(BatchMark(int(batch), end), this, f"stream '{stream}'")
        raise RedisStreamsError(
            f"stream '{stream}' has rows of batch {batch}, whose number of partitions was {parts} "
            f"then and is {self._parts} now, so nobody knows which are there: start once with as "
            f"many as before (minPartitions), or DEL '{marker}' to have all written again"
        )


def note_batch(settings: WriteSettings, key: bytes, query: str, this: BatchMark) -> None:
    """Notes beside a stream which batch is about to be written, where its rows are known by IDs.

    Markers do that by themselves. Raises CheckpointError if the stream has another one.
    """
    with Servers(settings.servers) as servers:
        if not Memory(servers, 0, settings.idempotence, settings.idempotence_seconds).has_ids:
            return
        marker = marker_of(key, query)
        number, _, end = (servers.call(0, "GET", marker) or b"").decode().partition(" ")
        noted = BatchMark(int(number), end) if number else None
        if not is_written(noted, this, f"stream '{shown(key)}'"):
            text = f"{this.number} {this.end}"
            servers.call(0, "SET", marker, text, "EX", settings.idempotence_seconds)


def once(command: Sequence[Any], writer: str, name: bytes) -> Sequence[Any]:
    """XADD that adds nothing if it was the writer's last one to the stream, for a day.

    With too many fields for a script it adds in any case.
    """
    if len(command) > MOST_WORDS:
        return command
    marker = Markers(writer, name.decode("latin-1"), A_DAY_S)
    ((script, _),) = marker.scripts([(None, b"", command)])
    return script


def _too_wide(key: bytes) -> RedisStreamsError:
    return RedisStreamsError(
        f"stream '{shown(key)}': a row has more than {MOST_WORDS // 2:,} fields, which a server "
        "without idempotent IDs can't add once; idempotence=off adds it at least once"
    )


@lru_cache(4096)
def marker_of(stream: bytes, query: str) -> bytes:
    """The key of a query's marker: it begins as the stream's key, and lies in the same slot."""
    name = b"%b:written-by:%b" % (stream, quote(query, safe="").encode())
    # The stream's key in braces, unless it has braces itself, where some number will do.
    tried = chain((name, b"%b:{%b}" % (name, stream)), (b"%b:%d" % (name, n) for n in count()))
    return next(key for key in tried if key_slot(key) == key_slot(stream))
