"""What docs/moving.md says is done as it is printed, while producers and consumers are at work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.cluster import ClusterNode

from tests.conformance.reference import FOLDER_VARIABLE, RealServer
from tests.docs.markdown import blocks, fences, sections, shell_blocks
from tests.migration.conftest import each_server
from tests.migration.shop import TIMEOUT_S, Client, Shop
from tests.support.certificates import Certificates
from tests.support.cluster import real_cluster
from tests.support.ports import free_port
from tests.support.process import ROOT, PenstockProcess
from tests.support.servers import ONCE, PenstockThread

PAGE = (ROOT / "docs" / "moving.md").read_text()

BLOCKS = {title: found for title, text in sections(PAGE).items() if (found := shell_blocks(text))}
"""What is for a shell, by the heading."""

IMPORT = "From Redis or Valkey to Penstock"
REPLICATE = "From Penstock to Redis or Valkey"
EXPORT = "From Penstock to a cluster"

PLAIN: dict[str, Any] = {"protocol": 2, "decode_responses": True, "socket_timeout": TIMEOUT_S}
"""Replies that are the same for servers and clusters, from clients that outwait a pause."""


@pytest.fixture(params=each_server(), ids=lambda path: Path(path).name)
def program(request: pytest.FixtureRequest) -> str:
    """A real server's program; each of those that there are takes its turn."""
    path: str = request.param
    if not path or _redis_cli() is None:
        pytest.skip(f"no real server with redis-cli (see {FOLDER_VARIABLE})")
    return path


def _redis_cli() -> str | None:
    folder = os.environ.get(FOLDER_VARIABLE, "")
    return shutil.which("redis-cli", path=os.pathsep.join([folder, os.environ["PATH"]]))


@pytest.fixture
def real(program: str) -> Iterator[RealServer]:
    with RealServer(program) as server:
        yield server


@pytest.fixture
def penstock() -> Iterator[int]:
    """The port of a Penstock that is a process of its own."""
    with PenstockProcess("--port", "0", "--bind", "127.0.0.1") as process:
        yield process.address[1]


