"""maxmemory: when memory counts as full, and what is done about it."""

from __future__ import annotations

from server.runtime.memory import TRIM_INTERVAL_S, MemoryLimit


class Process:
    """The memory of a process, of which some can be given back."""

    def __init__(self) -> None:
        self.used = 100
        self.freed = 0
        self.trimmed = 0
        self.seconds = 1000.0
        self.changes: list[bool] = []
        self.limit = MemoryLimit(
            self.changes.append, lambda: self.used, self.give_back, lambda: self.seconds
        )

    def give_back(self) -> None:
        self.trimmed += 1
        self.used -= self.freed
        self.freed = 0


def test_memory_is_not_looked_at_without_a_limit() -> None:
    process = Process()
    process.limit.set(0)
    assert not process.limit.check()
    assert process.changes == []


def test_a_limit_counts_at_once_and_memory_may_be_as_much_as_it_says() -> None:
    process = Process()
    process.limit.set(99)
    assert process.limit.exceeded
    process.limit.set(100)
    assert not process.limit.exceeded
    assert process.changes == [True, False]


def test_those_who_listen_hear_of_changes_only() -> None:
    process = Process()
    process.limit.set(150)
    for process.used in (100, 151, 160, 150, 10):
        process.limit.check()
    assert process.changes == [True, False]


def test_freed_memory_is_given_back_before_anything_is_refused() -> None:
    process = Process()
    process.used, process.freed = 200, 80
    process.limit.set(150)
    assert not process.limit.exceeded
    assert process.trimmed == 1


def test_memory_is_given_back_once_in_a_while_only() -> None:
    process = Process()
    process.limit.set(50)
    for _ in range(10):
        assert process.limit.check()
    assert process.trimmed == 1
    process.seconds += TRIM_INTERVAL_S
    process.freed = 60
    assert not process.limit.check()
    assert process.trimmed == 2
