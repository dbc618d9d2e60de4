"""Runs of XADD in an append-only file, applied to a keyspace without taking them apart.

Most of a file is XADD commands that follow each other with the same key and the same field names.
What they say of an entry's fields and values is, byte for byte, what is stored of it: so it is
verified and cut out as a whole, and entries are added many at a time. Checksum lines may stand
between the commands, and are left to who reads the file. Everything that is not as usual, be it
another command or a damaged one, ends the run in front of it, and is left to the parser and to
those who apply one command at a time.
"""

from __future__ import annotations

from typing import Final

from storage.aof.checksum_lines import LONGEST_LINE, MARK
from storage.aof.commands import bulk
from storage.aof.framing import Annotation, Cut, Misframed, find_bulk, parse_command
from storage.engine.block import LoadedRun
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

_DASH: Final = 0x2D
_ZERO: Final = 0x30
_NINE: Final = 0x39
_NEAR: Final = 1000
"""Most sequence numbers are below this."""
_TOO_LARGE: Final = 10**18
"""Halves of IDs from here on are left to others, which saves the look at the highest ones."""
_FEWEST_WORDS: Final = 5
_NONE: Final = -1


class RunRestorer:
    """Adds the entries of runs; remembers what the XADDs of the last one have in common."""

    __slots__ = ("_base", "_count", "_key", "_ms", "_names", "_number", "_prefix", "_seq", "_words")

    def __init__(self) -> None:
        self._prefix = b"\0"
        """The XADD up to its ID; none yet."""
        self._key = b""
        self._names: list[bytes] = []
        """The field names ..."""
        self._words: list[bytes] = []
        """... and what they are in the file."""
        self._count = b""
        """The header of the fields and values as they are stored."""
        self._ms = self._seq = 0
        """The halves of the last ID."""
        self._number = 0
        self._base = 0
        """The ID with these milliseconds and the sequence number 0."""

    def take(self, db: Database, data: bytes, begin: int) -> tuple[int, int, list[Annotation]]:
        """Adds the entries of the run that begins at a place of ``data``.

        Returns where it ends, how many commands there were, the place itself and 0 if there is no
        run, and which bytes are checksum lines."""
        lines: list[Annotation] = []
        at = _end_of_line(data, begin)
        if at > begin:
            lines.append((0, begin, at - begin))
        if not data.startswith(self._prefix, at) and not self._learn(data, at):
            return begin, 0, []
        stream = db.values.get(self._key)
        if type(stream) is not Stream:
            return begin, 0, []
        run = LoadedRun(self._names)
        run.near = True
        end = self._read(data, at, stream.last_id, run, lines)
        if not run.entry_ids:
            self._prefix = b"\0"  # Other field names, maybe.
            return begin, 0, []
        stream.add_loaded(run)
        return end, len(run.entry_ids), lines

    def _learn(self, data: bytes, at: int) -> bool:
        """Remembers what the XADD that begins here may have in common with others."""
        try:
            command, _ = parse_command(data, at)
        except (Cut, Misframed):
            return False
        if command[0].upper() != b"XADD" or len(command) < _FEWEST_WORDS or len(command) % 2 == 0:
            return False
        name, self._key = command[:2]
        self._names = command[3::2]
        self._prefix = b"*%d\r\n" % len(command) + bulk(name) + bulk(self._key)
        self._words = list(map(bulk, self._names))
        self._count = b"*%d\r\n" % (len(command) - 3)
        return True

    def _read(
        self, data: bytes, at: int, last_id: int, run: LoadedRun, lines: list[Annotation]
    ) -> int:
        """Takes entries with ascending IDs above ``last_id``, and lines between them; returns where
        the last one ends."""
        prefix, count = self._prefix, self._count
        entry_ids, payloads, sizes = run.entry_ids, run.payloads, run.sizes
        size = len(prefix)
        try:
            while True:
                if not data.startswith(prefix, at):
                    end = _end_of_line(data, at)
                    if end == at:
                        break
                    lines.append((len(entry_ids), at, end - at))
                    at = end
                    continue
                begin = at + size
                middle = self._end_of_id(data, begin)
                end = self._end_of_items(data, middle)
                entry_id = self._base | self._seq
                if end < 0 or entry_id <= last_id:
                    break
                last_id = entry_id
                if self._seq >= _NEAR:
                    run.near = False
                entry_ids.append(entry_id)
                pieces = (b"*2\r\n", data[begin:middle], count, data[middle:end])
                payloads.append(b"".join(pieces))
                sizes.append(len(count) + end - middle)
                at = end
        except IndexError:  # The data ends within a command.
            pass
        return at

    def _end_of_items(self, data: bytes, at: int) -> int:
        """Where the fields and values end, negative if they are not as usual."""
        if at < 0:
            return _NONE
        for word in self._words:
            if not data.startswith(word, at):
                return _NONE
            _, end = find_bulk(data, at + len(word))
            if end < 0:
                return _NONE
            at = end + 2
        return at

    def _end_of_id(self, data: bytes, at: int) -> int:
        """Takes note of the ID in the bulk string that begins here, and returns where that ends;
        negative if it is not in canonical form."""
        start, end = find_bulk(data, at)
        if start < 0:
            return _NONE
        dash = self._take_number(data, start)
        ms = self._number
        if dash < 0 or data[dash] != _DASH or self._take_number(data, dash + 1) != end:
            return _NONE
        if ms != self._ms:
            self._ms, self._base = ms, ms << 64
        self._seq = self._number
        return end + 2

    def _take_number(self, data: bytes, at: int) -> int:
        """Takes note of the number that begins here; returns where it ends, negative if that is not
        how a number is written."""
        begin, first = at, data[at]
        byte, value = first, 0
        while _ZERO <= byte <= _NINE:
            value = value * 10 + byte - _ZERO
            at += 1
            byte = data[at]
        if at == begin or value >= _TOO_LARGE or (first == _ZERO and at - begin > 1):
            return _NONE
        self._number = value
        return at


def _end_of_line(data: bytes, at: int) -> int:
    """Where the checksum line ends that begins here, ``at`` if there is none."""
    if not data.startswith(MARK, at):
        return at
    end = data.find(b"\r\n", at, at + LONGEST_LINE)
    return at if end < 0 else end + 2
