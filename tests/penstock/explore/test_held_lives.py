"""Workers that are processes, of which the server knows nothing but their commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.explore import held_lives, processes
from penstock.testing import Penstock, exploring
from tests.penstock.explore.processes import (
    MENDED,
    ONCE,
    POLLING,
    QUEUED,
    REPAIRING,
    WAITING,
)


def counted_once(client: Any) -> None:
    total = client.get("total")
    assert total == "5", f"total {total}, should be 5"


def fill(client: Any) -> None:
    client.xgroup_create("s", "g", mkstream=True)
    client.xadd("s", {"item": "tea"})


def empty(client: Any) -> bool:
    group = client.xinfo_groups("s")[0]
    return bool(group["lag"] == group["pending"] == 0)


def report(penstock: Penstock, worker: Any, **options: Any) -> list[str]:
    """The lines of the report of a worker that is wrong."""
    with pytest.raises(AssertionError) as failed:
        penstock.explore.crashes(worker, invariant=counted_once, **options)
    return str(failed.value).splitlines()


def test_each_command_of_a_process_is_a_point_to_crash_at(penstock: Penstock, program: Any) -> None:
    lines = report(penstock, program(ONCE))
    assert lines[0] == "2 of 5 scenarios end wrong. The first: crash-after@1"
    assert "  >     1 INCRBY total 5      crash-after: executed, its reply lost" in lines
    assert "  others: crash-before@2" in lines


def test_one_command_for_both_is_right_in_every_crash(penstock: Penstock, program: Any) -> None:
    result = penstock.explore.crashes(program(MENDED), invariant=counted_once)
    assert (result.explored, result.of, result.complete) == (2, 2, True)
    assert result.diverged == []


def test_what_is_queued_in_a_transaction_happens_at_exec(penstock: Penstock, program: Any) -> None:
    result = penstock.explore.crashes(program(QUEUED), invariant=counted_once)
    assert [outcome.id for outcome in result.outcomes] == [
        *("crash-before@0", "crash-before@1", "crash-after@4")
    ]


def test_a_process_that_stalls_goes_on_when_another_life_has_done_the_work(
    penstock: Penstock, program: Any
) -> None:
    lines = report(penstock, program(ONCE), kinds="stall")
    assert lines[0] == "2 of 3 scenarios end wrong. The first: stall@1"
    assert "  others: stall@2" in lines


def test_a_process_that_loses_its_connection_may_end_and_another_life_follows(
    penstock: Penstock, program: Any
) -> None:
    lines = report(penstock, program(ONCE), kinds=["connection", "failover", "power-cut"])
    assert lines[0] == "2 of 7 scenarios end wrong. The first: connection-after@1"
    assert "  others: connection-before@2" in lines


def test_a_process_that_waits_for_ever_is_at_rest_when_its_work_is_done(
    penstock: Penstock, program: Any
) -> None:
    lines = report(penstock, program(WAITING), prepare=fill, done=empty)
    assert lines[0] == "4 of 6 scenarios end wrong. The first: crash-after@0"
    assert "  after 6 lives it is not done, and never will be" in lines


def test_a_process_that_pauses_is_not_at_rest(
    penstock: Penstock, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOOK_MS", 1)
    result = penstock.explore.crashes(
        program(REPAIRING), prepare=fill, invariant=counted_once, done=empty
    )
    assert (result.explored, result.complete, result.diverged) == (9, True, [])


def test_a_process_that_polls_is_at_rest_when_it_looks_again_and_no_work_is_left(
    penstock: Penstock, program: Any
) -> None:
    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "done": empty}
    result = penstock.explore.crashes(program(POLLING), kinds="crash-before", **options)
    assert [outcome.id for outcome in result.outcomes] == [f"crash-before@{k}" for k in range(6)]
    assert result.diverged == []


def test_a_process_that_writes_whenever_it_looks_is_at_rest_when_it_has_done_so_long_enough(
    penstock: Penstock,
    program: Any,
    session: exploring.ExploringSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session.only = "crash-before@0"
    monkeypatch.setattr(held_lives, "BEYOND", 20)
    beating = program(POLLING.replace("while True:", "while True:\n    ask('INCR', 'beat')"))
    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "done": empty}
    [outcome] = penstock.explore.crashes(beating, **options).outcomes
    # One, and five with which the work is done; XREADGROUP finds none behind them.
    assert len(list(outcome.lanes)) == 1 + 5 + 20


def test_another_worker_may_come_after_a_fault(penstock: Penstock, program: Any) -> None:
    def repair(client: Any) -> None:
        client.mset({"total": 5, "done": 1})

    result = penstock.explore.crashes(program(ONCE), invariant=counted_once, recover=repair)
    assert result.complete


def test_what_a_process_says_before_it_fails_is_told(penstock: Penstock, program: Any) -> None:
    lines = report(penstock, program("sys.exit('no such order')"))
    assert "status 1" in "\n".join(lines)
    assert "no such order" in "\n".join(lines)


def test_a_process_that_does_not_end_is_given_up(
    penstock: Penstock, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LIFE_S", 0.3)
    lines = report(penstock, program("import time; time.sleep(600)"))
    assert "it has not ended within 0.3 s" in "\n".join(lines)


def test_a_process_that_never_stops_asking_is_given_up(
    penstock: Penstock, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LIFE_S", 0.3)
    lines = report(penstock, program("while True: ask('INCR', 'n')"))
    assert "it has not ended within 0.3 s" in "\n".join(lines)


LEAVING_A_CHILD = """
if os.fork() == 0:
    line = open("line", "w", buffering=1)
    print("here", file=line)
    ask("GET", "done")
    connection.shutdown(socket.SHUT_RDWR)
    import time
    time.sleep(60)
    print("still here", file=line)
else:
    os._exit(0)
"""


def test_what_a_process_has_started_ends_with_it(
    penstock: Penstock, program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("line")
    reading = os.open("line", os.O_RDONLY | os.O_NONBLOCK)
    result = penstock.explore.crashes(program(LEAVING_A_CHILD), kinds="crash-before")
    assert (result.explored, result.diverged) == (1, [])
    os.set_blocking(reading, True)
    with open(reading) as line:
        assert line.read() == "here\n" * 4


def test_a_program_that_is_not_there_is_named(penstock: Penstock) -> None:
    worker = penstock.explore.process("/nowhere/worker")
    with pytest.raises(AssertionError, match=r"^/nowhere/worker cannot be started: No such file"):
        penstock.explore.crashes(worker)


@pytest.mark.parametrize("words", [(), (7,)])
def test_a_process_is_given_by_words(penstock: Penstock, words: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r'process\("node", "worker.mjs"\)'):
        penstock.explore.process(*words)


def test_no_port_nor_fault_is_left(penstock: Penstock, program: Any) -> None:
    penstock.explore.crashes(program(MENDED), invariant=counted_once)
    assert penstock.ask("DEBUG", "PORT", "LIST") == []
    assert penstock.ask("DEBUG", "FAULT", "LIST") == []
