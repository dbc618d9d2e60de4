"""Into a cluster of real servers, and out of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from redis.crc import key_slot

from tests.conformance.reference import FOLDER_VARIABLE, RealServer
from tests.migration.conftest import each_server
from tests.migration.running import Ended, allowed, migrate
from tests.migration.streams import RICH, Client, everything
from tests.support.cluster import SLOTS, emptied, real_cluster
from tests.support.servers import PenstockThread

STREAMS = sorted(["orders", "trimmed", "empty", "counted", *(f"s{number}" for number in range(30))])


@pytest.fixture(scope="module", params=each_server(), ids=str)
def running(request: pytest.FixtureRequest) -> Iterator[list[RealServer]]:
    """Three primaries; each kind of real server that there is takes its turn."""
    if not request.param:
        pytest.skip(f"no redis-server and no valkey-server (see {FOLDER_VARIABLE})")
    with real_cluster(request.param) as nodes:
        yield nodes


@pytest.fixture
def cluster(running: list[RealServer]) -> Iterator[list[RealServer]]:
    """The same with nothing in it, and each slot where it was."""
    yield running
    emptied(running)


def fill(client: Client) -> None:
    """Has a stream with something of everything, and some that are spread over all nodes."""
    client.script(RICH)
    client.call_all([("XADD", f"s{number}", "1-1", "n", number) for number in range(30)])
    client.call_all([("SET", f"t{number}", number) for number in range(9)])


def url_of(nodes: list[RealServer]) -> str:
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def export(source: Client, cluster: list[RealServer], *options: str) -> Ended:
    url = f"redis://127.0.0.1:{source.port}"
    return migrate(url_of(cluster[:1]), "--from", url, *options, direction="export")


def load(cluster: list[RealServer], target: Client, *options: str) -> Ended:
    return migrate(url_of(cluster[1:]), "--to", f"redis://127.0.0.1:{target.port}", *options)


def inside_all(nodes: list[RealServer]) -> list[dict[bytes, object]]:
    """Everything that each node has."""
    found = []
    for node in nodes:
        with Client(node.port) as client:
            found.append(everything(client))
    return found


def test_each_key_goes_to_the_node_that_has_its_slot(
    source: Client, cluster: list[RealServer]
) -> None:
    fill(source)
    ended = export(source, cluster, "--strings")
    assert (ended.status, ended.err) == (0, "")
    assert ended.results == dict.fromkeys(STREAMS, "equal")
    assert "9 strings: 9 copied, 0 there already\n" in ended.out
    place = f"cluster 127.0.0.1:{cluster[0].port}"
    assert ended.out.startswith(f"source 127.0.0.1:{source.port}/0 -> target {place}\n")
    found = inside_all(cluster)
    for (first, last), there in zip(SLOTS, found, strict=True):
        assert there
        assert all(first <= key_slot(key) <= last for key in there)
    assert {key: value for there in found for key, value in there.items()} == everything(source)


def test_an_export_is_continued_on_every_node(source: Client, cluster: list[RealServer]) -> None:
    fill(source)
    export(source, cluster)
    source.call_all([("XADD", f"s{number}", "2-1", "n", number) for number in range(30)])
    source.script("XREADGROUP GROUP bar carol COUNT 2 STREAMS orders >\nXACK orders bar 3-0")
    ended = export(source, cluster)
    assert ended.status == 0
    assert "s7: 1 entry added to the 1 there; 0 groups, 0 pending entries" in ended.out
    source.send("DEL " + " ".join(f"t{number}" for number in range(9)))
    merged = {key: value for there in inside_all(cluster) for key, value in there.items()}
    assert merged == everything(source)


def test_the_keys_of_all_nodes_come_back(
    source: Client, target: Client, cluster: list[RealServer]
) -> None:
    fill(source)
    export(source, cluster, "--strings")
    ended = load(cluster, target, "--strings")
    assert (ended.status, ended.results) == (0, dict.fromkeys(STREAMS, "equal"))
    assert everything(target) == everything(source)


def test_a_cluster_is_not_copied_onto_itself(cluster: list[RealServer]) -> None:
    ended = migrate(url_of(cluster[:1]), "--to", url_of(cluster[1:]))
    assert ended.status == 1
    assert ended.err.endswith(" are the same database\n")


def test_a_node_that_is_down_is_no_obstacle_to_asking_the_next(
    source: Client, cluster: list[RealServer]
) -> None:
    fill(source)
    url = f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster[2].port}"
    near = f"redis://127.0.0.1:{source.port}"
    assert migrate(url, "--from", near, direction="export").status == 0


def test_a_cluster_of_which_no_node_answers_is_told(source: Client) -> None:
    near = f"redis://127.0.0.1:{source.port}"
    ended = migrate("redis+cluster://127.0.0.1:1", "--from", near, direction="export")
    assert (ended.status, ended.out) == (1, "")
    text = "the target 127.0.0.1:1/0 can't be reached: Connection refused"
    assert ended.err == f"penstock export: {text}\n"


def test_a_server_that_is_no_cluster_is_told(source: Client, target: Client) -> None:
    url = f"redis+cluster://127.0.0.1:{target.port}"
    near = f"redis://127.0.0.1:{source.port}"
    ended = migrate(url, "--from", near, direction="export")
    text = f"the target 127.0.0.1:{target.port}/0 refuses: "
    assert (ended.status, ended.err) == (
        1,
        f"penstock export: {text}This instance has cluster support disabled\n",
    )


@pytest.mark.parametrize(
    "args", ["redis+cluster://a --db 0", "redis://a --to redis+cluster://b --db all"]
)
def test_databases_do_not_go_with_a_cluster(args: str) -> None:
    ended = migrate(*args.split())
    assert ended.status == 2
    assert "--db does not go with a cluster, whose keys are all in database 0" in ended.err


def test_the_commands_that_the_page_names_are_enough_on_every_node(
    source: Client, target: Client, cluster: list[RealServer]
) -> None:
    fill(source)
    with Client(cluster[0].port) as client:
        names = {name for end in ("source", "target") for name in allowed(end)} | {"CLUSTER"}
        rules = [f"+{name}" for name in names if client.call("COMMAND", "INFO", name)[0]]
    user = ("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "-@all", *rules)
    for node in cluster:
        with Client(node.port) as client:
            client.call(*user)
    clerk = f"redis+cluster://clerk:secret@127.0.0.1:{cluster[0].port}"
    near = f"redis://127.0.0.1:{source.port}"
    assert migrate(clerk, "--from", near, direction="export").status == 0
    assert migrate(clerk, "--to", f"redis://127.0.0.1:{target.port}").status == 0


# --- slots on their way ----------------------------------------------------------------------


@pytest.fixture
def moving(cluster: list[RealServer]) -> Iterator[list[RealServer]]:
    """The slot of the stream "s0" is open: it moves from its node to another one."""
    slot = key_slot(b"s0")
    [owner] = [
        node for node, (first, last) in zip(cluster, SLOTS, strict=True) if first <= slot <= last
    ]
    other = next(node for node in cluster if node is not owner)
    with redis.Redis(port=owner.port) as here, redis.Redis(port=other.port) as there:
        ids = [client.execute_command("CLUSTER", "MYID") for client in (here, there)]
        here.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        there.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        yield cluster
        for client in (here, there):
            client.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


def test_a_source_that_moves_slots_is_not_copied(moving: list[RealServer], target: Client) -> None:
    ended = load(moving, target)
    assert (ended.status, everything(target)) == (1, {})
    assert ended.err.endswith(" is moving slots: run it again when that is done\n")


def test_a_key_that_a_node_will_not_take_ends_an_export(
    moving: list[RealServer], source: Client
) -> None:
    source.send("XADD s0 1-1 n 0")
    ended = export(source, moving)
    assert (ended.status, inside_all(moving)) == (1, [{}, {}, {}])
    assert f"refuses: ASK {key_slot(b's0')} 127.0.0.1:" in ended.err
    assert ended.err.endswith("what was copied is kept, and the same command goes on from there\n")


def test_slots_without_a_server_are_counted(
    penstock: PenstockThread, cluster: list[RealServer]
) -> None:
    with redis.Redis(port=cluster[0].port) as client:
        client.execute_command("CLUSTER", "DELSLOTS", 0, 1)
        try:
            ended = migrate(url_of(cluster[:1]), "--to", penstock.url)
        finally:
            client.execute_command("CLUSTER", "ADDSLOTS", 0, 1)
    assert ended.status == 1
    assert ended.err.endswith(" has no server for 2 of its slots\n")
