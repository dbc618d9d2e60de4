"""Disks that fail or do not answer, while clients write and read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hiredis import ReplyError

from tests.durability.disks import FaultyDisk
from tests.durability.servers import AofThread
from tests.durability.talking import Talker
from tests.support.process import TIMEOUT_S
from tests.support.wire import wait_until

FULL = "MISCONF Errors writing to the AOF file: No space left on device"
BROKEN = "MISCONF Errors writing to the AOF file: Input/output error"

POLICIES = pytest.mark.parametrize("policy", ["always", "everysec"])


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Does at once what is otherwise done after a second or two."""
    monkeypatch.setattr("server.persistence.manager.RETRY_MS", 10)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.mend()


def text(reply: object) -> str:
    """The text of an error; empty for any other reply."""
    return str(reply) if isinstance(reply, ReplyError) else ""


def refused(talker: Talker) -> bool:
    """Whether commands that write are refused now."""
    return text(talker.ask("PING")).startswith("MISCONF ")


def loaded(folder: Path, key: str) -> object:
    """What the next start finds at a key."""
    with AofThread(folder) as server, Talker(server.port) as talker:
        return talker.ask("GET", key)


# --- a disk that is full -----------------------------------------------------------------------


def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path, disk: FaultyDisk) -> None:
    with AofThread(tmp_path, disk) as server, Talker(server.port) as talker:
        assert talker.ask("SET", "key", "before") == "OK"
        wait_until(lambda: not server.server.services.persistence.appender.buffered)
        disk.fail("write", error=errno.ENOSPC)
        with Talker(server.port) as writer:
            writer.send("SET key taken")
            assert writer.closed()
        assert text(talker.ask("SET", "key", "refused")) == FULL
        assert text(talker.ask("XADD", "stream", "*", "f", "v")) == FULL
        assert text(talker.ask("PING")) == FULL
        assert talker.ask("GET", "key") == "taken"
        assert talker.ask("EXISTS", "stream") == 0
        disk.mend()
        wait_until(lambda: not refused(talker))
        assert talker.ask("SET", "other", "after") == "OK"
    assert (loaded(tmp_path, "key"), loaded(tmp_path, "other")) == ("taken", "after")


@POLICIES
def test_nobody_is_told_of_a_write_that_failed(
    tmp_path: Path, disk: FaultyDisk, policy: str
) -> None:
    with AofThread(tmp_path, disk, appendfsync=policy) as server, Talker(server.port) as reader:
        disk.fail("write", error=errno.ENOSPC)
        with Talker(server.port) as writer:
            writer.send("SET key taken")
            assert writer.closed()
        assert text(reader.ask("SET", "key", "refused")) == FULL
        assert reader.ask("GET", "key") == "taken"
        disk.mend()
        wait_until(lambda: not refused(reader))
        assert reader.ask("SET", "other", "after") == "OK"
    assert (loaded(tmp_path, "key"), loaded(tmp_path, "other")) == ("taken", "after")


@POLICIES
def test_a_transaction_with_writes_is_refused_as_a_whole(
    tmp_path: Path, disk: FaultyDisk, policy: str
) -> None:
    with AofThread(tmp_path, disk, appendfsync=policy) as server, Talker(server.port) as talker:
        talker.ask("MULTI")
        talker.ask("SET", "key", "in a transaction")
        disk.fail("write", error=errno.ENOSPC)
        with Talker(server.port) as other:
            other.send("SET other taken")
            wait_until(lambda: server.server.services.persistence.refusal is not None)
        assert (
            text(talker.ask("EXEC"))
            == ("EXECABORT Transaction discarded because of: " + FULL.removeprefix("MISCONF "))
            or text(talker.ask("PING")) == FULL
        )
        assert talker.ask("EXISTS", "key") == 0


