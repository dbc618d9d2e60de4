"""Whatever happens in whatever order: every entry comes once, to the query or to its rival."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from source_tests.driving import Query, url_of

STEPS = st.lists(
    st.sampled_from(
        ["add", "add", "step", "plan", "crash", "lose", "trim", "rival", "leave", "delete"]
    ),
    min_size=3,
    max_size=16,
)
LIMITS = st.sampled_from(["1", "3", "100"])
PIECES = st.sampled_from(["1", "3"])


class World:
    """Two streams, a query, and a rival in its group; every step may come at any time."""

    def __init__(self, client: redis.Redis, mode: str, limit: str, pieces: str) -> None:
        self.client = client
        self.mode = mode
        self.count = 0
        self.expected: set[tuple[str, str]] = set()
        self.taken: set[tuple[str, str]] = set()
        client.flushall()
        self.query = Query(
            {
                "url": url_of(client),
                "subscribe": "s,t",
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": limit,
                "minPartitions": pieces,
                "fetchCount": "2",
                "mode": mode,
                "groupId": "g",
                "consumerName": "q",
                "pollIntervalMs": "0",
            }
        )

    def add(self) -> None:
        for key in ("s", "s", "t"):
            self.count += 1
            id = f"{self.count // 4 + 1}-{self.count}"
            self.client.xadd(key, {"f": "v"}, id=id)
            self.expected.add((key, id))

    def step(self) -> None:
        """A batch from beginning to end; one that is planned already comes first."""
        if len(self.query.planned) > self.query.committed:
            self.query.run_planned()
        else:
            self.query.step()

    def plan(self) -> None:
        """A batch that gets no further than into the checkpoint, until something else happens."""
        if len(self.query.planned) == self.query.committed:
            self.query.plan()

    def crash(self) -> None:
        self.query.close()
        self.query.restart()

    def lose(self) -> None:
        """A crash before the plan was written to the checkpoint."""
        if len(self.query.planned) > self.query.committed:
            self.query.planned.pop()
        self.crash()

    def trim(self) -> None:
        """Removes what has been read and committed, or in a group all that is not needed any more.

        In a group that is what lies before the first pending entry, and before what is to come.
        """
        places = dict(self.query.rows) if self.mode == "offsets" else self._needed()
        if len(self.query.planned) == self.query.committed:
            for key, id in places.items():
                self.client.execute_command("XTRIM", key, "MINID", "=", id)

    def _needed(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for key in ("s", "t"):
            for group in self._groups(key):
                pending: Any = self.client.xpending(key, "g")
                found[key] = (pending["min"] or group["last-delivered-id"]).decode()
        return found

    def _groups(self, key: str) -> list[Any]:
        groups: Any = self.client.xinfo_groups(key) if self.client.exists(key) else []
        return [*groups]

    def rival(self) -> None:
        """Another consumer of the group takes two entries, acknowledges and deletes them."""
        if self.mode == "group" and self._groups("s"):
            self.client.xgroup_createconsumer("s", "g", "rival")
            self.step()
            reply: Any = self.client.xreadgroup("g", "rival", {"s": ">"}, count=2)
            for _, entries in reply or []:
                for id, _ in entries:
                    self.client.xack("s", "g", id)
                    self.client.xdel("s", id)
                    self.taken.add(("s", id.decode()))

    def leave(self) -> None:
        """The other consumer is gone, as far as the server knows."""
        if self.mode == "group" and self._groups("s"):
            self.client.xgroup_delconsumer("s", "g", "rival")

    def delete(self) -> None:
        """Removes an entry that has been read, from the middle."""
        if self.mode == "offsets" and len(self.query.planned) == self.query.committed:
            for key, id in self.query.rows[-2:-1]:
                self.client.xdel(key, id)


@pytest.mark.parametrize("mode", ["offsets", "group"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, limit=LIMITS, pieces=PIECES)
def test_every_entry_comes_once(
    server: redis.Redis, mode: str, steps: list[str], limit: str, pieces: str
) -> None:
    world = World(server, mode, limit, pieces)
    for name in steps:
        getattr(world, name)()
    world.crash()
    world.query.drain()
    rows = world.query.rows
    assert len(rows) == len(set(rows))
    assert {*rows} | world.taken == world.expected
    assert not {*rows} & world.taken
    for key in ("s", "t"):
        of_stream = [id for stream, id in rows if stream == key]
        assert of_stream == sorted(of_stream, key=lambda id: tuple(map(int, id.split("-"))))
    world.query.close()
