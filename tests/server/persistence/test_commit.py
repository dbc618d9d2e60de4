"""The states of the commit: what each event leads to in each, and what becomes of output."""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from server.persistence import commit as module
from server.persistence.commit import BEHIND, BROKEN, DIRTY, FREE, IDLE, WRITING, Commit
from server.traffic.output_gate import LARGE
from storage.aof.writer import Writer
from tests.server.persistence.disks import TestDisk
from tests.support.direct import Direct

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Client:
    """Where output goes."""

    ended = is_debugging = False

    def __init__(self) -> None:
        self.got: list[bytes | None] = []

    def release(self, data: bytes | None) -> None:
        """Gets it."""
        self.got.append(data)

    def abandon(self) -> None:
        """Gets nothing more."""

    def check_output(self, more: int = 0) -> bool:
        """May get all."""
        return False


class Case:
    """A commit with an increment, whose rounds and flights end when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.direct = Direct()
        self.server = self.direct.server.state
        self.disk = TestDisk()
        self.commit: Commit = self.direct.server.services.commit
        self.commit.begin(Writer(self.disk, str(folder / "incr.aof")))
        self._round_ended()
        self.client = Client()

    def _round_ended(self) -> None:
        """The beginning of the file is written."""
        self.commit.changed()
        self.commit.write()

    def change(self) -> None:
        """Something happens."""
        self.direct.client().send("SET", "k", "v")

    def free(self) -> None:
        """There is no base yet."""
        self.commit.provisional = True
        self.commit.settle()

    def writing(self) -> None:
        """A flight begins."""
        self.change()
        self.commit.depart()

    def behind(self) -> None:
        """Something happens during a flight."""
        self.writing()
        self.change()

    def end_round(self) -> None:
        """The round ends; while there is a flight, the disk is busy."""
        jobs = self.commit._jobs
        jobs.busy = int(self.commit.flying)
        self.commit.write()
        jobs.busy = 0

    def enter(self, state: int) -> None:
        """Comes into a state from IDLE."""
        steps: dict[int, Callable[[], object]] = {
            FREE: self.free,
            IDLE: lambda: None,
            DIRTY: self.change,
            WRITING: self.writing,
            BEHIND: self.behind,
            BROKEN: lambda: self.commit.distrust(FULL),
        }
        steps[state]()
        assert self.commit.state == state

    def happen(self, event: str) -> None:
        """Lets an event happen."""
        commit = self.commit
        events: dict[str, Callable[[], object]] = {
            "change": commit.changed,
            "round ends": self.end_round,
            "flight begins": commit.depart,
            "flight ends": commit.arrive,
            "write fails": lambda: commit.fail(FULL),
            "sync fails": lambda: commit.distrust(FULL),
            "base is there": commit.end_provisional,
            "file turned off": commit.close,
        }
        events[event]()

    @property
    def rest(self) -> int:
        """The state without a flight that what there is leads to."""
        commit = self.commit
        if commit.writer is None or commit.provisional:
            return FREE
        if self.server.disk_error is not None:
            return BROKEN
        return DIRTY if commit.reader.has_news else IDLE


@pytest.fixture
async def case(tmp_path: Path) -> Case:
    made = Case(tmp_path)
    assert made.commit.state == IDLE
    return made


STATES = {
    "FREE": FREE,
    "IDLE": IDLE,
    "DIRTY": DIRTY,
    "WRITING": WRITING,
    "BEHIND": BEHIND,
    "BROKEN": BROKEN,
}


def table() -> list[tuple[str, str, str]]:
    """The table of the module: event, state, and the state after it."""
    assert module.__file__ is not None
    source = Path(module.__file__).with_name("commit.py")  # Compiled, a module has no docstring.
    text = ast.get_docstring(ast.parse(source.read_text()))
    assert text is not None
    block = text[text.index("    event ") :].split("\n\n")[0]
    head, *rows = [re.split(r"  +", line.strip()) for line in block.splitlines()]
    return [
        (row[0], state, after)
        for row in rows
        for state, after in zip(head[1:-1], row[1:-1], strict=True)
    ]


TABLE = table()


def test_the_table_has_each_event_in_each_state() -> None:
    assert len(TABLE) == 8 * 6 == len({row[:2] for row in TABLE})


@pytest.mark.parametrize(("event", "state", "after"), [row for row in TABLE if row[2] != "never"])
async def test_an_event_leads_to_the_state_that_the_table_has(
    case: Case, event: str, state: str, after: str
) -> None:
    case.enter(STATES[state])
    case.happen(event)
    assert case.commit.state == (case.rest if after == "rest" else STATES[after])
    assert case.commit.holding == (case.commit.state in (DIRTY, WRITING, BEHIND))


@pytest.mark.parametrize("state", [FREE, IDLE, BROKEN])
async def test_output_goes_out_where_nothing_is_to_be_written(case: Case, state: int) -> None:
    case.enter(state)
    case.commit.hold(case.client, b"reply")
    assert case.client.got == [b"reply"]


async def test_output_waits_for_the_write_of_what_it_may_speak_of(case: Case) -> None:
    case.enter(DIRTY)
    case.commit.hold(case.client, b"reply")
    assert case.client.got == []
    case.commit.write()
    assert case.client.got == [b"reply"]


async def test_much_output_of_a_unit_does_not_go_out_before_the_unit_is_whole(case: Case) -> None:
    case.change()
    journal = case.commit._journal
    journal.begin_unit()
    case.change()
    case.commit.hold(case.client, b"x" * LARGE)
    assert case.client.got == []
    journal.end_unit()
    case.commit.write()
    assert case.client.got == [b"x" * LARGE]


async def test_output_waits_for_the_flight_until_something_happens_and_then_for_the_next(
    case: Case,
) -> None:
    case.enter(WRITING)
    case.commit.hold(case.client, b"of the flight")
    case.change()
    case.commit.hold(case.client, b"of the next")
    case.commit.arrive()
    assert case.client.got == [b"of the flight"]
    assert case.commit.state == DIRTY
    case.commit.write()
    assert case.client.got == [b"of the flight", b"of the next"]


async def test_a_flight_that_ends_leaves_the_next_write_to_the_end_of_the_round(
    case: Case,
) -> None:
    case.enter(BEHIND)
    case.commit.arrive()
    assert case.commit.reader.has_news
    case.change()
    case.commit.write()
    assert (case.commit.state, case.commit.written) == (IDLE, case.commit._journal.count)


async def test_what_comes_to_nothing_is_waited_for_until_the_round_ends(case: Case) -> None:
    case.commit.changed()
    case.commit.hold(case.client, b"reply")
    assert case.client.got == []
    case.commit.write()
    assert (case.client.got, case.commit.state) == ([b"reply"], IDLE)


async def test_what_comes_to_nothing_during_a_flight_is_waited_for_until_its_end(
    case: Case,
) -> None:
    case.enter(WRITING)
    case.commit.changed()
    case.commit.hold(case.client, b"reply")
    case.commit.arrive()
    assert (case.client.got, case.commit.state) == ([b"reply"], IDLE)


async def test_a_flight_goes_on_though_the_sync_beside_it_fails(case: Case) -> None:
    case.enter(WRITING)
    assert case.commit.writer is not None
    case.commit.writer.broken = True
    case.commit.distrust(FULL)
    case.commit.hold(case.client, b"reply")
    assert case.client.got == []
    case.commit.arrive()
    assert (case.client.got, case.commit.state) == ([b"reply"], BROKEN)


async def test_a_write_after_a_failure_ends_it(case: Case) -> None:
    case.enter(DIRTY)
    case.disk.refused.add("write .aof")
    case.commit.write()
    assert case.commit.state == BROKEN
    case.disk.refused.clear()
    case.commit.write()
    assert (case.commit.state, case.server.disk_error) == (IDLE, None)


@pytest.mark.parametrize("state", [DIRTY, WRITING, BEHIND])
async def test_a_frozen_server_keeps_what_has_become_safe(case: Case, state: int) -> None:
    gate = case.direct.server.services.traffic.gate
    case.enter(state)
    case.commit.hold(case.client, b"before")
    gate.freeze()
    case.commit.hold(case.client, b"meanwhile")
    case.commit.fail(FULL)
    case.commit.hold(case.client, b"after")
    assert case.client.got == []
    gate.thaw()
    assert case.client.got == [b"beforemeanwhileafter"]
