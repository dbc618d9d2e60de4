"""Replicas that are slow or silent, and what clients and operators see of them."""

from __future__ import annotations

import pytest
import redis

from server.runtime.clockwork import Slice
from server.runtime.histogram import Histogram
from server.web.metrics.exposition import scrape
from server.web.survey import STEP_NS
from tests.server.replication.conftest import Follow
from tests.server.web.reading import samples, value
from tests.support.servers import PenstockThread
from tests.support.wire import wait_until


def test_role_and_info_tell_who_follows(follow: Follow, client: redis.Redis) -> None:
    follower = follow("ip-address", "10.1.2.3")
    client.set("k", "v")
    follower.until("SET", "k", "v")
    follower.acknowledge()
    while (role := client.execute_command("ROLE"))[2][0][2] == b"0":
        pass
    offset = str(follower.offset).encode()
    assert role == [b"master", follower.offset, [[b"10.1.2.3", b"7000", offset]]]
    replication = client.info("replication")
    assert replication["connected_slaves"] == 1
    assert replication["slave0"] == {
        "ip": "10.1.2.3",
        "port": 7000,
        "state": "online",
        "offset": follower.offset,
        "lag": 0,
    }
    assert replication["master_replid"] == follower.replication_id
    assert replication["repl_backlog_active"] == 1
    assert replication["repl_backlog_first_byte_offset"] == 1


def test_metrics_tell_what_each_replica_has(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = follow("ip-address", "10.1.2.3")
    client.set("k", "v")
    follower.until("SET", "k", "v")
    follower.acknowledge()
    client.wait(1, 0)
    pieces = penstock.run(scrape(penstock.server.services, Histogram(), Slice(STEP_NS, lambda: 0)))
    found = samples(b"".join(pieces).decode())
    labels = {"slave_ip": "10.1.2.3", "slave_port": "7000", "slave_state": "online"}
    assert value(found, "redis_connected_slave_offset_bytes", **labels) == follower.offset
    assert value(found, "redis_connected_slave_lag_seconds", **labels) is not None
    assert value(found, "redis_master_repl_offset") == client.info()["master_repl_offset"]


def test_a_replica_is_a_client_of_a_type_of_its_own(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    (line,) = client.client_list(_type="replica")
    assert (line["flags"], line["cmd"], line["user"]) == ("S", "replconf", "default")
    assert [each["flags"] for each in client.client_list(_type="normal")] == ["N"]
    assert client.execute_command("CLIENT", "KILL", "TYPE", "slave") == 1
    assert follower.is_cut_off()


def test_a_replica_that_does_not_read_is_cut_off_and_nobody_waits_for_it(
    follow: Follow, client: redis.Redis
) -> None:
    follower = follow()
    client.config_set("client-output-buffer-limit", "replica 3mb 0 0")
    for number in range(200):
        client.set("k", f"{number}" + "x" * 100_000)
    assert client.info("replication")["connected_slaves"] == 0
    assert client.info("stats")["client_output_buffer_limit_disconnections"] == 1
    assert follower.is_cut_off()


def test_one_that_reads_in_time_is_sent_all_that_was_kept_for_it(
    follow: Follow, client: redis.Redis
) -> None:
    follower = follow()
    for number in range(100):
        client.set("k", f"{number}" + "x" * 100_000)
    assert client.info("replication")["repl_backlog_histlen"] > 4_000_000
    commands = follower.until("SET", "k", "99" + "x" * 100_000)
    assert len(commands) == 1 + 99
    client.set("k", "small")
    follower.until("SET", "k", "small")
    assert client.info("replication")["repl_backlog_histlen"] < 1_200_000


def test_a_replica_that_was_not_heard_of_for_long_is_cut_off(
    follow: Follow, client: redis.Redis
) -> None:
    follower = follow()
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 59_000)
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 3_000)
    assert follower.is_cut_off()


def test_a_replica_is_no_idle_client(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = follow()
    client.config_set("timeout", 5)
    penstock.call(penstock.server.services.cron.turn_clock, 20_000)
    with redis.Redis(port=penstock.port) as other:
        other.set("k", "v")
    follower.until("SET", "k", "v")


def test_a_pause_does_not_hold_what_replicas_say(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = follow()
    client.set("k", "v")
    follower.until("SET", "k", "v")
    client.client_pause(60_000, all=True)
    follower.acknowledge()
    [replica] = penstock.server.services.replication.replicas.values()
    wait_until(lambda: replica.acknowledged == follower.offset)
    penstock.call(penstock.server.services.pauses.unpause)
    assert client.wait(1, 1) == 1


def test_memory_for_clients_is_not_taken_from_replicas(
    follow: Follow, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = follow()
    client.execute_command("CLIENT", "NO-EVICT", "ON")
    client.config_set("maxmemory-clients", 1)
    penstock.call(penstock.server.cron)
    client.set("k", "v")
    follower.until("SET", "k", "v")


def test_an_address_adds_no_line_to_info(follow: Follow, client: redis.Redis) -> None:
    follow("ip-address", "10.1.2.3\r\nrole:slave")
    replication = client.info("replication")
    assert replication["role"] == "master"
    assert replication["slave0"]["ip"] == "10.1.2.3  role:slave"


def test_a_version_is_three_numbers(client: redis.Redis) -> None:
    for version in ("9", "9.1", "9.1.x", "9.1.2.3"):
        with pytest.raises(redis.ResponseError) as refusal:
            client.execute_command("REPLCONF", "version", version)
        assert str(refusal.value) == f"Unrecognized version format: {version}"
    assert client.execute_command("REPLCONF", "version", "9.1.2") == b"OK"


def test_failover_says_how_to_hand_over(follow: Follow, client: redis.Redis) -> None:
    follow()
    with pytest.raises(redis.ResponseError) as refusal:
        client.execute_command("FAILOVER")
    assert str(refusal.value) == (
        "This server cannot hand over to a replica: hold writes with 'CLIENT PAUSE timeout"
        " WRITE', let 'WAIT' tell when the replica has everything, and send it"
        " 'REPLICAOF NO ONE'"
    )
