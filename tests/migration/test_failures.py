"""What goes wrong is told in one line that says where, and never shows a password."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import redis

from tests.migration.pretending import Answer, Pretender, Request, as_redis_6, refusing, without
from tests.migration.running import copy, migrate
from tests.migration.streams import NEWER, RICH, Client, everything, inside
from tests.support.ports import free_port

AGAIN = "; what was copied is kept, and the same command goes on from there"

LEFT_OPEN = "ignore:unclosed <socket:ResourceWarning" if redis.VERSION[0] == 5 else "error"
"""redis-py 5 leaves a Unix socket that it could not connect to the garbage collector."""


def url(client: Client, user: str = "") -> str:
    return f"redis://{user}127.0.0.1:{client.port}"


# --- connecting ------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_named(source: Client) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    ended = migrate(url(source), "--to", f"redis://user:secret@{nowhere}/3")
    reason = f"penstock import: the target {nowhere}/3 can't be reached: Connection refused\n"
    assert (ended.status, ended.out, ended.err) == (1, "", reason)
    ended = migrate(url(source), "--from", f"redis://{nowhere}", direction="export")
    assert ended.err.startswith(f"penstock export: the source {nowhere}/0 can't be reached: ")


@pytest.mark.filterwarnings(LEFT_OPEN)
def test_a_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = migrate(f"unix://{tmp_path}/none.sock?db=2")
    reason = f"the source {tmp_path}/none.sock/2 can't be reached: No such file or directory"
    assert (ended.status, ended.err) == (1, f"penstock import: {reason}\n")


def test_a_database_that_is_not_there_is_told(source: Client, target: Client) -> None:
    ended = copy(source.port, target.port, "--db", "99")
    reason = f"the source 127.0.0.1:{source.port}/99 refuses: DB index is out of range"
    assert (ended.status, ended.err) == (1, f"penstock import: {reason}\n")


def test_both_ends_have_to_be_different(source: Client) -> None:
    ended = migrate(url(source), "--to", f"redis://localhost:{source.port}")
    place = f"127.0.0.1:{source.port}/0"
    reason = f"the source {place} and the target localhost:{source.port}/0 are the same database"
    assert (ended.status, ended.err) == (1, f"penstock import: {reason}\n")


def test_a_server_that_does_not_say_who_it_is_is_believed_to_be_another(
    source: Client, target: Client
) -> None:
    source.script(RICH)
    with Pretender(source.port, refusing("INFO", "NOPERM not for you")) as proxy:
        assert copy(proxy.port, target.port).status == 0


@pytest.fixture
def locked(real: Client) -> Iterator[Client]:
    """A client of a real server that wants a password."""
    real.send("CONFIG SET requirepass opensesame")
    yield real
    real.call("CONFIG", "SET", "requirepass", "")


def test_passwords_are_asked_for_and_never_shown(locked: Client, target: Client) -> None:
    locked.script(RICH)
    where = f"penstock import: the source 127.0.0.1:{locked.port}/0 refuses"
    ended = migrate(url(locked), "--to", url(target))
    assert (ended.status, ended.err) == (1, f"{where}: NOAUTH Authentication required.\n")
    ended = migrate(url(locked, ":wrong-one@"), "--to", url(target))
    assert ended.status == 1
    assert ended.err.startswith(f"{where}: WRONGPASS ")
    assert "wrong-one" not in ended.err
    ended = migrate(url(locked, "default:opensesame@"), "--to", url(target))
    assert (ended.status, "opensesame" in ended.out + ended.err) == (0, False)


# --- what servers refuse ---------------------------------------------------------------------


def test_a_stream_that_may_not_be_read_is_told_and_others_are_copied(
    real: Client, target: Client
) -> None:
    real.script("XADD open 1-1 f v\nXADD closed 1-1 f v")
    real.send("ACL SETUSER clerk on >secret +@all ~open")
    ended = migrate(url(real, "clerk:secret@"), "--to", url(target))
    assert ended.status == 1
    assert ended.results["open"] == "equal"
    place = f"the source 127.0.0.1:{real.port}/0"
    assert ended.results["closed"].startswith(f"failed: {place} refuses: NOPERM ")
    assert "secret" not in ended.out + ended.err
    assert list(everything(target)) == [b"open"]


def test_a_replica_cannot_be_the_target(source: Client, real: Client) -> None:
    source.script(RICH)
    real.send(f"REPLICAOF 127.0.0.1 {free_port()}")
    try:
        ended = copy(source.port, real.port)
    finally:
        real.send("REPLICAOF NO ONE")
    text = "READONLY You can't write against a read only replica."
    reason = f"the target 127.0.0.1:{real.port}/0 refuses: {text}{AGAIN}"
    assert (ended.status, ended.err) == (1, f"penstock import: {reason}\n")


def test_a_target_without_memory_gets_whole_batches_only(source: Client, real: Client) -> None:
    source.call_all([("XADD", "k", f"1-{n}", "n", "x" * 1000) for n in range(1, 2001)])
    memory = int(real.send("MEMORY STATS")[3])
    real.send(f"CONFIG SET maxmemory {memory + 400_000}")
    try:
        ended = copy(source.port, real.port)
    finally:
        real.send("CONFIG SET maxmemory 0")
    assert ended.status == 1
    assert f"the target 127.0.0.1:{real.port}/0 refuses: OOM " in ended.err
    assert copy(source.port, real.port).results == {"k": "equal"}
    assert inside(real, "k") == inside(source, "k")


def test_a_target_that_takes_no_counters_is_told_at_once(source: Client, target: Client) -> None:
    def old(request: Request) -> bytes | None:
        reply = b"*4\r\n*2\r\n$6\r\nxsetid\r\n:3\r\n*-1\r\n*-1\r\n*-1\r\n"
        return reply if request[0] == b"COMMAND" else None

    with Pretender(target.port, old) as proxy:
        ended = copy(source.port, proxy.port)
    reason = (
        f"the target 127.0.0.1:{proxy_port(ended.err)}/0 cannot take the counters of a stream"
        " (XSETID ... ENTRIESADDED): Redis 7.0 or newer, Valkey or Penstock is needed there"
    )
    assert (ended.status, ended.err) == (1, f"penstock import: {reason}\n")


def proxy_port(text: str) -> str:
    """The port that a message names."""
    return text.split("127.0.0.1:")[1].split("/")[0]


def test_one_refused_command_fails_one_stream(source: Client, target: Client) -> None:
    source.script("XADD a 1-1 f v\nXADD b 1-1 f v")

    def answer(request: Request) -> bytes | None:
        return b"-ERR not this one\r\n" if request[:2] == [b"XRANGE", b"a"] else None

    with Pretender(source.port, answer) as proxy:
        ended = copy(proxy.port, target.port)
        place = f"the source 127.0.0.1:{proxy.port}/0"
    assert ended.results == {"a": f"failed: {place} refuses: not this one", "b": "equal"}
    assert (ended.status, ended.err) == (1, "")


@pytest.mark.parametrize("words", [(b"XINFO", b"STREAM"), (b"XINFO", b"GROUPS")])
@pytest.mark.parametrize("served", [0, 1, 2])
def test_a_command_may_be_refused_at_any_time(
    source: Client, target: Client, words: tuple[bytes, bytes], served: int
) -> None:
    source.script("XADD k 1-1 f v\nXGROUP CREATE k g 0")
    asked = count()

    def answer(request: Request) -> bytes | None:
        if tuple(request[:2]) == words and next(asked) >= served:
            return b"-ERR not now\r\n"
        return None

    with Pretender(source.port, answer) as proxy:
        ended = copy(proxy.port, target.port)
        place = f"the source 127.0.0.1:{proxy.port}/0"
    assert (ended.status, ended.results) == (1, {"k": f"failed: {place} refuses: not now"})


def test_a_server_that_is_busy_ends_it_all(source: Client, target: Client) -> None:
    source.send("XADD k 1-1 f v")
    busy = "BUSY a script is running"
    with Pretender(source.port, refusing("TYPE", busy)) as proxy:
        ended = copy(proxy.port, target.port)
        place = f"the source 127.0.0.1:{proxy.port}/0"
    assert (ended.status, ended.err) == (1, f"penstock import: {place} refuses: {busy}\n")


def test_a_copy_that_is_removed_meanwhile_is_told(source: Client, target: Client) -> None:
    source.send("XADD k 1-1 f v")

    def answer(request: Request) -> bytes | None:
        if request[0] == b"XTRIM":
            target.send("DEL k")
        return None

    with Pretender(target.port, answer) as proxy:
        ended = copy(source.port, proxy.port)
    result = "failed: removed from the target during the copy"
    assert (ended.status, ended.results) == (1, {"k": result})


def test_trimming_at_the_last_moment_leaves_the_counters_alone(
    source: Client, target: Client
) -> None:
    source.call_all([("XADD", "k", f"{n}-0", "n", n) for n in range(1, 10)])
    copy(source.port, target.port)
    source.script("XDEL k 1-0 5-0\nXADD k 10-0 n 10")

    def answer(request: Request) -> bytes | None:
        if request[0] == b"XTRIM":
            source.send("XTRIM k MINID 4-0")
        return None

    with Pretender(target.port, answer) as proxy:
        ended = copy(source.port, proxy.port)
    assert ended.results == {"k": "equal"}
    assert inside(target, "k") == inside(source, "k")


def test_a_verification_that_is_refused_is_no_success(source: Client, target: Client) -> None:
    source.send("XADD k 1-1 f v")
    expiries = count()

    def answer(request: Request) -> bytes | None:
        if request[0] == b"PEXPIRETIME" and next(expiries):
            return b"-ERR enough\r\n"
        return None

    with Pretender(source.port, answer) as proxy:
        ended = copy(proxy.port, target.port)
        place = f"the source 127.0.0.1:{proxy.port}/0"
    assert (ended.status, ended.results) == (1, {"k": f"failed: {place} refuses: enough"})


def test_someone_who_writes_to_the_target_meanwhile_is_noticed(
    source: Client, target: Client
) -> None:
    source.send("XADD k 1-1 f v")
    batches = count()

    def answer(request: Request) -> bytes | None:
        if request[0] == b"MULTI" and next(batches) == 1:
            target.send("XADD k 5-5 f v")
        return None

    with Pretender(target.port, answer) as proxy:
        ended = copy(source.port, proxy.port)
        place = f"the target 127.0.0.1:{proxy.port}/0"
    text = "The ID specified in XADD is equal or smaller than the target stream top item"
    assert (ended.status, ended.results) == (1, {"k": f"failed: {place} refuses: {text}"})


# --- servers that know less ------------------------------------------------------------------


def test_released_entries_get_a_stand_in_where_there_is_no_xnack(
    source: Client, target: Client
) -> None:
    source.script(
        """
        XADD k 1-1 f v
        XADD k 1-2 f v
        XGROUP CREATE k g 0
        XREADGROUP GROUP g ann STREAMS k >
        XNACK k g FAIL IDS 1 1-1
        """
    )
    with Pretender(target.port, without("XNACK")) as proxy:
        ended = copy(source.port, proxy.port)
    given = "given to a consumer without a name, since the target has no XNACK"
    assert (ended.status, ended.results) == (
        1,
        {"k": f"differs: group 'g': 1 released entry {given}"},
    )
    group = inside(target, "k")[b"groups"][0]
    assert group[b"pending"][0] == [b"1-1", b"", 0, 1]
    assert target.send("XAUTOCLAIM k g bob 1000000 0 JUSTID")[1] == [b"1-1"]


def test_an_old_redis_can_be_the_source(source: Client, target: Client) -> None:
    source.script(RICH)
    source.send("XSETID counted 8-0 ENTRIESADDED 1")
    source.script("XDEL orders 3-0\nXGROUP SETID orders kitchen 5-0\nXGROUP SETID trimmed g 2-0")
    with Client(source.port) as behind:
        answer = lambda request: as_redis_6(request, behind.call)  # noqa: E731
        with Pretender(source.port, answer) as proxy:
            ended = copy(proxy.port, target.port)
            again = copy(proxy.port, target.port)
    assert ended.results == {
        "orders": "equal",
        "trimmed": "equal",
        "empty": "equal",
        "counted": "equal",
    }
    assert again.results == ended.results
    unknown = {b"max-deleted-entry-id", b"entries-added", b"entries-read"}
    assert everything(target, NEWER | unknown) == everything(source, NEWER | unknown)


class HastyClock:
    """A server's clock that never shows the same millisecond twice, and is fast."""

    def __init__(self, start: int, otherwise: Answer) -> None:
        self._now = count(start, 5)
        self._otherwise = otherwise

    def __call__(self, request: Request) -> bytes | None:
        if request[0] != b"TIME":
            return self._otherwise(request)
        now = next(self._now)
        return b"*2\r\n$10\r\n%d\r\n$6\r\n%06d\r\n" % (now // 1000, now % 1000 * 1000)


HASTY_START = 1_700_000_000_000


def test_times_are_as_good_as_a_slow_server_allows(source: Client, target: Client) -> None:
    source.script("XADD k 1-1 f v\nXGROUP CREATE k g 0\nXREADGROUP GROUP g ann STREAMS k >")
    with Pretender(source.port, HastyClock(HASTY_START, lambda _: None)) as proxy:
        ended = copy(proxy.port, target.port)
    assert ended.results == {"k": "equal: group 'g' has changed on the source since"}
    time = inside(target, "k")[b"groups"][0][b"pending"][0][2]
    assert HASTY_START - 60_000 < time < HASTY_START + 5000


def test_an_expiry_is_as_good_as_a_slow_old_server_allows(source: Client, target: Client) -> None:
    source.script("XADD k 1-1 f v\nPEXPIRE k 9000000000000")
    old = HastyClock(HASTY_START, without("PEXPIRETIME"))
    with Pretender(source.port, old) as proxy:
        ended = copy(proxy.port, target.port)
    assert ended.results["k"].startswith("differs: time of expiry is ")
    expiry = target.send("PEXPIRETIME k") - HASTY_START - 9_000_000_000_000
    assert -60_000 < expiry < 5000


# --- TLS -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=penstock", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(files[1]), "-out", str(files[0])]
    subprocess.run([openssl, "req", "-x509", "-days", "2", *names, *made], check=True, stderr=-3)
    return files


def test_tls_checks_the_certificate(
    source: Client, target: Client, certificate: tuple[Path, Path]
) -> None:
    source.script(RICH)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with Pretender(source.port, lambda request: None, context) as proxy:
        secure = f"rediss://127.0.0.1:{proxy.port}"
        ended = migrate(f"{secure}?ssl_ca_certs={certificate[0]}", "--to", url(target))
        assert ended.status == 0
        ended = migrate(secure, "--to", url(target))
        assert ended.status == 1
        assert "certificate verify failed" in ended.err
    assert everything(target) == everything(source)
