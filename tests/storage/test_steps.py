"""Work in steps that is done without an interruption."""

from __future__ import annotations

from collections.abc import Generator

from storage.steps import result


def test_the_result_is_what_the_work_returns() -> None:
    steps = []

    def work(number: int) -> Generator[None, None, int]:
        for step in range(number):
            steps.append(step)
            yield
        return number

    assert (result(work(3)), result(work(0)), steps) == (3, 0, [0, 1, 2])
