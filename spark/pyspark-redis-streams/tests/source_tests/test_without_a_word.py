"""Whatever is done to a stream and its group: nothing is missing or comes twice without a word."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_redis_streams.errors import DataLossError
from source_tests.driving import Query
from source_tests.replacing import add, options, rows_after, trim

HARMLESS = ("add", "copy", "trim_what_was_read")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *HARMLESS,
                *("restore", "restore_without_group", "refill", "refill_and_trim", "delete"),
                *("make_group_again", "set_group", "destroy_group_under_batch"),
            ]
        ),
        st.integers(0, 60),
        st.none() | st.integers(0, 60),
    ),
    min_size=1,
    max_size=6,
)


class World:
    """A stream whose IDs only rise, its group, and a query that has read what was there.

    Steps take a place and a number, which mean what each makes of them.
    """

    def __init__(self, client: redis.Redis, mode: str, limit: str) -> None:
        client.flushall()
        self.client = client
        self.mode = mode
        self.count = 0
        self.kept: bytes | None = None
        self.add(15, None)
        self.query = Query(options(client, mode, maxOffsetsPerTrigger=limit))
        self.query.drain()

    @property
    def has_group(self) -> bool:
        return bool(self.mode == "group" and self.client.exists("s") and self.groups)

    @property
    def groups(self) -> list[Any]:
        found: Any = self.client.xinfo_groups("s")
        return [*found]

    def add(self, place: int, number: int | None) -> None:
        more = place % 8
        add(self.client, range(self.count + 1, self.count + more + 1))
        self.count += more

    def copy(self, place: int, number: int | None) -> None:
        kept: Any = self.client.dump("s")
        self.kept = kept

    def trim_what_was_read(self, place: int, number: int | None) -> None:
        trim(self.client, self.read + 1)

    @property
    def read(self) -> int:
        """The highest ID that was read."""
        return max((int(id.partition("-")[0]) for id in self.query.ids), default=0)

    def restore(self, place: int, number: int | None) -> None:
        if self.kept is not None:
            self.client.restore("s", 0, self.kept, replace=True)
        self.add(place, None)

    def restore_without_group(self, place: int, number: int | None) -> None:
        self.restore(0, None)
        if self.has_group:
            self.client.xgroup_destroy("s", "g")
        self.add(place, None)

    def refill(self, place: int, number: int | None) -> None:
        self.client.delete("s")
        for more in (7, place, number or 0):
            self.add(more, None)

    def refill_and_trim(self, place: int, number: int | None) -> None:
        self.refill(place, number)
        trim(self.client, self.count - place % 8)

    def delete(self, place: int, number: int | None) -> None:
        self.client.delete("s")

    def make_group_again(self, place: int, number: int | None) -> None:
        if self.has_group:
            self.client.xgroup_destroy("s", "g")
            self.client.xgroup_create("s", "g", f"{place}-0", entries_read=self.number(number))
            self.add(place, None)

    def set_group(self, place: int, number: int | None) -> None:
        self.add(place // 7, None)
        if self.has_group:
            self.client.xgroup_setid("s", "g", f"{place}-0", entries_read=self.number(number))

    def number(self, number: int | None) -> int | None:
        """A number of entries that the stream can have had."""
        added = int(self.client.xinfo_stream("s")["entries-added"])
        return number and min(number, added)

    def destroy_group_under_batch(self, place: int, number: int | None) -> None:
        self.add(place, None)
        try:
            self.query.restart()
            self.query.plan()
        except DataLossError:
            return
        if self.has_group:
            self.client.xgroup_destroy("s", "g")
            if number is not None:
                self.client.xgroup_create("s", "g", f"{min(number, self.read)}-0")


@pytest.mark.parametrize("mode", ["offsets", "group"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, limit=st.sampled_from(["3", "100"]))
def test_a_query_says_what_is_missing_or_would_come_twice(
    server: redis.Redis, mode: str, steps: list[tuple[str, int, int | None]], limit: str
) -> None:
    world = World(server, mode, limit)
    query = world.query
    lost: set[str] = set()
    for name, place, number in steps:
        before = world.read
        getattr(world, name)(place, number)
        told = rows_after(query, onDataLoss="fail")
        rows_after(query, onDataLoss="continue")
        assert rows_after(query, onDataLoss="fail") == "", "that was told"
        assert len(query.ids) == len(set(query.ids))
        there: Any = server.xrange("s", min=f"({before}-0")
        missing = {id.decode() for id, _ in there} - {*query.ids} - lost
        assert told or not missing
        lost |= missing
        assert not told or name not in HARMLESS or (lost and "beyond" in told)
    query.close()
