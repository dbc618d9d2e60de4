"""LCS: what two strings have in common.

The table of lengths is kept as differences, a bit for each: a row of it is one big integer, and the
next row comes of four operations on it (Hyyrö, "Bit-parallel LCS-length computation revisited",
2004). What takes a step of the processor for each cell elsewhere takes one for 30 cells here, and a
bit of memory. The rows are those of the shorter string, so that there are few of them.

Of several longest subsequences, the one is found that a walk through the table from its end takes
which turns back in the first string only where it must. Everything is done in steps: a piece of a
string that is looked for a byte, or a row.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Map, Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.set_options import option_value
from server.core.outcomes import LONG, Steps, reply_of
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.errors import WrongType

# --- the table ---------------------------------------------------------------------------------


Match = tuple[int, int]
"""A byte of the first string and one of the second that are the same."""

_SPARSE: Final = 40
"""Up to this share of a string, the places of a byte are set one by one in less time than all."""

_STEP: Final = 65536
"""In how many bytes of a string the places of a byte are found in one step."""


Rows = list[int]
Matches = Generator[None, None, list[Match]]


def common_bytes(first: bytes, second: bytes) -> Matches:
    """The bytes of a longest common subsequence, from the last to the first."""
    if len(first) <= len(second):
        rows = yield from _rows(first, second)
        return (yield from _walk_first(first, second, rows))
    rows = yield from _rows(second, first)
    return (yield from _walk_second(first, second, rows))


def common_length(first: bytes, second: bytes) -> Generator[None, None, int]:
    """How many bytes a longest common subsequence has."""
    shorter, longer = sorted((first, second), key=len)
    rows = yield from _rows(shorter, longer)
    return len(longer) - rows[-1].bit_count()


def _rows(shorter: bytes, longer: bytes) -> Generator[None, None, Rows]:
    """The rows of the table: a bit is zero where the length goes up by one from place to place."""
    every = (1 << len(longer)) - 1
    places: dict[int, int] = {}
    for byte in set(shorter):
        places[byte] = yield from _places(byte, longer)
    rows = [every]
    row = every
    for byte in shorter:
        common = row & places[byte]
        row = ((row + common) | (row - common)) & every
        rows.append(row)
        yield
    return rows


def _places(byte: int, text: bytes) -> Generator[None, None, int]:
    """A bit for each place at which the byte is."""
    pieces = []
    for start in range(0, len(text), _STEP):
        pieces.append(_places_in_piece(byte, text[start : start + _STEP]))
        yield
    return int.from_bytes(b"".join(pieces), "little")


def _places_in_piece(byte: int, text: bytes) -> bytes:
    size = (len(text) + 7) // 8
    if text.count(byte) * _SPARSE > len(text):
        digits = b"0" * byte + b"1" + b"0" * (255 - byte)
        return int(text[::-1].translate(digits), 2).to_bytes(size, "little")
    bits = bytearray(size)
    at = text.find(byte)
    while at >= 0:
        bits[at >> 3] |= 1 << (at & 7)
        at = text.find(byte, at + 1)
    return bytes(bits)


def _walk_first(first: bytes, second: bytes, rows: Rows) -> Matches:
    """The walk, where there is a row for each byte of the first string.

    In a row it goes back in the second string until the bytes match, or the length goes down there.
    """
    found: list[Match] = []
    i, j = len(first), len(second)
    while i and j:
        yield
        byte = first[i - 1]
        match = second.rfind(byte, 0, j) + 1
        low = (1 << j) - 1
        down = (~rows[i] & low).bit_length()
        j = max(match, down)
        i -= 1
        if j and j == match:
            j -= 1
            found.append((i, j))
    return found


def _walk_second(first: bytes, second: bytes, rows: Rows) -> Matches:
    """The walk, where there is a row for each byte of the second string.

    It leaves a row if its byte is of no use there: if the row before has the same length. What the
    lengths differ by, 0 or 1, changes where the differences of only one of the rows are."""
    found: list[Match] = []
    i, j = len(first), len(second)
    while i and j:
        yield
        byte = second[j - 1]
        j -= 1
        if first[i - 1] != byte:
            low = (1 << i) - 1
            if not ((rows[j] ^ rows[j + 1]) & low).bit_count() % 2:
                continue
            i = first.rfind(byte, 0, i) + 1
        i -= 1
        found.append((i, j))
    return found


# --- the command -------------------------------------------------------------------------------


_FLAGS: Final = frozenset({b"LEN", b"IDX", b"WITHMATCHLEN"})
_CELL: Final = 4
"""How many bytes a cell of the table takes in Redis, which refuses a table that is too large. It is
smaller here, but would take as long to fill."""


class _LcsOptions:
    """The options of one LCS."""

    def __init__(self, args: Arguments) -> None:
        self.shortest = 0
        self.flags: set[bytes] = set()
        options = iter(args[3:])
        for option in options:
            self._take(option.upper(), options)
        if {b"LEN", b"IDX"} <= self.flags:
            raise CommandError(string_errors.LCS_LEN_WITH_IDX)

    def _take(self, word: bytes, following: Iterator[bytes]) -> None:
        if word in _FLAGS:
            self.flags.add(word)
        elif word == b"MINMATCHLEN":
            self.shortest = integer(option_value(following))
        else:
            raise CommandError(errors.SYNTAX)


@command(
    "LCS",
    flags="readonly",
    since="7.0.0",
    summary="Finds the longest common subsequence of two strings.",
    complexity="O(N*M) in the lengths of the strings.",
    syntax="key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
    keys=[KeySpec("RO access", last=1)],
)
def lcs(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """The subsequence; with LEN its length, with IDX where its parts are in both strings."""
    first, second = _strings(session, args[1], args[2])
    options = _LcsOptions(args)
    table = (len(first) + 1) * (len(second) + 1) * _CELL
    if table > server.state.config.proto_max_bulk_len:
        raise CommandError(string_errors.LCS_TOO_LARGE)
    return reply_of(_compared(first, second, options), session.resp3, long=table > LONG * _CELL)


def _compared(first: bytes, second: bytes, options: _LcsOptions) -> Generator[None, None, Reply]:
    if b"LEN" in options.flags:
        return (yield from common_length(first, second))
    matches = yield from common_bytes(first, second)
    if b"IDX" in options.flags:
        return Map([("matches", _ranges(matches, options)), ("len", len(matches))])
    return bulk(bytes(first[at] for at, _ in reversed(matches)))


def _strings(session: Session, *keys: bytes) -> list[bytes]:
    """The strings at the keys; both are looked up before one is refused."""
    for key in keys:
        session.db.read(key, touch=not session.no_touch)
    try:
        return [session.db.string(key) or b"" for key in keys]
    except WrongType:
        raise CommandError(string_errors.LCS_OF_OTHERS) from None


def _ranges(matches: list[Match], options: _LcsOptions) -> list[Reply]:
    """The parts without a gap in either string, the last one first."""
    found: list[Reply] = []
    end = 0
    for at, (i, j) in enumerate(matches):
        if at + 1 < len(matches) and matches[at + 1] == (i - 1, j - 1):
            continue
        size = at + 1 - end
        if size >= options.shortest:
            spans: list[Reply] = [[i, i + size - 1], [j, j + size - 1]]
            found.append([*spans, size] if b"WITHMATCHLEN" in options.flags else spans)
        end = at + 1
    return found
