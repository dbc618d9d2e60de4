"""Reaching servers: several, clusters, TLS, credentials, and what is said when it fails."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession

from pyspark_redis_streams.errors import OptionError, RedisStreamsError, ServerError
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write.writer import Entry, TaskWrite
from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS
from source_tests.driving import Query, add, read_batch, url_of
from tests.conformance.reference import RealServer
from tests.support.cluster import real_cluster
from tests.support.ports import free_port
from tests.support.wire import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()

REAL = sorted((name for name in PROGRAMS if name != "penstock"), reverse=True)
"""The real servers: what needs a cluster, TLS or ACL rules is tried on these."""


@pytest.fixture(params=REAL or [""])
def program(request: pytest.FixtureRequest) -> str:
    """A real server's program."""
    path = PROGRAMS.get(request.param)
    if path is None:
        pytest.skip("no real server (see PENSTOCK_REFERENCE_SERVERS)")
    return path


@pytest.fixture
def guarded(program: str) -> Iterator[Backend]:
    """A server with a password and a user who may read one stream."""
    with Backend(program, "--requirepass", "main-secret") as backend:
        with backend.client(password="main-secret") as client:
            add(client, "s", "1-1")
            rules = ("on", ">user-secret", "~s", "-@all", "+xinfo|stream")
            client.execute_command("ACL", "SETUSER", "reader", *rules)
        yield backend


def test_credentials_are_taken_from_the_url_or_from_options(guarded: Backend) -> None:
    address = f"127.0.0.1:{guarded.port}"
    with_url = {"url": f"redis://:main-secret@{address}", "subscribe": "s"}
    apart = {"url": f"redis://{address}", "subscribe": "s", "redis.password": "main-secret"}
    old = {"host": "127.0.0.1", "port": str(guarded.port), "auth": "main-secret", "subscribe": "s"}
    for options in (with_url, apart, old):
        assert read_batch(options) == [("s", "1-1")]


@pytest.mark.parametrize(
    ("login", "refusal"),
    [
        ("", "Authentication required.; give credentials in 'url' or in 'redis.username' and"),
        (":bad-secret@", "check the credentials in 'url' or in 'redis.username'"),
        ("reader:user-secret@", "to run the 'xrange' command"),
    ],
)
def test_a_refusal_says_what_to_do_and_no_secrets(
    guarded: Backend, login: str, refusal: str
) -> None:
    options = {"url": f"redis://{login}127.0.0.1:{guarded.port}", "subscribe": "s"}
    with pytest.raises(ServerError) as caught:
        read_batch(options)
    message = str(caught.value)
    assert message.startswith(f"127.0.0.1:{guarded.port}/0 refuses: ")
    assert refusal in message
    assert "secret" not in message


def documented_commands(task: str) -> list[str]:
    """The commands that the page says are needed, as rules of an access control list."""
    (cells,) = re.findall(rf"^\| {re.escape(task)} \| (.*) \|$", PAGE, re.MULTILINE)
    return [f"+{command.lower()}" for command in cells.split()]


@pytest.fixture
def as_user(guarded: Backend) -> Callable[..., dict[str, str]]:
    """Gives the options for a user who may do what the page says that some tasks need."""

    def options(*tasks: str) -> dict[str, str]:
        rules = [rule for task in tasks for rule in documented_commands(task)]
        with guarded.client(password="main-secret") as client:
            client.execute_command("ACL", "SETUSER", "u", "on", ">p", "~*", "-@all", *rules)
        return {"url": f"redis://u:p@127.0.0.1:{guarded.port}"}

    return options


Options = Callable[..., dict[str, str]]


def test_the_documented_commands_are_enough_to_read(as_user: Options) -> None:
    assert read_batch({**as_user("read in mode `offsets`"), "subscribe": "s"}) == [("s", "1-1")]
    more = [f"the same with `{name}`" for name in ("subscribePattern", "groupId", "minPartitions")]
    options = as_user("read in mode `offsets`", *more)
    begin = {"subscribePattern": "s*", "startingOffsets": "earliest", "groupId": "g"}
    query = Query({**options, **begin, "maxOffsetsPerTrigger": "1", "minPartitions": "2"})
    assert query.drain() == [("s", "1-1")]
    query.close()


def test_the_documented_commands_are_enough_to_read_in_a_group(as_user: Options) -> None:
    letters = ("the same with `maxDeliveries`", "the same with `maxDeliveries` and a marker")
    options = as_user("read in mode `group`", *letters)
    group = {"mode": "group", "groupId": "g", "consumerName": "q", "claimMinIdleMs": "0"}
    dead = {"maxDeliveries": "1", "deadLetterStream": "dead"}
    given = {"subscribe": "s", "startingOffsets": "earliest"}
    query = Query({**options, **group, **dead, **given})
    query.step()
    query.committed = 0
    query.restart()
    assert query.rows == [], "the second attempt sends the entry to the dead letters"
    query.close()


