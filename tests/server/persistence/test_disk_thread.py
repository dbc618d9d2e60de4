"""The thread that works on the disk, and the child process that writes a base."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from server.persistence.base_writer import FAILED, fork_writer, write_base
from server.persistence.disk_thread import DiskThread
from storage.aof.disk import Disk
from tests.server.persistence.disks import TestDisk
from tests.support.checksum_lines import with_lines


@pytest.fixture
async def jobs() -> AsyncIterator[DiskThread]:
    made = DiskThread()
    yield made
    made.close()


async def test_what_comes_after_a_job_runs_in_the_loop_of_its_caller(jobs: DiskThread) -> None:
    threads: list[threading.Thread] = []
    errors: list[OSError | None] = []
    done = asyncio.Event()

    def then(error: OSError | None) -> None:
        threads.append(threading.current_thread())
        errors.append(error)
        done.set()

    assert (jobs.busy, jobs.running_ms) == (False, 0)
    jobs.run(lambda: threads.append(threading.current_thread()), then)
    assert jobs.busy
    await done.wait()
    assert not jobs.busy
    assert threads[0] is not threads[1]
    assert threads[1] is threading.current_thread()
    assert errors == [None]


async def test_an_error_of_the_system_is_given_to_what_comes_after(jobs: DiskThread) -> None:
    errors: list[OSError | None] = []
    problem = OSError(5, "Input/output error")

    def work() -> None:
        raise problem

    jobs.run(work, errors.append)
    jobs.wait()
    assert errors == [problem]


async def test_a_mistake_of_the_program_is_not_taken_for_one(jobs: DiskThread) -> None:
    table: dict[str, None] = {}
    jobs.run(lambda: table["no such key"], lambda error: None)
    with pytest.raises(KeyError, match="no such key"):
        jobs.wait()


async def test_waiting_does_what_comes_after_once(jobs: DiskThread) -> None:
    calls: list[str] = []
    jobs.waiting.append(lambda: calls.append("ended"))
    jobs.run(lambda: None, lambda error: calls.append("then"))
    jobs.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    assert calls == ["ended", "then"]


async def test_waiting_ends_with_the_last_of_several_jobs(jobs: DiskThread) -> None:
    calls: list[int] = []

    def then(error: OSError | None) -> None:
        calls.append(len(calls))
        if len(calls) < 3:
            jobs.run(lambda: None, then)

    jobs.run(lambda: None, then)
    jobs.wait()
    assert calls == [0, 1, 2]


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("os.pipe", OSError(24, "Too many open files")),
        ("threading.Thread.start", RuntimeError("can't start new thread")),
    ],
)
async def test_a_job_fails_where_there_is_no_room_for_a_pipe_or_a_thread(
    jobs: DiskThread, monkeypatch: pytest.MonkeyPatch, what: str, problem: Exception
) -> None:
    before = len(os.listdir("/dev/fd"))
    errors: list[OSError | None] = []

    def refuse(*_: object) -> None:
        raise problem

    monkeypatch.setattr(what, refuse)
    jobs.run(lambda: None, errors.append)
    jobs.wait()
    monkeypatch.undo()
    assert str(problem.args[-1]) in str(errors)
    assert len(os.listdir("/dev/fd")) == before
    jobs.run(lambda: None, errors.append)
    jobs.wait()
    assert errors[1:] == [None]


async def test_a_job_is_done_although_the_thread_is_closed_at_once(jobs: DiskThread) -> None:
    done: list[int] = []
    for number in range(100):
        jobs.run(partial(done.append, number), lambda error: None)
        jobs.close()
        jobs.wait()
    assert done == [*range(100)]


async def test_a_thread_gives_back_what_it_has_opened() -> None:
    before = len(os.listdir("/dev/fd"))
    jobs = DiskThread()
    jobs.run(lambda: None, lambda error: None, shares=True)
    jobs.run_beside(lambda: None, lambda error: None)
    jobs.close()
    assert len(os.listdir("/dev/fd")) == before


async def test_a_loop_may_be_closed_while_a_job_is_running(jobs: DiskThread) -> None:
    go_on = threading.Event()
    errors: list[OSError | None] = []

    def work() -> None:
        go_on.wait()

    async def begin() -> None:
        jobs.run(work, errors.append)

    def run() -> None:
        asyncio.run(begin())
        go_on.set()

    await asyncio.to_thread(run)
    jobs.wait()
    assert errors == [None]


# --- the child -------------------------------------------------------------------------------


def status_of(pid: int) -> int:
    """How a child has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_base_is_written_and_synced(tmp_path: Path) -> None:
    disk = TestDisk()
    path = tmp_path / "base"
    path.write_bytes(b"something longer that was there")
    write_base(disk, str(path), [b"one ", b"two"])
    assert path.read_bytes() == with_lines(b"one ", b"two")
    assert disk.syncs == ["base"]


def test_a_large_base_is_synced_again_and_again(tmp_path: Path) -> None:
    disk = TestDisk()
    write_base(disk, str(tmp_path / "base"), [b"x" * 2**20] * 9)
    assert disk.syncs == ["base"] * 3


def test_a_child_writes_what_there_was_when_it_was_made(tmp_path: Path) -> None:
    path, pieces = tmp_path / "base", [b"one"]
    pid = fork_writer(Disk(), str(path), pieces)
    pieces.append(b"two")
    assert status_of(pid) == 0
    assert path.read_bytes() == with_lines(b"one")


def test_a_child_tells_what_the_system_refused(tmp_path: Path) -> None:
    assert status_of(fork_writer(Disk(), str(tmp_path / "no" / "base"), [])) == 2


def test_a_child_that_fails_otherwise_says_only_that(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"one"
        raise RuntimeError

    assert status_of(fork_writer(Disk(), str(tmp_path / "base"), chunks())) == FAILED
