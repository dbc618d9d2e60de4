"""What falls due, whatever it is: never early in time that passes by itself, and at the time itself
where a test has moved the clock to that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from server.runtime.clock import Clock
from server.runtime.clockwork import Alarm
from server.runtime.token_bucket import TokenBucket
from tests.support.direct import START_MS, Direct

# --- the rule --------------------------------------------------------------------------------


def test_in_real_time_a_time_is_due_when_its_millisecond_is_over() -> None:
    times = iter((1000, 1001))
    clock = Clock(lambda: next(times))
    assert [clock.due(), clock.due()] == [999, 1000]


def test_the_time_that_a_clock_is_put_to_is_due_and_nothing_later_is_early() -> None:
    now = 1000
    clock = Clock(lambda: now)
    clock.turn(500)
    found = [clock.due()]
    now = 1001
    found.append(clock.due())
    now = 1002
    found.append(clock.due())
    clock.freeze()
    found.append(clock.due())
    clock.turn(10)
    found.append(clock.due())
    clock.release()
    now = 1003
    found.append(clock.due())
    clock.turn(-clock.offset_ms)
    found.append(clock.due())
    assert found == [1500, 1500, 1501, 1502, 1512, 1512, 1002]


async def test_a_timer_is_set_to_the_end_of_its_millisecond() -> None:
    loop = asyncio.get_running_loop()
    clock = Clock(lambda: 1000)
    alarm = Alarm(clock, lambda: None)
    before = loop.time()
    alarm.set(1005)
    assert alarm._timer is not None
    assert alarm._timer.when() >= before + 0.006
    alarm.stop()
    clock.turn(3)
    alarm.set(1005)
    assert alarm._timer is not None
    assert alarm._timer.when() <= loop.time() + 0.002
    alarm.stop()


def test_a_budget_is_not_filled_early() -> None:
    rate = TokenBucket(1, 10, 1000)
    assert rate.admits(1000, 999)
    assert not rate.admits(1010, 1009)
    assert rate.next_room(1010, 1009) == 1010
    assert rate.admits(1011, 1010)
    assert not rate.admits(1021, 1020)
    assert rate.admits(1022, 1021)


def test_a_budget_that_was_not_used_begins_to_be_filled_when_it_is() -> None:
    rate = TokenBucket(2, 10, 1000)
    assert [rate.admits(5000, 4999) for _ in range(3)] == [True, True, False]
    assert not rate.admits(5005, 5004)
    assert [rate.admits(5006, 5005) for _ in range(2)] == [True, False]


# --- what falls due --------------------------------------------------------------------------

ENTRY = [[b"k", [[b"1-1", [b"f", b"v"]]]]]
SECOND = [[b"k", [[b"2-1", [b"f", b"v"]]]]]
READ = "XREADGROUP GROUP g bob COUNT 1 STREAMS k >"
DELAYED = [[b"k", [[b"1-1", [b"at", b"%d" % (START_MS + 1000)]]]]]


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("before", "question", "early", "late"),
    [
        ("SET k v PX 1000", "GET k", b"v", None),
        ("SET k v; PEXPIRE k 1000", "SCAN 0", [b"0", [b"k"]], [b"0", []]),
        ("PSETEX k 1000 v; SET l v", "EXISTS k l", 2, 1),
        ("XADD k 1-1 f v; PEXPIRE k 1000", "XLEN k", 1, 0),
        (
            "XADD k 1-1 f v; XCFGSET k IDMP-DURATION 1; XADD k IDMP p i * f v",
            "XADD k IDMP p i * f v; XLEN k",
            2,
            3,
        ),
        (
            "POLICY k GROUP g ack-wait 1000; XADD k 1-1 f v; XREADGROUP GROUP g a STREAMS k >",
            READ,
            None,
            ENTRY,
        ),
        (
            f"POLICY k GROUP g delay-field at; XADD k 1-1 at {START_MS + 1000}",
            READ,
            None,
            DELAYED,
        ),
        (
            "POLICY k GROUP g rate-limit 1/1s; XADD k 1-1 f v; XADD k 2-1 f v; " + READ,
            READ,
            None,
            SECOND,
        ),
        (
            "POLICY k GROUP g consumer-ttl 1000; XGROUP CREATECONSUMER k g a",
            "XGROUP CREATECONSUMER k g a",
            0,
            1,
        ),
        ("POLICY k retention 1000; XADD k * f v", "XLEN k", 1, 0),
        (
            "POLICY k delete acked delete-grace 1000; XADD k * f v; "
            f"XREADGROUP GROUP g a STREAMS k >; XACK k g {START_MS}-0",
            "XLEN k",
            1,
            0,
        ),
    ],
)
def test_nothing_comes_early(
    moved: bool, before: str, question: str, early: Any, late: Any
) -> None:
    direct = Direct()
    client = direct.client()
    if before.startswith("POLICY"):
        client.send("XGROUP", "CREATE", "k", "g", 0, "MKSTREAM")
    for request in before.replace("POLICY", "PENSTOCK POLICY SET").split("; "):
        client.send(*request.split())

    def ask() -> Any:
        return [client.ask(*request.split()) for request in question.split("; ")][-1]

    if moved:
        direct.advance(999)
        assert ask() == early
        direct.advance(1)
    else:
        direct.run_on(1000)
        assert ask() == early
        direct.run_on(1)
    assert ask() == late


@pytest.mark.parametrize(
    "request_",
    [
        "XREAD BLOCK 10 STREAMS k $",
        "XREADGROUP GROUP g a BLOCK 10 STREAMS k >",
        "WAIT 1 10",
        "WAITAOF 0 1 10",
    ],
)
def test_no_wait_is_shorter_than_it_says(request_: str) -> None:
    direct = Direct()
    client, moved = direct.client(), direct.client()
    client.send("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    client.send(*request_.split())
    direct.run_on(10)
    assert client.parked
    direct.run_on(1)
    assert not client.parked
    moved.send(*request_.split())
    direct.advance(10)
    assert not moved.parked


async def test_a_pause_is_not_shorter_than_it_says() -> None:
    direct = Direct(enable_debug_command="yes")
    client, pauses = direct.client(), direct.server.services.pauses
    client.send("CLIENT", "PAUSE", 1000)
    direct.run_on(1000)
    pauses.turn_clock(0)
    assert pauses.active
    direct.run_on(1)
    pauses.turn_clock(0)
    assert not pauses.active
    client.send("CLIENT", "PAUSE", 1000)
    client.send("DEBUG", "CLOCK", "ADVANCE", 1000)
    assert not pauses.active


def test_a_client_is_idle_for_the_timeout_before_it_is_closed() -> None:
    direct = Direct(timeout=1)
    client = direct.client()
    client.send("PING")
    direct.run_on(1000)
    direct.cron()
    assert not client.closed
    direct.run_on(1)
    direct.cron()
    assert client.closed


def test_a_key_that_is_due_goes_by_itself_and_not_before() -> None:
    direct = Direct()
    direct.client().send("SET", "k", "v", "PX", 10)
    held = direct.server.state.keyspace.databases[0].values
    direct.run_on(10)
    direct.cron()
    assert set(held) == {b"k"}
    direct.run_on(1)
    direct.cron()
    assert not held


@pytest.mark.parametrize(
    "request_",
    [
        "PEXPIRE k 0",
        f"PEXPIREAT k {START_MS + 1}",
        f"GETEX k PXAT {START_MS + 1}",
    ],
)
def test_a_time_that_is_not_in_the_future_removes_a_key_at_once(request_: str) -> None:
    direct = Direct()
    client = direct.client()
    client.send("SET", "k", "v")
    direct.run_on(1)
    client.send(*request_.split())
    assert client.ask("EXISTS", "k") == 0


def test_a_string_that_is_set_until_now_is_there_until_the_millisecond_is_over() -> None:
    direct = Direct()
    client = direct.client()
    direct.run_on(1)
    client.send("SET", "k", "v", "PXAT", START_MS + 1)
    assert [client.ask("EXISTS", "k"), client.ask("PTTL", "k")] == [1, 0]
    direct.run_on(1)
    assert [client.ask("EXISTS", "k"), client.ask("PTTL", "k")] == [0, -2]
