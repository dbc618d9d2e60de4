"""A clock that tests turn: DEBUG CLOCK, and all that follows from the time being another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.runtime.clock import LATEST_MS, Clock, system_clock
from server.state.server_state import Phase
from tests.support.direct import START_MS, Direct, DirectClient, in_loop
from tests.support.listening import Listener

HOUR = 3_600_000
OK = b"+OK\r\n"
NIL = b"*-1\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
UNKNOWN = b"-ERR unknown subcommand or wrong number of arguments for 'CLOCK'. Try DEBUG HELP.\r\n"


@pytest.fixture
def direct() -> Iterator[Direct]:
    server = Direct(enable_debug_command="yes")
    yield server
    server.server.services.pauses.close()
    server.server.services.blocking.close()


def advance(client: DirectClient, milliseconds: int) -> None:
    assert client.send("DEBUG", "CLOCK", "ADVANCE", milliseconds) == OK


def time_of(client: DirectClient) -> int:
    """The server's time in Unix milliseconds, as TIME tells it."""
    reply = client.send("TIME")
    assert reply is not None
    _, _, seconds, _, microseconds, _ = reply.split(b"\r\n")
    return int(seconds) * 1000 + int(microseconds) // 1000


def pending_entry(client: DirectClient) -> None:
    """An entry 1-1 of the stream k that alice of the group g was given just now."""
    assert client.send("XADD", "k", "1-1", "a", "b") is not None
    assert client.send("XGROUP", "CREATE", "k", "g", "0") == OK
    reply = client.send("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "k", ">")
    assert reply is not None
    assert b"1-1" in reply


def idle_and_count(client: DirectClient) -> bytes:
    """The idle time of the only pending entry, and how often it was delivered."""
    reply = client.send("XPENDING", "k", "g", "-", "+", 10)
    assert reply is not None
    assert reply.startswith(b"*1\r\n*4\r\n$3\r\n1-1\r\n$5\r\nalice\r\n")
    return reply.removeprefix(b"*1\r\n*4\r\n$3\r\n1-1\r\n$5\r\nalice\r\n")


# --- the clock -------------------------------------------------------------------------------


def test_an_untouched_clock_is_its_source() -> None:
    clock = Clock()
    assert clock.read is system_clock
    clock.turn(5)
    assert clock.read is not system_clock
    clock.turn(-5)
    assert clock.read is system_clock


@given(st.lists(st.integers(-(10**15), 10**15)), st.integers(0, 10**15))
def test_a_turned_clock_is_off_by_the_sum_of_its_turns_and_runs_on(
    turns: list[int], later: int
) -> None:
    now = START_MS
    clock = Clock(lambda: now)
    for by_ms in turns:
        clock.turn(by_ms)
    assert (clock.read(), clock.offset_ms) == (START_MS + sum(turns), sum(turns))
    now += later
    assert clock.read() == START_MS + sum(turns) + later


def test_a_clock_that_stands_still_moves_only_when_it_is_turned() -> None:
    now = START_MS
    clock = Clock(lambda: now)
    clock.turn(100)
    clock.freeze()
    now += 5
    assert clock.read() == START_MS + 100
    clock.turn(-50)
    now += 5
    assert clock.read() == START_MS + 50
    clock.freeze()
    assert clock.read() == START_MS + 50


def test_a_clock_that_is_released_runs_on_from_what_it_shows() -> None:
    now = START_MS
    clock = Clock(lambda: now)
    clock.freeze()
    now += 70
    clock.release()
    assert (clock.read(), clock.offset_ms, clock.frozen) == (START_MS, -70, False)
    now += 1
    assert clock.read() == START_MS + 1
    clock.turn(70)
    assert clock.read is clock.source


def test_releasing_a_clock_that_runs_changes_nothing() -> None:
    clock = Clock()
    clock.release()
    assert clock.read is system_clock


# --- turning it ------------------------------------------------------------------------------


def test_advance_adds_up_and_reset_goes_back_to_the_real_time(
    direct: Direct, client: DirectClient
) -> None:
    advance(client, HOUR)
    advance(client, 1)
    assert time_of(client) == START_MS + HOUR + 1
    direct.now_ms += 10
    assert time_of(client) == START_MS + HOUR + 11
    assert client.send("debug", "clock", "reset") == OK
    assert time_of(client) == START_MS + 10


def test_set_makes_it_any_time_and_time_goes_on_from_there(
    direct: Direct, client: DirectClient
) -> None:
    for at in (0, 1_000_000_000_000, LATEST_MS):
        assert client.send("DEBUG", "CLOCK", "SET", at) == OK
        assert time_of(client) == at
    assert client.send("DEBUG", "CLOCK", "SET", 86_400_000) == OK
    direct.now_ms += 7
    assert time_of(client) == 86_400_007


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ([], UNKNOWN),
        (["ADVANCE"], UNKNOWN),
        (["SET"], UNKNOWN),
        (["RESET", "0"], UNKNOWN),
        (["STOP"], UNKNOWN),
        (["FREEZE", "1", "2"], UNKNOWN),
        (["FREEZE", "now"], NOT_AN_INTEGER),
        (
            ["FREEZE", "-1"],
            b"-ERR value is out of range, value must between 0 and 253402300799999\r\n",
        ),
        (["ADVANCE", "1", "2"], UNKNOWN),
        (["ADVANCE", "soon"], NOT_AN_INTEGER),
        (["SET", "1.5"], NOT_AN_INTEGER),
        (
            ["ADVANCE", "-1"],
            b"-ERR value is out of range, value must between 0 and %d\r\n" % (LATEST_MS - START_MS),
        ),
        (
            ["SET", "-1"],
            b"-ERR value is out of range, value must between 0 and 253402300799999\r\n",
        ),
        (
            ["SET", "253402300800000"],
            b"-ERR value is out of range, value must between 0 and 253402300799999\r\n",
        ),
    ],
)
def test_bad_arguments_leave_the_clock_alone(
    client: DirectClient, words: list[str], reply: bytes
) -> None:
    assert client.send("DEBUG", "CLOCK", *words) == reply
    assert time_of(client) == START_MS


