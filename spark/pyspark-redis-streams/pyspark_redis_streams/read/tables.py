"""Replies of XRANGE as tables: entries of one shape, without an object of Python for each.

A reply in which every entry has the same fields in the same order is a table already: each entry
has as many lines. numpy finds the ends of all lines at once, and compares the length that each
string says it has with the line that there is. So a value with a line break in it, or one that
imitates what a server sends, is noticed: what passes is what any parser would have found. Arrow
takes the columns out of the bytes received. A reply of any other form is no table, and is left to
redis-py (:mod:`pyspark_redis_streams.read.replies`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

PADDING: Final = 16
"""Bytes behind the end of a reply that may be read, whatever they are."""

LONGEST: Final = 1 << 16
"""Bytes of a value from which on a reply is none for a table."""


MOST_FIELDS: Final = 256
"""Fields of an entry up to which a reply may be a table: each costs as much as some entries do."""


class Table:
    """Entries of one shape. ``starts`` and ``ends`` tell where the lines of each lie in ``data``.

    The lines are the ID, and then the names and values in turn, without what precedes them.
    """

    def __init__(self, data: Any, starts: Any, ends: Any, names: Sequence[bytes]) -> None:
        self.data = data
        self.names = tuple(names)
        self._starts = starts
        self._ends = ends

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, rows: slice) -> Table:
        return Table(self.data, self._starts[rows], self._ends[rows], self.names)

    @property
    def last_id(self) -> bytes:
        """The ID of the last entry."""
        return bytes(self.data[self._starts[-1, 0] : self._ends[-1, 0]])

    def sizes(self) -> list[int]:
        """Return the bytes of names and values of each entry."""
        found: list[int] = (self._ends - self._starts)[:, 1:].sum(axis=1).tolist()
        return found

    def size(self) -> int:
        """Return the bytes of names and values of all entries."""
        return int((self._ends - self._starts)[:, 1:].sum())

    def lines(self, first: int, step: int | None = None) -> Any:
        """Return the lines of all entries from one of each on, as bytes of Arrow.

        Without ``step`` it is only that line, or else each so many, entry for entry.
        """
        columns = slice(first, first + 1 if step is None else None, step)
        starts, ends = self._starts[:, columns].ravel(), self._ends[:, columns].ravel()
        # Every other one is a line, between them lies what is not asked for.
        offsets: Any = np.empty(2 * len(starts), np.int32)
        offsets[::2], offsets[1::2] = starts, ends
        gaps = pa.Array.from_buffers(
            pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        )
        return gaps.take(numbers(np.arange(0, len(offsets), 2, dtype=np.int32)))

    @classmethod
    def joined(cls, tables: Sequence[Table]) -> Table:
        """Return tables with the same names as one."""
        if len(tables) == 1:
            return tables[0]
        shifts = np.cumsum([0, *(len(table.data) for table in tables[:-1])])
        starts = [table._starts + at for table, at in zip(tables, shifts, strict=True)]
        ends = [table._ends + at for table, at in zip(tables, shifts, strict=True)]
        data = b"".join(table.data for table in tables)
        return cls(data, np.concatenate(starts), np.concatenate(ends), tables[0].names)


def numbers(values: Any) -> Any:
    """Return an array of numpy as one of Arrow.

    ``pa.array`` would import pandas, which takes a process longer than all it has to do here.
    """
    kind = {"int32": pa.int32(), "int64": pa.int64(), "uint64": pa.uint64()}[str(values.dtype)]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


class Lines:
    """Finds the lines of a reply while it comes in, and says when there are as many as expected.

    ``buffer`` has :data:`PADDING` more bytes than the reply.
    """

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._count = 0
        self._seen = 0
        self._entries = 0
        self._width = 0

    def are_enough(self, buffer: bytearray, size: int) -> bool:
        """Whether the first ``size`` bytes have the lines of a whole table, or more."""
        data = np.frombuffer(buffer, np.uint8, size)
        ends: Any = np.flatnonzero(data[self._seen : max(size - 1, 0)] == 13) + self._seen
        self._seen = max(size - 1, 0)
        ends = ends[data[ends + 1] == 10]
        self._found.append(ends)
        self._count += len(ends)
        if not self._width and self._count >= 5:
            self._entries, self._width = self._shape(buffer)
        return bool(self._width) and self._count >= 1 + self._entries * self._width

    def may_go_on(self, buffer: bytearray, size: int) -> bool:
        """Whether more lines may make a table: each entry so far begins as the first."""
        if not self._width:
            return True
        starts = np.concatenate(self._found)[:-1] + 2
        return self._have_heads(
            _words(buffer, size), starts[:: self._width], starts[3 :: self._width]
        )

    def _have_heads(self, words: Any, firsts: Any, fourths: Any) -> bool:
        """Whether entries have two parts, of which the second has so many as that of the first."""
        fields = b"*%d\r\n" % ((self._width - 4) // 2)
        return _have(words, firsts, b"*2\r\n") and _have(words, fourths, fields)

    def _shape(self, buffer: bytearray) -> tuple[int, int]:
        """How many entries are announced, and how many lines each has if they are as the first.

        Of what can be no table it is said to be one line.
        """
        ends = np.concatenate(self._found)[:5].tolist()
        heads = [bytes(buffer[at + 2 : end]) for at, end in pairwise([-2, *ends])]
        words = heads[0][1:], heads[4][1:]
        if not all(head[:1] == b"*" for head in (heads[0], heads[4])):
            return 1, 1
        if not all(word.isdigit() and len(word) < 10 for word in words):
            return 1, 1
        rows, parts = map(int, words)
        return (rows, 4 + 2 * parts) if parts <= 2 * MOST_FIELDS else (1, 1)

    def table(self, buffer: bytearray, size: int) -> Table | None:
        """Return the table of a reply of so many bytes; None if it is none, or not all of it."""
        ends = np.concatenate(self._found)
        rows, width = self._entries, self._width
        fields, rest = divmod(width - 4, 4)
        whole = len(ends) == 1 + rows * width and int(ends[-1]) + 2 == size
        if not whole or not rows or fields < 1 or rest:
            return None
        starts = (ends[:-1] + 2).reshape(rows, width)
        stops = ends[1:].reshape(rows, width)
        # Behind ``*2`` and before the fields there is a header.
        bodies = [2, *range(5, width, 2)]
        words = _words(buffer, size)
        if not self._have_heads(words, starts[:, 0], starts[:, 3]):
            return None
        found = Table(memoryview(buffer)[:size], starts[:, bodies], stops[:, bodies], ())
        if not _are_announced(words, starts[:, [line - 1 for line in bodies]], found):
            return None
        found.names = _names(words, buffer, found)
        return found if len(found.names) == fields else None


def _words(buffer: bytearray, size: int) -> Any:
    """The eight bytes from each place on, as numbers."""
    return np.ndarray((size,), "<u8", buffer, strides=(1,))


def _have(words: Any, places: Any, text: bytes) -> bool:
    """Whether a text stands at all of some places."""
    wanted, mask = _word(text), _MASKS[len(text)]
    return bool(((words[places] & mask) == wanted).all())


def _word(text: bytes) -> Any:
    return np.uint64(int.from_bytes(text[:8], "little"))


_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], "<u8")
"""What leaves so many of the first bytes of a word."""


@cache
def _headers(longest: int) -> tuple[Any, Any]:
    """The headers of strings up to a length, as words, and the masks of their bytes."""
    texts = [b"$%d\r\n" % length for length in range(longest)]
    return np.array([_word(text) for text in texts]), _MASKS[[len(text) for text in texts]]


def _are_announced(words: Any, headers: Any, table: Table) -> bool:
    """Whether each line is as long as the header before it says."""
    lengths = table._ends - table._starts
    longest = int(lengths.max())
    if longest >= LONGEST:
        return False
    known, masks = _headers(1 << max(longest.bit_length(), 8))
    return bool(((words[headers] & masks[lengths]) == known[lengths]).all())


def _names(words: Any, buffer: bytearray, table: Table) -> tuple[bytes, ...]:
    """The names of the fields that all entries have; fewer if they differ, or one comes twice."""
    found = []
    for line in range(1, table._starts.shape[1], 2):
        starts, ends = table._starts[:, line], table._ends[:, line]
        name = bytes(buffer[starts[0] : ends[0]])
        if ((ends - starts) != len(name)).any() or name in found:
            break
        parts = range(0, len(name), 8)
        if not all(_have(words, starts + at, name[at : at + 8]) for at in parts):
            break
        found.append(name)
    return tuple(found)
