"""What a read is given by its number, and where that leaves the group, beside a plain model."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.server.delivery.support import GROUP, KEY, Kitchen

NUMBERS = st.integers(1, 12)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3)),
        st.tuples(st.just("add"), st.integers(0, 3)),
        st.tuples(st.just("read"), st.integers(1, 4)),
        st.tuples(st.just("read"), st.integers(1, 4)),
        st.tuples(st.just("ack"), NUMBERS),
        st.tuples(st.just("give back"), NUMBERS),
        st.tuples(st.just("delete"), NUMBERS),
        st.tuples(st.just("move"), st.integers(0, 12)),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


class Model:
    """A group with ``priority-field``, and what should be pending in it."""

    def __init__(self) -> None:
        self.kitchen = Kitchen("priority-field", "urgency")
        self.there: dict[int, int] = {}
        """The entries of the stream, with their numbers."""
        self.last = 0
        self.position = 0
        self.owned: set[int] = set()
        self.free: set[int] = set()
        """What nobody has of what is pending."""

    def add(self, urgency: int) -> None:
        """An entry."""
        self.last += 1
        self.there[self.last] = urgency
        self.kitchen.add(self.last, "urgency", urgency)

    def read(self, count: int) -> None:
        """Up to so many of those with the highest numbers."""
        new = {each for each in self.there if each > self.position} - self.owned - self.free
        ranked = sorted(
            (new | self.free) & self.there.keys(), key=lambda each: (-self.there[each], each)
        )
        given = ranked[:count]
        assert self.kitchen.read("ann", "COUNT", count) == given
        self.position = max([self.position, *new.intersection(given)])
        self.free |= {each for each in new if each <= self.position}
        self.free -= set(given)
        self.owned |= set(given)

    def ack(self, number: int) -> None:
        """Whoever has it, if anybody."""
        pending = number in self.owned | self.free
        assert self.kitchen.ack(number) == pending
        self.owned.discard(number)
        self.free.discard(number)

    def give_back(self, number: int) -> None:
        """XNACK of what somebody has."""
        if number in self.owned:
            self.kitchen.ask("XNACK", KEY, GROUP, "SILENT", "IDS", 1, f"{number}-1")
            self.owned.discard(number)
            self.free.add(number)

    def delete(self, number: int) -> None:
        """XDEL."""
        self.kitchen.ask("XDEL", KEY, f"{number}-1")
        self.there.pop(number, None)

    def move(self, number: int) -> None:
        """XGROUP SETID."""
        self.position = number
        self.kitchen.ask("XGROUP", "SETID", KEY, GROUP, f"{number}-1" if number else "0")

    def restart(self) -> None:
        """The index is made from what there is."""
        self.kitchen.direct.server.services.persistence.reload()

    def check(self) -> None:
        """What is pending; what the stream has lost is dropped when it would be delivered."""
        rows = [row[:2] for row in self.kitchen.pending() if row[0] in self.there]
        pending = sorted((self.owned | self.free) & self.there.keys())
        assert rows == [(each, "ann" if each in self.owned else "") for each in pending]


@given(STEPS)
def test_reads_are_given_what_a_sorted_list_would_give(steps: list[tuple[Any, ...]]) -> None:
    model = Model()
    for step, *args in steps:
        getattr(model, step.replace(" ", "_"))(*args)
        model.check()