def test_it_is_refused_where_debugging_is_not_allowed() -> None:
    client = Direct().client()
    reply = client.send("DEBUG", "CLOCK", "ADVANCE", 1)
    assert reply is not None
    assert reply.startswith(b"-ERR DEBUG command not allowed.")
    assert time_of(client) == START_MS


def test_a_transaction_cannot_turn_the_clock(client: DirectClient) -> None:
    client.send("MULTI")
    client.send("DEBUG", "CLOCK", "ADVANCE", 5)
    refusal = b"*1\r\n-ERR Command not allowed inside a transaction\r\n"
    assert client.send("EXEC") == refusal
    assert time_of(client) == START_MS


def test_it_waits_until_everything_is_loaded(direct: Direct, client: DirectClient) -> None:
    direct.server.state.enter(Phase.LOADING)
    assert client.send("DEBUG", "CLOCK", "ADVANCE", 5) == (
        b"-LOADING Redis is loading the dataset in memory\r\n"
    )
    direct.server.state.enter(Phase.SERVING)
    assert time_of(client) == START_MS


def test_help_names_every_way_to_turn_it(client: DirectClient) -> None:
    reply = client.send("DEBUG", "HELP")
    assert reply is not None
    for call in (
        b"CLOCK ADVANCE <milliseconds>",
        b"CLOCK SET <unix-time-milliseconds>",
        b"CLOCK RESET",
    ):
        assert b"\r\n+%b\r\n+    " % call in reply


# --- what follows for the data ---------------------------------------------------------------


def test_what_has_been_idle_for_an_hour_is_claimed_after_an_instant(client: DirectClient) -> None:
    pending_entry(client)
    untouched = b"*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n"
    assert client.send("XAUTOCLAIM", "k", "g", "bob", HOUR, "0", "JUSTID") == untouched
    advance(client, HOUR)
    assert idle_and_count(client) == b":3600000\r\n:1\r\n"
    claimed = b"*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n1-1\r\n*0\r\n"
    assert client.send("XAUTOCLAIM", "k", "g", "bob", HOUR, "0", "JUSTID") == claimed


def test_ids_follow_the_clock_forward_and_never_go_back(client: DirectClient) -> None:
    advance(client, HOUR)
    assert client.send("XADD", "k", "*", "a", "b") == b"$15\r\n1700003600000-0\r\n"
    client.send("DEBUG", "CLOCK", "RESET")
    assert client.send("XADD", "k", "*", "a", "b") == b"$15\r\n1700003600000-1\r\n"
    client.send("DEBUG", "CLOCK", "SET", 5)
    assert client.send("XADD", "k", "*", "a", "b") == b"$15\r\n1700003600000-2\r\n"
    assert client.send("XADD", "other", "*", "a", "b") == b"$3\r\n5-0\r\n"


