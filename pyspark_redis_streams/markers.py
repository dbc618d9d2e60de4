"""Adds rows together with a mark that says which they were, on servers without idempotent IDs.

Each query has a key beside each stream that it writes, in the stream's slot: a hash with the batch
that it writes and what is there of it, of each part the number of rows, or else the names of
the rows. A script adds what is not there yet and notes it, in one step. The next batch begins anew.
docs/decisions/0022-spark-idempotent-writes.md says more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Any, Final, TypeVar
from urllib.parse import quote

from redis.crc import key_slot

from pyspark_redis_streams.errors import RedisStreamsError

T = TypeVar("T")

MOST_WORDS: Final = 7900
"""Words of XADD that a script can pass on: Lua's stack has 8,000 places."""

MOST_BYTES: Final = 4 << 20
"""About how much a script adds at most, so that others need not wait for long."""

A_DAY_S: Final = 86_400

_SCRIPT: Final = """\
local stream, marker = KEYS[1], KEYS[2]
local batch, seconds, parts, part, row = unpack(ARGV, 1, 5)
local kind = redis.pcall('XLEN', stream)
if type(kind) == 'table' then return kind end
local begun, divided, done = unpack(redis.call('HMGET', marker, 'batch', 'parts', 'part ' .. part))
if begun ~= batch then
  if (tonumber(begun) or 0) > (tonumber(batch) or math.huge) then return {begun, divided} end
  redis.call('DEL', marker)
  redis.call('HSET', marker, 'batch', batch, 'parts', parts)
  done = 0
elseif divided ~= parts then
  return {begun, divided}
end
redis.call('EXPIRE', marker, seconds)
row, done = tonumber(row), tonumber(done) or 0
local added, at = 0, 6
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
    for a batch of its own. ``seconds`` is for how long a marker is kept after the last row.
    """

    def __init__(
        self, query: str, batch: str, seconds: int, part: str = "", parts: str = ""
    ) -> None:
        self._query = query
        self._batch = batch
        self._common = (batch, seconds, parts, part)
        self._parts = parts
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
        batch, parts = (text.decode() for text in reply)
        stream = key.decode("utf-8", "backslashreplace")
        marker = marker_of(key, self._query).decode("utf-8", "backslashreplace")
        if batch != self._batch:
            raise RedisStreamsError(
                f"stream '{stream}' has rows of batch {batch} of this query, and this is batch "
                f"{self._batch}: of an attempt that was overtaken, or of an older copy of the "
                f"checkpoint, for which DEL '{marker}' would have it written again"
            )
        raise RedisStreamsError(
            f"stream '{stream}' has rows of batch {batch}, whose number of partitions was {parts} "
            f"then and is {self._parts} now, so nobody knows which are there: start once with as "
            f"many as before (minPartitions), or DEL '{marker}' to have all written again"
        )


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
    shown = key.decode("utf-8", "backslashreplace")
    return RedisStreamsError(
        f"stream '{shown}': a row has more than {MOST_WORDS // 2:,} fields, which a server without "
        "idempotent IDs can't add once; idempotence=off adds it at least once"
    )


@lru_cache(4096)
def marker_of(stream: bytes, query: str) -> bytes:
    """The key of a query's marker: it begins as the stream's key, and lies in the same slot."""
    name = b"%b:written-by:%b" % (stream, quote(query, safe="").encode())
    # The stream's key in braces, unless it has braces itself, where some number will do.
    tried = chain((name, b"%b:{%b}" % (name, stream)), (b"%b:%d" % (name, n) for n in count()))
    return next(key for key in tried if key_slot(key) == key_slot(stream))
