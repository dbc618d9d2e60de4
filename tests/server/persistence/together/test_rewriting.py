"""Rewriting: BGREWRITEAOF, BGSAVE, SAVE, and rewrites that begin by themselves."""

from __future__ import annotations

import os
import signal

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

STARTED = b"Background append only file rewriting started"
SCHEDULED = b"Background append only file rewriting scheduled"


async def fill(rig: Rig, count: int = 3) -> None:
    """Some writes to one key."""
    for number in range(count):
        assert await rig.ask("SET", "k", number) == b"OK"


class Stopped:
    """Rewrites whose child does not get on until it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reading, self._writing = os.pipe()
        monkeypatch.setattr("server.persistence.base_writer._leave_server", self._leave_server)

    def _leave_server(self, target: str) -> int:
        os.read(self.reading, 1)
        return 0

    def go_on(self, children: int = 1) -> None:
        """Lets so many children go on."""
        os.write(self._writing, b"." * children)

    def close(self) -> None:
        """Gives the pipe back."""
        os.close(self.reading)
        os.close(self._writing)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Stopped:
    """See :class:`Stopped`; it is closed by the process's end."""
    return Stopped(monkeypatch)


# --- BGREWRITEAOF ----------------------------------------------------------------------------


async def test_a_new_base_takes_the_place_of_the_files_up_to_the_cut(start: Start) -> None:
    rig = await start()
    await fill(rig)
    assert await rig.ask("BGREWRITEAOF") == STARTED
    assert await rig.ask("SET", "k", "after") == b"OK"
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    assert rig.files == ["2.base.aof", "2.incr.aof", "manifest"]
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 2"]
    await rig.stop()
    assert rig.commands("2.incr.aof") == ["SELECT 0", "SET k after"]
    again = await start()
    assert again.state[-1] == "SET k after"


async def test_what_waited_at_the_cut_belongs_to_the_old_increment(
    start: Start, stopped: Stopped
) -> None:
    rig = await start()
    rig.first.write(b"SET k old\r\nBGREWRITEAOF\r\nSET k new\r\n")
    assert [await rig.first.reply() for _ in range(3)] == [b"OK", STARTED, b"OK"]
    await rig.disk_rests()
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k old"]
    assert rig.commands("2.incr.aof") == ["SELECT 0", "SET k new"]
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i", "2.incr.aof i"]
    stopped.go_on()
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]


async def test_replies_of_always_wait_for_the_cut(start: Start) -> None:
    rig = await start(appendfsync="always")
    assert await rig.ask("SET", "k", 1) == b"OK"
    rig.disk.gate.clear()
    rig.first.write(b"SET k 2\r\nBGREWRITEAOF\r\n")
    await rig.until(rig.disk.waiting.is_set)
    assert not await rig.first.has_reply()
    rig.disk.gate.set()
    assert [await rig.first.reply(), await rig.first.reply()] == [b"OK", STARTED]
    await rig.rewritten()


async def test_info_tells_how_a_rewrite_goes(start: Start, stopped: Stopped) -> None:
    rig = await start()
    await fill(rig)
    assert (await rig.info())["rdb_changes_since_last_save"] == "3"
    assert await rig.ask("BGREWRITEAOF") == STARTED
    rig.now_ms += 2000
    await fill(rig, 1)
    during = await rig.info()
    assert during["aof_rewrite_in_progress"] == "1"
    assert during["aof_current_rewrite_time_sec"] == "2"
    assert during["rdb_bgsave_in_progress"] == "0"
    stopped.go_on()
    await rig.rewritten()
    after = await rig.info()
    assert after["aof_rewrite_in_progress"] == "0"
    assert after["aof_current_rewrite_time_sec"] == "-1"
    assert after["aof_last_rewrite_time_sec"] == "2"
    assert after["aof_last_bgrewrite_status"] == "ok"
    assert after["aof_rewrites"] == "1"
    assert after["rdb_changes_since_last_save"] == "1"
    base = (rig.folder / "appendonly.aof.2.base.aof").stat().st_size
    assert after["aof_base_size"] == str(base)
    assert int(after["aof_current_size"]) > base
    stats = await rig.info("stats")
    assert (int(stats["latest_fork_usec"]) > 0, stats["total_forks"]) == (True, "1")
    assert await rig.ask("CONFIG", "RESETSTAT") == b"OK"
    stats = await rig.info("stats")
    assert (stats["latest_fork_usec"], stats["total_forks"]) == ("0", "0")


