"""DEBUG FAULT HOLD, HELD, RELEASE and REST, on real sockets: what becomes of commands, and when
workers are at rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.net.test_intercepted import OK, PONG, client
from tests.server.net.test_intercepted import tester as tester_fixture
from tests.support.servers import PenstockThread
from tests.support.wire import Client

__all__ = ["client", "tester"]  # Fixtures, which pytest finds here.

tester = tester_fixture
QUEUED = b"+QUEUED\r\n"
REST = (
    "REST takes one or more of <name-pattern | USER pattern>, then [UNTIL state[,state...]]"
    " of absent, gone, busy, held, parked, idle, and [TIMEOUT milliseconds]"
)


@pytest.fixture
def driver(penstock: PenstockThread) -> Iterator[Client]:
    """Who holds commands, and reads replies as text."""
    with Client(penstock.address, encoding="utf-8") as driver:
        yield driver


def plain(reply: Any) -> Any:
    """A reply of RESP2 with dictionaries in place of pairs."""
    if not isinstance(reply, list):
        return reply
    values = [plain(each) for each in reply]
    if values and values[0] in ("client", "name", "rest"):
        return dict(zip(values[::2], values[1::2], strict=True))
    return values


def debug(driver: Client, line: str) -> Any:
    return plain(driver.ask("DEBUG", *line.split()))


def rest(driver: Client, line: str) -> dict[str, str]:
    """The states of workers, which come to rest."""
    reply = debug(driver, f"FAULT REST {line}")
    assert reply["rest"] == 1
    return {worker["name"]: worker["state"] for worker in reply["workers"]}


def named(client: Client, name: str) -> int:
    """Gives a client a name; returns its number."""
    client.send(f"CLIENT SETNAME {name}", "CLIENT ID")
    client.receive(OK)
    return int(client.line()[1:])


def hold(driver: Client, client: Client, line: str = "* CLIENT w") -> int:
    """Lets commands of the client be held; returns its number."""
    identity = named(client, "w")
    assert isinstance(debug(driver, f"FAULT ADD {line} HOLD"), int)
    return identity


# --- holding -----------------------------------------------------------------------------------


def test_a_held_command_waits_with_all_behind_it_and_what_was_answered_has_been_sent(
    client: Client, driver: Client
) -> None:
    identity = hold(driver, client, "GET CLIENT w TIMES 1")
    client.send("SET a 1", "GET b", "SET c 1")
    client.receive(OK)
    assert rest(driver, "w") == {"w": "held"}
    assert driver.ask("SET", "b", 1) == "OK", "others are served"
    assert driver.ask("EXISTS", "c") == 0
    assert debug(driver, f"FAULT RELEASE {identity}") == 1
    client.receive(b"$1\r\n1\r\n" + OK)
    assert debug(driver, f"FAULT RELEASE {identity}") == 0


def test_who_is_held_is_told_in_the_order_in_which_that_began(
    penstock: PenstockThread, driver: Client
) -> None:
    with Client(penstock.address) as first, Client(penstock.address) as second:
        numbers = [hold(driver, second, "* USER def* CLIENT w"), named(first, "w")]
        second.send("SELECT 3", "SET k v")
        rest(driver, "w")
        first.send("GET k")
        while len(debug(driver, "FAULT HELD")) < 2:
            pass
        told = {"name": "w", "user": "default", "state": "held", "fault": 1, "until": -1}
        assert debug(driver, "FAULT HELD") == [
            {"client": numbers[0], **told, "db": 3, "unsent": 0, "words": ["SET", "k", "v"]},
            {"client": numbers[1], **told, "db": 0, "unsent": 0, "words": ["GET", "k"]},
        ]


def test_a_held_client_is_shown_as_blocked_with_its_command(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("GET k")
    rest(driver, "w")
    line = driver.ask("CLIENT", "LIST", "ID", identity)
    assert " flags=b " in line
    assert " cmd=get " in line
    debug(driver, f"FAULT RELEASE {identity}")
    client.line()
    assert " flags=N " in driver.ask("CLIENT", "LIST", "ID", identity)


def test_passwords_of_held_commands_are_not_shown(client: Client, driver: Client) -> None:
    hold(driver, client, "AUTH CLIENT w")
    client.send("AUTH default secret")
    rest(driver, "w")
    assert debug(driver, "FAULT HELD")[0]["words"] == ["AUTH", "(redacted)", "(redacted)"]


def test_a_held_command_is_traced_and_struck_once(client: Client, driver: Client) -> None:
    debug(driver, "TRACE START")
    identity = hold(driver, client, "ECHO")
    debug(driver, "FAULT ADD ECHO ERROR TRYAGAIN")
    client.send("ECHO x")
    rest(driver, "w")
    debug(driver, f"FAULT RELEASE {identity}")
    client.receive(b"$1\r\nx\r\n")
    traced = [words for *_, words in driver.ask("DEBUG", "TRACE", "GET") if words[0] == "ECHO"]
    assert traced == [["ECHO", "x"]]


@pytest.mark.parametrize(
    ("action", "replies", "executed"),
    [
        ("CLOSE", b"", 0),
        ("NOREPLY", b"", 1),
        ("CUT 2", b"+O", 1),
        ("ERROR TRYAGAIN", b"-TRYAGAIN\r\n" + PONG, 0),
        ("READONLY", b"-READONLY You can't write against a read only replica.\r\n" + PONG, 0),
        ("DROP", PONG, 0),
        ("DELAY 1", OK + PONG, 1),
    ],
)
def test_an_action_befalls_what_is_released(
    client: Client, driver: Client, action: str, replies: bytes, executed: int
) -> None:
    identity = hold(driver, client, "SET CLIENT w")
    client.send("PING", "SET k v", "PING", "QUIT")
    client.receive(PONG)
    rest(driver, "w")
    assert debug(driver, f"FAULT RELEASE {identity} {action}") == 1
    assert client.rest().removesuffix(OK if PONG in replies else b"") == replies
    assert driver.ask("EXISTS", "k") == executed


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("RELEASE", "ERR unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG"),
        ("RELEASE w", "ERR value is not an integer or out of range"),
        ("RELEASE 1 HOLD", "ERR DEBUG FAULT: RELEASE takes any action but HOLD"),
        ("RELEASE 1 CLOSE now", "ERR DEBUG FAULT: the action comes last, but 'now' follows it"),
        ("RELEASE 1 EXPLODE", "ERR DEBUG FAULT: 'EXPLODE' is neither an option"),
        ("RELEASE w NOGROUP", "ERR DEBUG FAULT: NOGROUP needs a command with a group"),
        ("HELD 1", "ERR unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG"),
    ],
)
def test_a_wrong_release_is_refused_and_holds_on(
    client: Client, driver: Client, line: str, text: str
) -> None:
    identity = hold(driver, client)
    client.send("SET k v")
    rest(driver, "w")
    if "NOGROUP" in line:
        line = line.replace("w", str(identity))
    assert str(debug(driver, f"FAULT {line}")).startswith(text)
    assert len(debug(driver, "FAULT HELD")) == 1


# --- transactions, commands that wait, scripts -------------------------------------------------


def test_what_is_queued_is_held_and_exec_by_its_name(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("MULTI", "INCR n", "EXEC")
    for reply, words in ((OK, ["MULTI"]), (QUEUED, ["INCR", "n"]), (b"*1\r\n:1\r\n", ["EXEC"])):
        rest(driver, "w")
        assert debug(driver, "FAULT HELD")[0]["words"] == words
        debug(driver, f"FAULT RELEASE {identity}")
        client.receive(reply)


def test_an_exec_whose_reply_is_lost_has_happened(client: Client, driver: Client) -> None:
    identity = hold(driver, client, "EXEC")
    client.send("MULTI", "INCR n", "EXEC")
    rest(driver, "w")
    debug(driver, f"FAULT RELEASE {identity} NOREPLY")
    assert client.rest() == OK + QUEUED
    assert driver.ask("GET", "n") == "1"


def test_watched_keys_may_change_while_exec_is_held(client: Client, driver: Client) -> None:
    identity = hold(driver, client, "EXEC")
    client.send("HELLO 2", "WATCH n", "MULTI", "INCR n", "EXEC")
    rest(driver, "w")
    driver.ask("SET", "n", 5)
    debug(driver, f"FAULT RELEASE {identity}")
    client.send("QUIT")
    assert client.rest().endswith(OK + OK + QUEUED + b"*-1\r\n" + OK)


def test_a_command_that_blocks_is_held_before_it_waits_and_parked_then(
    client: Client, driver: Client
) -> None:
    debug(driver, "CLOCK FREEZE 1000")
    identity = hold(driver, client, "XREAD")
    client.send("XREAD BLOCK 500 STREAMS k 0")
    assert rest(driver, "w") == {"w": "held"}
    debug(driver, "CLOCK ADVANCE 1000")
    debug(driver, f"FAULT RELEASE {identity}")
    [worker] = debug(driver, "FAULT REST w UNTIL parked")["workers"]
    [told] = worker["clients"]
    assert (told["state"], told["until"], told["fault"]) == ("parked", 2500, 0)
    assert told["words"] == ["XREAD", "BLOCK", "500", "STREAMS", "k", "0"]
    driver.ask("XADD", "k", "1-1", "f", "v")
    assert client.line() in (b"*1\r\n", b"%1\r\n")


def test_the_reply_of_a_command_that_blocks_may_be_lost(client: Client, driver: Client) -> None:
    identity = hold(driver, client, "XREAD")
    client.send("XREAD BLOCK 0 STREAMS k 0")
    rest(driver, "w")
    debug(driver, f"FAULT RELEASE {identity} NOREPLY")
    assert rest(driver, "w") == {"w": "parked"}
    driver.ask("XADD", "k", "1-1", "f", "v")
    assert client.rest() == b""


def test_what_scripts_call_is_not_held(client: Client, driver: Client) -> None:
    hold(driver, client, "INCR")
    client.send(("EVAL", "return redis.call('INCR', KEYS[1])", "1", "n"))
    client.receive(b":1\r\n")


def test_a_client_that_wants_no_replies_is_held_all_the_same(
    client: Client, driver: Client
) -> None:
    identity = hold(driver, client, "SET")
    client.send("CLIENT REPLY OFF", "SET k v", "CLIENT REPLY ON")
    rest(driver, "w")
    assert driver.ask("EXISTS", "k") == 0
    debug(driver, f"FAULT RELEASE {identity}")
    client.receive(OK)
    assert driver.ask("EXISTS", "k") == 1


# --- what else happens meanwhile ---------------------------------------------------------------


@pytest.mark.parametrize("way", ["leaves", "is killed"])
def test_what_is_held_of_a_client_that_is_gone_never_runs(
    penstock: PenstockThread, client: Client, driver: Client, way: str
) -> None:
    identity = hold(driver, client, "SET TIMES 1")
    client.send("SET k v")
    rest(driver, "w")
    if way == "leaves":
        client.close()
    else:
        driver.ask("CLIENT", "KILL", "ID", identity)
        assert client.closed()
    assert rest(driver, "w UNTIL gone") == {"w": "gone"}
    assert debug(driver, f"FAULT RELEASE {identity}") == 0
    assert driver.ask("EXISTS", "k") == 0
    assert not penstock.server.services.interception.active
    penstock.call(penstock.server.services.check)


def test_a_server_stops_while_commands_are_held_and_waited_for() -> None:
    with (
        PenstockThread(enable_debug_command="yes") as server,
        Client(server.address) as client,
        Client(server.address, encoding="utf-8") as driver,
    ):
        hold(driver, client)
        driver.send("DEBUG PORT OPEN ann", "DEBUG FAULT REST w UNTIL gone TIMEOUT 86400000")
        driver.line()
        client.send("GET a")
        with Client(server.address, encoding="utf-8") as other:
            assert rest(other, "w") == {"w": "held"}


def test_clear_lets_all_run_and_one_that_is_cleared_by_number_holds_on(
    penstock: PenstockThread, client: Client, driver: Client
) -> None:
    hold(driver, client)
    client.send("PING")
    rest(driver, "w")
    assert debug(driver, "FAULT CLEAR 1") == 1
    assert len(debug(driver, "FAULT HELD")) == 1
    assert debug(driver, "FAULT CLEAR") == 0
    client.receive(PONG)
    assert not penstock.server.services.interception.active
    penstock.call(penstock.server.services.check)


def test_a_reset_ends_held_clients_and_ports_and_runs_nothing(
    penstock: PenstockThread, client: Client, driver: Client
) -> None:
    hold(driver, client)
    port = debug(driver, "PORT OPEN ann")
    with Client(port) as ann:
        assert ann.answer("PING") == PONG
        client.send("SET k v")
        rest(driver, "w")
        driver.send("DEBUG RESET", "EXISTS k", "DEBUG PORT LIST")
        driver.receive(b"+RESET\r\n:0\r\n*0\r\n")
        assert client.closed()
        assert ann.closed()
    assert driver.ask("EXISTS", "k") == 0
    assert not penstock.server.services.interception.active
    penstock.call(penstock.server.services.check)


def test_a_pause_and_a_hold_come_one_after_the_other(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    driver.ask("CLIENT", "PAUSE", 86_400_000, "WRITE")
    client.send("SET k v")
    assert rest(driver, "w UNTIL busy") == {"w": "busy"}
    driver.ask("CLIENT", "UNPAUSE")
    assert rest(driver, "w") == {"w": "held"}
    driver.ask("CLIENT", "PAUSE", 86_400_000, "WRITE")
    debug(driver, f"FAULT RELEASE {identity}")
    assert rest(driver, "w UNTIL busy") == {"w": "busy"}
    driver.ask("CLIENT", "UNPAUSE")
    client.receive(OK)


def test_a_flush_and_a_snapshot_leave_held_commands_alone(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("SET k v")
    rest(driver, "w")
    debug(driver, "SNAPSHOT TAKE s")
    driver.ask("FLUSHALL")
    debug(driver, "SNAPSHOT RESTORE s CLOCK FLUSHSCRIPTS")
    debug(driver, f"FAULT RELEASE {identity}")
    client.receive(OK)


def test_what_is_released_during_a_failover_is_refused(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("SET k v")
    rest(driver, "w")
    debug(driver, "FAULT FAILOVER 86400000")
    debug(driver, f"FAULT RELEASE {identity}")
    client.receive(b"-READONLY You can't write against a read only replica.\r\n")


def test_what_is_released_during_a_freeze_runs_after_it(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("SET k v")
    rest(driver, "w")
    debug(driver, "FAULT FREEZE 86400000")
    debug(driver, f"FAULT RELEASE {identity} NOREPLY")
    assert rest(driver, "w UNTIL busy") == {"w": "busy"}
    debug(driver, "FAULT CLEAR")
    assert client.rest() == b""
    assert driver.ask("EXISTS", "k") == 1


def test_many_are_held_at_once_and_go_on_in_any_order(
    penstock: PenstockThread, driver: Client
) -> None:
    debug(driver, "FAULT ADD INCR HOLD")
    clients = [Client(penstock.address) for _ in range(100)]
    numbers = [named(each, f"w{at}") for at, each in enumerate(clients)]
    for each in clients:
        each.send("INCR n")
    states = rest(driver, " ".join(f"w{at}" for at in range(100)))
    assert set(states.values()) == {"held"}
    for at, (each, number) in enumerate(reversed([*zip(clients, numbers, strict=True)])):
        debug(driver, f"FAULT RELEASE {number}")
        each.receive(b":%d\r\n" % (at + 1))
        each.close()


# --- rest --------------------------------------------------------------------------------------


def test_a_release_and_the_rest_after_it_are_one_request(client: Client, driver: Client) -> None:
    identity = hold(driver, client)
    client.send("INCR n", "INCR n")
    rest(driver, "w")
    driver.send(f"DEBUG FAULT RELEASE {identity}", "DEBUG FAULT REST w")
    assert driver.reply() == 1
    assert plain(driver.reply())["workers"][0]["state"] == "held"
    assert driver.ask("GET", "n") == "1", "it is the second one that is held now"


def test_idle_is_no_rest_unless_it_is_said(client: Client, driver: Client) -> None:
    named(client, "w")
    reply = debug(driver, "FAULT REST w TIMEOUT 0")
    assert (reply["rest"], reply["workers"][0]["state"]) == (0, "idle")
    reply = debug(driver, "FAULT REST w TIMEOUT 1")
    assert (reply["rest"], reply["workers"][0]["state"]) == (0, "idle")
    assert rest(driver, "w UNTIL held,idle") == {"w": "idle"}


@pytest.mark.parametrize(
    ("command", "state"), [("XREAD BLOCK 500 STREAMS k 0", "parked"), ("WAIT 1 500", "busy")]
)
def test_rest_comes_when_a_worker_is_woken_by_time(
    penstock: PenstockThread, client: Client, driver: Client, command: str, state: str
) -> None:
    debug(driver, "CLOCK FREEZE")
    named(client, "w")
    client.send(command)
    assert rest(driver, f"w UNTIL {state}") == {"w": state}
    driver.send("CLIENT SETNAME driver", "DEBUG FAULT REST w UNTIL idle")
    assert driver.reply() == "OK"
    with Client(penstock.address, encoding="utf-8") as other:
        assert rest(other, "driver UNTIL parked") == {"driver": "parked"}
        other.ask("DEBUG", "CLOCK", "ADVANCE", 500)
    assert plain(driver.reply())["rest"] == 1


def test_each_name_that_fits_is_a_worker_and_its_clients_are_one(
    penstock: PenstockThread, driver: Client
) -> None:
    with (
        Client(penstock.address) as first,
        Client(penstock.address) as pooled,
        Client(penstock.address) as second,
    ):
        named(first, "ann")
        named(pooled, "ann")
        named(second, "anton")
        first.send("XREAD BLOCK 0 STREAMS k 0")
        second.send("XREAD BLOCK 0 STREAMS k 0")
        assert rest(driver, "an* USER nobody") == {
            "ann": "parked",
            "anton": "parked",
            "nobody": "gone",
        }
        reply = debug(driver, "FAULT REST ann TIMEOUT 0")
        assert [each["state"] for each in reply["workers"][0]["clients"]] == ["parked", "idle"]
        reply = debug(driver, "FAULT REST USER default TIMEOUT 0")
        assert len(reply["workers"][0]["clients"]) == 3, "the asking client is none of them"


def test_a_wait_for_rest_ends_as_other_waits_do(
    penstock: PenstockThread, client: Client, driver: Client
) -> None:
    identity = named(client, "driver")
    for end in ("CLIENT UNBLOCK {}", "CLIENT UNBLOCK {} ERROR"):
        client.send("DEBUG FAULT REST w UNTIL held")
        assert rest(driver, "driver UNTIL parked") == {"driver": "parked"}
        assert driver.ask(*end.format(identity).split()) == 1
        assert client.line() in (b"*-1\r\n", b"_\r\n") or end.endswith("ERROR")
    client.send("DEBUG FAULT REST w UNTIL held")
    rest(driver, "driver UNTIL parked")
    client.close()
    assert rest(driver, "driver UNTIL gone") == {"driver": "gone"}
    penstock.call(penstock.server.services.check)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", REST),
        ("UNTIL held", REST),
        ("w UNTIL held,", REST),
        ("w UNTIL asleep", REST),
        ("w USER", "USER needs a value"),
        ("w TIMEOUT", "TIMEOUT needs a value"),
        ("w TIMEOUT 86400001", "TIMEOUT takes an integer from 0 to 86400000"),
    ],
)
def test_a_wrong_question_is_told(driver: Client, line: str, text: str) -> None:
    assert str(debug(driver, f"FAULT REST {line}")) == f"ERR DEBUG FAULT: {text}"


def test_there_is_no_rest_within_a_transaction(driver: Client) -> None:
    driver.send("MULTI", "DEBUG FAULT REST w", "DEBUG PORT OPEN ann", "EXEC")
    assert [str(driver.reply()) for _ in range(3)] == ["OK", "QUEUED", "QUEUED"]
    text = "ERR Command not allowed inside a transaction"
    assert [str(each) for each in driver.reply()] == [text] * 2
