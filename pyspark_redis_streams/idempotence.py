"""Idempotent IDs: which streams remember them, for how long, and for how many.

A server that knows IDMP remembers, for each stream and producer, the IDs used last: 100 for 100
seconds by default. A task may write more, and may be repeated later. Its rows are therefore spread
over producers, each with no more rows of one batch than the stream remembers, and the time is
raised.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any, Final
from zlib import crc32

from redis.exceptions import ResponseError, WatchError

from pyspark_redis_streams.errors import RedisStreamsError, ServerError
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import WriteSettings
from pyspark_redis_streams.stream_info import pairs

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

    ``is_marked`` says that it does not, but knows scripts. Raises ServerError if ``how`` is
    ``required`` and it does neither.
    """

    def __init__(self, servers: Servers, server: int, how: str, seconds: int) -> None:
        self._servers = servers
        self._server = server
        self._seconds = seconds
        self._sizes: dict[bytes, int] = {}
        self._known = how != "off" and servers.knows(server, "XCFGSET")
        self.is_marked = how != "off" and not self._known and servers.knows(server, "EVAL")
        if how == "required" and not (self._known or self.is_marked):
            raise ServerError(
                f"{servers.name(server)} knows neither idempotent IDs (XADD IDMP, Redis 8.6) nor "
                "scripts (EVAL), one of which the option idempotence=required asks for; with "
                "'auto' a repeated batch may add entries twice"
            )

    def size(self, key: bytes) -> int | None:
        """How many IDs the stream remembers of each producer; None if the server knows none."""
        if not self._known:
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
                    shown = key.decode("utf-8", "backslashreplace")
                    raise ServerError(
                        f"key '{shown}' can't be written as a stream: {error}"
                    ) from None
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
