"""Readers that wait: who is woken by what, who comes first, and when waiting ends.

Redis 8.0.6 behaved the same in every case.
"""

from __future__ import annotations

import asyncio

import pytest

from protocol.replies import OK, Reply
from server.clients.blocking import BlockedClients
from server.core.outcomes import Wait
from server.state.session import Waiter
from storage.engine.stream import Stream
from tests.support.direct import Direct, DirectClient, reply_of

WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
NO_GROUP = b"-NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option\r\n"


@pytest.fixture
def writer(direct: Direct) -> DirectClient:
    client = direct.client()
    client.send("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    return client


def say(client: DirectClient, requests: str) -> None:
    for request in requests.split(";"):
        reply = client.send(*request.split())
        assert reply is not None
        assert not reply.startswith(b"-"), reply


def read(direct: Direct, *keys: str, block: int = 0) -> DirectClient:
    """A client that waits in XREAD."""
    client = direct.client()
    assert client.send("XREAD", "BLOCK", block, "STREAMS", *keys, *"$" * len(keys)) is None
    return client


def read_group(direct: Direct, *options: str | int, consumer: str = "c") -> DirectClient:
    """A client that waits in XREADGROUP on the key ``k``."""
    client = direct.client()
    request = ["GROUP", "g", consumer, *(options or ("BLOCK", 0)), "STREAMS", "k", ">"]
    assert client.send("XREADGROUP", *request) is None
    return client


def entries(*ids: str, key: str = "k") -> bytes:
    """The reply that brings these entries, each with the field a and the value b."""
    body = "".join(f"*2\r\n${len(one)}\r\n{one}\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n" for one in ids)
    return f"*1\r\n*2\r\n${len(key)}\r\n{key}\r\n*{len(ids)}\r\n{body}".encode()


def nothing_is_left(blocking: BlockedClients) -> bool:
    return not blocking.waiters and not blocking.waiting and not len(blocking._deadlines)


# --- waking ----------------------------------------------------------------------------------


def test_an_added_entry_wakes_every_reader(direct: Direct, writer: DirectClient) -> None:
    one, two = read(direct, "k"), read(direct, "k")
    say(writer, "XADD k 1-1 a b")
    assert one.reply_when_woken == two.reply_when_woken == entries("1-1")
    assert nothing_is_left(direct.server.services.blocking)


def test_several_keys_made_ready_at_once_are_all_in_the_reply(
    direct: Direct, writer: DirectClient
) -> None:
    reader = read(direct, "x", "y", "z")
    say(writer, "MULTI;XADD z 1-1 a b;XADD y 1-1 a b;EXEC")
    assert reader.reply_when_woken == (
        b"*2\r\n" + entries("1-1", key="y")[4:] + entries("1-1", key="z")[4:]
    )
    assert nothing_is_left(direct.server.services.blocking)


def test_the_same_key_twice_is_waited_for_once(direct: Direct, writer: DirectClient) -> None:
    reader = read(direct, "k", "k")
    assert len(direct.server.services.blocking.waiting) == 1
    say(writer, "XADD k 1-1 a b")
    assert reader.reply_when_woken == b"*2\r\n" + entries("1-1")[4:] * 2


@pytest.mark.parametrize(
    "change",
    [
        "XGROUP CREATE k h 0",
        "XGROUP SETID k g 0",
        "XSETID k 9-9",
        "XGROUP CREATECONSUMER k g z",
        "XGROUP DELCONSUMER k g c",
        "EXPIRE k 100",
        "COPY k other",
        "XTRIM k MAXLEN 0",
    ],
)
def test_other_changes_wake_nobody(direct: Direct, writer: DirectClient, change: str) -> None:
    plain, grouped = read(direct, "k"), read_group(direct)
    say(writer, change)
    assert plain.parked
    assert grouped.parked


@pytest.mark.parametrize(
    "change",
    [
        "DEL k", "UNLINK k", "FLUSHDB", "FLUSHALL", "RENAME k l", "MOVE k 1", "SWAPDB 0 1",
        "SWAPDB 1 0", "XGROUP DESTROY k g", "EXPIRE k -1", "XADD l 1-1 a b;RENAME l k",
    ],
)  # fmt: skip
def test_a_reader_of_a_group_is_told_when_the_group_is_gone(
    direct: Direct, writer: DirectClient, change: str
) -> None:
    readers = [read_group(direct), read_group(direct, consumer="d")]
    say(writer, change)
    assert [reader.reply_when_woken for reader in readers] == [NO_GROUP, NO_GROUP]
    assert nothing_is_left(direct.server.services.blocking)


def test_a_reader_of_a_group_is_told_when_the_key_is_no_stream_any_more(
    direct: Direct, writer: DirectClient
) -> None:
    reader = read_group(direct)
    say(writer, "SET k v")
    assert reader.reply_when_woken == WRONG_TYPE


def test_a_reader_of_a_group_is_told_when_its_key_expires(
    direct: Direct, writer: DirectClient
) -> None:
    reader = read_group(direct)
    say(writer, "PEXPIRE k 50")
    direct.now_ms += 50
    direct.cron()
    assert reader.reply_when_woken == NO_GROUP


def test_a_wait_that_ends_in_an_error_counts_as_one_failed_call(
    direct: Direct, writer: DirectClient
) -> None:
    command = direct.server.state.table[b"xreadgroup"]
    calls, failed = command.calls, command.failed
    read_group(direct)
    assert command.calls == calls
    say(writer, "DEL k")
    assert (command.calls - calls, command.failed - failed) == (1, 1)
    assert direct.server.state.stats.errors["NOGROUP"] == 1


# --- time ------------------------------------------------------------------------------------


def test_a_wait_ends_with_a_null_at_its_deadline(direct: Direct) -> None:
    old = read(direct, "k", block=100)
    new = direct.client(resp3=True)
    assert new.send("XREAD", "BLOCK", 100, "STREAMS", "k", "$") is None
    direct.advance(99)
    assert old.parked
    direct.advance(1)
    assert old.reply_when_woken == b"*-1\r\n"
    assert new.reply_when_woken == b"_\r\n"
    assert nothing_is_left(direct.server.services.blocking)


def test_deadlines_end_in_their_order(direct: Direct) -> None:
    late, early = read(direct, "k", block=200), read(direct, "k", block=100)
    forever = read(direct, "k")
    direct.advance(150)
    assert late.parked
    assert not early.parked
    direct.advance(10**9)
    assert not late.parked
    assert forever.parked


def test_the_deadline_of_a_wait_that_is_over_ends_no_other(
    direct: Direct, writer: DirectClient
) -> None:
    served, other = read(direct, "k", block=100), read(direct, "x", block=200)
    say(writer, "XADD k 1-1 a b")
    assert not served.parked
    again = read(direct, "k", block=100)
    direct.advance(99)
    assert again.parked
    direct.advance(1)
    assert again.reply_when_woken == b"*-1\r\n"
    assert other.parked


def test_a_reader_that_found_nothing_keeps_its_first_deadline(
    direct: Direct, writer: DirectClient
) -> None:
    readers = [read(direct, "k", block=400), read_group(direct, "BLOCK", 400)]
    direct.advance(200)
    say(writer, "XADD k MAXLEN 0 1-1 a b")
    direct.advance(199)
    assert all(reader.parked for reader in readers)
    direct.advance(1)
    assert [reader.reply_when_woken for reader in readers] == [b"*-1\r\n", b"*-1\r\n"]


def test_timers_of_waits_that_ended_early_do_not_pile_up(
    direct: Direct, writer: DirectClient
) -> None:
    stays = read(direct, "other")
    for number in range(1, 1000):
        reader = read(direct, "k", block=10**6)
        say(writer, f"XADD k {number}-1 a b")
        assert not reader.parked
    assert len(direct.server.services.blocking._deadlines) < 100
    assert stays.parked


async def test_the_loop_ends_a_wait_by_itself(direct: Direct) -> None:
    timekeeper, clock = direct.server.state.timekeeper, direct.server.state.clock
    loop = asyncio.get_running_loop()
    begun = loop.time()
    timekeeper.read = lambda: clock() + round((loop.time() - begun) * 1000)
    later, sooner = read(direct, "k", block=20), read(direct, "k", block=5)
    sooner_waits, later_waits = sooner.session.waiter, later.session.waiter
    assert sooner_waits is not None
    assert later_waits is not None
    assert await reply_of(sooner_waits) == b"*-1\r\n"
    assert await reply_of(later_waits) == b"*-1\r\n"
    assert nothing_is_left(direct.server.services.blocking)


# --- order -----------------------------------------------------------------------------------


def test_a_reader_that_found_nothing_goes_to_the_end_of_the_line(
    direct: Direct, writer: DirectClient
) -> None:
    say(writer, "XGROUP CREATE k2 g $ MKSTREAM")
    picky = direct.client()
    request = "XREADGROUP GROUP g c BLOCK 0 STREAMS k k2 > >"
    assert picky.send(*request.split()) is None
    say(writer, "MULTI;XADD k2 1-1 a b;XDEL k2 1-1;EXEC")
    second = read_group(direct, consumer="d")
    say(writer, "MULTI;XADD k2 2-1 a b;XDEL k2 2-1;EXEC")
    say(writer, "XADD k 1-1 a b")
    assert second.reply_when_woken == entries("1-1")
    assert picky.parked


def test_two_thousand_waiting_readers_keep_their_order(
    direct: Direct, writer: DirectClient
) -> None:
    readers = [read_group(direct, consumer=f"c{number}") for number in range(2000)]
    for number in range(1, 4):
        say(writer, f"XADD k {number}-1 a b")
    for number, reader in enumerate(readers[:3], 1):
        assert reader.reply_when_woken == entries(f"{number}-1")
    assert all(reader.parked for reader in readers[3:])


# --- leaving ---------------------------------------------------------------------------------


def test_a_client_that_goes_while_it_waits_leaves_nothing_behind(
    direct: Direct, writer: DirectClient
) -> None:
    reader = read_group(direct, "BLOCK", 5000)
    waiter = reader.session.waiter
    assert waiter is not None
    reader.disconnect()
    assert waiter.result is None
    assert nothing_is_left(direct.server.services.blocking)
    assert not direct.server.services.blocking._deadlines.is_armed
    say(writer, "XADD k 1-1 a b")
    assert writer.send("XPENDING", "k", "g") == b"*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"


# --- commands that ask to be run again at a time ---------------------------------------------


class Patience:
    """A command that waits until it has been run a number of times, every 10 ms."""

    def __init__(self, direct: Direct, runs: int, *, overdue: bool = False) -> None:
        self._direct = direct
        self._overdue = overdue
        self.runs = runs

    def __call__(self) -> Reply | Wait:
        self.runs -= 1
        if not self.runs:
            return OK
        wake_at = 0 if self._overdue else self._direct.now_ms + 10
        return Wait([(0, b"k")], None, self, kind=None, wake_at=wake_at)


def park(direct: Direct, client: DirectClient, patience: Patience) -> Waiter:
    wait = patience()
    assert isinstance(wait, Wait)
    command = direct.server.state.table[b"xread"]
    direct.server.services.blocking.park(client.session, command, [b"XREAD"], wait, 0)
    assert client.session.waiter is not None
    return client.session.waiter


async def test_a_command_is_run_again_at_the_time_it_asked_for(direct: Direct) -> None:
    patience = Patience(direct, runs=3)
    waiter = park(direct, direct.client(), patience)
    direct.advance(9)
    assert patience.runs == 2
    direct.advance(1)
    assert patience.runs == 1
    direct.advance(10)
    assert waiter.result == [OK]
    assert nothing_is_left(direct.server.services.blocking)


async def test_a_command_that_asks_for_a_past_time_is_run_once_a_millisecond(
    direct: Direct,
) -> None:
    patience = Patience(direct, runs=4, overdue=True)
    waiter = park(direct, direct.client(), patience)
    direct.advance(0)
    assert patience.runs == 3
    direct.advance(1)
    assert patience.runs == 2
    direct.advance(1)
    direct.advance(1)
    assert waiter.result == [OK]


def test_a_deadline_in_the_reply_of_a_later_run_counts_for_nothing(direct: Direct) -> None:
    reader = read(direct, "k", block=100)
    waiter = reader.session.waiter
    assert waiter is not None
    direct.now_ms += 50
    waiter.wait = Wait([(0, b"k")], direct.now_ms + 100, waiter.wait.retry, kind=Stream)
    direct.advance(50)
    assert reader.reply_when_woken == b"*-1\r\n"