def test_a_write_that_failed_half_way_leaves_nothing_in_the_file(
    tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AofThread(tmp_path, disk) as server, Talker(server.port) as talker:
        wait_until(lambda: not server.server.services.persistence.appender.buffered)
        path = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
        before = path.read_bytes()
        whole = FaultyDisk.write

        def half(self: FaultyDisk, fd: int, data: memoryview) -> int:
            """Writes half of it, and nothing the next time."""
            disk.fail("write", error=errno.ENOSPC)
            return whole(self, fd, data[: len(data) // 2])

        with monkeypatch.context() as patch:
            patch.setattr(FaultyDisk, "write", half)
            talker.send("SET key value")
            assert talker.closed()
        assert path.read_bytes() == before


# --- a sync that fails -------------------------------------------------------------------------


@POLICIES
def test_after_a_failed_sync_everything_is_in_new_files(
    tmp_path: Path, disk: FaultyDisk, policy: str
) -> None:
    with AofThread(tmp_path, disk, appendfsync=policy) as server, Talker(server.port) as reader:
        assert reader.ask("SET", "key", "before") == "OK"
        with Talker(server.port) as writer:
            name = "appendonly.aof.1.incr.aof"
            disk.fail_once("sync", name, error=errno.EIO, after="write")
            writer.send(("SET", "key", "at the failure"))
            wait_until(lambda: server.server.services.persistence.rewriting.count == 1)
            assert writer.closed() if policy == "always" else writer.reply() == "OK"
        wait_until(lambda: not refused(reader))
        assert reader.ask("SET", "other", "after") == "OK"
        manifest = (tmp_path / "appendonlydir" / "appendonly.aof.manifest").read_text()
        assert [line for line in manifest.splitlines() if not line.startswith("#")] == [
            "file appendonly.aof.2.base.aof seq 2 type b",
            "file appendonly.aof.2.incr.aof seq 2 type i",
        ]
    assert (loaded(tmp_path, "key"), loaded(tmp_path, "other")) == ("at the failure", "after")


@POLICIES
def test_writes_are_refused_as_long_as_no_new_files_can_be_made(
    tmp_path: Path, disk: FaultyDisk, policy: str
) -> None:
    with AofThread(tmp_path, disk, appendfsync=policy) as server, Talker(server.port) as reader:
        rewriting = server.server.services.persistence.rewriting
        with Talker(server.port) as writer:
            disk.fail("sync", error=errno.EIO, after="write")
            writer.send(("SET", "key", "at the failure"))
            wait_until(lambda: rewriting.failures_in_a_row >= 3)
        assert text(reader.ask("SET", "key", "refused")) == BROKEN
        assert reader.ask("GET", "key") == "at the failure"
        disk.mend()
        wait_until(lambda: not refused(reader))
        assert rewriting.last_ok
    assert loaded(tmp_path, "key") == "at the failure"


# --- a sync that hangs -------------------------------------------------------------------------


def test_with_always_replies_wait_for_a_sync_that_hangs_and_the_event_loop_does_not(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    with (
        AofThread(tmp_path, disk, appendfsync="always") as server,
        Talker(server.port) as one,
        Talker(server.port) as two,
    ):
        disk.hang()
        one.send("SET key value")
        assert disk.hanging.wait(TIMEOUT_S)
        two.send("GET key")
        # The loop goes on: it runs what the test asks of it, and the other client's command.
        wait_until(lambda: server.call(lambda: server.server.state.keyspace.hits) == 1)
        assert not one.has_got(0.05)
        assert not two.has_got(0.05)
        disk.answer.set()
        assert (one.reply(), two.reply()) == ("OK", "value")


def test_commands_of_several_clients_that_came_meanwhile_share_one_sync(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    with AofThread(tmp_path, disk, appendfsync="always") as server, ExitStack() as stack:
        first, *others = (stack.enter_context(Talker(server.port)) for _ in range(21))
        assert first.ask("SET", "key", "before") == "OK"
        disk.hang()
        first.send("SET key value")
        assert disk.hanging.wait(TIMEOUT_S)
        for number, talker in enumerate(others):
            talker.send(f"SET key:{number} value")
        values = server.server.state.keyspace.databases[0].values
        wait_until(lambda: len(values) == 1 + len(others))
        before = len(disk.calls)
        disk.answer.set()
        assert [talker.reply() for talker in (first, *others)] == ["OK"] * 21
        syncs = [call for call in disk.calls[before:] if call[0] == "sync"]
        assert len(syncs) == 1


def test_with_everysec_writes_wait_for_a_sync_that_hangs_too_long_and_reads_go_on(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    with (
        AofThread(tmp_path, disk) as server,
        Talker(server.port) as writer,
        Talker(server.port) as reader,
    ):
        disk.hang()
        assert writer.ask("SET", "key", "before") == "OK"
        assert disk.hanging.wait(TIMEOUT_S)
        assert writer.ask("SET", "key", "while it hangs") == "OK"
        appender = server.server.services.persistence.appender
        appender.stalled_after_ms = 0
        wait_until(lambda: server.server.services.pauses.active)
        writer.send(("SET", "key", "too long"))
        assert not writer.has_got(0.05)
        assert reader.ask("GET", "key") == "while it hangs"
        appender.stalled_after_ms = 2000
        disk.answer.set()
        assert writer.reply() == "OK"
        assert reader.ask("GET", "key") == "too long"
    assert loaded(tmp_path, "key") == "too long"
