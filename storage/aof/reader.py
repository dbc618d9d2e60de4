"""Reading one file of an append-only file: batches of commands, and what its end looks like.

A server that is killed while it writes leaves a file that ends within a command: a *torn tail*,
which is cut off when the server starts again. Everything else that is not as it should be is
damage, and no program can know what has been lost. The difference matters, so a tail counts as torn
only if its bytes are the beginning of what could have been written there:

* it is the beginning of one command, each byte of it as it has to be, and no other command shows in
  what its last argument would swallow (an argument's length that was changed in the middle of the
  file swallows the rest, and looks torn otherwise); or
* it begins with a MULTI whose EXEC has not been written any more; or
* it is one of these, or nothing, with a run of zero bytes behind it: some file systems make a file
  longer before they write what belongs there.

Behind each group of commands that were written at once there is a checksum line
(:mod:`storage.aof.checksum_lines`), unless another server has written them. It is compared when it
is met, and before anything is taken for a torn tail: a line that counts from the last one on shows
that the group was written as a whole, so what is wrong in front of it is damage. Commands behind
the last line count: either Redis has appended them, or a crash has cut off their line, and then the
next write covers them (:attr:`Reader.uncovered`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from storage.aof.checksum_lines import (
    LINE,
    LONGEST_LINE,
    NOTHING,
    LineVerifier,
    Mismatch,
    Uncovered,
    mismatch,
)
from storage.aof.disk import Disk
from storage.aof.framing import (
    LATER_COMMAND_SIZE,
    PORTION,
    Annotation,
    Command,
    Cut,
    Misframed,
    find_command,
    parse,
)

CHUNK: Final = PORTION
"""How many bytes are read at once, unless a command is longer."""

SHORT_RUN: Final = 16
"""Behind a run of fewer commands the rest of what has been read is parsed: to ask again would take
longer than that, where runs are so short."""

_OPEN_GROUP: Final = "the file ends between a MULTI and its EXEC"


TakeRun = Callable[[bytes, int], tuple[int, int, list[Annotation]]]
"""Takes what it knows of some data from a place on; where that ends, how many commands it was, and
the annotations in it. It is the place itself and 0 if it is nothing."""


class Damaged(Exception):
    """A file cannot be read from ``offset`` on, and that is not the end of it being torn."""

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: damaged at offset {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


class Tail(NamedTuple):
    """The end of a file that was being written to when its server ended."""

    offset: int
    """Where the valid part ends: behind the last command, or in front of a MULTI without EXEC."""
    size: int
    """How many bytes follow."""
    zeros: int
    """How many of these are zero bytes at the very end, where nothing has been written."""
    reason: str


class Batch(NamedTuple):
    """Commands that follow each other in the file."""

    offset: int
    """Where in the file the first of them, or an annotation in front of it, begins."""
    commands: list[Command]
    base: int
    """Where in the file the data begins that they were parsed from ..."""
    places: list[int]
    """... and where in these data each of them begins."""

    def offset_of(self, index: int) -> int:
        """Where in the file the command of this index begins."""
        return self.base + self.places[index]


class Reader:
    """The commands of one file, in batches; iterate once.

    ``torn`` says whether the file may have a torn tail, as only the last one of a manifest may:
    then :attr:`tail` tells after the iteration. The commands behind a MULTI without EXEC are in the
    batches all the same. Iterating raises :class:`Damaged` and :class:`OSError`. What is appended
    to the file in the meantime is left out.

    ``take_run`` is asked first what it makes of bytes that have been read, outside of groups, and
    again behind a run that was not short. There is a batch without commands in their place.

    A checksum is compared when its line is met, so the commands of a group may have been in batches
    before :class:`Damaged` is raised because of it. What is before the offset ``start`` is left
    out.
    """

    def __init__(
        self,
        path: str,
        disk: Disk | None = None,
        *,
        torn: bool = True,
        chunk: int = CHUNK,
        take_run: TakeRun | None = None,
        start: int = 0,
    ) -> None:
        self.path = path
        self.size = 0
        """The file's length in bytes, when the iteration began."""
        self.commands = 0
        """How many commands there were; in the end, those in front of the tail."""
        self.tail: Tail | None = None
        self.uncovered = NOTHING
        """What no checksum line covers at the end of the file, in front of the tail."""
        self._disk = disk or Disk()
        self._torn = torn
        self._chunk = chunk
        self._take_run = take_run
        self._fd = -1
        self._base = start
        """Where in the file the data begins that has been read ..."""
        self._data = b""
        self._at = 0
        """... and up to where in it there have been batches."""
        self._asks = True
        """Whether ``take_run`` is asked what it makes of these data."""
        self._group: tuple[int, int] | None = None
        """Where the open MULTI is, and how many commands there were before it."""
        self._verifier = LineVerifier(start)

    @property
    def has_checksums(self) -> bool:
        """Whether there has been a checksum line."""
        return self._verifier.count > 0

    def __iter__(self) -> Iterator[Batch]:
        self._fd = self._disk.open(self.path, os.O_RDONLY)
        try:
            self.size = self._disk.size(self._fd)
            yield from self._verified_batches()
        finally:
            self._disk.close(self._fd)
        if self.tail is not None and not self._torn:
            raise Damaged(
                self.path, self.tail.offset, f"{self.tail.reason}, and this is not the last file"
            )

    def _read(self, offset: int, size: int) -> bytes:
        return self._disk.read(self._fd, min(size, self.size - offset), offset)

    def _verified_batches(self) -> Iterator[Batch]:
        try:
            yield from self._batches()
        except Mismatch as error:
            raise Damaged(self.path, error.offset, error.reason) from None
        except Damaged as damaged:
            self.explain(damaged.offset)
            raise

    def _batches(self) -> Iterator[Batch]:
        while self._base + self._at < self.size:
            if self._at == len(self._data):
                self._read_more(0)
            batch = self._next_run()
            if batch is None:
                batch = self._next_commands()
            if batch is not None:
                yield batch
            elif self.tail is not None:
                return
        if self._group is not None:
            self._tear(self.size, self.size, _OPEN_GROUP)
            return
        self.uncovered = self._verifier.uncovered
        if self.has_checksums:
            self._search_line(self.size)

    def _read_more(self, missing: int) -> None:
        """Reads on, at least so many bytes, and as many as there are already: what has been looked
        at in vain is no more than what will be."""
        rest = self._data[self._at :]
        self._base += self._at
        self._at = 0
        offset = self._base + len(rest)
        data = self._read(offset, max(missing, len(rest), self._chunk))
        if not data:
            raise Damaged(self.path, offset, "the file has become shorter while it was read")
        self._data = rest + data
        self._asks = True

    def _next_run(self) -> Batch | None:
        """The batch that stands for what ``take_run`` has taken, if it has."""
        if self._take_run is None or not self._asks or self._group is not None:
            return None
        offset = self._base + self._at
        end, count, annotations = self._take_run(self._data, self._at)
        self._asks = count >= SHORT_RUN
        if not count:
            return None
        self._take(end, annotations)
        self.commands += count
        return Batch(offset, [], self._base, [])

    def _next_commands(self) -> Batch | None:
        """The next commands; ``None`` if more had to be read for them, or there is a tail."""
        try:
            parsed = parse(self._data, self._at)
        except Misframed as error:
            self._end_in_zeros(error)
            return None
        except Cut as cut:
            end = self._base + len(self._data)
            if end + cut.needed > self.size:
                offset = self._base + self._at
                self._end_in_command(offset, self._base + cut.content, self.size)
            else:
                self._read_more(cut.needed)
            return None
        batch = Batch(self._base + self._at, parsed.commands, self._base, parsed.places)
        self._take(parsed.end, parsed.annotations)
        self._follow_groups(batch)
        return batch

    def _take(self, end: int, annotations: list[Annotation]) -> None:
        """Goes on behind ``end``, and compares the checksums up to there."""
        self._verifier.take(self._data, self._at, end, annotations)
        self._at = end

    # --- groups --------------------------------------------------------------------------------

    def _follow_groups(self, batch: Batch) -> None:
        """Keeps account of MULTI and EXEC, which are commands of one word."""
        for index, command in enumerate(batch.commands):
            if len(command) == 1:
                reason = self._follow_group(batch, index, command[0].upper())
                if reason:
                    self.commands += index
                    raise Damaged(self.path, batch.offset_of(index), reason)
        self.commands += len(batch.commands)

    def _follow_group(self, batch: Batch, index: int, name: bytes) -> str:
        """Takes note of one such command; returns what is wrong with it."""
        if name == b"MULTI":
            if self._group is not None:
                return f"MULTI within the MULTI at offset {self._group[0]}"
            self._group = batch.offset_of(index), self.commands + index
        elif name == b"EXEC":
            if self._group is None:
                return "EXEC without MULTI"
            self._group = None
        elif len(name) == len(b"EXEC") and self._group is not None:
            # No other write command has one word of four letters. Taken as one, an EXEC with a
            # changed letter would make a torn tail of everything that follows.
            return f"expected EXEC, not {ascii(name)[1:]}"
        return ""

    # --- checksums -----------------------------------------------------------------------------

    def explain(self, offset: int) -> None:
        """Raises :class:`Damaged` if a checksum tells that the bytes at ``offset``, which cannot be
        parsed or applied, are not those that were written. They are in the last batch, or behind
        it."""
        if offset >= self._verifier.begin:
            try:
                self._search_line(self.size)
            except Mismatch as error:
                raise Damaged(self.path, error.offset, error.reason) from None

    def _search_line(self, end: int) -> None:
        """Looks for the line that covers what has been read behind the last one; raises
        :class:`Mismatch` if it is there and tells another checksum.

        Only damage hides it from the parser. Text of this form that a client has sent inside an
        argument does not count from there."""
        begin, size = self._verifier.begin, max(self._chunk, LONGEST_LINE)
        covered = NOTHING
        for offset in range(begin, end, size):
            data = self._read(offset, min(size + LONGEST_LINE, end - offset))
            covered = self._compare_lines(begin, covered, data, size)

    def _compare_lines(self, begin: int, covered: Uncovered, data: bytes, size: int) -> Uncovered:
        """Compares what looks like lines among so many bytes; returns what is covered then."""
        done = 0
        for match in LINE.finditer(data):
            at, line = match.start(), match[0]
            if at >= size:
                break
            covered, done = covered.followed_by(data[done:at]), at
            if line.endswith(b":%d\r\n" % covered.size) and line != covered.line():
                raise mismatch(begin, covered.size)
        return covered.followed_by(data[done:size])

    def _uncovered_before(self, end: int) -> Uncovered:
        """Return what no line covers in front of the torn tail at ``end``."""
        verifier = self._verifier
        if end < verifier.begin:
            raise Mismatch(end, "the MULTI here has no EXEC, but a checksum behind it")
        if end == verifier.end:
            return verifier.uncovered
        uncovered = NOTHING
        for offset in range(verifier.begin, end, self._chunk):
            data = self._read(offset, min(self._chunk, end - offset))
            uncovered = uncovered.followed_by(data)
        return uncovered

    # --- the end -------------------------------------------------------------------------------

    def _tear(self, offset: int, written: int, reason: str) -> None:
        """Notes a tail that begins with what is at ``offset``; ``written`` is where zeros begin."""
        self._search_line(written)
        if self._group is not None:
            offset, self.commands = self._group
            reason = _OPEN_GROUP
        self.uncovered = self._uncovered_before(offset)
        self.tail = Tail(offset, self.size - offset, self.size - written, reason)

    def _end_in_command(self, offset: int, content: int, written: int) -> None:
        """The command at ``offset`` is not whole: it ends in an argument whose content begins at
        ``content``. The file was written up to ``written``."""
        hidden = self._find_hidden(content, written)
        if hidden >= 0:
            raise Damaged(
                self.path,
                offset,
                "the file ends within the command that begins here, but another command begins"
                f" at offset {hidden}: an argument's length must be wrong",
            )
        self._tear(offset, written, "the file ends within a command")

    def _find_hidden(self, start: int, end: int) -> int:
        """Where between two offsets another command begins, or -1."""
        step = max(self._chunk, LATER_COMMAND_SIZE)
        for offset in range(start, end, step):
            data = self._read(offset, min(step + LATER_COMMAND_SIZE, end - offset))
            found = find_command(data)
            if found >= 0:
                return offset + found
        return -1

    def _end_in_zeros(self, error: Misframed) -> None:
        """Finds out whether what is wrong in the data is only that zeros fill the file's end."""
        base, offset = self._base, self._base + self._at
        damaged = Damaged(self.path, base + error.offset, error.reason)
        written = self._end_without_zeros(offset)
        if written == self.size or written > base + len(self._data):
            raise damaged
        if written == offset:
            self._tear(offset, written, "the file ends in zeros")
            return
        try:
            parse(self._data[: written - base], self._at)
        except Cut as cut:
            self._end_in_command(offset, base + cut.content, written)
        except Misframed:
            raise damaged from None

    def _end_without_zeros(self, offset: int) -> int:
        """Where the run of zeros begins at which the file ends, not before ``offset``."""
        end = self.size
        while end > offset:
            start = max(offset, end - self._chunk)
            data = self._read(start, end - start).rstrip(b"\0")
            if data:
                return start + len(data)
            end = start
        return offset
