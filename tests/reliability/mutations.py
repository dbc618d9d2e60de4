"""RDB files of servers, changed at random, and what becomes of who reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from server.persistence.recovery import Recovery, RecoveryError
from storage.aof.disk import Disk
from storage.rdb import codes
from storage.rdb.write import write_rdb
from tests.migration.running import migrate
from tests.storage.rdb.builders import sample
from tests.support.direct import Direct
from tests.support.servers import PenstockThread

MANY: Final = 10_000
FEW: Final = 50
"""How many files show that everything works."""

OUTCOMES: Final = ("loaded", "refused")

_MADE: Final = 10
"""From how many files of random commands changed ones are made, beside those of real servers."""
_SAMPLES: Final = ("redis-7.0", "redis-8.0", "valkey-9.1")
_SUM: Final = 8


def changed(count: int) -> Iterator[bytes]:
    """So many files with one change or more. Their checksum is left out, or it would tell of every
    change before anything else does."""
    random = Random(count)
    originals = [*map(sample, _SAMPLES), *(_made(random) for _ in range(_MADE))]
    for _ in range(count):
        body = random.choice(originals)[:-_SUM]
        yield mutated(random, body, originals) + bytes(_SUM)


def _made(random: Random) -> bytes:
    """What a server holds after random commands."""
    direct = Direct()
    client = direct.client()
    requests = Requests(random, [one for one in commands() if one.writes])
    for _ in range(random.randrange(5, 60)):
        if not client.parked:
            client.send(*requests.one())
    version = random.choice((codes.REDIS_7_0, codes.REDIS_7_2, codes.VALKEY))
    return b"".join(write_rdb(direct.server.state.keyspace, version=version))


def start(path: Path) -> str:
    """What becomes of a server that starts with the file."""
    direct = Direct()
    server = direct.server
    recovery = Recovery(
        server.state, server.services.dispatcher, Disk(), [str(path)], "", snapshot=True
    )
    try:
        recovery.run_at_once()
    except RecoveryError as error:
        told = str(error)
        assert told.startswith(f"{path}: ")
        assert "\n" not in told
        return "refused"
    server.state.keyspace.check()
    return "loaded"


def take_in(path: Path, target: PenstockThread) -> str:
    """What ``penstock import`` makes of the file; of one that is damaged nothing is copied."""
    before = target.call(_keys, target)
    ended = migrate(
        str(path), "--to", target.url, "--db", "all", "--strings", "--replace", "--match", "*"
    )
    assert ended.status in (0, 1)
    assert "Traceback" not in ended.err + ended.out
    if "damaged" in ended.err:
        assert ended.err.startswith(f"penstock import: {path}: damaged ")
        assert ended.err.count("\n") == 1
        assert target.call(_keys, target) == before
        return "refused"
    target.call(_check_and_flush, target)
    return "loaded"


def _keys(target: PenstockThread) -> int:
    return sum(map(len, target.server.state.keyspace.databases))


def _check_and_flush(target: PenstockThread) -> None:
    keyspace = target.server.state.keyspace
    keyspace.check()
    for database in keyspace.databases:
        database.flush()
    keyspace.effects.clear()