async def test_a_second_rewrite_is_refused_and_a_save_may_wait(
    start: Start, stopped: Stopped
) -> None:
    rig = await start()
    assert await rig.ask("BGREWRITEAOF") == STARTED
    assert (
        await rig.ask("BGREWRITEAOF")
        == "ERR Background append only file rewriting already in progress"
    )
    assert (await rig.ask("BGSAVE")).startswith("ERR Another child process is active (AOF?)")
    assert await rig.ask("SAVE") == "ERR Background save already in progress"
    assert await rig.ask("BGSAVE", "SCHEDULE") == b"Background saving scheduled"
    assert (await rig.info())["aof_rewrite_scheduled"] == "1"
    stopped.go_on(2)
    await rig.rounds_until(lambda: rig.persistence.rewriting.is_save)
    assert (await rig.info())["rdb_bgsave_in_progress"] == "1"
    await rig.rewritten()
    assert rig.manifest == ["3.base.aof b", "3.incr.aof i"]


async def test_a_rewrite_waits_for_a_save(start: Start, stopped: Stopped) -> None:
    rig = await start()
    assert await rig.ask("BGSAVE") == b"Background saving started"
    assert await rig.ask("BGSAVE") == "ERR Background save already in progress"
    assert await rig.ask("BGREWRITEAOF") == SCHEDULED
    stopped.go_on(2)
    await rig.rounds_until(lambda: rig.persistence.rewriting.count == 2)
    assert (await rig.info())["aof_rewrite_scheduled"] == "0"


async def test_a_rewrite_that_comes_while_the_disk_is_busy_begins_after_that(
    start: Start,
) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.gate.clear()
    rig.cron(1000)
    await rig.until(rig.disk.waiting.is_set)
    assert await rig.ask("BGSAVE") == b"Background saving started"
    assert not rig.persistence.rewriting.in_progress
    rig.disk.gate.set()
    await rig.disk_rests()
    rig.cron()
    assert (await rig.info())["rdb_bgsave_in_progress"] == "1"
    await rig.rewritten()
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k 2"]


@pytest.mark.parametrize(
    ("command", "reply"),
    [("BGREWRITEAOF", SCHEDULED), ("BGSAVE", b"Background saving scheduled")],
)
async def test_within_a_transaction_a_rewrite_is_put_off_to_its_end(
    start: Start, command: str, reply: bytes
) -> None:
    rig = await start()
    for words in ("MULTI", "XADD s 1-1 f v", command, "XADD s 2-1 f v"):
        await rig.ask(*words.split())
    assert await rig.ask("EXEC") == [b"1-1", reply, b"2-1"]
    rig.cron()
    await rig.rewritten()
    await rig.stop()
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    again = await start()
    assert await again.ask("XLEN", "s") == 2


async def test_a_child_that_fails_leaves_everything_as_it_was(
    start: Start,
) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add(f"write rewriteaof-{os.getpid()}.aof")
    assert await rig.ask("BGREWRITEAOF") == STARTED
    await rig.rounds_until(lambda: rig.log[-1].startswith("Rewriting"))
    await rig.rounds_until(lambda: not rig.persistence.rewriting.in_progress)
    await rig.disk_rests()
    info = await rig.info()
    assert info["aof_last_bgrewrite_status"] == "err"
    assert info["aof_rewrites_consecutive_failures"] == "1"
    assert rig.log[-1] == "Rewriting the append-only file failed: No space left on device"
    assert "2.base.aof" not in rig.files
    assert not [name for name in rig.files if name.startswith("temp")]
    rig.disk.refused.clear()


