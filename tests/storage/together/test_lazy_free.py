"""Dropped entries are freed little by little, unless they are few."""

from __future__ import annotations

from itertools import count

import pytest

from server.runtime.memory import FREEING_NS, PORTION
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.limits import FEW, StreamLimits
from storage.engine.log import EntryLog
from storage.engine.pending_segments import SEGMENT
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from tests.support.direct import Direct

LONG = 2 * (FEW + 5)


def filled(limits: StreamLimits, entries: int) -> EntryLog:
    """A log with two entries in each block."""
    limits.max_entries = 2
    log = EntryLog(limits)
    for ms in range(1, entries + 1):
        log.append(ids.join(ms, 0), [b"a", b"b"])
    return log


def test_many_trimmed_blocks_wait_for_their_turn() -> None:
    limits = StreamLimits()
    log = filled(limits, LONG)
    log.trim_to_length(1)
    assert len(limits.disposal) == FEW + 4
    assert list(log) == [ids.join(LONG, 0)]


def test_what_was_kept_is_counted_when_it_is_freed() -> None:
    limits = StreamLimits()
    log = filled(limits, LONG)
    log.trim_to_length(1)
    limits.disposal.free(100)
    assert (limits.disposal.freed, len(limits.disposal)) == (100, FEW - 96)
    limits.disposal.free(10 * FEW)
    assert (limits.disposal.freed, len(limits.disposal)) == (FEW + 4, 0)


def test_info_tells_what_is_freed_and_what_waits_for_it() -> None:
    direct = Direct()
    client = direct.client()
    direct.server.state.keyspace.limits.disposal.take(filled(StreamLimits(), LONG).blocks)

    def shown() -> list[str]:
        reply = client.send("INFO", "memory") or b""
        return [line for line in reply.decode().split() if line.startswith("lazyfree")]

    assert shown() == [f"lazyfree_pending_objects:{FEW + 5}", "lazyfreed_objects:0"]
    direct.cron()
    assert shown() == ["lazyfree_pending_objects:0", f"lazyfreed_objects:{FEW + 5}"]
    assert client.send("CONFIG", "RESETSTAT") == b"+OK\r\n"
    assert shown() == ["lazyfree_pending_objects:0", "lazyfreed_objects:0"]


def test_few_trimmed_blocks_are_freed_at_once() -> None:
    limits = StreamLimits()
    log = filled(limits, LONG)
    log.trim_to_length(LONG - 2 * FEW)
    assert len(limits.disposal) == 0


@pytest.mark.parametrize("event", ["delete", "flush"])
def test_the_blocks_of_a_removed_stream_wait_for_their_turn(event: str) -> None:
    keyspace = Keyspace()
    database = keyspace.databases[0]
    stream = Stream(keyspace.limits)
    stream.log = filled(keyspace.limits, LONG)
    database.attach(b"k", stream)
    del stream
    database.delete(b"k") if event == "delete" else database.flush()
    keyspace.effects.clear()
    assert len(keyspace.limits.disposal) == FEW + 5


def test_a_renamed_stream_keeps_its_blocks() -> None:
    keyspace = Keyspace()
    database = keyspace.databases[0]
    stream = Stream(keyspace.limits)
    stream.log = filled(keyspace.limits, LONG)
    database.attach(b"k", stream)
    database.rename(b"k", b"q")
    assert len(keyspace.limits.disposal) == 0
    assert stream.log.length == LONG


def with_many_pending(keyspace: Keyspace, members: int) -> Stream:
    """A stream with a group whose members have as many entries each as fill a piece."""
    stream = Stream(keyspace.limits)
    group = stream.groups[b"g"] = Group(b"g", 0, 0)
    for member in range(members):
        consumer = group.add_consumer(b"%d" % member, 0)
        first = member * SEGMENT
        group.pending.append_run(range(first, first + SEGMENT), consumer, 0)
    return stream


def test_the_pending_entries_of_a_destroyed_group_wait_for_their_turn() -> None:
    keyspace = Keyspace()
    stream = with_many_pending(keyspace, FEW + 1)
    assert stream.drop_group(b"g")
    assert not stream.drop_group(b"g")
    assert len(keyspace.limits.disposal) == FEW + 1
    keyspace.limits.disposal.free(FEW + 1)
    assert len(keyspace.limits.disposal) == 0


