"""A disk that refuses: commands that write are refused until it does what it should again."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

MISCONF = "MISCONF Errors writing to the AOF file: No space left on device"


async def fail_once(rig: Rig) -> None:
    """Lets a write fail, whose client gets no answer; the first client is another one then."""
    rig.disk.refused.add("write .incr.aof")
    assert await rig.ask("SET", "k", "lost?") == "closed"
    assert rig.persistence.refusal
    rig.first = rig.client()


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
async def test_who_has_read_in_the_round_of_a_failed_write_is_answered(
    start: Start, policy: str
) -> None:
    rig = await start(appendfsync=policy)
    reader, leaver = rig.client(), rig.client()
    for client in (reader, leaver):
        assert await client.ask("ECHO", "x") == b"x"
    rig.disk.refused.add("write .incr.aof")
    rig.deliver(
        (rig.first, b"SET k v\r\n"), (leaver, b"SET k w\r\nQUIT\r\n"), (reader, b"ECHO y\r\n")
    )
    assert await reader.reply() == b"y"
    assert await rig.first.reply() == "closed"
    assert await leaver.reply() == "closed"


async def test_after_a_failed_write_commands_that_write_are_refused(start: Start) -> None:
    rig = await start()
    await fail_once(rig)
    assert await rig.ask("SET", "k", 2) == MISCONF
    assert await rig.ask("XADD", "s", "*", "f", "v") == MISCONF
    assert await rig.ask("PING") == MISCONF
    assert await rig.ask("GET", "k") == b"lost?"
    assert await rig.ask("ECHO", "hi") == b"hi"
    assert (await rig.info())["aof_last_write_status"] == "err"
    assert rig.log[-1] == (
        "Error writing to the append-only file: No space left on device."
        " Commands that write are refused until that is over"
    )


async def test_a_transaction_that_writes_is_refused_and_one_that_reads_is_not(
    start: Start,
) -> None:
    rig = await start()
    await fail_once(rig)
    assert await rig.ask("MULTI") == b"OK"
    assert await rig.ask("GET", "k") == b"QUEUED"
    assert await rig.ask("EXEC") == [b"lost?"]
    assert await rig.ask("MULTI") == b"OK"
    assert await rig.ask("SET", "k", 1) == MISCONF
    assert (await rig.ask("EXEC")).startswith("EXECABORT")


async def test_a_transaction_that_was_queued_before_the_failure_is_refused(start: Start) -> None:
    rig = await start()
    other = rig.client()
    assert await other.ask("MULTI") == b"OK"
    assert await other.ask("SET", "k", 1) == b"QUEUED"
    await fail_once(rig)
    assert MISCONF in await other.ask("EXEC")
    assert await rig.ask("GET", "k") == b"lost?"


async def test_service_resumes_with_everything_when_the_disk_does(start: Start) -> None:
    rig = await start()
    rig.disk.half = 7
    await fail_once(rig)
    rig.disk.refused.clear()
    assert await rig.ask("SET", "k", 2) == MISCONF
    rig.cron(1000)
    await asyncio.sleep(0)
    assert await rig.ask("SET", "k", 2) == b"OK"
    assert rig.log[-1] == "The append-only file can be written to again"
    assert (await rig.info())["aof_last_write_status"] == "ok"
    await rig.stop()
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k lost?", "SET k 2"]


async def test_the_disk_is_tried_once_a_second(start: Start) -> None:
    rig = await start(appendfsync="always")
    rig.disk.refused.add("write .incr.aof")
    assert await rig.ask("SET", "k", 1) == "closed"
    client = rig.first = rig.client()
    for _ in range(3):
        rig.cron(1000)
        await rig.disk_rests()
        assert await client.ask("SET", "k", 2) == MISCONF
    rig.disk.refused.clear()
    rig.cron(1000)
    await rig.disk_rests()
    assert await client.ask("SET", "k", 2) == b"OK"
    assert sum(line.startswith("Error writing") for line in rig.log) == 1


async def test_whose_command_was_not_made_safe_gets_no_answer(start: Start) -> None:
    rig = await start(appendfsync="always")
    assert await rig.ask("SET", "k", 1) == b"OK"
    reader, later = rig.client(), rig.client()
    rig.disk.gate.clear()
    rig.first.send("SET k 2")
    await rig.until(rig.disk.waiting.is_set)
    reader.send("GET k")
    later.send("SET k 3")
    assert not await reader.has_reply()
    rig.disk.refused.add("sync .incr.aof")
    rig.disk.gate.set()
    assert await rig.first.reply() == "closed"
    assert await later.reply() == "closed"
    assert await reader.reply() == b"2"


async def test_after_a_failed_sync_new_files_are_made_from_memory(start: Start) -> None:
    rig = await start(appendfsync="always")
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.refused.add("sync .1.incr.aof")
    assert await rig.ask("SET", "k", 2) == "closed"
    rig.first = rig.client()
    assert await rig.ask("SET", "k", 3) == MISCONF
    rig.cron(1000)
    assert rig.persistence.rewriting.in_progress
    assert await rig.ask("SET", "k", 3) == MISCONF
    await rig.rewritten()
    assert await rig.ask("SET", "k", 4) == b"OK"
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 2"]
    await rig.stop()
    assert rig.commands("2.incr.aof") == ["SELECT 0", "SET k 4"]


async def test_what_is_seen_meanwhile_does_not_end_the_refusal(start: Start) -> None:
    rig = await start(appendfsync="always")
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    rig.disk.refused.add("sync .1.incr.aof")
    assert await rig.ask("SET", "k", 2) == "closed"
    rig.first = rig.client()
    rig.cron(1000)
    rig.server.services.commit._journal.note_seen()
    await asyncio.sleep(0)
    assert await rig.ask("SET", "k", 3) == MISCONF
    await rig.rewritten()
    assert await rig.ask("SET", "k", 3) == b"OK"


async def test_new_files_are_tried_again_until_they_are_there(start: Start) -> None:
    rig = await start(appendfsync="everysec")
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.refused |= {"sync .1.incr.aof", "open .incr"}
    rig.cron(1000)
    await rig.disk_rests()
    assert await rig.ask("SET", "k", 2) == MISCONF
    rig.cron(1000)
    assert rig.log[-1] == "New files cannot be made: No space left on device"
    rig.disk.refused = {"sync .1.incr.aof", "rename .base.aof"}
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", 2) == MISCONF
    rig.disk.refused = {"sync .1.incr.aof"}
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", 2) == b"OK"
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 1"]


async def test_a_write_that_cannot_be_taken_back_is_like_a_failed_sync(start: Start) -> None:
    rig = await start()
    rig.disk.half = 5
    rig.disk.refused.add("truncate .incr.aof")
    await fail_once(rig)
    rig.disk.refused.clear()
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", 2) == b"OK"
    await rig.stop()
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k lost?"]
    assert rig.commands("2.incr.aof") == ["SELECT 0", "SET k 2"]


async def test_replies_that_waited_when_the_sync_before_failed_are_not_given(
    start: Start,
) -> None:
    rig = await start(appendfsync="everysec")
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    reader = rig.client()
    assert await reader.ask("CONFIG", "SET", "appendfsync", "always") == b"OK"
    rig.first.send("SET k 2")
    assert not await rig.first.has_reply()
    reader.send("GET k")
    rig.disk.refused.add("sync .incr.aof")
    rig.disk.gate.set()
    assert await rig.first.reply() == "closed"
    assert await reader.reply() == b"2"


async def test_the_policy_of_no_refuses_as_well(start: Start) -> None:
    rig = await start(appendfsync="no")
    await fail_once(rig)
    assert await rig.ask("SET", "k", 2) == MISCONF


async def test_turning_the_file_off_ends_the_refusal(start: Start) -> None:
    rig = await start()
    await fail_once(rig)
    assert await rig.ask("CONFIG", "SET", "appendonly", "no") == b"OK"
    assert await rig.ask("SET", "k", 2) == b"OK"


async def test_a_server_that_ends_tells_what_it_could_not_write(start: Start) -> None:
    rig = await start()
    await fail_once(rig)
    await rig.stop()
    assert rig.log[-1] == "The append-only file lacks the last changes: No space left on device"


async def test_a_server_that_ends_tries_once_more(start: Start) -> None:
    rig = await start()
    await fail_once(rig)
    rig.disk.refused.clear()
    await rig.stop()
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k lost?"]


async def test_a_server_that_ends_makes_new_files_after_a_failed_sync(start: Start) -> None:
    rig = await start(appendfsync="always")
    rig.disk.refused.add("sync .1.incr.aof")
    assert await rig.ask("SET", "k", 1) == "closed"
    await rig.stop()
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 1"]


async def test_a_last_sync_that_fails_is_told(start: Start) -> None:
    rig = await start()
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.refused.add("sync .incr.aof")
    await rig.stop()
    assert rig.log[-1] == "The append-only file lacks the last changes: No space left on device"


async def test_a_failed_sync_waits_for_the_end_of_a_rewrite_that_is_going_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = await start()
    monkeypatch.setattr(
        "server.persistence.base_writer._leave_server",
        lambda target: os.kill(os.getpid(), signal.SIGSTOP),
    )
    assert await rig.ask("BGREWRITEAOF") == b"Background append only file rewriting started"
    await rig.disk_rests()
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.refused.add("sync .2.incr.aof")
    rig.cron(1000)
    await rig.disk_rests()
    rig.cron(1000)
    assert rig.persistence.rewriting.in_progress
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i", "2.incr.aof i"]
    monkeypatch.undo()
    os.kill(rig.persistence.rewriting._child, signal.SIGCONT)
    await rig.rewritten()
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", 2) == b"OK"
    assert rig.manifest == ["3.base.aof b", "3.incr.aof i"]
