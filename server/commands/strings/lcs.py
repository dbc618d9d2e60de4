"""LCS: what two strings have in common."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Map, Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings import subsequence
from server.commands.strings.set_options import option_value
from server.commands.strings.subsequence import Match
from server.road.outcomes import LONG, Steps, reply_of
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from storage.errors import WrongType

_FLAGS: Final = frozenset({b"LEN", b"IDX", b"WITHMATCHLEN"})
_CELL: Final = 4
"""What a cell of its table takes in Redis, which refuses one that is too large. The table is
smaller here, but would take as long to fill."""


class _Options:
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
    options = _Options(args)
    table = (len(first) + 1) * (len(second) + 1) * _CELL
    if table > server.state.config.proto_max_bulk_len:
        raise CommandError(string_errors.LCS_TOO_LARGE)
    return reply_of(_compared(first, second, options), session.resp3, long=table > LONG * _CELL)


def _compared(first: bytes, second: bytes, options: _Options) -> Generator[None, None, Reply]:
    if b"LEN" in options.flags:
        return (yield from subsequence.length(first, second))
    matches = yield from subsequence.matches(first, second)
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


def _ranges(matches: list[Match], options: _Options) -> list[Reply]:
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
