"""Scripts that take long, with a server on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError, ResponseError

from server.scripting.long_running import MOST_STEPS, LongRunning
from tests.support.direct import Direct
from tests.support.servers import ONCE, PenstockThread
from tests.support.wire import wait_until

FOREVER = "while true do end"


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    with PenstockThread(busy_reply_threshold=20) as thread:
        yield thread


@pytest.fixture
def client(penstock: PenstockThread) -> Iterator[Redis]:
    with Redis(penstock.host, penstock.port, decode_responses=True, retry=ONCE) as client:
        yield client


@pytest.fixture
def author(penstock: PenstockThread) -> Iterator[Redis]:
    """The client whose script takes long."""
    with Redis(penstock.host, penstock.port, decode_responses=True, max_connections=1) as client:
        yield client


def connection_of(client: Redis) -> Any:
    """The one connection of a client, to send and to receive apart from each other."""
    if client.connection is None:
        client.connection = client.connection_pool.get_connection()
    return client.connection


def begin(author: Redis, client: Redis, *request: str) -> None:
    """Sends a request that takes long; returns when others are answered with BUSY."""
    connection_of(author).send_command(*request)
    while not is_refused(client):
        assert not connection_of(author).can_read(timeout=0), "that did not take long"


def is_refused(client: Redis) -> bool:
    """Whether other clients are answered with BUSY."""
    try:
        client.ping()
    except ResponseError as error:
        return str(error).startswith("BUSY Redis is busy running a script.")
    return False


def end(author: Redis) -> object:
    """The reply to that request."""
    try:
        return connection_of(author).read_response()
    except ResponseError as error:
        return str(error)


def test_the_server_can_be_stopped_while_a_script_runs(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    begin(author, client, "EVAL", "while true do pcall(redis.call,'set','k','v') end", "0")
    penstock.stop()
    with pytest.raises(ConnectionError):
        connection_of(author).read_response()
    with pytest.raises(ConnectionError):
        client.ping()


def test_a_client_that_leaves_does_not_end_its_script(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    begin(author, client, "EVAL", FOREVER, "0")
    connection_of(author).disconnect()
    with pytest.raises(ResponseError, match="busy"):
        client.get("k")
    assert client.script_kill()
    assert client.get("k") is None


def test_a_script_that_took_long_answers_and_what_it_wrote_is_there(
    client: Redis, author: Redis
) -> None:
    script = (
        "redis.call('set','k','v') local stop=os.clock()+0.5 while os.clock()<stop do end"
        " return redis.call('get','k')"
    )
    begin(author, client, "EVAL", script, "0")
    with pytest.raises(ResponseError, match="already executed write commands"):
        client.script_kill()
    assert end(author) == "v"
    assert client.get("k") == "v"


def test_what_parked_readers_wait_for_comes_when_the_script_has_ended(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    with Redis(penstock.host, penstock.port, decode_responses=True) as reader:
        waiting = connection_of(reader)
        waiting.send_command("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        wait_until(lambda: penstock.call(lambda: len(penstock.server.services.blocking.waiters)))
        script = (
            "redis.call('xadd','s','1-1','a','b') local stop=os.clock()+0.5"
            " while os.clock()<stop do end redis.call('xadd','s','2-1','c','d') return 'done'"
        )
        begin(author, client, "EVAL", script, "0")
        assert end(author) == "done"
        assert waiting.read_response() == {"s": [["1-1", ["a", "b"]], ["2-1", ["c", "d"]]]}


def test_a_wait_ends_at_its_time_though_a_script_runs(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    with Redis(penstock.host, penstock.port, decode_responses=True) as reader:
        waiting = connection_of(reader)
        waiting.send_command("XREAD", "BLOCK", "30", "STREAMS", "s", "$")
        begin(author, client, "EVAL", FOREVER, "0")
        assert waiting.read_response() is None
        assert client.script_kill()
        assert str(end(author)).startswith("Script killed by user with SCRIPT KILL...")


def test_the_error_of_a_script_that_took_long_is_counted(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    script = "local stop=os.clock()+0.5 while os.clock()<stop do end return {err='MINE x'}"
    begin(author, client, "EVAL", script, "0")
    assert end(author) == "MINE x"
    assert client.info("errorstats")["errorstat_MINE"] == {"count": 1}
    assert client.info("commandstats")["cmdstat_eval"]["failed_calls"] == 1


def test_others_have_their_turn_after_each_long_repetition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[bool] = []

    def tick(_: LongRunning, takes_much: bool = False) -> int:
        turns.append(takes_much)
        return MOST_STEPS

    monkeypatch.setattr(LongRunning, "tick", tick)
    client = Direct().client()
    for length, expected in ((2**20 + 1, 2), (2**19, 0)):
        turns.clear()
        script = "string.rep('x',ARGV[1]) string.rep('yz',ARGV[1]/1)"
        client.send("EVAL", script, 0, length)
        assert len(turns) == expected


def test_others_have_their_turn_while_a_long_reply_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[bool] = []

    def tick(_: LongRunning, takes_much: bool = False) -> int:
        turns.append(takes_much)
        return MOST_STEPS

    monkeypatch.setattr(LongRunning, "tick", tick)
    client = Direct().client()
    fill = "local t = {} for i = 1, 50000 do t[i] = i end"
    assert client.send("EVAL", f"{fill} return #t", 0) == b":50000\r\n"
    without = len(turns)
    turns.clear()
    numbers = b"".join(b":%d\r\n" % number for number in range(1, 50_001))
    assert client.send("EVAL", f"{fill} return t", 0) == b"*50000\r\n" + numbers
    assert len(turns) > without + 50_000 // 10_000


async def test_others_have_their_turn_every_ten_milliseconds_once_a_script_took_much() -> None:
    direct = Direct()
    author, other = direct.client(), direct.client()
    author.send("EVAL", "return 1", 0)
    looks = count()
    clock = direct.server.services.scripting._runner.clock
    clock.seconds = lambda: next(looks) * 0.0015
    fill = "local t = {} for i = 1, 20 do t[i] = string.rep('x', 2^20) .. i end"
    reply = author.send("EVAL", f"{fill} for i = 1, 50000 do end return #t", 0)
    answered = [next(looks)]
    while not author.reply_when_woken:
        assert str(other.send("PING")).startswith("b'-BUSY")
        await asyncio.sleep(0)
        answered.append(next(looks))
    between = [after - before for before, after in pairwise(answered)]
    assert reply is None
    assert author.reply_when_woken == b":20\r\n"
    assert answered[0] <= 30 / 1.5 + 4
    assert len(between) > 5
    assert max(between) <= 10 / 1.5 + 4


def test_a_script_can_be_ended_while_its_reply_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = iter([MOST_STEPS] * 8)
    monkeypatch.setattr(LongRunning, "tick", lambda *_: next(left, 0))
    script = "local t = {} for i = 1, 50000 do t[i] = i end return t"
    reply = Direct().client().send("EVAL", script, 0)
    assert reply is not None
    assert reply.startswith(b"-ERR Script killed by user with SCRIPT KILL... script: ")


def test_shutdown_nosave_ends_a_server_whose_script_runs(
    penstock: PenstockThread, client: Redis, author: Redis
) -> None:
    begin(author, client, "EVAL", "redis.call('set','k','v') " + FOREVER, "0")
    client.shutdown(nosave=True)
    assert penstock.server.stopping.is_set()
