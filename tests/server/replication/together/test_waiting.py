"""What waits for replicas: WAIT, WAITAOF, min-replicas-to-write, and the end of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.server.replication.conftest import Follow
from tests.support.following import Follower
from tests.support.servers import PenstockThread
from tests.support.wire import Client, wait_until

GETACK = ("REPLCONF", "GETACK", "*")


@pytest.fixture
def asking(penstock: PenstockThread) -> Iterator[Client]:
    """A client of its own, whose reply is read later."""
    with Client(penstock.address) as asking:
        yield asking


def synchronised(follow: Follow, client: redis.Redis) -> Follower:
    """A replica that has acknowledged everything so far."""
    follower = follow()
    client.set("begin", "1")
    follower.until("SET", "begin", "1")
    follower.acknowledge()
    return follower


# --- WAIT ------------------------------------------------------------------------------------


def test_wait_ends_when_the_replicas_have_what_the_client_wrote(
    follow: Follow, client: redis.Redis, asking: Client
) -> None:
    followers = [synchronised(follow, client), synchronised(follow, client)]
    asking.send("SET k v", "WAIT 2 0")
    asking.receive(b"+OK\r\n")
    for follower in followers:
        follower.until(*GETACK)
        follower.acknowledge()
    asking.receive(b":2\r\n")


def test_wait_tells_how_many_have_it_when_its_time_is_up(
    follow: Follow, client: redis.Redis
) -> None:
    followers = [synchronised(follow, client), synchronised(follow, client)]
    client.set("k", "v")
    followers[0].until("SET", "k", "v")
    followers[0].acknowledge()
    assert client.wait(1, 0) == 1
    assert client.wait(2, 20) == 1


def test_wait_asks_for_nothing_that_is_known(follow: Follow, client: redis.Redis) -> None:
    follower = synchronised(follow, client)
    client.set("k", "v")
    follower.until("SET", "k", "v")
    follower.acknowledge()
    offset = str(follower.offset).encode()
    wait_until(lambda: client.execute_command("ROLE")[2][0][2] == offset)
    assert [client.wait(number, 0) for number in (0, 1)] == [1, 1]
    client.set("end", "v")
    assert follower.until("SET", "end", "v") == []


def test_wait_is_about_the_writes_of_its_own_client(
    follow: Follow, client: redis.Redis, asking: Client
) -> None:
    synchronised(follow, client)
    asking.send("SET k v")
    asking.receive(b"+OK\r\n")
    assert client.wait(1, 1) == 1
    assert client.wait(1, 0) == 1


def test_in_a_transaction_and_in_a_script_wait_does_not_wait(
    follow: Follow, client: redis.Redis
) -> None:
    synchronised(follow, client)
    client.execute_command("MULTI")
    client.execute_command("SET", "k", "v")
    client.execute_command("WAIT", 5, 0)
    assert client.execute_command("EXEC")[1] == 1
    assert client.eval("return redis.call('wait', 5, 0)", 0) in (0, 1)


def test_an_older_acknowledgement_takes_nothing_back(follow: Follow, client: redis.Redis) -> None:
    follower = synchronised(follow, client)
    offset = follower.offset
    follower.acknowledge(offset)
    follower.acknowledge(1)
    follower.send("REPLCONF ACK x")
    assert client.wait(1, 1) == 1


# --- WAITAOF ---------------------------------------------------------------------------------


def test_waitaof_counts_replicas_that_have_it_on_their_disk(
    follow: Follow, client: redis.Redis, asking: Client
) -> None:
    follower = synchronised(follow, client)
    asking.send("SET k v", "WAITAOF 0 1 0")
    asking.receive(b"+OK\r\n")
    follower.until(*GETACK)
    follower.acknowledge()
    follower.acknowledge(on_disk=follower.offset)
    asking.receive(b"*2\r\n:0\r\n:1\r\n")


def test_waitaof_tells_what_is_missing_when_its_time_is_up(
    follow: Follow, client: redis.Redis
) -> None:
    synchronised(follow, client)
    client.set("k", "v")
    assert client.waitaof(0, 1, 10) == [0, 0]


# --- min-replicas-to-write -------------------------------------------------------------------


def refused(client: redis.Redis) -> bool:
    """Whether a write is refused for want of replicas."""
    reply = client.eval("return redis.pcall('set', 'k', 'v')['err'] or ''", 0)
    return bool(reply == b"NOREPLICAS Not enough good replicas to write.")


def test_writes_are_taken_while_enough_replicas_follow(follow: Follow, client: redis.Redis) -> None:
    client.config_set("min-replicas-to-write", 1)
    assert refused(client)
    follower = follow()
    wait_until(lambda: not refused(client))
    assert client.info("replication")["min_slaves_good_slaves"] == 1
    follower.close()
    wait_until(lambda: refused(client))
    client.config_set("min-slaves-to-write", 0)
    assert not refused(client)


def test_a_replica_that_is_silent_does_not_count(follow: Follow, client: redis.Redis) -> None:
    follower = synchronised(follow, client)
    client.config_set("min-replicas-to-write", 1)
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 12_000)
    assert refused(client)
    client.config_set("min-replicas-max-lag", 0)
    assert not refused(client)
    client.config_set("min-replicas-max-lag", 10)
    assert refused(client)
    follower.acknowledge()
    wait_until(lambda: not refused(client))


# --- the end of the server -------------------------------------------------------------------


def test_a_server_that_ends_waits_until_its_replicas_have_everything(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = synchronised(follow, client)
    client.set("k", "last")
    penstock.call(penstock.server.stopping.set)
    follower.until("SET", "k", "last")
    follower.until(*GETACK)
    follower.acknowledge()
    assert follower.is_cut_off()


def test_it_does_not_wait_for_one_that_leaves(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = synchronised(follow, client)
    client.set("k", "last")
    penstock.call(penstock.server.stopping.set)
    follower.until("SET", "k", "last")
    follower.close()
    penstock.stop()


def test_shutdown_now_waits_for_nobody(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = synchronised(follow, client)
    client.set("k", "last")
    client.shutdown(nosave=True, now=True)
    assert follower.is_cut_off()
    penstock.stop()


def test_it_waits_no_longer_than_shutdown_timeout() -> None:
    with (
        PenstockThread(shutdown_timeout=0) as penstock,
        Follower(penstock.address) as follower,
    ):
        follower.synchronise()
        with redis.Redis(port=penstock.port) as writer:
            writer.set("k", "v")
        penstock.stop()
        assert follower.is_cut_off()
