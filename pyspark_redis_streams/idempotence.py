"""Idempotent IDs: which streams remember them, for how long, and for how many.

A server that knows IDMP remembers, for each stream and producer, the IDs used last: 100 for 100
seconds by default. A task may write more, and may be repeated later. Its rows are therefore spread
over producers, each with no more rows of one batch than the stream remembers, and the time is
raised.
"""

from __future__ import annotations

import uuid
from typing import Any

from redis.exceptions import ResponseError, WatchError

from pyspark_redis_streams.errors import ServerError
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import WriteSettings
from pyspark_redis_streams.stream_info import pairs


class Idempotence:
    """Names the producer of each row, once the stream is known to remember it long enough.

    ``producer`` begins every name, and must be the same when the rows are written again.
    """

    def __init__(self, servers: Servers, settings: WriteSettings, producer: str) -> None:
        self._servers = servers
        self._settings = settings
        self._producer = producer
        self._sizes: dict[bytes, int] = {}
        self._known = settings.idempotence != "off" and self._is_known()

    def _is_known(self) -> bool:
        known = self._servers.knows(0, "XCFGSET")
        if not known and self._settings.idempotence == "required":
            raise ServerError(
                f"{self._servers.name(0)} does not know idempotent IDs (XADD IDMP, Redis 8.6), "
                "which the option idempotence=required asks for; with 'auto' a repeated batch "
                "may add entries twice"
            )
        return known

    def producer(self, key: bytes, row: int) -> str | None:
        """The producer of a task's row, counted from 0; None where the server knows none."""
        if not self._known:
            return None
        if key not in self._sizes:
            self._sizes[key] = self._prepare(key)
        return f"{self._producer}-{row // self._sizes[key]}"

    def _prepare(self, key: bytes) -> int:
        """Has the stream remember long enough; returns how many IDs it remembers a producer."""
        while True:
            try:
                return self._prepare_once(key)
            except WatchError:
                # Another task was at it: changing the time forgets the IDs, so look again.
                continue

    def _prepare_once(self, key: bytes) -> int:
        client = self._servers.client(0)
        with self._servers.translated(0), client.pipeline(transaction=True) as pipeline:
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
            if info[b"idmp-duration"] < self._settings.idempotence_seconds:
                pipeline.multi()
                duration = self._settings.idempotence_seconds
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
