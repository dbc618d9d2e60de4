"""Commands in steps: who is answered meanwhile, and what the reply tells of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import pytest

from server.commands.streams.entries import MANY as MANY_ENTRIES
from server.core.outcomes import AT_ONCE, LONG, PIECE, Steps, Work
from server.core.table import Arguments
from server.dispatch.stepped import TURN_NS
from server.net.admission import farewell
from server.state.session import Session
from storage.engine.stream import Stream
from tests.support.direct import Direct, DirectClient, parsed, reply_of

MANY = 3000


def one_step_a_turn(direct: Direct) -> None:
    """From now on a turn is over after one step."""
    clock = count(0, TURN_NS)
    direct.server.services.stepped.nanoseconds = lambda: next(clock)


@pytest.fixture
def direct() -> Direct:
    direct = Direct()
    client = direct.client()
    client.send("MSET", *(word for number in range(MANY) for word in (f"key:{number}", "v")))
    one_step_a_turn(direct)
    return direct


def finish(direct: Direct) -> int:
    """Ends all work; returns in how many turns."""
    turns = 0
    while len(direct.server.services.stepped):
        direct.server.services.stepped.turn()
        turns += 1
    return turns


def keys_in(reply: bytes | None) -> list[bytes]:
    assert reply is not None
    lines = reply.split(b"\r\n")
    assert lines[0] == b"*%d" % ((len(lines) - 2) // 2)
    return sorted(lines[2::2])


ALL = sorted(b"key:%d" % number for number in range(MANY))


def test_others_are_answered_between_the_steps_of_a_command(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    assert client.send("KEYS", "*") is None
    assert client.parked
    assert other.send("PING") == b"+PONG\r\n"
    finish(direct)
    assert keys_in(client.reply_when_woken) == ALL
    assert not client.parked


def test_a_command_that_takes_a_moment_is_answered_at_once(direct: Direct) -> None:
    direct.server.services.stepped.nanoseconds = lambda: 0
    assert keys_in(direct.client().send("KEYS", "*")) == ALL


def test_keys_are_those_there_were_when_the_command_began(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    assert client.send("KEYS", "key:*") is None
    other.send("SET", "key:new", "v")
    other.send("DEL", *ALL[:2000])
    other.send("RENAME", "key:999", "renamed")
    other.send("FLUSHALL")
    finish(direct)
    assert keys_in(client.reply_when_woken) == ALL


def test_a_key_that_had_expired_is_none_of_them(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    other.send("PEXPIRE", "key:7", "10")
    other.send("PEXPIRE", "key:8", "11")
    direct.now_ms += 10
    assert client.send("KEYS", "*") is None
    direct.now_ms += 1
    other.send("GET", "key:7")
    other.send("GET", "key:8")
    finish(direct)
    assert keys_in(client.reply_when_woken) == [key for key in ALL if key != b"key:7"]


def test_a_client_that_is_worked_for_is_not_blocked(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    assert client.send("KEYS", "*") is None
    info = other.send("INFO", "clients")
    assert info is not None
    assert b"blocked_clients:0\r\n" in info
    assert other.send("CLIENT", "UNBLOCK", str(client.session.id)) == b":0\r\n"
    listed = other.send("CLIENT", "LIST", "ID", str(client.session.id))
    assert listed is not None
    assert b" flags=N " in listed
    assert b" cmd=keys " in listed


def test_several_clients_take_turns(direct: Direct) -> None:
    clients = [direct.client() for _ in range(3)]
    for client in clients:
        assert client.send("KEYS", "*") is None
    ends: list[int] = []
    for turn in count():
        if not len(direct.server.services.stepped):
            break
        direct.server.services.stepped.turn()
        ends += [turn for client in clients if not client.parked and len(ends) < 3]
    assert ends[-1] - ends[0] < 3 * 3
    assert all(keys_in(client.reply_when_woken) == ALL for client in clients)


def test_a_client_that_is_gone_ends_its_work(direct: Direct, client: DirectClient) -> None:
    assert client.send("KEYS", "*") is None
    farewell(direct.server.services, client.session)
    assert len(direct.server.services.stepped) == 0
    assert client.session.parked is None
    direct.server.services.stepped.turn()


def test_the_end_of_the_server_ends_all_work(direct: Direct, client: DirectClient) -> None:
    assert client.send("KEYS", "*") is None
    direct.server.services.stepped.close()
    assert len(direct.server.services.stepped) == 0


def test_in_a_transaction_all_steps_are_taken_at_once(client: DirectClient) -> None:
    for request in ("MULTI", "KEYS *", "SET key:1 w", "SCAN 0 COUNT 5000"):
        client.send(*request.split())
    reply = client.send("EXEC")
    assert reply is not None
    assert reply.startswith(b"*3\r\n*3000\r\n$")
    assert b"+OK\r\n*2\r\n$1\r\n0\r\n*3000\r\n" in reply


def test_in_a_script_all_steps_are_taken_at_once(direct: Direct) -> None:
    assert direct.client().send("EVAL", "return #redis.call('keys', '*')", "0") == b":3000\r\n"


def test_a_command_in_steps_counts_once(direct: Direct, client: DirectClient) -> None:
    client.send("CONFIG", "RESETSTAT")
    client.send("KEYS", "*")
    finish(direct)
    command = direct.server.state.table[b"keys"]
    assert (command.calls, command.failed, command.nanoseconds > TURN_NS) == (1, 0, True)


def scanned(reply: bytes | None) -> tuple[int, list[bytes]]:
    assert reply is not None
    head, _, keys = reply.partition(b"\r\n*")
    return int(head.split()[2]), keys_in(b"*" + keys)


def test_a_scan_with_a_high_count_gives_way_too(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    assert client.send("SCAN", "0", "COUNT", "5000") is None
    assert other.send("SET", "key:1", "w") == b"+OK\r\n"
    finish(direct)
    assert scanned(client.reply_when_woken) == (0, ALL)


def test_a_scan_tells_of_the_keys_that_it_finds_expired(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    other.send("CONFIG", "SET", "notify-keyspace-events", "Ex")
    other.send("PEXPIRE", "key:5", "10")
    listener = direct.client()
    listener.send("SUBSCRIBE", "__keyevent@0__:expired")
    direct.now_ms += 10
    assert client.send("SCAN", "0", "COUNT", "5000") is None
    finish(direct)
    assert scanned(client.reply_when_woken) == (0, [key for key in ALL if key != b"key:5"])
    assert b"key:5" in listener.take_pushed()
    assert direct.server.state.keyspace.effects == []


def failing(server: object, session: Session, args: Arguments) -> Steps:
    def work() -> Work:
        yield
        yield
        raise ZeroDivisionError

    return Steps(work())


def test_a_defect_in_a_step_closes_the_connection(
    direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: DirectClient = direct.client()
    monkeypatch.setattr(direct.server.state.table[b"keys"], "handler", failing)
    assert client.send("KEYS", "*") is None
    with pytest.raises(ZeroDivisionError):
        finish(direct)
    assert client.closed


def test_a_long_reply_is_joined_in_steps_too(
    direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(server: object, session: Session, args: Arguments) -> Steps:
        def work() -> Work:
            yield
            return [b"x" * (PIECE // 2)] * 20

        return Steps(work())

    client = direct.client()
    monkeypatch.setattr(direct.server.state.table[b"keys"], "handler", written)
    assert client.send("KEYS", "*") is None
    assert finish(direct) == 10
    assert client.reply_when_woken == b"x" * 10 * PIECE


async def test_the_loop_does_the_work_by_itself(client: DirectClient) -> None:
    assert client.send("KEYS", "*") is None
    assert client.session.parked is not None
    assert keys_in(await reply_of(client.session.parked)) == ALL


# --- XINFO STREAM FULL -----------------------------------------------------------------------


def full(direct: Direct, client: DirectClient, *change: str) -> bytes | None:
    """The full form of ``s``; while it is written the requests are sent by another client."""
    other = direct.client()
    direct.server.services.stepped.nanoseconds = (lambda: 0) if not change else _stepping()
    reply = client.send("XINFO", "STREAM", "s", "FULL", "COUNT", "0")
    if not change:
        return reply
    assert reply is None
    for request in change:
        other.send(*request.split())
    finish(direct)
    return client.reply_when_woken


def _stepping() -> Callable[[], int]:
    clock = count(0, TURN_NS)
    return lambda: next(clock)


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_the_full_form_of_a_stream_is_that_of_the_moment_it_was_asked_for(
    resp3: bool, packed: bool
) -> None:
    direct = Direct()
    client, writer = direct.client(resp3), direct.client()
    for number in range(1, 1501):
        writer.send("XADD", "s", f"{number}-1", "f", f"value {number}")
    writer.send("XGROUP", "CREATE", "s", "g", "0")
    writer.send("XGROUP", "CREATE", "s", "h", "0")
    for consumer in ("a", "b", "a"):
        writer.send(*("XREADGROUP", "GROUP", "g", consumer, "COUNT", "400", "STREAMS", "s", ">"))
    if packed:
        for _ in range(3):
            direct.server.state.keyspace.limits.packer.round(direct.now_ms)
        for block in direct.server.state.keyspace.databases[0].stream(b"s").log.blocks[::2]:  # type: ignore[union-attr]
            if block.packed is not None:
                block.packed.squeeze()
    expected = full(direct, client)
    assert expected is not None
    changes = (
        "XDEL s 3-1 1400-1",
        "XACK s g 5-1 6-1",
        "XADD s 2000-1 f v",
        "XGROUP DELCONSUMER s g b",
        "XGROUP DESTROY s h",
        "XTRIM s MAXLEN 10",
        "DEL s",
    )
    assert full(direct, client, *changes) == expected


@pytest.mark.parametrize("shown", [1, 3, 7, 100])
def test_each_consumer_shows_as_many_pending_entries_as_its_group(shown: int) -> None:
    direct = Direct()
    client = direct.client()
    for number in range(1, 11):
        client.send("XADD", "s", f"{number}-1", "f", "v")
    client.send("XGROUP", "CREATE", "s", "g", "0")
    for consumer, size in (("a", 4), ("b", 6)):
        client.send(
            *("XREADGROUP", "GROUP", "g", consumer, "COUNT", str(size), "STREAMS", "s", ">")
        )
    reply = client.send("XINFO", "STREAM", "s", "FULL", "COUNT", str(shown))
    assert reply is not None
    assert b"$7\r\npending\r\n*%d\r\n*4\r\n$3\r\n1-1\r\n$1\r\na\r\n" % min(shown, 10) in reply
    assert b"$7\r\npending\r\n*%d\r\n*3\r\n$3\r\n1-1\r\n" % min(shown, 4) in reply
    assert b"$7\r\npending\r\n*%d\r\n*3\r\n$3\r\n5-1\r\n" % min(shown, 6) in reply
    assert reply.count(b"*3\r\n$") == min(shown, 4) + min(shown, 6)


def test_a_range_of_many_entries_is_that_of_the_moment_it_was_asked_for() -> None:
    direct = Direct(stream_node_max_entries=1000)
    client, other = direct.client(), direct.client()
    value = "v" * 100
    for number in range(1, MANY_ENTRIES + 2):
        other.send("XADD", "s", f"{number}-1", "f", value)
    expected = b"*%d\r\n" % MANY_ENTRIES + b"".join(
        b"*2\r\n$%d\r\n%d-1\r\n*2\r\n$1\r\nf\r\n$100\r\n%b\r\n"
        % (len(f"{number}-1"), number, value.encode())
        for number in range(2, MANY_ENTRIES + 2)
    )
    one_step_a_turn(direct)
    assert client.send("XRANGE", "s", "(1-1", "+") is None
    other.send("XDEL", "s", "5000-1")
    other.send("XTRIM", "s", "MAXLEN", "10")
    finish(direct)
    assert client.reply_when_woken == expected


# --- long strings ----------------------------------------------------------------------------


LENGTH = 9 * 20_000
assert LENGTH > 2 * LONG
TEXT = b"abcdefghi" * (LENGTH // 9)
BITS = int.from_bytes(TEXT, "big").bit_count()
STEPPED = {
    "BITCOUNT s": b":%d\r\n" % BITS,
    "BITCOUNT s 1 -1": b":%d\r\n" % (BITS - 3),
    "BITPOS zeros 1": b":-1\r\n",
    "BITPOS ones 0": b":%d\r\n" % (LENGTH * 8),
    "BITPOS ones 0 1 -1": b":-1\r\n",
    "LCS s t LEN": b":3\r\n",
    "LCS s t": b"$3\r\nabc\r\n",
}


def with_long_strings(edited: bool) -> Direct:
    """A string of letters, one of zeros, one of ones; ``edited`` if they may be in place."""
    direct = Direct()
    client = direct.client()
    client.send("SET", "t", "abc")
    for key, value in (
        ("s", TEXT),
        ("zeros", bytes(LENGTH)),
        ("ones", b"\xff" * LENGTH),
    ):
        client.send("SET", key, value)
        if edited:
            client.send("SETRANGE", key, "0", value[:1])
    one_step_a_turn(direct)
    direct.server.services.stepped._next_turn.scheduled = True  # Only the test lets the work go on.
    return direct


@pytest.mark.parametrize("request_", STEPPED)
@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        ("SETBIT {0} 1400000 0", "SETBIT {0} 1400009 1", "SETRANGE {0} 170000 zzz", "APPEND {0} x"),
        ("BITFIELD {0} SET u8 1400000 1 SET u8 90000000 3",),
        (
            "RENAME {0} other",
            "SETRANGE other 170000 zzz",
            "SETBIT other 1300000 1",
            "SETBIT other 1300001 0",
        ),
        ("COPY {0} other", "SETRANGE other 170000 zzz", "SETRANGE {0} 170000 zzz"),
        ("SWAPDB 0 1", "SELECT 1", "SETRANGE {0} 170000 zzz"),
        ("FLUSHALL", "SET {0} x"),
        ("DEL {0}",),
        ("PEXPIRE {0} 1", "DEBUG CLOCK ADVANCE 5000", "GET {0}"),
    ],
)
def test_what_is_told_of_a_long_string_is_of_the_moment_it_was_asked_for(
    request_: str, edited: bool, changes: tuple[str, ...]
) -> None:
    direct = with_long_strings(edited)
    client, other = direct.client(), direct.client()
    assert client.send(*request_.split()) is None
    direct.server.services.stepped.turn()
    for change in changes:
        other.send(*change.format(request_.split()[1]).split())
    finish(direct)
    assert client.reply_when_woken == STEPPED[request_]


def test_a_string_is_edited_in_place_again_when_nobody_reads_it_any_more() -> None:
    direct = with_long_strings(edited=True)
    client, second, other = direct.client(), direct.client(), direct.client()
    values = direct.server.state.keyspace.databases[0].values
    before = values[b"s"]
    assert client.send("BITCOUNT", "s") is None
    assert second.send("BITCOUNT", "s", "0", "-2") is None
    other.send("SETBIT", "s", "1", "0")  # A copy, once.
    copy = values[b"s"]
    assert copy is not before
    other.send("SETBIT", "s", "2", "0")  # What is lent is no longer what is here.
    assert values[b"s"] is copy
    finish(direct)
    assert client.reply_when_woken == STEPPED["BITCOUNT s"]
    assert client.send("BITCOUNT", "s") is None
    finish(direct)
    other.send("SETBIT", "s", "1", "1")
    assert values[b"s"] is copy


def test_a_client_that_is_gone_has_borrowed_nothing() -> None:
    direct = with_long_strings(edited=True)
    client, behind, other = direct.client(), direct.client(), direct.client()
    values = direct.server.state.keyspace.databases[0].values
    before = values[b"s"]
    assert client.send("BITCOUNT", "s") is None
    assert behind.send("BITCOUNT", "s") is None  # No step of it is taken.
    farewell(direct.server.services, client.session)
    farewell(direct.server.services, behind.session)
    other.send("SETBIT", "s", "1", "0")
    assert values[b"s"] is before


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("BITCOUNT s 1 2", b":7\r\n"),
        ("BITPOS s 1 -1", b":%d\r\n" % (LENGTH * 8 - 7)),
        ("LCS t t", b"$3\r\nabc\r\n"),
    ],
)
def test_short_strings_and_short_parts_do_not_wait_for_long_work(
    request_: str, reply: bytes
) -> None:
    direct = with_long_strings(edited=False)
    client, other = direct.client(), direct.client()
    assert client.send("BITCOUNT", "s") is None
    assert other.send(*request_.split()) == reply


def test_the_matches_of_long_strings_come_in_the_protocol_of_the_client() -> None:
    direct = with_long_strings(edited=False)
    client = direct.client(resp3=True)
    assert client.send("LCS", "s", "t", "IDX") is None
    finish(direct)
    start = LENGTH - 9
    assert client.reply_when_woken == (
        b"%%2\r\n$7\r\nmatches\r\n*1\r\n*2\r\n*2\r\n:%d\r\n:%d\r\n*2\r\n:0\r\n:2\r\n$3\r\nlen\r\n:3\r\n"
        % (start, start + 2)
    )


# --- long replies of streams -----------------------------------------------------------------

MOST_IDS = [f"{number}-1" for number in range(1, MANY_ENTRIES + 1)]


@cache
def _built(packed: bool, delivered: bool) -> Direct:
    """A server with such a stream, of which tests take copies."""
    direct = Direct()
    client = direct.client()
    for number in range(1, MANY_ENTRIES + 101):
        client.send("XADD", "s", f"{number}-1", "f", f"value {number}")
    client.send("XGROUP", "CREATE", "s", "g", "0")
    if packed:
        for _ in range(MANY_ENTRIES // 100):
            direct.server.state.keyspace.limits.packer.round(direct.now_ms)
    if delivered:
        client.send("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
        client.send("XDEL", "s", "77-1")
        direct.now_ms += 10
    return direct


def stream_of_many(packed: bool, delivered: bool) -> Direct:
    """A stream ``s`` with a group ``g``, all of which is pending for ``a`` if ``delivered``; of
    what is pending 77-1 is no longer there."""
    source = _built(packed, delivered)
    stream = source.server.state.keyspace.databases[0].values[b"s"]
    assert isinstance(stream, Stream)
    direct = Direct()
    direct.now_ms = source.now_ms
    direct.server.state.keyspace.now_ms = source.now_ms
    direct.server.state.keyspace.databases[0].attach(b"s", stream.copy())
    return direct


@pytest.mark.parametrize(("packed", "resp3"), [(False, True), (True, False)])
@pytest.mark.parametrize(
    ("command", "delivered"),
    [
        ("XRANGE s - +", False),
        ("XREVRANGE s + -", False),
        ("XREVRANGE s (10099-1 5-1 COUNT 20000", False),
        ("XREAD STREAMS s 3-1", False),
        ("XREAD STREAMS s s 3-1 10050-1", False),
        ("XREADGROUP GROUP g a STREAMS s >", False),
        ("XREADGROUP GROUP g a NOACK STREAMS s >", False),
        ("XREADGROUP GROUP g a CLAIM 0 STREAMS s >", False),
        ("XREADGROUP GROUP g a STREAMS s 0", True),
        ("XREADGROUP GROUP g a MAXCOUNT 10050 STREAMS s 0", True),
        ("XPENDING s g - + 20000", True),
        ("XPENDING s g - + 20000 a", True),
        ("XPENDING s g IDLE 5 - + 20000", True),
        ("XAUTOCLAIM s g b 5 0 COUNT 20000", True),
        (f"XCLAIM s g b 5 {' '.join(MOST_IDS)} 10001-1", True),
        (f"XCLAIM s g b 5 {' '.join(MOST_IDS[::-1])} 10001-1", True),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else str(value),
)
def test_a_long_reply_is_that_of_the_moment_it_was_asked_for(
    command: str, delivered: bool, packed: bool, resp3: bool
) -> None:
    at_once, in_steps = (stream_of_many(packed, delivered) for _ in range(2))
    expected = at_once.client(resp3).send(*command.split())
    assert expected is not None
    one_step_a_turn(in_steps)
    client, other = in_steps.client(resp3), in_steps.client()
    assert client.send(*command.split()) is None
    changes = "XDEL s 5000-1 9000-1", "XACK s g 6-1 10001-1", "XTRIM s MAXLEN 10", "DEL s"
    for request in changes:
        other.send(*request.split())
    finish(in_steps)
    assert client.reply_when_woken == expected


@pytest.mark.parametrize("command", ["XPENDING s g", "XINFO CONSUMERS s g", "XINFO GROUPS s"])
@pytest.mark.parametrize(
    ("claim", "delivered"),
    [
        ("XREADGROUP GROUP g b STREAMS s >", False),
        ("XREADGROUP GROUP g a STREAMS s 0", True),
        ("XAUTOCLAIM s g b 5 0 COUNT 20000", True),
    ],
)
def test_what_a_long_reply_tells_of_has_happened_before_its_first_step(
    command: str, claim: str, delivered: bool
) -> None:
    at_once, in_steps = (stream_of_many(True, delivered) for _ in range(2))
    assert at_once.client().send(*claim.split()) is not None
    one_step_a_turn(in_steps)
    assert in_steps.client().send(*claim.split()) is None
    expected = at_once.client().send(*command.split())
    assert in_steps.client().send(*command.split()) == expected


def test_work_rests_while_a_script_takes_long(direct: Direct) -> None:
    """What the script has done so far is not to be seen before it ends."""
    client = direct.client()
    assert client.send("SCAN", "0", "COUNT", "5000") is None
    direct.server.state.set_busy("BUSY")
    for _ in range(10):
        direct.server.services.stepped.turn()
    assert client.parked
    direct.server.state.set_busy(None)
    one_step_a_turn(direct)
    finish(direct)
    assert scanned(client.reply_when_woken) == (0, ALL)


# --- what is told of many groups and consumers -----------------------------------------------


def crowd(direct: Direct) -> DirectClient:
    """A stream with many groups, and one with a group of many consumers."""
    client = direct.client()
    for number in range(MANY):
        client.send("XGROUP", "CREATE", "groups", f"g{number:05}", "0", "MKSTREAM")
    client.send("XGROUP", "CREATE", "consumers", "g", "0", "MKSTREAM")
    for number in range(MANY):
        client.send("XGROUP", "CREATECONSUMER", "consumers", "g", f"c{number:05}")
    return client


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize(
    ("words", "names_in"),
    [
        (("XINFO", "CONSUMERS", "consumers", "g"), lambda told: [each[1] for each in told]),
        (("PENSTOCK", "STATS", "groups"), lambda told: told[::2]),
        (("PENSTOCK", "STATS", "consumers", "g"), lambda told: told[-1][::2]),
    ],
)
def test_many_are_told_of_in_steps_as_few_are(
    direct: Direct, words: tuple[str, ...], names_in: Callable[[Any], list[bytes]], resp: int
) -> None:
    client, other = crowd(direct), direct.client()
    client.send("HELLO", resp)
    assert client.send(*words) is None
    assert other.send("PING") == b"+PONG\r\n"
    assert finish(direct) > MANY // AT_ONCE // 2
    told = parsed(client.reply_when_woken)
    client.send("MULTI")
    client.send(*words)
    assert parsed(client.send("EXEC")) == [told]
    if resp == 2:
        assert [name[1:] for name in names_in(told)] == [b"%05d" % each for each in range(MANY)]


@pytest.mark.parametrize(
    "request_line",
    ["XINFO CONSUMERS consumers g", "XINFO STREAM consumers FULL", "PENSTOCK STATS consumers g"],
)
def test_what_is_told_of_many_is_sent_in_few_parts(direct: Direct, request_line: str) -> None:
    client = crowd(direct)
    assert client.send(*request_line.split()) is None
    job = client.session.parked
    assert job is not None
    finish(direct)
    assert job.result is not None
    size = sum(map(len, job.result))
    assert len(job.result) <= size // PIECE + 1


def test_clients_are_told_of_in_steps_but_for_those_that_have_gone(direct: Direct) -> None:
    client, *others = [direct.client() for _ in range(5 * AT_ONCE)]
    assert others[0].send("CLIENT", "LIST", "ID", client.session.id) is not None
    assert client.send("CLIENT", "LIST") is None
    for gone in others[-3:]:
        farewell(direct.server.services, gone.session)
    assert finish(direct) == 6
    assert client.reply_when_woken is not None
    lines = client.reply_when_woken.split(b"\r\n")[1].splitlines()
    told = [int(line.split()[0][len("id=") :]) for line in lines]
    assert told[1:] == [each.session.id for each in (client, *others[:-3])]
    assert (b" flags=N " in lines[1], b" cmd=client|list " in lines[1]) == (True, True)


def test_consumers_are_those_of_the_moment_at_which_they_were_asked_for(direct: Direct) -> None:
    client, other = crowd(direct), direct.client()
    assert client.send("XINFO", "CONSUMERS", "consumers", "g") is None
    other.send("XGROUP", "DELCONSUMER", "consumers", "g", f"c{MANY - 1:05}")
    other.send("XGROUP", "CREATECONSUMER", "consumers", "g", "new")
    finish(direct)
    told = parsed(client.reply_when_woken)
    assert [each[1] for each in told] == [b"c%05d" % number for number in range(MANY)]
    assert [each[3:4] + each[5:6] + each[7:] for each in told[-1:]] == [[0, 0, -1]]