async def test_a_child_that_is_killed_is_a_failure(start: Start, stopped: Stopped) -> None:
    rig = await start()
    await fill(rig)
    assert await rig.ask("BGREWRITEAOF") == STARTED
    await rig.disk_rests()
    os.kill(rig.persistence.rewriting._child, signal.SIGKILL)
    await rig.rewritten()
    assert rig.log[-1] == (
        "Rewriting the append-only file failed: the process that wrote it ended with status -9"
    )
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i", "2.incr.aof i"]
    assert await rig.ask("BGREWRITEAOF") == STARTED
    stopped.go_on()
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "3.incr.aof i"]


async def test_a_rewrite_without_a_new_increment_is_given_up(start: Start) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add("open .2.incr.aof")
    assert await rig.ask("BGREWRITEAOF") == STARTED
    await rig.disk_rests()
    assert not rig.persistence.rewriting.in_progress
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i"]
    assert await rig.ask("SET", "k", "on") == b"OK"
    rig.cron()
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i"]
    await rig.stop()
    assert rig.commands("1.incr.aof")[-1] == "SET k on"


async def test_a_tail_that_cannot_be_written_at_the_cut_is_kept(start: Start) -> None:
    rig = await start(appendfsync="always")
    rig.disk.refused.add("write .incr.aof")
    rig.first.write(b"SET k 1\r\nBGREWRITEAOF\r\n")
    assert await rig.first.reply() == "closed"
    rig.first = rig.client()
    assert (await rig.ask("SET", "k", 2)).startswith("MISCONF")
    await rig.disk_rests()  # Nothing is tried again before that.
    rig.disk.refused.clear()
    rig.cron(1000)
    await rig.disk_rests()
    assert await rig.ask("SET", "k", 2) == b"OK"
    assert rig.commands("1.incr.aof") == ["SELECT 0", "SET k 1", "SELECT 0", "SET k 2"]


async def test_a_manifest_that_may_be_either_of_two_leads_to_new_files(start: Start) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add("rename .manifest")
    assert await rig.ask("BGREWRITEAOF") == STARTED
    await rig.disk_rests()
    assert (await rig.ask("SET", "k", "x")).startswith("MISCONF")
    rig.disk.refused.clear()
    rig.cron(1000)
    await rig.rewritten()
    assert await rig.ask("SET", "k", "y") == b"OK"
    await rig.stop()
    again = await start()
    assert again.state[-1] == "SET k y"


async def test_a_base_that_cannot_be_installed_is_a_failure(start: Start) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add("rename .base.aof")
    assert await rig.ask("BGREWRITEAOF") == STARTED
    await rig.rewritten()
    assert rig.log[-1] == "Rewriting the append-only file failed: No space left on device"
    assert rig.manifest == ["1.base.aof b", "1.incr.aof i", "2.incr.aof i"]