def test_the_documented_commands_are_enough_to_write(as_user: Options) -> None:
    options = as_user("write", "the same with a column `id`", "the same with a marker")
    for _ in range(2):
        rows = [Entry(b"t", id, [b"n", b"1"]) for id in (None, "9000000000000-1")]
        TaskWrite(write_settings(options), "query", 0, "0").write(rows)


def test_a_server_that_is_not_there_is_named_with_the_tries() -> None:
    port = free_port()
    options = {"url": f"redis://:secret@127.0.0.1:{port}", "subscribe": "s", "retries": "1"}
    with pytest.raises(ServerError) as caught:
        read_batch(options)
    assert str(caught.value) == (
        f"127.0.0.1:{port}/0 can't be reached after 2 tries: Connection refused"
    )


def test_a_server_that_comes_back_in_time_is_not_missed(program: str) -> None:
    with Backend(program, "--appendonly", "yes", "--appendfsync", "always") as backend:
        with backend.client() as client:
            add(client, "s", "1-1", "1-2")
        options = {"url": backend.url, "subscribe": "s", "maxOffsetsPerTrigger": "1"}
        query = Query({**options, "startingOffsets": "earliest", "groupId": "g"})
        query.step()
        query.plan()
        backend.kill()
        backend.restart()
        query.run_planned()
        query.drain()
        assert query.ids == ["1-1", "1-2"]
        query.close()


def test_settings_of_the_client_are_checked() -> None:
    options = {"subscribe": "s", "redis.socket_timout": "5"}
    with pytest.raises(OptionError, match=r"option 'redis.socket_timout' is 'not an option'"):
        read_batch(options)
    with pytest.raises(OptionError, match=r"option 'redis.socket_timeout' is 'x'; allowed: a numb"):
        read_batch({"subscribe": "s", "redis.socket_timeout": "x"})
    with pytest.raises(OptionError, match=r"option 'url\?ssl_check_hostname' is '1'; allowed: tru"):
        read_batch({"subscribe": "s", "url": "redis://h?ssl_check_hostname=1"})


def test_streams_of_several_servers_are_read_together(server: redis.Redis) -> None:
    with Backend(None) as other, other.client() as second:
        add(server, "s", "1-1", "1-2")
        add(second, "s", "7-1")
        add(second, "t", "8-1")
        urls = f"{url_of(server)},{other.url}"
        given = {"url": urls, "subscribe": "s,t", "startingOffsets": "earliest"}
        query = Query({**given, "pollIntervalMs": "0"})
        assert sorted(query.drain()) == [("s", "1-1"), ("s", "1-2"), ("s", "7-1"), ("t", "8-1")]
        add(second, "s", "7-2")
        query.restart()
        assert query.drain() == [("s", "7-2")]
        assert f"127.0.0.1:{other.port}/0" in query.planned[-1]
        query.close()


def test_several_servers_share_the_work_of_a_group(server: redis.Redis) -> None:
    with Backend(None) as other, other.client() as second:
        add(server, "s", "1-1", "1-2")
        add(second, "s", "7-1")
        urls = f"{url_of(server)},{other.url}"
        given = {"url": urls, "subscribe": "s", "startingOffsets": "earliest"}
        query = Query({**given, "mode": "group", "groupId": "g", "consumerName": "q"})
        assert sorted(query.drain()) == [("s", "1-1"), ("s", "1-2"), ("s", "7-1")]
        query.close()


@pytest.fixture
def cluster(program: str) -> Iterator[list[RealServer]]:
    """Three primaries that share the slots."""
    with real_cluster(program) as nodes:
        yield nodes


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_a_cluster_takes_no_more_than_its_url(cluster: list[RealServer], mode: str) -> None:
    streams = [f"s{number}" for number in range(12)]
    node = redis.cluster.ClusterNode("127.0.0.1", cluster[0].port)
    with redis.RedisCluster(startup_nodes=[node]) as client:
        for stream in streams:
            client.xadd(stream, {"f": "v"}, id="1-1")
        url = f"redis+cluster://127.0.0.1:{cluster[2].port},127.0.0.1:{cluster[1].port}"
        given = {"url": url, "subscribe": "s0", "subscribePattern": "s*", "pollIntervalMs": "0"}
        group = {"mode": mode, "groupId": "g", "consumerName": "q", "startingOffsets": "earliest"}
        query = Query({**given, **group, "maxPartitions": "3"})
        assert sorted(query.drain()) == sorted((stream, "1-1") for stream in streams)
        client.xadd("s3", {"f": "v"}, id="1-2")
        assert query.drain() == [("s3", "1-2")]
        assert sum(client.xinfo_groups(stream)[0]["lag"] for stream in streams) == 0
        query.close()


