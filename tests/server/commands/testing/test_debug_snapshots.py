"""DEBUG SNAPSHOT, and all that hears of what it changes."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

OK = b"+OK\r\n"


def snapshot(client: DirectClient, line: str) -> bytes:
    reply = client.send("DEBUG", "SNAPSHOT", *line.split())
    assert reply is not None
    return reply


def fill(client: DirectClient) -> None:
    """Data of all kinds in two databases, with a pending entry and an idempotent ID."""
    client.send("XADD", "k", "IDMP", "p", "i1", "*", "f", "v")
    client.send("XGROUP", "CREATE", "k", "g", 0)
    client.send("XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">")
    client.send("SET", "s", "v", "PX", 60_000)
    client.send("SELECT", 3)
    client.send("SET", "other", "x")
    client.send("SELECT", 0)


def test_everything_is_put_back_and_nothing_else_stays(
    direct: Direct, client: DirectClient
) -> None:
    fill(client)
    assert snapshot(client, "TAKE start") == OK
    pending = client.send("XPENDING", "k", "g", "-", "+", 10)
    client.send("XACK", "k", "g", "1700000000000-0")
    client.send("XADD", "k", "*", "f", "v")
    client.send("SET", "new", "v")
    client.send("DEL", "s")
    client.send("SELECT", 3)
    client.send("DEL", "other")
    client.send("SELECT", 0)
    assert snapshot(client, "restore start") == OK
    assert client.send("XPENDING", "k", "g", "-", "+", 10) == pending
    assert client.send("XLEN", "k") == b":1\r\n"
    assert client.send("EXISTS", "new") == b":0\r\n"
    assert client.send("PTTL", "s") == b":60000\r\n"
    reply = client.send("XADD", "k", "IDMP", "p", "i1", "*", "f", "v")
    assert reply == b"$15\r\n1700000000000-0\r\n", "the idempotent ID is known again"
    client.send("SELECT", 3)
    assert client.send("GET", "other") == b"$1\r\nx\r\n"
    direct.server.state.keyspace.check()


def test_snapshots_have_names(client: DirectClient) -> None:
    assert snapshot(client, "LIST") == b"*0\r\n"
    for number in (1, 2):
        client.send("SET", "n", number)
        assert snapshot(client, f"TAKE s{number}") == OK
    assert snapshot(client, "LIST") == b"*2\r\n$2\r\ns1\r\n$2\r\ns2\r\n"
    snapshot(client, "RESTORE s1")
    assert client.send("GET", "n") == b"$1\r\n1\r\n"
    assert snapshot(client, "TAKE s2") == OK, "a name may be taken again"
    client.send("SET", "n", 3)
    snapshot(client, "RESTORE s2")
    assert client.send("GET", "n") == b"$1\r\n1\r\n"
    assert snapshot(client, "DROP s1") == b":1\r\n"
    assert snapshot(client, "DROP s1") == b":0\r\n"
    assert snapshot(client, "RESTORE s1") == (b"-ERR DEBUG SNAPSHOT: there is no snapshot 's1'\r\n")
    assert client.send("GET", "n") == b"$1\r\n1\r\n"


@pytest.mark.parametrize("line", ["", "TAKE", "TAKE a b", "LIST a", "KEEP a", "RESTORE"])
def test_other_shapes_are_unknown(client: DirectClient, line: str) -> None:
    assert snapshot(client, line) == (
        b"-ERR unknown subcommand or wrong number of arguments for 'SNAPSHOT'. Try DEBUG HELP.\r\n"
    )


def test_a_transaction_takes_and_restores_nothing(direct: Direct, client: DirectClient) -> None:
    client.send("MULTI")
    snapshot(client, "TAKE a")
    client.send("SET", "k", "v")
    assert client.send("EXEC") == (
        b"*2\r\n-ERR Command not allowed inside a transaction\r\n+OK\r\n"
    )
    assert direct.server.services.interception.snapshots == {}


def test_a_disk_that_fails_prevents_it(direct: Direct, client: DirectClient) -> None:
    snapshot(client, "TAKE a")
    client.send("SET", "k", "v")
    direct.server.state.set_disk_error("No space left on device")
    assert snapshot(client, "RESTORE a") == (
        b"-MISCONF Errors writing to the AOF file: No space left on device\r\n"
    )
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


def test_the_transaction_of_who_watches_a_key_is_aborted(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v")
    snapshot(client, "TAKE a")
    watcher = direct.client()
    watcher.send("WATCH", "k")
    snapshot(client, "RESTORE a")
    watcher.send("MULTI")
    assert watcher.send("EXEC") == b"*-1\r\n"


def test_a_reader_that_waits_gets_what_is_put_back(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "k", "5-1", "f", "v")
    snapshot(client, "TAKE a")
    client.send("DEL", "k")
    reader = direct.client()
    assert reader.send("XREAD", "BLOCK", 0, "STREAMS", "k", "1-1") is None
    snapshot(client, "RESTORE a")
    reply = reader.reply_when_woken
    assert reply is not None
    assert b"5-1" in reply


def test_a_reader_of_a_group_that_is_gone_hears_it(direct: Direct, client: DirectClient) -> None:
    snapshot(client, "TAKE empty")
    client.send("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    reader = direct.client()
    assert reader.send("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "k", ">") is None
    snapshot(client, "RESTORE empty")
    assert reader.reply_when_woken == (
        b"-NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option\r\n"
    )


def test_keyspace_events_tell_what_came_back(direct: Direct, client: DirectClient) -> None:
    fill(client)
    snapshot(client, "TAKE a")
    listener = Listener(direct)
    snapshot(client, "RESTORE a")
    assert listener.heard() == [
        "new k",
        "restore k",
        "new s",
        "restore s",
        "new other @3",
        "restore other @3",
    ]


def test_clients_that_keep_copies_forget_them(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    snapshot(client, "TAKE a")
    reader = direct.client(resp3=True)
    reader.send("CLIENT", "TRACKING", "ON")
    reader.send("GET", "k")
    snapshot(client, "RESTORE a")
    assert b">2\r\n$10\r\ninvalidate\r\n_\r\n" in reader.take_pushed()


def test_policies_come_back_and_are_in_force(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "k", "1-1", "f", "v")
    client.send("XGROUP", "CREATE", "k", "g", 0)
    client.send("PENSTOCK", "POLICY", "SET", "k", "GROUP", "g", "ack-wait", 1000)
    read = ("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">")
    client.send(*read)
    snapshot(client, "TAKE a")
    client.send("FLUSHALL")
    snapshot(client, "RESTORE a")
    assert client.send("PENSTOCK", "POLICY", "GET", "k", "GROUP", "g") == (
        b"*2\r\n$8\r\nack-wait\r\n$4\r\n1000\r\n"
    )
    assert client.send(*read) == b"*-1\r\n"
    direct.advance(1000)
    reply = client.send(*read)
    assert reply is not None
    assert b"1-1" in reply, "nobody has acknowledged the entry in time"


# --- the clock and scripts ---------------------------------------------------------------------


@pytest.mark.parametrize("to_ms", [9_000_000, 4_000])
@pytest.mark.parametrize("frozen", [True, False])
def test_the_clock_is_put_back_to_where_it_was(
    direct: Direct, client: DirectClient, to_ms: int, frozen: bool
) -> None:
    client.send("DEBUG", "CLOCK", "FREEZE" if frozen else "SET", 5_000)
    client.send("SET", "s", "v", "PX", 3_000)
    snapshot(client, "TAKE start")
    client.send("DEBUG", "CLOCK", "RESET" if frozen else "FREEZE")
    client.send("DEBUG", "CLOCK", "SET", to_ms)
    assert snapshot(client, "RESTORE start clock") == OK
    assert client.send("TIME") == b"*2\r\n$1\r\n5\r\n$1\r\n0\r\n"
    assert client.send("PTTL", "s") == b":3000\r\n"
    direct.advance(1_000)
    now = 5 if frozen else 6
    assert client.send("TIME") == b"*2\r\n$1\r\n%d\r\n$1\r\n0\r\n" % now


def test_what_is_due_later_is_due_with_the_data_of_that_time(client: DirectClient) -> None:
    client.send("DEBUG", "CLOCK", "FREEZE", 9_000)
    client.send("SET", "s", "new")
    snapshot(client, "TAKE start")
    client.send("DEBUG", "CLOCK", "SET", 1_000)
    client.send("SET", "s", "old", "PX", 5_000)
    snapshot(client, "RESTORE start CLOCK")
    assert client.send("GET", "s") == b"$3\r\nnew\r\n"
    assert client.send("PTTL", "s") == b":-1\r\n"


def test_a_wait_lasts_no_longer_when_the_clock_is_put_back(
    direct: Direct, client: DirectClient
) -> None:
    client.send("DEBUG", "CLOCK", "FREEZE", 5_000)
    snapshot(client, "TAKE start")
    client.send("DEBUG", "CLOCK", "SET", 100_000)
    reader = direct.client()
    assert reader.send("XREAD", "BLOCK", 500, "STREAMS", "k", "$") is None
    snapshot(client, "RESTORE start CLOCK")
    client.send("DEBUG", "CLOCK", "ADVANCE", 500)
    assert reader.reply_when_woken == b"*-1\r\n"


def test_scripts_go_only_if_that_is_said(client: DirectClient) -> None:
    client.send("SCRIPT", "LOAD", "return 1")
    sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
    code = "#!lua name=l\nredis.register_function('f', function() return 1 end)"
    assert client.send("FUNCTION", "LOAD", code) == b"$1\r\nl\r\n"
    snapshot(client, "TAKE start")
    snapshot(client, "RESTORE start")
    assert client.send("SCRIPT", "EXISTS", sha) == b"*1\r\n:1\r\n"
    snapshot(client, "RESTORE start FLUSHSCRIPTS CLOCK")
    assert client.send("SCRIPT", "EXISTS", sha) == b"*1\r\n:0\r\n"
    assert client.send("FUNCTION", "LIST") != b"*0\r\n", "libraries stay"


def test_options_that_there_are_not_change_nothing(client: DirectClient) -> None:
    snapshot(client, "TAKE start")
    client.send("SET", "s", "v")
    text = b"-ERR DEBUG SNAPSHOT: RESTORE takes a name, then [CLOCK] [FLUSHSCRIPTS]\r\n"
    assert snapshot(client, "RESTORE start TIME") == text
    assert client.send("EXISTS", "s") == b":1\r\n"
