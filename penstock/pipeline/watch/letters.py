"""Counts the dead letters of a run by reason, from the stream that they go to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from penstock.client.errors import ClientError
from penstock.client.retrying import RetryingClient
from penstock.pipeline.live.servers import single
from penstock.pipeline.model import Pipeline
from penstock.pipeline.tools.dead_letters import LAST, PIPELINE
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.streams import key_of

MOST_REASONS: Final = 50
OTHERS: Final = "other reasons"
"""Where the letters count whose reason is none of the first :data:`MOST_REASONS`."""

_CHUNK: Final = 500
_CHUNKS: Final = 20
_VALUE: Final = re.compile(r" is '.*?', not (?=[\w(),<>: ]+(?:;|$))", re.DOTALL)


def kind_of(reason: str) -> str:
    """A reason without the values in it: ``field 'qty' is not int``."""
    return _VALUE.sub(" is not ", reason)


class LetterCounts:
    """The letters that were added since the first :meth:`poll`, except those of other pipelines."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._name = pipeline.name.encode()
        self._counts: Counter[str] = Counter()
        self._after: str | None = None
        self._client: RetryingClient | None = None
        dead = pipeline.dead_letters
        place = dead.place if dead else pipeline.source.get("deadLetterStream")
        self._key = key_of(place) if place else b""
        if place:
            options = {**(dead.options if dead else pipeline.source), "retries": "0"}
            self._client = RetryingClient(single(options)[0])

    def counts(self) -> Mapping[str, int]:
        """The letters by reason, as of the last :meth:`poll`."""
        return self._counts.copy()

    def poll(self) -> None:
        """Counts what is new; a server that is away is asked again the next time."""
        if self._client is None:
            return
        try:
            if self._after is None:
                self._after = format_id(self._client.info(self._key).last)
                return
            for _ in range(_CHUNKS):
                if self._count_some(self._client, self._after) < _CHUNK:
                    return
        except ClientError:
            return

    def close(self) -> None:
        """Disconnects."""
        if self._client is not None:
            self._client.close()

    def _count_some(self, client: RetryingClient, after: str) -> int:
        found = client.call("XRANGE", self._key, f"({after}", "+", "COUNT", _CHUNK)
        for id, fields in found:
            self._after = id.decode()
            self._count(dict(zip(fields[::2], fields[1::2], strict=True)))
        return len(found)

    def _count(self, fields: Mapping[bytes, bytes]) -> None:
        if LAST not in fields or fields.get(PIPELINE, self._name) != self._name:
            return
        kind = kind_of(fields[LAST].decode("utf-8", "replace"))
        is_known = kind in self._counts or len(self._counts) < MOST_REASONS
        self._counts[kind if is_known else OTHERS] += 1
