"""Replies that wait for the disk, and other work while somebody has to wait: order and bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from server.net.connection import UNRELEASED
from tests.server.net.test_connection import open_connection
from tests.server.persistence.conftest import Start, start
from tests.server.persistence.rig import LONG_S
from tests.support.direct import Direct
from tests.support.held_output import held_output, hold_output
from tests.support.wire import Wire, packed

__all__ = ["start"]  # A fixture, which pytest finds here.


async def test_what_is_told_later_never_comes_first(start: Start) -> None:
    rig = await start(appendfsync="always")
    await rig.ask("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    await rig.ask("XGROUP", "CREATECONSUMER", "s", "g", "c")
    await rig.disk_rests()
    listener, writer = rig.client(), rig.client()
    await listener.ask("SUBSCRIBE", "ch")
    rig.disk.gate.clear()
    writer.send("SET k v")
    await rig.until(rig.disk.waiting.is_set)
    rig.now_ms += 10
    # The transaction changes what is only written later: when a consumer was seen.
    rig.first.send("MULTI")
    rig.first.send("XREADGROUP GROUP g c STREAMS s >")
    rig.first.send("PUBLISH ch first")
    rig.first.send("EXEC")
    await rig.until(lambda: rig.server.state.table[b"exec"].calls)
    rig.first.send("PUBLISH ch second")
    await rig.until(lambda: rig.server.state.table[b"publish"].calls == 2)
    assert not await listener.has_reply()
    rig.disk.gate.set()
    messages = [await asyncio.wait_for(listener.reply(), LONG_S) for _ in range(2)]
    assert messages == [[b"message", b"ch", b"first"], [b"message", b"ch", b"second"]]


@pytest.mark.parametrize("pipelined", [False, True])
async def test_a_client_with_many_replies_that_wait_for_the_disk_is_not_served_further(
    direct: Direct,
    pipelined: bool,
) -> None:
    length = UNRELEASED // 8
    direct.client().send("SET", "k", bytes(length))
    connection, transport = open_connection(direct)
    commit, held = hold_output(direct), held_output(direct)
    for _ in range(1 if pipelined else 100):
        connection.data_received(packed("GET k") * (100 if pipelined else 1))
    replies = 100
    taken = sum(len(data or b"") for _, data in held)
    assert UNRELEASED < taken < 2 * UNRELEASED
    assert not transport.reading
    while held:
        for owner, data in held[:]:
            del held[0]
            owner.release(data)
            await asyncio.sleep(0)
    commit.settle()
    assert transport.reading
    assert len(transport.written) == replies * (length + len(b"$%d\r\n\r\n" % length))
    transport.close()


# --- what one client gets is written at once -------------------------------------------------


class Counted(Wire):
    """A client that keeps each write apart."""

    def __init__(self, direct: Direct) -> None:
        self.writes: list[bytes] = []
        super().__init__(direct)

    def write(self, data: Any) -> None:
        """Keeps it, but for nothing."""
        self.writes.append(bytes(data))


EVENT = b"*3\r\n$7\r\nmessage\r\n$19\r\n__keyevent@0__:xadd\r\n$1\r\ns\r\n"


def with_listeners(direct: Direct) -> tuple[Counted, list[Counted]]:
    """A client that adds entries, and some that hear of it."""
    direct.client().send("CONFIG", "SET", "notify-keyspace-events", "Et")
    adding, *listening = (Counted(direct) for _ in range(4))
    for each in listening:
        each.read(packed("SUBSCRIBE __keyevent@0__:xadd"))
        each.writes.clear()
    return adding, listening


def add_entries(client: Counted, count: int, *more: str) -> bytes:
    """Sends so many XADD and other requests in a pipeline; returns the replies to XADD."""
    numbers = range(1, count + 1)
    client.read(packed(*(f"XADD s {number}-1 f v" for number in numbers), *more))
    return b"".join(b"$%d\r\n%d-1\r\n" % (len(f"{number}-1"), number) for number in numbers)


def test_events_that_wait_for_the_disk_reach_each_listener_in_one_write(direct: Direct) -> None:
    adding, listening = with_listeners(direct)
    commit = hold_output(direct)
    replies = add_entries(adding, 20)
    assert [each.writes for each in (adding, *listening)] == [[]] * 4
    commit.settle()
    assert adding.writes == [replies]
    assert [each.writes for each in listening] == [[EVENT * 20]] * 3


def test_events_that_wait_for_the_end_of_a_freeze_do_so_too(direct: Direct) -> None:
    adding, listening = with_listeners(direct)
    gate = direct.server.services.traffic.gate
    gate.freeze()
    replies = add_entries(adding, 20)
    gate.thaw()
    assert adding.writes == [replies]
    assert [each.writes for each in listening] == [[EVENT * 20]] * 3


def test_a_client_that_ends_gets_before_what_waits_for_the_disk(direct: Direct) -> None:
    adding, _ = with_listeners(direct)
    commit = hold_output(direct)
    replies = add_entries(adding, 20, "QUIT")
    assert not adding.closed
    commit.settle()
    assert adding.writes == [replies + b"+OK\r\n"]
    assert adding.closed
