"""SHUTDOWN, and a server that is told to end: everything is written first."""

from __future__ import annotations

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig
from tests.support.process import PenstockProcess

FAILED = "ERR Errors trying to SHUTDOWN. Check logs."


def is_ending(rig: Rig) -> bool:
    """Whether the server was told to end."""
    return rig.server.stopping.is_set()


async def test_a_server_that_ends_writes_everything(start: Start) -> None:
    rig = await start()
    assert await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") == b"OK"
    assert await rig.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") is None
    rig.now_ms += 500
    assert await rig.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">") is None
    rig.disk.gate.clear()
    rig.persistence.appender.cron(rig.now_ms + 5000)
    await rig.until(rig.disk.waiting.is_set)
    assert await rig.ask("SET", "k", "v") == b"OK"
    before = rig.state
    await rig.stop()
    again = await start()
    assert again.state == before


async def test_replies_that_waited_for_the_disk_go_out_before_the_end(start: Start) -> None:
    rig = await start(appendfsync="always")
    rig.disk.gate.clear()
    rig.first.send("SET k v")
    await rig.until(rig.disk.waiting.is_set)
    rig.disk.gate.set()
    await rig.server.stop()
    assert [await rig.first.reply(), await rig.first.reply()] == [b"OK", "closed"]


@pytest.mark.parametrize("appendonly", [True, False])
async def test_save_makes_a_base_first(start: Start, appendonly: bool) -> None:
    rig = await start(appendonly=appendonly)
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.first.send("SHUTDOWN SAVE")
    await rig.until(lambda: is_ending(rig))
    await rig.stop()
    assert rig.commands("2.base.aof") == ["SELECT 0", "SET k v"]


@pytest.mark.parametrize("words", [[], ["NOSAVE"], ["NOW"]])
async def test_without_save_nothing_is_made_that_was_not_there(
    start: Start, words: list[str]
) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.first.send(("SHUTDOWN", *words))
    await rig.until(lambda: is_ending(rig))
    await rig.stop()
    assert rig.files == []


async def test_a_base_that_cannot_be_made_prevents_the_end(start: Start) -> None:
    rig = await start()
    rig.disk.refused.add("rename .base.aof")
    assert await rig.ask("SHUTDOWN", "SAVE") == FAILED
    assert not is_ending(rig)
    assert rig.log[-1] == "SHUTDOWN: the data could not be saved: No space left on device"
    assert await rig.ask("SET", "k", "v") == b"OK"


async def test_what_cannot_be_written_prevents_the_end(start: Start) -> None:
    rig = await start()
    rig.disk.refused.add("write .incr.aof")
    assert await rig.ask("SET", "k", "v") == "closed"
    rig.first = rig.client()
    assert await rig.ask("SHUTDOWN") == FAILED
    assert not is_ending(rig)


@pytest.mark.parametrize("words", [["NOSAVE"], ["FORCE"], ["SAVE", "FORCE"]])
async def test_those_who_insist_end_the_server_all_the_same(start: Start, words: list[str]) -> None:
    rig = await start()
    rig.disk.refused.add("write .incr.aof")
    assert await rig.ask("SET", "k", "v") == "closed"
    rig.first = rig.client()
    rig.first.send(("SHUTDOWN", *words))
    await rig.until(lambda: is_ending(rig))


async def test_a_first_base_that_is_not_there_yet_is_made(start: Start) -> None:
    rig = await start(appendonly=False)
    assert await rig.ask("SET", "k", "v") == b"OK"
    assert await rig.ask("CONFIG", "SET", "appendonly", "yes") == b"OK"
    rig.first.send("SHUTDOWN")
    await rig.until(lambda: is_ending(rig))
    assert not rig.server.services.commit.provisional


def test_a_real_process_keeps_its_data_over_sigterm(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("data")
    options = ("--port", "0", "--dir", str(folder), "--appendonly", "yes")
    with PenstockProcess(*options) as first:
        assert first.ask(b"SET k v\r\nXADD s 1-1 f v\r\n").startswith(b"+OK\r\n")
        assert first.stop() == 0
    with PenstockProcess(*options) as second:
        assert second.ask(b"GET k\r\n") == b"$1\r\nv\r\n"
        assert second.stop() == 0