async def test_a_process_that_cannot_be_made_is_told_to_the_client(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = await start()

    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    text = "ERR The data could not be saved: Resource temporarily unavailable"
    assert await rig.ask("BGREWRITEAOF") == text
    assert await rig.ask("BGSAVE") == text
    assert not rig.persistence.rewriting.in_progress
    rig.persistence.schedule()
    rig.cron()
    assert rig.log[-1] == (
        "Rewriting the append-only file failed: Resource temporarily unavailable"
    )


# --- by themselves ---------------------------------------------------------------------------


async def test_a_rewrite_begins_by_itself_when_the_file_has_grown_enough(start: Start) -> None:
    rig = await start(auto_aof_rewrite_min_size=1000, auto_aof_rewrite_percentage=100)
    rig.cron()
    assert await rig.ask("SET", "k", "x" * 700) == b"OK"
    rig.cron()
    assert not rig.persistence.rewriting.in_progress
    assert await rig.ask("SET", "k", "y" * 700) == b"OK"
    rig.cron()
    assert rig.persistence.rewriting.in_progress
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    assert await rig.ask("SET", "k", "x" * 500) == b"OK"
    rig.cron()
    assert not rig.persistence.rewriting.in_progress
    assert await rig.ask("SET", "k", "x" * 500) == b"OK"
    rig.cron()
    assert rig.persistence.rewriting.in_progress


async def test_a_rewrite_begins_at_the_percentage_itself(start: Start) -> None:
    rig = await start(auto_aof_rewrite_min_size=0, auto_aof_rewrite_percentage=100)
    assert await rig.ask("SET", "k", "x" * 1000) == b"OK"
    half = rig.persistence.size // 2
    rig.persistence.rewriting.base_size = half + 1
    rig.cron()
    assert not rig.persistence.rewriting.in_progress
    rig.persistence.rewriting.base_size = half
    rig.cron()
    assert rig.persistence.rewriting.in_progress


async def test_a_percentage_of_zero_means_never(start: Start) -> None:
    rig = await start(auto_aof_rewrite_min_size=0, auto_aof_rewrite_percentage=0)
    assert await rig.ask("SET", "k", "x" * 1000) == b"OK"
    rig.cron()
    assert not rig.persistence.rewriting.in_progress


async def test_after_a_failure_the_next_one_waits_a_minute(start: Start) -> None:
    rig = await start(auto_aof_rewrite_min_size=100)
    rig.disk.refused.add("rename .base.aof")
    assert await rig.ask("SET", "k", "x" * 1000) == b"OK"
    rig.cron()
    await rig.rewritten()
    rig.disk.refused.clear()
    rig.cron(59_000)
    assert not rig.persistence.rewriting.in_progress
    rig.cron(1000)
    await rig.disk_rests()
    rig.cron()
    assert rig.persistence.rewriting.in_progress


async def test_the_growth_is_counted_from_the_base_that_was_loaded(start: Start) -> None:
    rig = await start()
    assert await rig.ask("SET", "k", "x" * 1000) == b"OK"
    assert await rig.ask("SAVE") == b"OK"
    assert await rig.ask("SET", "k", "y" * 5000) == b"OK"
    await rig.stop()
    base = (rig.folder / "appendonly.aof.2.base.aof").stat().st_size
    again = await start(auto_aof_rewrite_min_size=1000)
    assert (await again.info())["aof_base_size"] == str(base)
    again.cron()
    assert again.persistence.rewriting.in_progress


async def test_a_file_that_has_gone_does_not_upset_info(start: Start) -> None:
    rig = await start()
    rig.disk.refused.add("length .base.aof")
    assert int((await rig.info())["aof_current_size"]) > 0


# --- SAVE and BGSAVE -------------------------------------------------------------------------


async def test_save_makes_a_base_at_once(start: Start) -> None:
    rig = await start()
    await fill(rig)
    rig.now_ms += 5000
    assert await rig.ask("LASTSAVE") == 1_700_000_000
    assert await rig.ask("SAVE") == b"OK"
    assert await rig.ask("LASTSAVE") == 1_700_000_005
    assert rig.manifest == ["2.base.aof b", "2.incr.aof i"]
    assert (await rig.info())["rdb_saves"] == "1"
    await fill(rig)
    await rig.stop()
    assert rig.commands("2.incr.aof") == ["SELECT 0", "SET k 0", "SET k 1", "SET k 2"]


@pytest.mark.parametrize("broken", ["rename .base.aof", "open .2.incr.aof"])
async def test_a_save_that_fails_changes_nothing(start: Start, broken: str) -> None:
    rig = await start()
    await fill(rig)
    rig.disk.refused.add(broken)
    assert await rig.ask("SAVE") == "ERR The data could not be saved: No space left on device"
    assert (await rig.info())["aof_rewrites_consecutive_failures"] == "1"
    rig.disk.refused.clear()
    assert await rig.ask("SET", "k", "on") == b"OK"
    await rig.stop()
    again = await start()
    assert again.state[-1] == "SET k on"


@pytest.mark.parametrize("command", ["SAVE", "BGSAVE"])
async def test_without_an_append_only_file_a_base_is_made_that_the_next_start_loads(
    start: Start, command: str
) -> None:
    rig = await start(appendonly=False)
    await fill(rig)
    assert rig.files == []
    assert await rig.ask(command) in (b"OK", b"Background saving started")
    await rig.rewritten()
    assert rig.manifest == ["2.base.aof b"]
    assert await rig.ask("SET", "k", "not saved") == b"OK"
    assert (await rig.info())["aof_enabled"] == "0"
    await rig.stop()
    again = await start(appendonly=False)
    assert await again.ask("GET", "k") == b"2"
    assert await again.ask(command) in (b"OK", b"Background saving started")
    await again.rewritten()
    assert again.manifest == ["3.base.aof b"]
    await again.stop()
    on = await start(appendonly=True)
    assert await on.ask("GET", "k") == b"2"
    assert on.manifest == ["3.base.aof b", "1.incr.aof i"]


async def test_without_an_append_only_file_a_scheduled_rewrite_begins_as_well(
    start: Start, stopped: Stopped
) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("BGSAVE") == b"Background saving started"
    assert await rig.ask("BGREWRITEAOF") == SCHEDULED
    stopped.go_on(2)
    await rig.rounds_until(lambda: rig.persistence.rewriting.count == 2)


async def test_increments_are_not_loaded_without_an_append_only_file(start: Start) -> None:
    rig = await start()
    await fill(rig)
    await rig.stop()
    off = await start(appendonly=False)
    assert await off.ask("GET", "k") is None
    assert off.log[0] == (
        f"the folder '{off.folder}' was not loaded: it was written with appendonly yes, and"
        " appendonly is no; nothing is saved as long as it is there"
    )


LEFT = "holds what a server with appendonly yes has left: start with appendonly yes, or move"


async def test_what_was_passed_over_is_never_replaced_by_a_save(start: Start) -> None:
    """Nobody would have been asked."""
    rig = await start()
    await fill(rig)
    await rig.stop()
    off = await start(appendonly=False, dbfilename="dump.rdb", save="60 1")
    await off.ask("SET", "k", "other")
    for command in ("SAVE", "BGSAVE", "BGREWRITEAOF"):
        assert LEFT in await off.ask(command)
    off.cron(61_000)
    assert (await off.ask("SET", "k", "more")).startswith("MISCONF")
    told = len(off.log)
    off.cron(1000)
    assert len(off.log) == told
    await off.stop()
    assert LEFT in off.log[-1]
    again = await start()
    assert await again.ask("GET", "k") == b"2"


async def test_once_the_folder_is_moved_away_there_is_something_to_save_in(start: Start) -> None:
    rig = await start()
    await fill(rig)
    await rig.stop()
    off = await start(appendonly=False)
    await off.ask("SET", "k", "other")
    rig.folder.rename(rig.folder.with_name("aside"))
    assert await off.ask("SAVE") == b"OK"
    await off.stop()
    again = await start(appendonly=False)
    assert await again.ask("GET", "k") == b"other"


async def test_an_append_only_file_that_is_turned_on_replaces_what_was_passed_over(
    start: Start,
) -> None:
    """As on a real server: it was asked for."""
    rig = await start()
    await fill(rig)
    await rig.stop()
    off = await start(appendonly=False)
    await off.ask("SET", "k", "other")
    assert await off.ask("CONFIG", "SET", "appendonly", "yes") == b"OK"
    await off.rewritten()
    assert await off.ask("CONFIG", "SET", "appendonly", "no") == b"OK"
    assert await off.ask("SAVE") == b"OK"
    await off.stop()
    again = await start(appendonly=False)
    assert await again.ask("GET", "k") == b"other"


async def test_the_folder_is_nobodys_after_a_save_without_an_append_only_file(
    start: Start,
) -> None:
    first = await start(appendonly=False)
    assert await first.ask("SAVE") == b"OK"
    second = await start(appendonly=False)
    assert await second.ask("SAVE") == b"OK"
    third = await start(appendonly=True)
    text = f"the folder '{third.folder}' is in use by another process, pid {os.getpid()}"
    assert await first.ask("SAVE") == f"ERR The data could not be saved: {text}"
    assert await first.ask("BGSAVE") == f"ERR The data could not be saved: {text}"