class Shell:
    """Runs blocks of the page, with servers of this machine in the place of those they name."""

    def __init__(self, folder: Path) -> None:
        self._ports: dict[str, int] = {}
        self._path = os.pathsep.join([str(folder), os.environ["PATH"]])
        redis_cli = _redis_cli()
        assert redis_cli is not None
        (folder / "redis-cli").symlink_to(redis_cli)
        command = folder / "penstock"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m penstock "$@"\n')
        command.chmod(0o755)

    def knows(self, **ports: int) -> Shell:
        """Names servers: ``new=7000`` is what the page calls ``new.example``."""
        self._ports.update(ports)
        return self

    def run(self, block: str) -> list[str]:
        """What the commands print, each of which has to succeed."""
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._local(block)],
            env={**os.environ, "PATH": self._path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
        return ended.stdout.splitlines()

    def _local(self, block: str) -> str:
        names = "|".join(self._ports)
        here = "127.0.0.1"
        block = re.sub(rf"-h ({names})\.example", partial(self._put, f"-h {here} -p"), block)
        block = re.sub(rf"REPLICAOF ({names})\.example 63(?:79|80)", self._primary, block)
        block = re.sub(rf"//({names})\.example:6379", self._url, block)
        assert ".example" not in block
        return block

    def _put(self, before: str, found: re.Match[str]) -> str:
        return f"{before} {self._ports[found[1]]}"

    def _primary(self, found: re.Match[str]) -> str:
        return self._put("REPLICAOF 127.0.0.1", found)

    def _url(self, found: re.Match[str]) -> str:
        return f"//127.0.0.1:{self._ports[found[1]]}"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def at(port: int) -> Client:
    """A client of the server on a port."""
    # A pool would connect again by itself, which leads to the new server if its name is the old
    # one, but to the old server where it is a port that tells them apart.
    return redis.Redis(port=port, single_connection_client=True, retry=ONCE, **PLAIN)


def in_cluster(port: int) -> Client:
    """A client of the cluster of which a node is on a port."""
    nodes = [ClusterNode("127.0.0.1", port)]
    return redis.RedisCluster(startup_nodes=nodes, **PLAIN)


def test_every_block_is_tried_out() -> None:
    assert {title: len(found) for title, found in BLOCKS.items()} == {
        "What clients have to do": 1,
        IMPORT: 3,
        REPLICATE: 4,
        "As a user": 1,
        "Over TLS": 1,
        EXPORT: 3,
        "Giving up": 1,
        "Rolling back": 1,
    }
    assert fences(PAGE) == ["python"]


def test_redis_to_penstock(program: str, real: RealServer, penstock: int, shell: Shell) -> None:
    shell.knows(old=real.port, penstock=penstock)
    with Shop(partial(at, real.port)) as shop:
        _import(shop, shell, penstock)
        shop.close()
    with at(penstock) as client:
        shop.check(client)
    with at(real.port) as left, pytest.raises(redis.ResponseError, match="NOREPLICAS"):
        left.xadd("orders", {"n": "late"})


def _import(shop: Shop, shell: Shell, to: int) -> None:
    copy, switch, release = BLOCKS[IMPORT]
    assert shell.run(copy)[-1] == "1 stream: 1 equal"
    shop.go_on()
    assert shell.run(switch)[-1] == "1 stream: 1 equal"
    _release(shop, shell, partial(at, to), release)


def _release(shop: Shop, shell: Shell, to: partial[Client], block: str) -> None:
    """Clients get the new address, and those that wait are told to go there."""
    shop.move(to)
    assert shell.run(block) == ["OK"]
    shop.wait_for_all_who_write()
    [end] = BLOCKS["What clients have to do"]
    assert shell.run(end) == ["1"]
    shop.go_on()


def test_penstock_to_redis_and_back(
    program: str, real: RealServer, penstock: int, shell: Shell
) -> None:
    shell.knows(new=real.port, penstock=penstock, old=penstock)
    follow, hold, promote, release = BLOCKS[REPLICATE]
    with Shop(partial(at, penstock)) as shop:
        assert shell.run(follow)[0] == "OK"
        shop.go_on()
        assert shell.run(hold)[-2:] == ["OK", "1"]
        assert shell.run(promote) == ["OK"]
        _release(shop, shell, partial(at, real.port), release)
        with at(penstock) as left, pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            left.xadd("orders", {"n": "late"})

        printed = shell.run(BLOCKS["Rolling back"][0])
        assert printed[-1] == "1 stream: 1 equal"
        assert any("added to the " in line for line in printed)
        shell.knows(old=real.port)
        _import(shop, shell, penstock)
        shop.close()
    with at(penstock) as client:
        shop.check(client)


def test_penstock_to_a_cluster(program: str, penstock: int, shell: Shell) -> None:
    copy, switch, release = BLOCKS[EXPORT]
    with real_cluster(program) as nodes, Shop(partial(at, penstock)) as shop:
        node = nodes[0].port
        shell.knows(penstock=penstock, old=penstock, node1=node)
        assert shell.run(copy)[-1] == "1 stream: 1 equal"
        shop.go_on()
        assert shell.run(switch)[-1] == "1 stream: 1 equal"
        _release(shop, shell, partial(in_cluster, node), release)
        shop.close()
        with in_cluster(node) as client:
            shop.check(client)


def test_giving_up_lets_those_go_on_that_waited(
    program: str, real: RealServer, penstock: int, shell: Shell
) -> None:
    shell.knows(new=real.port, penstock=penstock)
    with Shop(partial(at, penstock)) as shop:
        shell.run(BLOCKS[REPLICATE][0])
        shell.run(BLOCKS[REPLICATE][1])
        assert shell.run(BLOCKS["Giving up"][0]) == ["OK", "OK"]
        shop.go_on()
        shop.close()
    with at(penstock) as client:
        shop.check(client)


# --- the replica's side ----------------------------------------------------------------------


def linked(port: int) -> bool:
    with at(port) as client:
        return bool(client.info("replication")["master_link_status"] == "up")


def test_a_replica_logs_in_as_a_user(real: RealServer, shell: Shell) -> None:
    with PenstockThread(requirepass="main") as penstock:
        with redis.Redis(port=penstock.port, password="main") as client:
            client.xadd("orders", {"n": "1"}, id="1-1")
            user, settings, follow = BLOCKS["As a user"][0].splitlines(keepends=True)
            client.execute_command(*user.replace("'", "").split("penstock.example ")[1].split())
        shell.knows(new=real.port, penstock=penstock.port)
        assert shell.run(settings + follow) == ["OK", "OK"]
        while not linked(real.port):
            pass
        with at(real.port) as replica:
            assert replica.xrange("orders") == [("1-1", {"n": "1"})]


def test_a_replica_follows_over_tls(program: str, shell: Shell, tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    names = ("--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file")
    paths = (files.certificate, files.key, files.authority)
    options = [word for pair in zip(names, paths, strict=True) for word in pair]
    try:
        real = RealServer(program, "--tls-port", str(free_port()), *options)
    except TimeoutError:
        pytest.skip("this server was built without TLS")
    port, tls_port = free_port(), free_port()
    with PenstockThread(**files.settings(port=port, tls_port=tls_port)):
        with at(port) as client:
            client.xadd("orders", {"n": "1"}, id="1-1")
        shell.knows(new=real.port, penstock=tls_port)
        assert shell.run(BLOCKS["Over TLS"][0]) == ["OK", "OK"]
        while not linked(real.port):
            pass
        with at(real.port) as replica:
            assert replica.xrange("orders") == [("1-1", {"n": "1"})]
    real.stop()


# --- several servers -------------------------------------------------------------------------


def test_streams_are_shared_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = {f"penstock{number}.example": PenstockThread() for number in (1, 2, 3)}
    [program] = blocks(PAGE, "python")
    for server in servers.values():
        server.start()
    made = redis.Redis

    def connected(host: str, decode_responses: bool) -> redis.Redis:
        return made(port=servers[host].port, decode_responses=decode_responses)

    monkeypatch.setattr(redis, "Redis", connected)
    names: dict[str, object] = {}
    exec(program, names)
    found = [client.xlen("orders") for client in names["SERVERS"].values()]  # type: ignore[attr-defined]
    assert sorted(found) == [0, 0, 1]
    _stay_where_they_are(names["host_of"], tuple(servers))
    for server in servers.values():
        server.stop()


def _stay_where_they_are(host_of: object, hosts: tuple[str, ...]) -> None:
    """Streams are on all servers, and a fourth one takes some over from each of the others."""
    assert callable(host_of)
    streams = [f"stream:{number}" for number in range(200)]
    before = {stream: host_of(stream) for stream in streams}
    after = {stream: host_of(stream, (*hosts, "penstock4.example")) for stream in streams}
    assert set(before.values()) == set(hosts)
    moved = {stream for stream in streams if before[stream] != after[stream]}
    assert {after[stream] for stream in moved} == {"penstock4.example"}
    assert {before[stream] for stream in moved} == set(hosts)
