"""A query of mode ``group`` that copies a stream, as a process that may be killed anywhere.

Its checkpoint lies in the server that it reads and writes, as Spark's does in a folder: the
offsets that were planned, and how many batches are committed.
"""

from __future__ import annotations

import json
import os
from typing import Any

import redis

from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write.writer import Entry, TaskWrite
from source_tests.driving import Query

OPTIONS = {
    "subscribe": "s",
    "startingOffsets": "earliest",
    "mode": "group",
    "groupId": "g",
    "consumerName": "q",
    "maxOffsetsPerTrigger": "2",
    "pollIntervalMs": "0",
    "patternIntervalMs": "0",
}


class KeptQuery(Query):
    """A query that goes on from the checkpoint in a server, and writes to a stream there."""

    def __init__(self, url: str) -> None:
        self._client: Any = redis.Redis.from_url(url, decode_responses=True)
        self._url = url
        super().__init__({**OPTIONS, "url": url}, available_now=True)

    def restart(self, **options: str) -> None:
        """Begins where the checkpoint says."""
        self.planned = self._client.lrange("planned", 0, -1)
        self.committed = int(self._client.get("committed") or 0)
        self.start = self._client.get("start") or ""
        super().restart(**options)
        self._client.set("start", self.start)

    def plan(self) -> bool:
        """Notes what is planned before it is read."""
        if not super().plan():
            return False
        self._client.rpush("planned", self.planned[-1])
        return True

    def run_planned(self) -> None:
        """Writes the rows of a batch, then notes that it is done."""
        super().run_planned()
        number = len(self.planned) - 1
        rows = [Entry(b"copy", None, [b"id", id.encode()]) for _, id in self.sink[number]]
        TaskWrite(write_settings({"url": self._url}), "query", 0, str(number)).write(rows)
        self._client.set("committed", self.committed)


def main() -> None:
    """Copies what is there."""
    query = KeptQuery(os.environ["REDIS_URL"])
    query.drain()
    if query.committed:
        query.reader.commit(json.loads(query.planned[query.committed - 1]))
    query.close()


if __name__ == "__main__":
    main()
