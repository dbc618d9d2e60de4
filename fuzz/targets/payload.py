"""Payloads of RESTORE with any counters, through every reader and then through every writer.

An input is what a payload is without its version and its checksum.

Invariants:

- RESTORE, an append-only file of another server and an RDB file agree on what they take, and on
  what comes of it.
- What was taken passes ``check()``, also after commands that go on from its counters.
- Whatever was taken, the files that are written of it load to the same data: the increment, the
  base of a rewrite, and an RDB file of each version, as SAVE writes it and replicas are sent it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final

from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from fuzz.targets.base import Broken, require
from fuzz.targets.rdb import shown
from server.persistence.loader import Loader, Replay
from storage.aof.check import check_file
from storage.aof.commands import command
from storage.aof.disk import Disk
from storage.checksums import crc64
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace
from storage.rdb import codes
from storage.rdb.write import dump, raw, write_rdb
from tests.support.direct import Direct
from tests.support.recording import Recording

LENGTH: Final = 12
"""How many requests the streams are made from at most."""
VERSIONS: Final = (codes.REDIS_7_2, codes.REDIS_7_0, codes.VALKEY)
"""Those that replicas ask for; the first has all that ``shown`` compares."""

_KEY: Final = b"s"
_FOOTER: Final = 10
_SUM: Final = 8
_HALVES: Final = (0, 1, 2, 5, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
_FOLLOWING: Final = (
    b"XREADGROUP GROUP g ann COUNT 1 STREAMS s >",
    b"XADD s * f v",
    b"XREADGROUP GROUP g ann COUNT 1 STREAMS s >",
    b"XGROUP CREATE s new 0-1",
    b"XREADGROUP GROUP new bob COUNT 2 STREAMS s >",
    b"XACK s g 1-1 2-3",
    b"XTRIM s MAXLEN 1",
    b"XADD s * f v",
    b"XSETID s 18446744073709551615-7",
    b"XDEL s 1-1",
)
"""What goes on from the counters: requests that may fail."""


class Payloads:
    """Restores payloads, and writes what came of it."""

    name = "payload"
    mutable = True

    def __init__(self) -> None:
        self._commands = [one for one in commands() if one.writes and one.name.startswith("x")]
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "file"

    def make(self, random: Random) -> bytes:
        """A stream whose counters, positions and pending entries have been set to anything."""
        direct = Direct()
        client = direct.client()
        client.send("XADD", _KEY, "1-1", "f", "v")
        client.send("XGROUP", "CREATE", _KEY, "g", "0")
        requests = Requests(random, self._commands)
        for _ in range(random.randrange(LENGTH)):
            if not client.parked:
                client.send(*requests.one())
        stream = direct.server.state.keyspace.databases[0].values.get(_KEY)
        if not isinstance(stream, Stream):
            stream = Stream(direct.server.state.keyspace.limits)
        _disturb(random, stream)
        body = dump(stream, random.choice(VERSIONS))[:-_FOOTER]
        return body if random.random() < 0.7 else mutated(random, body, [])

    def run(self, data: bytes) -> None:
        """Gives a payload to each reader, and what was taken to each writer."""
        payload = data + codes.REDIS_7_2.to_bytes(2, "little")
        payload += crc64(payload).to_bytes(_SUM, "little")
        recording = Recording()
        taken = recording.send("RESTORE", _KEY, 0, payload) == b"+OK\r\n"
        loaded = [self._load([command(b"RESTORE", _KEY, b"0", payload)])]
        if data:
            rdb = b"REDIS0011" + data[:1] + raw(_KEY) + data[1:] + b"\xff" + bytes(_SUM)
            loaded.append(self._load([rdb]))
        for keyspace in loaded:
            require((keyspace is not None) == taken, "readers differ on whether to take it")
        if not taken:
            require(not recording.keyspace.databases[0].values, "a refusal has left a key")
            return
        for keyspace in loaded:
            assert keyspace is not None
            require(shown(keyspace) == shown(recording.keyspace), "readers differ on what it is")
        self._check_writers(recording)
        for request in _FOLLOWING:
            recording.send(*request.split())
        self._check_writers(recording)

    def _check_writers(self, recording: Recording) -> None:
        keyspace = recording.keyspace
        keyspace.check()
        wanted = shown(keyspace)
        for file, chunks in (
            ("the increment", [recording.contents()]),
            ("the base", [recording.rewritten()]),
            *(
                (f"an RDB file of version {one}", write_rdb(keyspace, version=one))
                for one in VERSIONS
            ),
        ):
            again = self._load(chunks)
            if again is None:
                raise Broken(f"{file} does not load")
            again.check()
            if file != f"an RDB file of version {codes.REDIS_7_0}":
                require(shown(again) == wanted, f"{file} leads to other data")

    def _load(self, chunks: Iterable[bytes]) -> Keyspace | None:
        """What a server and check-aof load of a file; nothing if it is refused."""
        self._path.write_bytes(b"".join(chunks))
        state = (direct := Direct()).server.state
        loader = Loader(state, direct.server.services.dispatcher)
        findings = check_file(str(self._path), Disk(), replay=Replay(state, loader))
        loader.finish()
        return state.keyspace if findings.whole else None

    def close(self) -> None:
        """Removes the file."""
        self._folder.cleanup()


def _disturb(random: Random, stream: Stream) -> None:
    """Sets some of the numbers in a stream that no entry contradicts, and some that it does."""

    def number() -> int:
        return random.choice(_HALVES)

    def entry_id() -> int:
        return number() << 64 | number()

    if random.random() < 0.4:
        stream.last_id = max(entry_id(), random.choice((0, stream.log.last)))
    if random.random() < 0.4:
        stream.max_deleted_id = entry_id()
    if random.random() < 0.4:
        stream.entries_added = number()
    for group in stream.groups.values():
        if random.random() < 0.4:
            group.last_id = entry_id()
        if random.random() < 0.4:
            group.entries_read = number()
        if random.random() < 0.4:
            consumer = group.consumers.get(b"ann") or group.add_consumer(b"ann", number() // 2)
            group.pending.set(entry_id(), consumer, number() // 2, 1 + number() // 4)