def test_so_do_those_of_a_removed_stream() -> None:
    keyspace = Keyspace()
    stream = with_many_pending(keyspace, FEW + 1)
    keyspace.databases[0].attach(b"k", stream)
    del stream
    keyspace.databases[0].delete(b"k")
    assert len(keyspace.limits.disposal) == FEW + 1


def test_few_pending_entries_are_freed_at_once() -> None:
    keyspace = Keyspace()
    assert with_many_pending(keyspace, FEW - 1).drop_group(b"g")
    assert len(keyspace.limits.disposal) == 0


def test_memory_is_freed_in_portions() -> None:
    limits = StreamLimits()
    filled(limits, LONG).trim_to_length(0)
    limits.disposal.free(FEW)
    assert len(limits.disposal) == 5
    limits.disposal.free(FEW)
    assert len(limits.disposal) == 0


@pytest.mark.parametrize("event", ["delete", "flush"])
def test_many_keys_are_freed_in_portions(event: str) -> None:
    keyspace = Keyspace()
    database, disposal = keyspace.databases[0], keyspace.limits.disposal
    keys = [b"%d" % number for number in range(2 * FEW)]
    for key in keys:
        database.attach(key, with_many_pending(keyspace, 2))
    database.delete_all(keys) if event == "delete" else database.flush()
    keyspace.effects.clear()
    assert database.values == {}
    assert len(disposal) >= 2 * FEW
    waiting = len(disposal)
    disposal.free(FEW)
    assert len(disposal) == waiting - FEW
    assert disposal.freed == FEW
    for _ in range(10):
        disposal.free(FEW)
    assert len(disposal) == 0


def test_what_a_freed_key_leaves_behind_is_freed_too() -> None:
    keyspace = Keyspace()
    database, disposal = keyspace.databases[0], keyspace.limits.disposal
    for number in range(FEW + 1):
        database.attach(b"%d" % number, with_many_pending(keyspace, FEW + 1 if number == 7 else 1))
    database.flush()
    keyspace.effects.clear()
    waiting = len(disposal)
    for _ in range(10):
        disposal.free(FEW)
    assert len(disposal) == 0
    assert disposal.freed >= waiting


def test_info_tells_how_much_is_still_to_be_freed_and_how_much_has_been() -> None:
    direct = Direct()
    client = direct.client()
    client.send("MSET", *(word for number in range(FEW + 1) for word in (number, "v")))
    client.send("UNLINK", *range(FEW + 1))
    before = client.send("INFO", "memory")
    direct.cron()
    after = client.send("INFO", "memory")
    assert before is not None and after is not None  # noqa: PT018
    objects = 2 * (FEW + 1)  # What the keys held, and when they were used.
    assert b"lazyfree_pending_objects:%d\r\nlazyfreed_objects:0" % objects in before
    assert b"lazyfree_pending_objects:0\r\nlazyfreed_objects:%d" % objects in after


async def test_no_round_takes_long() -> None:
    direct = Direct()
    client = direct.client()
    client.send("MSET", *(word for number in range(1000) for word in (number, "v")))
    clock = count(0, FREEING_NS // 2)
    direct.server.services.cron.freeing.nanoseconds = lambda: next(clock)
    client.send("UNLINK", *range(1000))
    disposal = direct.server.state.keyspace.limits.disposal
    direct.cron()  # The event loop, which would begin the next round, does not run before the end.
    assert len(disposal) == 2 * 1000 - PORTION
    direct.server.services.cron.freeing.rounds.stop()


def test_the_server_frees_a_portion_a_round() -> None:
    direct = Direct(stream_node_max_entries=1)
    client = direct.client()
    for _ in range(FEW + 1):
        client.send("XADD", "k", "*", "a", "b")
    client.send("DEL", "k")
    assert len(direct.server.state.keyspace.limits.disposal) == FEW + 1
    direct.cron()
    assert len(direct.server.state.keyspace.limits.disposal) == 0
