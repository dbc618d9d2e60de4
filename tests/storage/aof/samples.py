"""Files of commands for the tests, as a server writes them."""

from __future__ import annotations

from storage.aof.framing import Command
from storage.aof.reader import CHUNK, Reader
from tests.storage.aof.disks import MemoryDisk

MULTI: Command = [b"MULTI"]
EXEC: Command = [b"EXEC"]
STAMP = b"#TS:1700000000\r\n"


def xadd(number: int, value: bytes = b"v") -> Command:
    """An entry that is told from the others by its number."""
    return [b"XADD", b"s", b"%d-1" % number, b"field", value]


def xclaim(number: int) -> Command:
    """The delivery of that entry."""
    options = [b"TIME", b"1700000000000", b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID"]
    return [b"XCLAIM", b"s", b"group", b"consumer", b"0", b"%d-1" % number, *options]


def encoded(*commands: Command) -> bytes:
    """The commands as they stand in a file, by the definition of RESP."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in command]
    return b"".join(parts)


class Content:
    """What a :class:`Reader` has read from some bytes."""

    def __init__(self, data: bytes, *, torn: bool = True, chunk: int = CHUNK) -> None:
        self.reader = Reader("file", MemoryDisk(data), torn=torn, chunk=chunk)
        self.commands: list[Command] = []
        self.offsets: list[int] = []
        for batch in self.reader:
            self.offsets += [batch.offset_of(index) for index in range(len(batch.commands))]
            self.commands += batch.commands
        self.tail = self.reader.tail
