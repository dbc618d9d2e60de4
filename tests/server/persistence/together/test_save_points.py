"""Save points: when the server saves by itself, and what happens if it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig

SAVING: Final[dict[str, Any]] = {"appendonly": False, "dbfilename": "dump.rdb", "save": "60 2 10 3"}

MISCONF: Final = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to"


async def saves(rig: Rig, milliseconds: int) -> int:
    """How often the server has saved when so much time has passed."""
    rig.cron(milliseconds)
    await rig.rewritten()
    return rig.persistence.rewriting.count


async def test_the_server_saves_when_time_has_passed_and_enough_has_changed(
    start: Start, tmp_path: Path
) -> None:
    rig = await start(**SAVING)
    await rig.ask("SET", "k", 1)
    assert await saves(rig, 120_000) == 0
    await rig.ask("SET", "k", 2)
    assert await saves(rig, 0) == 1
    await rig.ask("MSET", "a", 1, "b", 2, "c", 3)
    assert await saves(rig, 9_999) == 1
    assert await saves(rig, 1) == 2
    assert await saves(rig, 120_000) == 2
    assert (tmp_path / "dump.rdb").read_bytes().startswith(b"REDIS0010")
    assert (await rig.info())["rdb_changes_since_last_save"] == "0"


async def test_the_data_is_there_after_a_kill(start: Start) -> None:
    rig = await start(**SAVING)
    await rig.ask("MSET", "a", 1, "b", 2)
    assert await saves(rig, 60_000) == 1
    await rig.ask("SET", "c", 3)
    rig.persistence.saves_at_end = False
    await rig.stop()
    again = await start(**SAVING)
    assert sorted(await again.ask("KEYS", "*")) == [b"a", b"b"]


async def test_the_end_saves_what_has_changed_since_the_last_save_point(start: Start) -> None:
    rig = await start(**SAVING)
    await rig.ask("SET", "k", "v")
    await rig.stop()
    again = await start(**SAVING)
    assert await again.ask("GET", "k") == b"v"
    await again.stop()
    assert again.persistence.rewriting.count == 0


@pytest.mark.parametrize(
    ("words", "keys"), [(["NOSAVE"], []), ([], [b"k"]), (["NOW", "FORCE"], [b"k"])]
)
async def test_shutdown_saves_unless_it_is_told_not_to(
    start: Start, words: list[str], keys: list[bytes]
) -> None:
    rig = await start(**SAVING)
    await rig.ask("SET", "k", "v")
    assert await rig.ask("SHUTDOWN", *words) == "closed"
    await rig.stop()
    again = await start(**SAVING)
    assert await again.ask("KEYS", "*") == keys


@pytest.mark.parametrize("missing", ["dbfilename", "save"])
async def test_there_is_no_save_point_without_a_file_or_a_time(start: Start, missing: str) -> None:
    rig = await start(**{name: value for name, value in SAVING.items() if name != missing})
    await rig.ask("MSET", "a", 1, "b", 2, "c", 3)
    assert await saves(rig, 120_000) == 0
    await rig.stop()
    assert rig.persistence.rewriting.count == 0


async def test_commands_that_write_are_refused_after_a_save_that_failed(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "temp-dump.rdb").mkdir()
    rig = await start(**SAVING)
    await rig.ask("MSET", "a", 1, "b", 2)
    assert await saves(rig, 60_000) == 0
    for refused in (("SET", "a", 3), ("XADD", "s", "*", "f", "v"), ("PING",)):
        assert (await rig.ask(*refused)).startswith(MISCONF)
    script = ("EVAL", "return redis.pcall('SET', KEYS[1], 1)", 1, "a")
    assert MISCONF in await rig.ask(*script)
    assert await rig.ask("GET", "a") == b"1"
    assert (await rig.info())["rdb_last_bgsave_status"] == "err"
    (tmp_path / "temp-dump.rdb").rmdir()
    assert await saves(rig, 4_999) == 0
    assert await saves(rig, 1) == 1
    assert await rig.ask("SET", "a", 3) == b"OK"


@pytest.mark.parametrize(
    "settings", [("stop-writes-on-bgsave-error", "no"), ("save", ""), ("save", "", "hz", "20")]
)
async def test_they_are_taken_again_where_nobody_asks_for_more(
    start: Start, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    (tmp_path / "temp-dump.rdb").mkdir()
    rig = await start(**SAVING)
    await rig.ask("MSET", "a", 1, "b", 2)
    await saves(rig, 60_000)
    assert await rig.ask("CONFIG", "SET", *settings) == b"OK"
    assert await rig.ask("SET", "a", 3) == b"OK"
    (tmp_path / "temp-dump.rdb").rmdir()


async def test_shutdown_is_refused_where_the_save_at_the_end_fails(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "temp-dump.rdb").mkdir()
    rig = await start(**SAVING)
    await rig.ask("SET", "k", "v")
    assert await rig.ask("SHUTDOWN") == "ERR Errors trying to SHUTDOWN. Check logs."
    await rig.stop()
    assert any(line.startswith("The last changes are not saved: ") for line in rig.log)