def test_a_query_may_move_from_a_server_to_a_cluster(
    server: redis.Redis, cluster: list[RealServer]
) -> None:
    node = redis.cluster.ClusterNode("127.0.0.1", cluster[0].port)
    with redis.RedisCluster(startup_nodes=[node]) as client:
        given = {"url": url_of(server), "subscribe": "s,t", "startingOffsets": "earliest"}
        query = Query(given)
        for stream in ("s", "t"):
            add(server, stream, "1-1")
        query.drain()
        for stream in ("s", "t"):
            client.xadd(stream, {"f": "v"}, id="1-1")
            client.xadd(stream, {"f": "v"}, id="1-2")
        query.restart(url=f"redis+cluster://127.0.0.1:{cluster[0].port}")
        assert sorted(query.drain()) == [("s", "1-2"), ("t", "1-2")]
        query.close()


def test_a_cluster_is_written_to_by_its_url(cluster: list[RealServer]) -> None:
    url = f"redis+cluster://127.0.0.1:{cluster[1].port}"
    rows = [Entry(f"s{number % 12}".encode(), None, [b"n", b"%d" % number]) for number in range(60)]
    for _ in range(2):
        TaskWrite(write_settings({"url": url}), "query", 0, "0").write(rows)
    node = redis.cluster.ClusterNode("127.0.0.1", cluster[0].port)
    with redis.RedisCluster(startup_nodes=[node]) as client:
        assert [client.xlen(f"s{number}") for number in range(12)] == [5] * 12


def test_a_spark_query_copies_streams_within_a_cluster(
    spark: SparkSession, cluster: list[RealServer], tmp_path: Path
) -> None:
    url = f"redis+cluster://127.0.0.1:{cluster[1].port}"
    node = redis.cluster.ClusterNode("127.0.0.1", cluster[0].port)
    with redis.RedisCluster(startup_nodes=[node]) as client:
        for number in range(60):
            client.xadd(f"s{number % 12}", {"n": number}, id=f"{number + 1}-1")
        reader = spark.readStream.format("redis-streams").schema("stream string, n string")
        place = {"url": url, "subscribePattern": "s*", "startingOffsets": "earliest"}
        frame = reader.options(**place, maxPartitions=4).load()
        writer = frame.selectExpr("'copy-' || stream as stream", "n").writeStream
        writer = writer.format("redis-streams").option("url", url)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        writer.start().awaitTermination()
        for key in range(12):
            values = [fields[b"n"] for _, fields in client.xrange(f"copy-s{key}")]
            assert values == [b"%d" % number for number in range(key, 60, 12)]


class Watched:
    """A primary and its replica, with a sentinel that knows the primary as ``main``."""

    def __init__(self, program: str, folder: Path) -> None:
        self.primary = RealServer(program)
        self.replica = RealServer(program, "--replicaof", "127.0.0.1", str(self.primary.port))
        self.port = free_port()
        rules = (
            f"port {self.port}\nrequirepass guard\n"
            f"sentinel monitor main 127.0.0.1 {self.primary.port} 1\n"
            "sentinel down-after-milliseconds main 600000\nsentinel failover-timeout main 1000\n"
        )
        (folder / "sentinel.conf").write_text(rules)
        command = [program, "sentinel.conf", "--sentinel"]
        self._process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        self._sentinel = redis.Redis(port=self.port, password="guard")
        wait_until(self._is_watching)

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/main?sentinel_password=guard"

    def _is_watching(self) -> bool:
        try:
            return len(self._sentinel.sentinel_slaves("main")) == 1
        except redis.ConnectionError:
            return False

    def _primary_port(self) -> object:
        primary = self._sentinel.sentinel_master("main")
        assert isinstance(primary, dict)
        return primary["port"]

    def fail_over(self) -> redis.Redis:
        """Kills the primary; returns a client of the replica, once it has taken its place."""
        with redis.Redis(port=self.primary.port) as client:
            wait_until(lambda: client.wait(1, 1000) == 1)
        self.primary.process.kill()
        # Only now: one that had to wait for the processor would be taken for one that is gone.
        self._sentinel.sentinel_set("main", "down-after-milliseconds", 200)
        wait_until(self._has_successor)
        return redis.Redis(port=self.replica.port)

    def _has_successor(self) -> bool:
        if self._primary_port() != self.replica.port:
            return False
        with redis.Redis(port=self.replica.port) as client, suppress(redis.ConnectionError):
            # Sentinels disconnect all clients of a server that they make the primary.
            return bool(client.role()[0] == b"master")
        return False

    def stop(self) -> None:
        self._sentinel.close()
        self._process.kill()
        self._process.wait()
        self.replica.stop()
        self.primary.stop()


