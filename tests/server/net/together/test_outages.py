"""DEBUG FAULT FAILOVER, FREEZE and DISK, on real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.server.net.test_intercepted import OK, PONG, client
from tests.server.net.test_intercepted import tester as tester_fixture
from tests.support.direct import Direct
from tests.support.servers import PenstockThread
from tests.support.wire import Client

__all__ = ["client", "tester"]  # Fixtures, which pytest finds here.

DAY = 86_400_000
READ_ONLY = b"-READONLY You can't write against a read only replica.\r\n"
UNBLOCKED = (
    b"-UNBLOCKED force unblock from blocking operation,"
    b" instance state changed (master -> replica?)\r\n"
)
tester = tester_fixture


def wait_until(server: PenstockThread, condition: Callable[[], object]) -> None:
    """Asks in the loop of the server until that is so."""
    while not server.call(condition):
        pass


# --- FAILOVER --------------------------------------------------------------------------------


def test_a_failover_ends_waits_refuses_writes_and_ends_connections(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    assert tester.answer("XGROUP CREATE k g 0 MKSTREAM") == OK
    with Client(penstock.address) as reader:
        reader.send("XREADGROUP GROUP g c BLOCK 0 STREAMS k >")
        wait_until(penstock, lambda: penstock.server.services.blocking.waiters)
        assert tester.answer(f"DEBUG FAULT FAILOVER {DAY}") == OK
        reader.receive(UNBLOCKED)
        client.send("SET k2 v", "XADD k * f v", "EXISTS k k2", "PUBLISH c m", "PING")
        client.receive(READ_ONLY * 2 + b":1\r\n:0\r\n" + PONG)
        assert tester.answer("SET k2 v") == READ_ONLY, "it is a replica for everybody"
        assert tester.answer("DEBUG FAULT FAILOVER 0") == OK
        assert reader.rest() == b""
        assert client.rest() == b""
    assert tester.answer("SET k2 v") == OK, "the asking connection stays"
    assert not penstock.server.services.interception.active


def test_a_transaction_that_writes_is_refused_during_a_failover(
    client: Client, tester: Client
) -> None:
    client.send("MULTI", "PING")
    client.receive(OK + b"+QUEUED\r\n")
    tester.answer(f"DEBUG FAULT FAILOVER {DAY}")
    client.send("EXEC", "MULTI", "SET k v", "EXEC")
    client.receive(b"*1\r\n" + PONG + OK + READ_ONLY)
    client.receive(b"-EXECABORT Transaction discarded because of previous errors.\r\n")


def test_clear_ends_a_failover_and_leaves_connections_alone(client: Client, tester: Client) -> None:
    tester.answer(f"DEBUG FAULT FAILOVER {DAY}")
    assert client.answer("SET k v") == READ_ONLY
    assert tester.answer("DEBUG FAULT CLEAR") == b":1\r\n"
    assert client.answer("SET k v") == OK
    assert tester.answer("DEBUG FAULT CLEAR") == b":0\r\n"


def test_a_client_of_redis_py_comes_through_a_failover(penstock: PenstockThread) -> None:
    with (
        redis.Redis(host=penstock.host, port=penstock.port, retry=Retry(NoBackoff(), 3)) as client,
        Client(penstock.address) as tester,
    ):
        client.ping()
        tester.answer("DEBUG FAULT FAILOVER 0")
        wait_until(penstock, lambda: not penstock.server.services.interception.active)
        assert client.set("k", "v") is True


# --- FREEZE ----------------------------------------------------------------------------------


def test_a_frozen_server_answers_nobody_but_debug_until_it_is_cleared(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    outages = penstock.server.services.interception.outages
    assert tester.answer(f"DEBUG FAULT FREEZE {DAY}") == OK
    client.send("SET a 1", "GET a", "PING")
    wait_until(penstock, lambda: len(outages._held) == 1)
    with Client(penstock.address) as late:
        late.send("GET a")
        wait_until(penstock, lambda: len(outages._held) == 2)
        assert not client.has_got()
        assert not late.has_got()
        assert tester.answer("DEBUG OBJECT a") == b"-ERR no such key\r\n", "nothing was executed"
        assert tester.answer("DEBUG FAULT CLEAR") == b":1\r\n"
        client.receive(OK + b"$1\r\n1\r\n" + PONG)
        late.receive(b"$1\r\n1\r\n")
    assert tester.answer("PING") == PONG
    assert not penstock.server.services.traffic.gate.frozen


def test_a_freeze_ends_by_itself(client: Client, tester: Client) -> None:
    tester.send("DEBUG FAULT FREEZE 1", "PING")
    tester.receive(OK + PONG)
    client.send("SET a 1", "PING")
    client.receive(OK + PONG)


def test_a_second_freeze_sets_its_end_anew(client: Client, tester: Client) -> None:
    tester.send(f"DEBUG FAULT FREEZE {DAY}", "DEBUG FAULT FREEZE 0", "PING")
    tester.receive(OK + OK + PONG)
    assert client.answer("PING") == PONG


def test_a_wait_that_ends_while_the_server_is_frozen_is_answered_later(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    client.send("PING", "XREAD BLOCK 60000 STREAMS k $", "ECHO x")
    client.receive(PONG)
    wait_until(penstock, lambda: penstock.server.services.blocking.waiters)
    tester.answer(f"DEBUG FAULT FREEZE {DAY}")
    assert tester.answer("DEBUG CLOCK ADVANCE 60000") == OK
    assert not penstock.server.services.blocking.waiters
    assert not client.has_got()
    tester.answer("DEBUG FAULT CLEAR")
    assert client.line() in (b"*-1\r\n", b"_\r\n")
    client.receive(b"$1\r\nx\r\n")


def test_a_client_may_leave_while_the_server_is_frozen(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    outages = penstock.server.services.interception.outages
    tester.answer(f"DEBUG FAULT FREEZE {DAY}")
    client.send("GET a")
    wait_until(penstock, lambda: outages._held)
    client.close()
    wait_until(penstock, lambda: not outages._held)
    tester.send("DEBUG FAULT CLEAR", "PING")
    tester.receive(b":1\r\n" + PONG)


def test_a_delayed_command_waits_for_the_end_of_a_freeze(
    penstock: PenstockThread, client: Client, tester: Client
) -> None:
    outages = penstock.server.services.interception.outages
    tester.answer("DEBUG FAULT ADD GET TIMES 1 DELAY 1")
    tester.answer(f"DEBUG FAULT FREEZE {DAY}")
    client.send("GET a")
    wait_until(penstock, lambda: outages._held)
    tester.answer("DEBUG FAULT FREEZE 0")
    client.send("PING")
    assert client.line() in (b"$-1\r\n", b"_\r\n")
    client.receive(PONG)


def test_a_frozen_server_stops() -> None:
    with PenstockThread(enable_debug_command="yes") as server, Client(server.address) as client:
        assert client.answer(f"DEBUG FAULT FREEZE {DAY}") == OK
        client.send("PING")
    assert not server.server.services.interception.outages.frozen


# --- DISK ------------------------------------------------------------------------------------


@pytest.fixture(params=["always", "everysec"])
def durable(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PenstockThread]:
    """A server with an append-only file."""
    with PenstockThread(
        enable_debug_command="yes", appendonly=True, appendfsync=request.param, dir=str(tmp_path)
    ) as server:
        yield server


@pytest.mark.parametrize(
    ("fault", "reason"), [("FULL", b"No space left on device"), ("error", b"Input/output error")]
)
def test_a_disk_that_fails_refuses_writes_and_then_recovers(
    durable: PenstockThread, fault: str, reason: bytes
) -> None:
    misconf = b"-MISCONF Errors writing to the AOF file: " + reason + b"\r\n"
    with Client(durable.address) as tester, Client(durable.address) as client:
        assert client.answer("SET a 1") == OK
        assert tester.answer(f"DEBUG FAULT DISK {fault}") == OK
        client.send("SET b 1")
        assert client.rest() == b"", "nobody can say whether it is kept"
        assert tester.answer("SET c 1") == misconf
        assert tester.answer("DEBUG FAULT DISK ok") == OK
        while (line := tester.answer("SET c 1")) != OK:
            assert line == misconf
            durable.call(durable.server.services.persistence.appender.cron, 2**50)


def test_a_slow_disk_lets_replies_wait_for_the_sync(tmp_path: Path) -> None:
    with (
        PenstockThread(
            enable_debug_command="yes", appendonly=True, appendfsync="always", dir=str(tmp_path)
        ) as server,
        Client(server.address) as tester,
        Client(server.address) as client,
    ):
        assert tester.answer(f"DEBUG FAULT DISK slow {DAY}") == OK
        client.send("SET a 1")
        wait_until(server, lambda: server.server.services.commit.flying)
        assert not client.has_got()
        assert tester.answer("DEBUG FAULT CLEAR") == b":1\r\n"
        client.receive(OK)


def test_what_a_frozen_server_had_executed_before_is_answered_later(tmp_path: Path) -> None:
    with (
        PenstockThread(
            enable_debug_command="yes", appendonly=True, appendfsync="always", dir=str(tmp_path)
        ) as server,
        Client(server.address) as tester,
        Client(server.address) as client,
    ):
        assert tester.answer(f"DEBUG FAULT DISK slow {DAY}") == OK
        client.send("SET a 1", "GET a")
        wait_until(server, lambda: server.server.services.commit.flying)
        tester.send(f"DEBUG FAULT FREEZE {DAY}", "DEBUG FAULT DISK ok")
        tester.receive(OK + OK)
        assert not client.has_got()
        assert tester.answer("DEBUG FAULT CLEAR") == b":1\r\n"
        client.receive(OK + b"$1\r\n1\r\n")


@pytest.mark.parametrize("words", ["broken", "full 5", "ok 1", "slow 1 2"])
def test_other_faults_of_a_disk_are_told(tester: Client, words: str) -> None:
    assert tester.answer(f"DEBUG FAULT DISK {words}") == (
        b"-ERR DEBUG FAULT: DISK takes full, slow [milliseconds], error or ok\r\n"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("DISK slow x", b"DEBUG FAULT: SLOW takes an integer from 0 to 86400000"),
        ("DISK", b"unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG HELP."),
        ("FREEZE", b"unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG HELP."),
        (
            "FAILOVER 1 2",
            b"unknown subcommand or wrong number of arguments for 'FAULT'. Try DEBUG HELP.",
        ),
        ("FREEZE -1", b"DEBUG FAULT: FREEZE takes an integer from 0 to 86400000"),
        ("failover soon", b"DEBUG FAULT: FAILOVER takes an integer from 0 to 86400000"),
    ],
)
def test_wrong_words_are_told_and_change_nothing(
    penstock: PenstockThread, tester: Client, words: str, text: bytes
) -> None:
    assert tester.answer(f"DEBUG FAULT {words}") == b"-ERR " + text + b"\r\n"
    interception = penstock.server.services.interception
    assert not interception.active
    assert interception.disk is not None
    assert interception.disk.fault is None


@pytest.mark.parametrize("words", ["FREEZE 1", "FAILOVER 1"])
def test_a_transaction_befalls_the_server_with_nothing(tester: Client, words: str) -> None:
    tester.send("MULTI", f"DEBUG FAULT {words}", "EXEC")
    tester.receive(OK + b"+QUEUED\r\n*1\r\n-ERR Command not allowed inside a transaction\r\n")


def test_a_server_that_allows_no_debug_has_a_plain_disk() -> None:
    assert Direct().server.services.interception.disk is None
