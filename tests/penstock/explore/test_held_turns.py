"""Orders of processes are the same as those of functions that send the same commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.explore.turns import Turn
from penstock.testing import Penstock, exploring
from penstock.testing.exploring import Program
from tests.penstock.explore.workers import (
    look_then_take,
    not_oversold,
    one_in_stock,
    take_if_unchanged,
)

Written = Callable[[str], Program]

LOOK_THEN_TAKE = """
if int(ask("GET", "stock")) > 0:
    ask("DECRBY", "stock", "1")
"""

TAKE_IF_UNCHANGED = """
taken = None
while taken is None:
    ask("WATCH", "stock")
    stock = int(ask("GET", "stock"))
    ask("MULTI")
    if stock > 0:
        ask("DECRBY", "stock", "1")
    taken = ask("EXEC")
"""

READING = """
found = ask("XREADGROUP", "GROUP", "kitchen", "{0}", "BLOCK", "0", "STREAMS", "orders", ">")
for order, _ in found[0][1]:
    ask("RENAME", f"cup:{{order}}", "{0}:cup")
"""

WAITING = 'ask("XREAD", "BLOCK", "%d", "STREAMS", "orders", "$")'

PRODUCING = """
for order in ("1-0", "2-0"):
    ask("SET", f"cup:{order}", "1")
    ask("XADD", "orders", order, "item", "tea")
"""


TWO_AT_ONCE = """
other = socket.create_connection((url.hostname, url.port))
ask("ECHO", "both are there")
for each, name in ((other, "other"), (connection, "own")):
    each.sendall(f"*2\\r\\n$4\\r\\nINCR\\r\\n${len(name)}\\r\\n{name}\\r\\n".encode())
answer()
other.recv(1)
"""


def ids(result: exploring.Exploration) -> list[str]:
    return [outcome.id for outcome in result.outcomes]


def report(penstock: Penstock, **options: Any) -> list[str]:
    with pytest.raises(AssertionError) as error:
        penstock.explore.orders(**options)
    return str(error.value).splitlines()


def test_two_processes_that_look_and_then_take_oversell(
    penstock: Penstock, program: Written
) -> None:
    options: dict[str, Any] = {"prepare": one_in_stock, "invariant": not_oversold}
    worker = program(LOOK_THEN_TAKE)
    lines = report(penstock, ann=worker, bob=worker, **options)
    assert lines == [
        "2 of 4 orders with at most 1 preemption end wrong. The first: abba",
        "  stock -1",
        "    ann  GET stock",
        "    bob  GET stock",
        "    bob  DECRBY stock 1",
        "    ann  DECRBY stock 1",
        "  others: baab",
        "  this one alone: pytest ... --explore abba",
    ]
    assert lines == report(penstock, ann=look_then_take, bob=look_then_take, **options)
    assert lines == report(penstock, ann=look_then_take, bob=worker, **options)


def test_a_transaction_is_one_step_however_it_is_sent(penstock: Penstock, program: Written) -> None:
    options: dict[str, Any] = {"prepare": one_in_stock, "invariant": not_oversold}
    worker = program(TAKE_IF_UNCHANGED)
    tried = penstock.explore.orders(ann=worker, bob=worker, preemptions=None, **options)
    assert (tried.everything, tried.diverged) == (True, [])
    function = take_if_unchanged
    other = penstock.explore.orders(ann=function, bob=function, preemptions=None, **options)
    assert ids(tried) == ids(other)


def test_processes_that_wait_are_woken_in_every_order(penstock: Penstock, program: Written) -> None:
    result = penstock.explore.orders(
        ann=program(READING.format("ann")),
        bob=program(READING.format("bob").replace('"STREAMS"', '"COUNT", "1", "STREAMS"')),
        cat=program(PRODUCING),
        prepare=lambda client: client.xgroup_create("orders", "kitchen", "0", mkstream=True),
        invariant=lambda client: client.exists("cup:1-0", "cup:2-0") == 0,
        preemptions=0,
    )
    assert (result.complete, result.diverged) == (True, [])


def test_a_process_waits_until_time_has_passed_for_all(
    penstock: Penstock, program: Written
) -> None:
    patient = program(f'{WAITING % 7000}; ask("SET", "late", ask("TIME")[0])')
    begin = {}

    def prepare(client: Any) -> None:
        begin["s"] = client.time()[0]

    result = penstock.explore.orders(
        ann=patient,
        bob=lambda client: None,
        prepare=prepare,
        invariant=lambda client: int(client.get("late")) == begin["s"] + 7,
    )
    assert ids(result) == ["a+aa"]


def test_a_process_that_waits_for_ever_ends_the_order(penstock: Penstock, program: Written) -> None:
    waiting = program(WAITING % 0)
    result = penstock.explore.orders(ann=waiting, bob=waiting)
    assert ids(result) == ["ab"]
    assert penstock.ask("DEBUG", "PORT", "LIST") == []
    assert penstock.ask("DEBUG", "FAULT", "LIST") == []


def test_a_process_that_fails_is_wrong_with_its_last_words(
    penstock: Penstock, program: Written
) -> None:
    failing = program('ask("GET", "a") and sys.exit("there is an a")')
    lines = report(penstock, ann=failing, bob=program('ask("SET", "a", "1")'))
    assert lines[:3] == [
        "1 of 2 orders with at most 0 preemptions ends wrong. The first: ba",
        "  ann: status 1",
        "      there is an a",
    ]


def test_commands_of_several_connections_run_as_they_were_held(
    penstock: Penstock, program: Written
) -> None:
    two = program(TWO_AT_ONCE)
    result = penstock.explore.orders(ann=two, bob=program('ask("KEYS", "*")'), preemptions=None)
    assert sorted(ids(result)) == ["aaab", "aaba", "abaa"]
    assert result.diverged == []
    for outcome in result.outcomes:
        sent = [command for name, command in outcome.lanes if name == "ann"]
        assert sent == ["ECHO both are there", "INCR other", "INCR own"]


def test_a_process_that_does_not_wait_for_its_turn_is_told(
    penstock: Penstock, program: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    impatient = 'open("id", "w").write(ask("CLIENT", "ID")); ask("GET", "stock")'
    killing = (
        'ask("INCR", "stock"); ask("CLIENT", "KILL", "ID", open("id").read()); ask("GET", "a")'
    )
    assert report(penstock, ann=program(impatient), bob=program(killing)) == [
        "ann has not waited for the reply to GET stock: is its client's timeout short?"
    ]


def test_a_process_that_neither_sends_nor_ends_is_told(
    penstock: Penstock, program: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turn, "TIMEOUT_S", 0.3)
    sleeping = program("import time; time.sleep(600)")
    assert report(penstock, ann=sleeping, bob=look_then_take) == [
        "ann neither sent a command nor ended within 0.3 seconds"
    ]


def test_a_process_that_sends_nothing_is_not_right(penstock: Penstock) -> None:
    idle = penstock.explore.process("sh", "-c", "exit 0")
    assert report(penstock, ann=idle, bob=lambda client: client.get("a")) == [
        "ann, sh -c 'exit 0', sends no command: does it use REDIS_URL?"
    ]
