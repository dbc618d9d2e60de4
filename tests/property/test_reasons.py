"""What is kept of how deliveries ended, beside a dictionary that keeps it plainly."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.server.delivery.support import GROUP, KEY, Kitchen
from tests.support.direct import START_MS

CONSUMERS = st.sampled_from(["ann", "bob"])
NUMBERS = st.integers(1, 5)
REASONS = st.sampled_from(["", "no tea", "a\nb"])

Step = tuple[Any, ...]
Line = tuple[int, str, str, str]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), CONSUMERS),
        st.tuples(st.just("read"), CONSUMERS),
        st.tuples(st.just("again"), CONSUMERS),
        st.tuples(st.just("nack"), NUMBERS, st.sampled_from(["FAIL", "SILENT", "FATAL"]), REASONS),
        st.tuples(st.just("nack"), NUMBERS, st.just("FAIL"), REASONS),
        st.tuples(st.just("claim"), CONSUMERS, NUMBERS, st.sampled_from([0, 70])),
        st.tuples(st.just("claim all"), CONSUMERS, st.sampled_from([0, 70])),
        st.tuples(st.just("read claim"), CONSUMERS, st.sampled_from([0, 70])),
        st.tuples(st.just("ack"), NUMBERS),
        st.tuples(st.just("del"), NUMBERS),
        st.tuples(st.just("trim"), NUMBERS),
        st.tuples(st.just("pass"), st.sampled_from([30, 100])),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


class Model:
    """A server with five entries, and what its group should know of each."""

    def __init__(self) -> None:
        self.kitchen = Kitchen("reasons", "yes", "ack-wait", 100)
        self.kitchen.add_all(range(1, 6))
        self.time = 0
        self.there = set(range(1, 6))
        self.lines: dict[int, list[Line]] = {}

    def run(self, step: str, *args: Any) -> None:
        """Does a step on both sides."""
        owners = {number: owner for number, owner, _ in self.kitchen.pending()}
        for number, how, reason in getattr(self, f"_{step.replace(' ', '_')}")(*args):
            owner = owners.get(number, "")
            if (owner or reason) and number in self.there:
                line = (self.time, owner, how, reason)
                self.lines[number] = [*self.lines.get(number, []), line][-10:]
        pending = {number for number, _, _ in self.kitchen.pending()} & self.there
        self.lines = {each: lines for each, lines in self.lines.items() if each in pending}

    def _read(self, consumer: str) -> list[tuple[int, str, str]]:
        return [(each, "timeout", "") for each in self.kitchen.read(consumer)]

    def _again(self, consumer: str) -> list[tuple[int, str, str]]:
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "STREAMS", KEY, "0")
        [[_, entries]] = self.kitchen.ask(*words)
        return [(number_of(entry[0]), "read-again", "") for entry in entries]

    def _nack(self, number: int, mode: str, reason: str) -> list[tuple[int, str, str]]:
        words = ("REASON", reason, "IDS", 1, f"{number}-1")
        freed = self.kitchen.ask("PENSTOCK", "NACK", KEY, GROUP, mode, *words)
        return [(number, mode.lower(), reason)] if freed else []

    def _claim(self, consumer: str, number: int, idle: int) -> list[tuple[int, str, str]]:
        found = self.kitchen.ask("XCLAIM", KEY, GROUP, consumer, idle, f"{number}-1")
        return [(number, "claimed", "") for _ in found]

    def _claim_all(self, consumer: str, idle: int) -> list[tuple[int, str, str]]:
        found = self.kitchen.ask("XAUTOCLAIM", KEY, GROUP, consumer, idle, "0")[1]
        return [(number_of(entry[0]), "claimed", "") for entry in found]

    def _read_claim(self, consumer: str, idle: int) -> list[tuple[int, str, str]]:
        words = ("XREADGROUP", "GROUP", GROUP, consumer, "CLAIM", idle, "STREAMS", KEY, ">")
        claimable = [(number, idle) for number, idle in self._idle() if idle >= words[5]]
        reply = self.kitchen.ask(*words)
        taken = [number_of(entry[0]) for entry in reply[0][1]] if reply else []
        claimed = {number for number, _ in claimable}
        return [(each, "claimed" if each in claimed else "timeout", "") for each in taken]

    def _idle(self) -> list[tuple[int, int]]:
        rows = self.kitchen.ask("XPENDING", KEY, GROUP, "-", "+", 10)
        return [(number_of(row[0]), row[2]) for row in rows]

    def _ack(self, number: int) -> list[tuple[int, str, str]]:
        self.kitchen.ack(number)
        return []

    def _del(self, number: int) -> list[tuple[int, str, str]]:
        self.kitchen.ask("XDEL", KEY, f"{number}-1")
        self.there.discard(number)
        return []

    def _trim(self, number: int) -> list[tuple[int, str, str]]:
        self.kitchen.ask("XTRIM", KEY, "MINID", f"{number}-1")
        self.there = {each for each in self.there if each >= number}
        return []

    def _pass(self, milliseconds: int) -> list[tuple[int, str, str]]:
        self.kitchen.direct.advance(milliseconds)
        self.time += milliseconds
        return []

    def _restart(self) -> list[tuple[int, str, str]]:
        self.kitchen.direct.server.services.persistence.reload()
        return []

    def told(self) -> dict[int, list[Line]]:
        """What the server tells of each entry that it has lines of."""
        told = {number: self._told(number) for number in range(1, 6)}
        return {number: lines for number, lines in told.items() if lines}

    def _told(self, number: int) -> list[Line]:
        lines = self.kitchen.ask("PENSTOCK", "HISTORY", KEY, GROUP, f"{number}-1")
        return [(line[1] - START_MS, *(each.decode() for each in line[3::2])) for line in lines]


def number_of(entry_id: bytes) -> int:
    """The number of the entry that has this ID."""
    return int(entry_id.split(b"-")[0])


@given(STEPS)
def test_histories_are_what_a_dictionary_would_keep(steps: list[Step]) -> None:
    model = Model()
    for step in steps:
        model.run(*step)
        assert model.told() == model.lines