@pytest.fixture
def watched(program: str, tmp_path: Path) -> Iterator[Watched]:
    """A primary that a sentinel watches."""
    watched = Watched(program, tmp_path)
    yield watched
    watched.stop()


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_a_query_goes_on_at_the_server_that_sentinels_have_chosen(
    watched: Watched, mode: str
) -> None:
    with redis.Redis(port=watched.primary.port) as client:
        add(client, "s", "1-1", "1-2")
        given = {"url": watched.url, "subscribe": "s", "startingOffsets": "earliest"}
        query = Query({**given, "mode": mode, "groupId": "g", "consumerName": "q"})
        assert query.drain() == [("s", "1-1"), ("s", "1-2")]
        add(client, "s", "1-3")
    with watched.fail_over() as successor:
        add(successor, "s", "1-4")
        assert query.drain() == [("s", "1-3"), ("s", "1-4")]
        rows = [Entry(b"t", None, [b"n", b"1"])]
        TaskWrite(write_settings({"url": watched.url}), "query", 0, "0").write(rows)
        assert successor.xlen("t") == 1
        query.close()


def test_a_name_that_sentinels_do_not_know_is_told(watched: Watched) -> None:
    url = watched.url.replace("/main?", "/other?")
    with pytest.raises(ServerError) as caught:
        read_batch({"url": url, "subscribe": "s", "retries": "0"})
    name = f"sentinel 127.0.0.1:{watched.port}/other/0"
    assert str(caught.value) == f"{name} can't be reached: No master found for 'other'"


def test_sentinels_that_refuse_are_told_without_secrets(watched: Watched) -> None:
    url = watched.url.replace("=guard", "=sesame")
    with pytest.raises(ServerError) as caught:
        read_batch({"url": url, "subscribe": "s", "retries": "0"})
    assert str(caught.value) == (
        f"sentinel 127.0.0.1:{watched.port}/main/0 can't be reached: No master found for 'main'; "
        "not every sentinel has answered: check their addresses, and 'redis.sentinel_password'"
    )


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    paths = tmp_path / "server.crt", tmp_path / "server.key"
    usual = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([openssl, *usual, *name, *files], check=True, capture_output=True)
    return paths


@pytest.fixture
def encrypted(program: str, certificate: tuple[Path, Path]) -> Iterator[dict[str, str]]:
    """The options for a server that speaks TLS and has a user who may read."""
    crt, key = map(str, certificate)
    port = free_port()
    files = ("--tls-cert-file", crt, "--tls-key-file", key, "--tls-ca-cert-file", crt)
    try:
        backend = Backend(program, "--tls-port", str(port), *files, "--tls-auth-clients", "no")
    except AssertionError:
        pytest.skip("this server was built without TLS")
    with backend, backend.client() as client:
        add(client, "s", "1-1")
        rules = ("on", ">secret", "~s", "-@all", *documented_commands("read in mode `offsets`"))
        client.execute_command("ACL", "SETUSER", "reader", *rules)
        yield {"url": f"rediss://127.0.0.1:{port}", "subscribe": "s", "redis.ssl_ca_certs": crt}


def test_tls_is_a_matter_of_the_url(encrypted: dict[str, str]) -> None:
    assert read_batch(encrypted) == [("s", "1-1")]
    unknown = {name: value for name, value in encrypted.items() if name != "redis.ssl_ca_certs"}
    with pytest.raises(ServerError, match=r"can't be reached: .*CERTIFICATE_VERI"):
        read_batch({**unknown, "retries": "0"})


def test_a_spark_job_reads_over_tls_as_a_user(
    spark: SparkSession, encrypted: dict[str, str]
) -> None:
    login = {"redis.username": "reader", "redis.password": "secret"}
    frame = spark.read.format("redis-streams").options(**encrypted, **login).load()
    assert [row.id for row in frame.collect()] == ["1-1"]
    address = encrypted["url"].replace("//", "//reader:secret@")
    frame = spark.read.format("redis-streams").options(**{**encrypted, "url": address}).load()
    assert [row.id for row in frame.collect()] == ["1-1"]


def test_a_server_that_does_not_count_added_entries_is_too_old() -> None:
    from pyspark_redis_streams.streams import Stream, info_of

    with pytest.raises(ServerError, match=r"older than Redis 7\.0"):
        info_of(Stream(0, b"s"), [b"length", 1])
    assert issubclass(ServerError, RedisStreamsError)
