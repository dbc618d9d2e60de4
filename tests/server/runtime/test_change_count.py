"""``rdb_changes_since_last_save``: how much each command counts, as Redis 8.0.6 counts it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.conformance.reference import RealServer
from tests.support.direct import DirectClient
from tests.support.wire import Client

Send = Callable[[list[str]], bytes]

ENTRIES = ("XADD s 1-1 a b", "XADD s 2-1 a b", "XADD s 3-1 a b")
GROUP = (*ENTRIES, "XGROUP CREATE s g 0")
PENDING = (*GROUP, "XREADGROUP GROUP g c COUNT 2 STREAMS s >")
BEFORE: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "entries": ENTRIES,
    "group": GROUP,
    "pending": PENDING,
    "dangling": (*PENDING, "XDEL s 1-1"),
    "strings": ("SET k v", "SET k2 w"),
    "number": ("SET n 1",),
    "expiring": ("SET k v PX 100000",),
    "streams": (
        "XADD s 1-1 a b",
        "XADD t 1-1 a b",
        "XADD t 2-1 a b",
        "XGROUP CREATE s g 0",
        "XGROUP CREATE t g 0",
    ),
    "many": ("MSET a 1 b 2 c 3",),
}
"""What is there before a command."""

CHANGES = """
nothing | XADD s 1-1 a b | 1
entries | XADD s MAXLEN 2 4-1 a b | 1
entries | XADD s MAXLEN = 1 4-1 a b | 1
entries | XADD s MAXLEN 0 4-1 a b | 1
entries | XADD s MAXLEN ~ 100 4-1 a b | 1
entries | XADD s NOMKSTREAM 4-1 a b | 1
nothing | XADD s NOMKSTREAM 4-1 a b | 0
entries | XTRIM s MAXLEN 1 | 2
entries | XTRIM s MAXLEN 5 | 0
entries | XTRIM s MINID 3 | 2
entries | XDEL s 1-1 2-1 | 2
entries | XDEL s 1-1 9-1 | 1
entries | XDEL s 9-1 | 0
entries | XSETID s 9-1 | 1
entries | XSETID s 9-1 ENTRIESADDED 10 MAXDELETEDID 2-1 | 1
entries | XGROUP CREATE s g 0 | 1
nothing | XGROUP CREATE s g 0 MKSTREAM | 1
group | XGROUP SETID s g 2-1 | 1
group | XGROUP SETID s g 0 | 1
group | XGROUP DESTROY s g | 1
group | XGROUP DESTROY s nope | 0
pending | XGROUP DESTROY s g | 1
group | XGROUP CREATECONSUMER s g c | 1
pending | XGROUP CREATECONSUMER s g c | 0
pending | XGROUP DELCONSUMER s g c | 1
pending | XGROUP DELCONSUMER s g nope | 0
group | XREADGROUP GROUP g c COUNT 2 STREAMS s > | 2
group | XREADGROUP GROUP g c COUNT 1 STREAMS s > | 2
group | XREADGROUP GROUP g c NOACK STREAMS s > | 2
pending | XREADGROUP GROUP g c NOACK STREAMS s > | 1
pending | XREADGROUP GROUP g c STREAMS s > | 1
pending | XREADGROUP GROUP g d STREAMS s > | 2
pending | XREADGROUP GROUP g c STREAMS s 0 | 0
pending | XREADGROUP GROUP g d STREAMS s 0 | 1
pending | XREADGROUP GROUP g d STREAMS s 9 | 1
pending | XREADGROUP GROUP g c STREAMS s 9 | 0
dangling | XREADGROUP GROUP g c STREAMS s 0 | 0
streams | XREADGROUP GROUP g c STREAMS s t > > | 4
streams | XREADGROUP GROUP g c COUNT 1 STREAMS s t > > | 4
pending | XACK s g 1-1 2-1 | 2
pending | XACK s g 1-1 9-1 | 1
pending | XACK s g 9-1 | 0
pending | XCLAIM s g d 0 1-1 2-1 | 3
pending | XCLAIM s g c 0 1-1 2-1 | 2
pending | XCLAIM s g d 0 1-1 | 2
pending | XCLAIM s g d 0 9-1 | 1
pending | XCLAIM s g d 0 3-1 FORCE | 2
pending | XCLAIM s g d 0 1-1 3-1 FORCE | 3
pending | XCLAIM s g d 100000 1-1 | 1
pending | XCLAIM s g c 100000 1-1 | 0
pending | XCLAIM s g d 0 1-1 JUSTID | 2
pending | XCLAIM s g d 0 1-1 LASTID 3-1 | 2
pending | XCLAIM s g d 0 1-1 LASTID 1-1 | 2
pending | XCLAIM s g d 100000 1-1 LASTID 9-1 | 2
dangling | XCLAIM s g d 0 1-1 2-1 | 3
dangling | XCLAIM s g d 0 1-1 | 2
dangling | XCLAIM s g d 0 1-1 FORCE | 2
pending | XAUTOCLAIM s g d 0 0 | 3
pending | XAUTOCLAIM s g c 0 0 | 2
pending | XAUTOCLAIM s g d 100000 0 | 1
pending | XAUTOCLAIM s g c 100000 0 | 0
pending | XAUTOCLAIM s g d 0 0 JUSTID | 3
dangling | XAUTOCLAIM s g d 0 0 | 3
dangling | XAUTOCLAIM s g c 0 0 | 2
dangling | XAUTOCLAIM s g d 100000 0 | 2
nothing | SET k v | 1
strings | SET k v | 1
strings | SET k v NX | 0
strings | SET k v EX 100 | 1
strings | SET k v GET | 1
strings | SET k v XX KEEPTTL | 1
nothing | SET k v XX | 0
nothing | SETEX k 100 v | 1
nothing | PSETEX k 100000 v | 1
nothing | SETNX k v | 1
strings | SETNX k v | 0
nothing | MSET a 1 b 2 | 2
nothing | MSET a 1 a 2 | 2
nothing | MSETNX a 1 b 2 | 2
strings | MSETNX k 1 b 2 | 0
nothing | APPEND k v | 1
strings | APPEND k v | 1
strings | APPEND k '' | 1
nothing | APPEND k '' | 1
number | INCR n | 1
number | INCRBY n 0 | 1
number | DECR n | 1
number | DECRBY n 5 | 1
number | INCRBYFLOAT n 1.5 | 1
strings | INCR k | 0
strings | GETSET k v | 1
nothing | GETSET k v | 1
strings | GETDEL k | 1
nothing | GETDEL k | 0
strings | GETEX k | 0
strings | GETEX k EX 100 | 1
strings | GETEX k PERSIST | 0
expiring | GETEX k PERSIST | 1
expiring | GETEX k EXAT 1 | 1
strings | DEL k k2 nope | 2
strings | DEL nope | 0
strings | UNLINK k k2 | 2
strings | EXPIRE k 100 | 1
strings | EXPIRE k -1 | 1
strings | PEXPIRE k 100000 | 1
strings | EXPIREAT k 1 | 1
strings | EXPIREAT k 9999999999 | 1
expiring | EXPIRE k 100 NX | 0
expiring | EXPIRE k 200 XX | 1
expiring | PERSIST k | 1
strings | PERSIST k | 0
strings | RENAME k k3 | 1
strings | RENAME k k2 | 1
strings | RENAME k k | 0
strings | RENAMENX k k3 | 1
strings | RENAMENX k k2 | 0
expiring | RENAME k k3 | 1
strings | COPY k k3 | 1
strings | COPY k k2 | 0
strings | COPY k k2 REPLACE | 1
strings | COPY k k3 DB 1 | 1
strings | MOVE k 1 | 1
expiring | MOVE k 1 | 1
expiring | COPY k k3 | 1
strings | FLUSHDB | 2
nothing | FLUSHDB | 0
strings | FLUSHALL | 2
nothing | FLUSHALL | 0
many | FLUSHALL | 3
many | FLUSHDB | 3
strings | SWAPDB 0 1 | 1
nothing | SWAPDB 0 1 | 1
nothing | SWAPDB 0 0 | 1
strings | SWAPDB 0 0 | 1
strings | TOUCH k | 0
strings | MULTI;SET k v;SET k2 v;EXEC | 2
strings | MULTI;EXEC | 0
strings | EVAL "redis.call('SET','k','v') redis.call('INCR','n')" 0 | 2
strings | EVAL "return 1" 0 | 0
strings | PUBLISH a b | 0
strings | GET k | 0
entries | XRANGE s - + | 0
entries | XREAD STREAMS s 0 | 0
entries | XINFO STREAM s | 0
nothing | SELECT 0 | 0
pending | XGROUP SETID s g 2-1 ENTRIESREAD 1 | 1
streams | DEL s t | 2
pending | DEL s | 1
pending | COPY s s9 | 1
pending | RENAME s s9 | 1
"""
"""What is there, the command, or commands behind one another, and how many changes it counts."""

CASES = [tuple(line.split(" | ")) for line in CHANGES.strip().splitlines()]


def counted(send: Send, before: str, commands: str) -> int:
    """How many changes a server counts."""
    for line in ("FLUSHALL", *BEFORE[before]):
        send(shlex.split(line))
    first = _changes(send)
    for line in commands.split(";"):
        send(shlex.split(line))
    return _changes(send) - first


def _changes(send: Send) -> int:
    found = re.search(rb"rdb_changes_since_last_save:(\d+)", send(["INFO", "persistence"]))
    assert found is not None
    return int(found[1])


@pytest.fixture(scope="module")
def real(real_server: str) -> Iterator[Send]:
    with RealServer(real_server) as server, Client(server.address) as client:
        yield lambda words: client.raw(*words)


@pytest.mark.parametrize(("before", "commands", "changes"), CASES)
def test_a_command_counts_as_many_changes_as_on_a_real_server(
    client: DirectClient, before: str, commands: str, changes: str
) -> None:

    def send(words: list[str]) -> bytes:
        return client.send(*words) or b""

    assert counted(send, before, commands) == int(changes)


def test_the_real_server_counts_so(real: Send) -> None:
    found = [str(counted(real, before, commands)) for before, commands, _ in CASES]
    assert found == [changes for _, _, changes in CASES]
