"""What loading costs grows with the number of commands, whatever they are: counted, not timed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from itertools import chain
from types import FrameType

import pytest

from server.persistence.loader import Loader, Replay
from server.persistence.recovery import Recovery
from storage.aof.check import check_file
from storage.aof.framing import Command
from storage.aof.reader import CHUNK
from tests.server.persistence.conftest import Start
from tests.storage.aof.disks import MemoryDisk
from tests.storage.aof.samples import EXEC, MULTI, encoded
from tests.support.checksum_lines import with_lines
from tests.support.direct import Direct
from tests.support.recording import commands_of

FEW, MANY = 300, 3000
"""Of commands that take up to 60 bytes: within what is read at once, and beyond that."""


def added(number: int, key: bytes = b"s", *words: bytes) -> Command:
    return [b"XADD", key, b"%d-1" % (number + 1), *(words or (b"field", b"value"))]


def put(number: int) -> Command:
    return [b"SET", b"key:%d" % number, b"value"]


def in_transactions(count: int) -> bytes:
    units = ([MULTI, put(n), put(n + 1), EXEC] for n in range(0, count, 4))
    return encoded(*chain.from_iterable(units))


def delivered(count: int) -> bytes:
    """Entries that are added, delivered and acknowledged."""
    commands: list[Command] = [[b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM"]]
    for number in range(count // 6):
        entry_id = b"%d-1" % (number + 1)
        claim = [b"XCLAIM", b"s", b"g", b"c", b"0", entry_id, b"TIME", b"1", b"RETRYCOUNT", b"1"]
        claim += [b"FORCE", b"JUSTID", b"LASTID", entry_id]
        position = [b"XGROUP", b"SETID", b"s", b"g", entry_id, b"ENTRIESREAD", b"1"]
        commands += [added(number), MULTI, claim, position, EXEC, [b"XACK", b"s", b"g", entry_id]]
    return encoded(*commands)


CONTENTS: dict[str, Callable[[int], bytes]] = {
    "one stream": lambda count: encoded(*map(added, range(count))),
    "streams in turns": lambda count: encoded(
        *(added(n, b"s:%d" % (n % 50)) for n in range(count))
    ),
    "fields in turns": lambda count: encoded(
        *(added(n, b"s", b"f%d" % (n % 2), b"v") for n in range(count))
    ),
    "groups": delivered,
    "small transactions": in_transactions,
    "one transaction": lambda count: encoded(MULTI, *map(put, range(count)), EXEC),
    "strings": lambda count: encoded(*map(put, range(count))),
    "a checksum behind each command": lambda count: with_lines(
        *(encoded(put(n)) for n in range(count))
    ),
    "a transaction without its end": lambda count: encoded(MULTI, *map(put, range(count))),
}


class CountingDisk(MemoryDisk):
    """Counts the bytes that are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.read_bytes = 0

    def open(self, path: str, flags: int) -> int:
        return 0

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        self.read_bytes += len(data)
        return data

    def length(self, path: str) -> int:
        return len(self._data)

    def truncate(self, fd: int, size: int) -> None:
        """Cuts nothing off."""

    def sync(self, fd: int) -> None:
        """There is nothing to do."""


def start(disk: CountingDisk) -> None:
    """Loads the file as a start of a server does."""
    direct = Direct()
    server = direct.server
    Recovery(server.state, server.services.dispatcher, disk, ["file"], "file").run_at_once()


def check(disk: CountingDisk) -> None:
    """Does what ``penstock check-aof`` does."""
    direct = Direct()
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    assert not check_file("file", disk, replay=Replay(direct.server.state, loader)).damage


WAYS = pytest.mark.parametrize("load", [start, check])


def calls(load: Callable[[CountingDisk], None], data: bytes) -> int:
    """How many functions are called while a file is loaded."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    disk = CountingDisk(data)
    sys.setprofile(note)
    try:
        load(disk)
    finally:
        sys.setprofile(None)
    return count


@WAYS
@pytest.mark.parametrize("content", CONTENTS)
def test_ten_times_as_many_commands_take_at_most_as_many_times_the_calls(
    content: str, load: Callable[[CountingDisk], None]
) -> None:
    make = CONTENTS[content]
    load(CountingDisk(make(10)))  # What is imported by the first of all is not counted.
    few, many = calls(load, make(FEW)), calls(load, make(MANY))
    assert few > FEW / 10
    assert many < 11 * few


@WAYS
@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_is_read_little_more_than_once(
    content: str, load: Callable[[CountingDisk], None]
) -> None:
    """Twice, where the end is torn: it is searched for what would show that it is not."""
    data = CONTENTS[content](MANY)
    disk = CountingDisk(data)
    load(disk)
    times = 3 if content.endswith("without its end") else 1
    assert disk.read_bytes <= times * len(data) + CHUNK


def test_a_long_command_among_short_ones_is_read_once() -> None:
    data = encoded(put(1), [b"SET", b"k", b"v" * 3_000_000], *map(put, range(1000)))
    disk = CountingDisk(data)
    start(disk)
    assert disk.read_bytes <= len(data) + CHUNK


async def test_the_log_says_how_long_loading_took_and_most_of_that_what(start: Start) -> None:
    rig = await start()
    for number in range(40):
        await rig.ask("SET", f"key:{number}", "value")
    await rig.stop()
    again = await start()
    folder = re.escape(str(again.folder))
    assert re.fullmatch(
        rf"Loaded \d+ commands from '{folder}/appendonly\.aof\.1\.base\.aof' and"
        rf" '{folder}/appendonly\.aof\.1\.incr\.aof', \d+ bytes, in \d+\.\d\d seconds;"
        r" what took the longest: SET, \d+\.\d\d seconds",
        again.log[0],
    )


def test_what_takes_the_longest_is_found_among_commands_that_repeat_themselves() -> None:
    """Few of them are timed, and not always those of one kind."""
    direct = Direct()
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    loader.begin_file()
    for _ in range(20):
        loader.apply_all(commands_of(in_transactions(17 * 4)))
        loader.apply_all([[b"APPEND", b"long", b"v" * 10_000], [b"DEL", b"key:0"]])
    loader.finish()
    assert {b"SET", b"MULTI", b"EXEC", b"APPEND", b"DEL"} >= loader.costs.keys() >= {b"SET"}
    assert all(cost > 0 for cost in loader.costs.values())
