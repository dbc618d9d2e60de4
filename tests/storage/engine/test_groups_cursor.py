"""Where groups read on, against a search."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from storage.engine import ids
from storage.engine.groups import Cursor
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog
from tests.support.examples import scaled

PLACES = st.integers(0, 40)


class Model(RuleBasedStateMachine):
    """A log with blocks of three entries, of which any may go, and somebody who reads on."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = StreamLimits(max_entries=3)
        self.log = EntryLog(self.limits)
        self.cursor = Cursor()
        self.last_id = 0
        self.top = 0

    @rule(gap=st.integers(1, 3), number=st.integers(1, 5))
    def add(self, gap: int, number: int) -> None:
        self.top += gap
        for _ in range(number):
            self.log.append(self.top, [b"f", b"v"])
            self.top += 1

    @rule(entry_id=PLACES)
    def delete(self, entry_id: int) -> None:
        self.log.delete(entry_id)

    @rule(length=st.integers(0, 10))
    def trim(self, length: int) -> None:
        self.log.trim_to_length(length)

    @rule()
    def pack(self) -> None:
        for block in self.log.blocks:
            block.pack()

    @rule(entry_id=PLACES)
    def move(self, entry_id: int) -> None:
        self.last_id = entry_id

    @rule(count=st.integers(1, 7))
    def read(self, count: int) -> None:
        wanted, payloads = self.log.range_with_ids(self.last_id + 1, ids.MAX, count)
        found, chunks = self.cursor.read(self.log, self.last_id, count)
        assert found == wanted
        assert b"".join(chunks) == b"".join(payloads)
        if found:
            self.last_id = found[-1]

    @rule(count=st.integers(1, 7))
    def read_twice(self, count: int) -> None:
        self.read(count)
        self.read(count)

    @rule()
    def go_on_with_a_copy(self) -> None:
        self.log = self.log.copy()


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck)
)


def test_whoever_reads_on_searches_once() -> None:
    searched: list[int] = []

    class Watched(EntryLog):
        """A log that notes what is searched for."""

        def place_behind(self, entry_id: int) -> tuple[int, int]:
            searched.append(entry_id)
            return super().place_behind(entry_id)

    watched = Watched(StreamLimits())
    for entry_id in range(1, 10):
        watched.append(entry_id, [b"f", b"v"])
    cursor = Cursor()
    assert [cursor.read(watched, last, 3)[0] for last in (0, 3, 6, 9)] == [
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
        [],
    ]
    watched.append(10, [b"f", b"v"])
    assert cursor.read(watched, 9, 3)[0] == [10]
    assert searched == [0]