def test_idle_times_are_never_negative_after_going_back(client: DirectClient) -> None:
    advance(client, HOUR)
    pending_entry(client)
    client.send("DEBUG", "CLOCK", "RESET")
    assert idle_and_count(client) == b":0\r\n:1\r\n"
    reply = client.send("XINFO", "CONSUMERS", "k", "g")
    assert reply is not None
    assert b"$4\r\nidle\r\n:0\r\n$8\r\ninactive\r\n:0\r\n" in reply
    advance(client, HOUR + 5)
    assert idle_and_count(client) == b":5\r\n:1\r\n"


def test_every_key_that_is_due_expires_at_once_and_is_announced(
    direct: Direct, client: DirectClient
) -> None:
    for number in range(1001):
        client.send("SET", f"key{number}", "v", "PX", 1000 + number)
    client.send("SET", "stays", "v", "PX", HOUR)
    listener = Listener(direct)
    advance(client, 3000)
    assert listener.heard() == [f"expired key{number}" for number in range(1001)]
    assert client.send("DBSIZE") == b":1\r\n"
    assert client.send("PTTL", "stays") == b":%d\r\n" % (HOUR - 3000)


def test_keys_that_are_due_stay_where_active_expiry_is_off(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    client.send("DEBUG", "SET-ACTIVE-EXPIRE", 0)
    advance(client, 10)
    assert client.send("DBSIZE") == b":1\r\n"
    assert client.send("GET", "k") == b"$-1\r\n"


def test_idempotent_ids_are_forgotten_when_their_time_is_up(client: DirectClient) -> None:
    add = ("XADD", "k", "IDMP", "producer", "one", "*", "a", "b")
    first = b"$15\r\n1700000000000-0\r\n"
    assert client.send(*add) == first
    advance(client, 99_999)
    assert client.send(*add) == first
    advance(client, 2)
    assert client.send(*add) == b"$15\r\n1700000100001-0\r\n"


def test_a_transaction_sees_that_a_watched_key_is_due(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v", "PX", 10)
    client.send("WATCH", "k")
    client.send("MULTI")
    client.send("PING")
    advance(direct.client(), 10)
    assert client.send("EXEC") == NIL


# --- what follows for those who wait ---------------------------------------------------------


def wait_for_entries(direct: Direct, block: int) -> DirectClient:
    """A client that waits for entries of the stream k."""
    reader = direct.client()
    assert reader.send("XREAD", "BLOCK", block, "STREAMS", "k", "$") is None
    return reader


def test_readers_whose_deadline_has_come_are_answered(direct: Direct, client: DirectClient) -> None:
    early, late, ever = (wait_for_entries(direct, block) for block in (HOUR, HOUR + 1, 0))
    advance(client, HOUR)
    assert early.reply_when_woken == NIL
    assert late.parked
    advance(client, 1)
    assert late.reply_when_woken == NIL
    assert ever.parked


def test_readers_that_wait_for_idle_entries_get_them(direct: Direct, client: DirectClient) -> None:
    pending_entry(client)
    reader = direct.client()
    request = ("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 2 * HOUR, "CLAIM", HOUR)
    assert reader.send(*request, "STREAMS", "k", ">") is None
    advance(client, HOUR - 1)
    assert reader.parked
    # Both the claim and the deadline are behind now; the claim was due first.
    advance(client, 2 * HOUR)
    assert reader.reply_when_woken == (
        b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n*4\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
        b":%d\r\n:1\r\n" % (3 * HOUR - 1)
    )


def test_a_reader_hears_that_its_stream_has_expired(direct: Direct, client: DirectClient) -> None:
    pending_entry(client)
    client.send("PEXPIRE", "k", 1000)
    reader = direct.client()
    assert reader.send("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 0, "STREAMS", "k", ">") is None
    advance(client, 1000)
    assert reader.reply_when_woken is not None
    assert reader.reply_when_woken.startswith(b"-NOGROUP No such key 'k'")


def test_going_back_makes_no_wait_longer(direct: Direct, client: DirectClient) -> None:
    advance(client, HOUR)
    reader = wait_for_entries(direct, 1000)
    ever = wait_for_entries(direct, 0)
    client.send("DEBUG", "CLOCK", "RESET")
    advance(client, 999)
    assert reader.parked
    advance(client, 1)
    assert reader.reply_when_woken == NIL
    assert ever.parked


def test_a_claim_that_was_near_is_far_again_after_going_back(
    direct: Direct, client: DirectClient
) -> None:
    advance(client, HOUR)
    pending_entry(client)
    reader = direct.client()
    request = ("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 0, "CLAIM", 10)
    assert reader.send(*request, "STREAMS", "k", ">") is None
    client.send("DEBUG", "CLOCK", "RESET")
    advance(client, HOUR + 9)
    assert reader.parked
    advance(client, 1)
    assert not reader.parked


async def test_the_timer_of_a_wait_is_set_anew_after_a_turn() -> None:
    direct = Direct(enable_debug_command="yes")
    reader, client = wait_for_entries(direct, 2 * HOUR), direct.client()
    blocking = direct.server.services.blocking
    alarm = blocking._deadlines._alarm
    before = alarm._timer
    assert before is not None
    advance(client, HOUR)
    assert before.cancelled()
    assert alarm._timer is not None
    # Half an hour is left for a slow machine.
    assert before.when() - alarm._timer.when() > HOUR / 2 / 1000
    reader.disconnect()
    assert alarm._timer is None


# --- what follows for a pause ----------------------------------------------------------------


def test_a_pause_ends_when_its_time_is_up(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v", "PX", 10)
    client.send("CLIENT", "PAUSE", 2 * HOUR, "WRITE")
    advance(client, HOUR)
    assert direct.server.services.pauses.active
    assert client.send("DBSIZE") == b":1\r\n"
    advance(client, HOUR)
    assert not direct.server.services.pauses.active
    assert client.send("DBSIZE") == b":0\r\n"


def test_going_back_makes_no_pause_longer(direct: Direct, client: DirectClient) -> None:
    advance(client, HOUR)
    client.send("CLIENT", "PAUSE", HOUR, "WRITE")
    client.send("DEBUG", "CLOCK", "RESET")
    assert direct.server.services.pauses.until_ms == START_MS + HOUR
    advance(client, HOUR)
    assert not direct.server.services.pauses.active


def test_writers_that_wait_for_the_disk_wait_on(direct: Direct, client: DirectClient) -> None:
    direct.server.services.pauses.stall()
    advance(client, HOUR)
    assert direct.server.services.pauses.active
    direct.server.services.pauses.unstall()
    assert not direct.server.services.pauses.active


# --- what follows for clients and counters ---------------------------------------------------


def test_idle_clients_are_closed_but_not_the_one_that_turned_the_clock() -> None:
    direct = Direct(enable_debug_command="yes", timeout=60)
    idle, client = direct.client(), direct.client()
    advance(client, 59_999)
    assert not idle.closed
    advance(client, 1)
    assert (idle.closed, client.closed) == (True, False)
    direct.cron()
    assert not client.closed


def test_rates_are_not_those_of_the_time_that_was_left_out(
    direct: Direct, client: DirectClient
) -> None:
    direct.cron()
    direct.now_ms += 100
    for _ in range(10):
        client.send("PING")
    advance(client, HOUR)
    assert direct.server.state.stats.rates() == (0.0, 0.0, 0.0, 0.0, 0.0)
    direct.now_ms += 1000
    direct.cron()
    # DEBUG itself, counted after the clock was turned.
    assert direct.server.state.stats.rates() == (1.0, 0.0, 0.0, 0.0, 0.0)


def test_the_uptime_is_never_negative(client: DirectClient) -> None:
    client.send("DEBUG", "CLOCK", "SET", 0)
    reply = client.send("INFO", "server")
    assert reply is not None
    assert b"\r\nuptime_in_seconds:0\r\n" in reply


# --- a time that stands still ----------------------------------------------------------------


def test_ids_count_up_within_the_millisecond_at_which_time_stands_still(
    direct: Direct, client: DirectClient
) -> None:
    assert client.send("DEBUG", "CLOCK", "FREEZE", 1000) == OK
    for sequence in range(3):
        direct.now_ms += 10
        assert client.send("XADD", "k", "*", "f", "v") == b"$6\r\n1000-%d\r\n" % sequence
    advance(client, 5)
    assert client.send("XADD", "k", "*", "f", "v") == b"$6\r\n1005-0\r\n"
    assert client.send("DEBUG", "CLOCK", "SET", 2000) == OK
    direct.now_ms += 10
    assert client.send("XADD", "k", "*", "f", "v") == b"$6\r\n2000-0\r\n"


def test_freeze_without_a_time_stops_it_where_it_is_and_reset_goes_back_to_the_real_one(
    direct: Direct, client: DirectClient
) -> None:
    advance(client, HOUR)
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    direct.now_ms += 700
    assert time_of(client) == START_MS + HOUR
    assert client.send("DEBUG", "CLOCK", "RESET") == OK
    assert time_of(client) == START_MS + 700
    direct.now_ms += 1
    assert time_of(client) == START_MS + 701
    assert direct.server.state.timekeeper.read is direct.server.state.timekeeper.source


def test_a_blocked_reader_waits_until_the_time_that_stands_still_is_moved(
    direct: Direct, client: DirectClient
) -> None:
    reader = direct.client()
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    assert reader.send("XREAD", "BLOCK", 50, "STREAMS", "k", "$") is None
    blocking = direct.server.services.blocking
    assert not blocking._deadlines.is_armed, "it would wake up every millisecond for nothing"
    direct.now_ms += 1000
    blocking._ring()
    assert reader.parked
    advance(client, 49)
    assert reader.parked
    advance(client, 1)
    assert reader.reply_when_woken == NIL


def test_a_reader_that_waited_already_goes_on_waiting_when_time_stops(
    direct: Direct, client: DirectClient
) -> None:
    reader = direct.client()
    assert reader.send("XREAD", "BLOCK", 50, "STREAMS", "k", "$") is None
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    assert not direct.server.services.blocking._deadlines.is_armed
    direct.now_ms += 20
    assert client.send("DEBUG", "CLOCK", "RESET") == OK
    assert direct.server.services.blocking._deadlines.is_armed
    direct.advance(30)
    assert reader.reply_when_woken == NIL


def test_a_pause_lasts_until_the_time_that_stands_still_is_moved(
    direct: Direct, client: DirectClient
) -> None:
    pauses = direct.server.services.pauses
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    assert client.send("CLIENT", "PAUSE", 100) == OK
    direct.now_ms += 1000
    in_loop(pauses._alarm._run)
    assert pauses.active
    advance(client, 100)
    assert not pauses.active
    assert client.send("DEBUG", "CLOCK", "RESET") == OK
    assert client.send("CLIENT", "PAUSE", 100) == OK
    pauses._alarm._run()
    assert not pauses.active


def test_keys_expire_when_the_time_that_stands_still_is_moved(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 100)
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    direct.now_ms += 1000
    assert client.send("PTTL", "k") == b":100\r\n"
    advance(client, 100)
    assert client.send("EXISTS", "k") == b":0\r\n"


def test_what_policies_do_waits_until_the_time_that_stands_still_is_moved(
    direct: Direct, client: DirectClient
) -> None:
    assert client.send("DEBUG", "CLOCK", "FREEZE") == OK
    assert client.send("XGROUP", "CREATE", "k", "g", "0", "MKSTREAM") == OK
    assert client.send("PENSTOCK", "POLICY", "SET", "k", "GROUP", "g", "ack-wait", 1000) == OK
    client.send("XADD", "k", "1-1", "a", "b")
    client.send("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "k", ">")
    waiting = direct.client()
    assert waiting.send("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 0, "STREAMS", "k", ">") is None
    assert not direct.server.services.policies.due.is_armed
    advance(client, 999)
    assert waiting.parked
    advance(client, 1)
    reply = waiting.reply_when_woken
    assert reply is not None
    assert b"1-1" in reply


# --- how often it is looked at ---------------------------------------------------------------


def execute(client: DirectClient, request: str) -> bytes | None:
    """The reply to a request that came in the same read as the one before it."""
    return client.server.services.dispatcher.execute(client.session, request.encode().split())


def test_the_commands_of_a_read_share_a_time_for_a_millisecond_of_work(direct: Direct) -> None:
    client, watch = direct.client(), direct.server.state.stopwatch
    looks = iter((0, 400_000, 999_999, 1_000_000, 1_000_001, 1_000_002))
    watch._nanoseconds = lambda: next(looks)
    watch.begin()
    found = []
    for _ in range(4):
        found.append(execute(client, "XADD k * a b"))
        direct.now_ms += 1
    ids = [f"{START_MS}-0", f"{START_MS}-1", f"{START_MS}-2", f"{START_MS + 3}-0"]
    assert found == [b"$15\r\n%b\r\n" % each.encode() for each in ids]
    assert list(looks) == []


def test_a_command_takes_as_long_as_has_passed_since_the_end_of_the_last_one(
    direct: Direct,
) -> None:
    client, state = direct.client(), direct.server.state
    looks = iter((100, 130, 200, 201))
    state.stopwatch._nanoseconds = lambda: next(looks)
    state.stopwatch.begin()
    for request in ("PING", "ECHO a", "PING"):
        execute(client, request)
    assert state.table[b"ping"].nanoseconds == 31
    assert state.table[b"echo"].nanoseconds == 70


def test_a_clock_that_was_turned_is_another_for_the_next_command_of_the_read(
    direct: Direct,
) -> None:
    client = direct.client()
    direct.server.state.stopwatch.begin()
    assert execute(client, f"DEBUG CLOCK ADVANCE {HOUR}") == OK
    assert execute(client, "XADD k * a b") == b"$15\r\n%d-0\r\n" % (START_MS + HOUR)
