"""What of a sorted set is asked for: ranges of ranks, scores and members, and the options of ZRANGE
and its like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from protocol import errors
from protocol.encoder import array_line, bulk
from protocol.errors import CommandError
from server.commands.sorted_sets import errors as zset_errors
from server.commands.sorted_sets.scores import end_of_range, text_of, written
from server.core.outcomes import FEW_TEXTS, Outcome, write_each, write_texts
from server.core.table import Arguments
from server.runtime.arguments import integer
from storage.types.sorted_set import Item, Items, SortedSet, items_of

Span = tuple[int, int]
"""From which rank to below which other one."""


class RankRange:
    """Ranks, which count from the end if they are negative; both ends belong to it."""

    __slots__ = ("_reverse", "_start", "_stop")

    def __init__(self, start: bytes, stop: bytes, reverse: bool = False) -> None:
        self._start, self._stop = integer(start), integer(stop)
        self._reverse = reverse

    def span(self, value: SortedSet) -> Span:
        """The ranks of the items, counted from the first one."""
        count = len(value)
        start = max(self._start + count if self._start < 0 else self._start, 0)
        stop = min((self._stop + count if self._stop < 0 else self._stop) + 1, count)
        return (count - stop, count - start) if self._reverse else (start, stop)


class ScoreRange:
    """Scores from one to another."""

    __slots__ = ("_least", "_most")

    def __init__(self, least: bytes, most: bytes) -> None:
        self._least, self._most = end_of_range(least), end_of_range(most)

    def span(self, value: SortedSet) -> Span:
        """The ranks of the items."""
        least, includes_least = self._least
        most, includes_most = self._most
        return (
            value.below(least, included=not includes_least),
            value.below(most, included=includes_most),
        )


class LexRange:
    """Members from one to another; ``-`` and ``+`` stand for the first and the last one. They are
    looked for as if all had the same score: without that only what is found is unspecified."""

    __slots__ = ("_least", "_most")

    def __init__(self, least: bytes, most: bytes) -> None:
        self._least, self._most = _lex_end(least), _lex_end(most)

    def span(self, value: SortedSet) -> Span:
        """The ranks of the items."""
        least, most = self._least, self._most
        start = _before_member(value, least, least.startswith(b"("))
        return start, max(start, _before_member(value, most, most.startswith(b"[")))


def _lex_end(text: bytes) -> bytes:
    if text in (b"-", b"+") or text.startswith((b"[", b"(")):
        return text
    raise CommandError(zset_errors.NO_LEX_RANGE)


def _before_member(value: SortedSet, end: bytes, included: bool) -> int:
    """How many items stand before the end of a range, or up to it where it is included."""
    if end == b"-" or not len(value):
        return 0
    if end == b"+":
        return len(value)
    member = end[1:] + b"\0" if included else end[1:]
    return value.before_member(member)


Range = RankRange | ScoreRange | LexRange

RANK: Final = "rank"
SCORE: Final = "score"
LEX: Final = "lex"

_BY: Final = {b"BYSCORE": SCORE, b"BYLEX": LEX}


class Selection:
    """What ZRANGE and its like ask for: a range, its order, a part of it, with or without scores.

    The ends of the range are the arguments from ``first`` on, behind which its options follow.
    ZRANGE itself, whose ``by`` is ``None``, says there by what and in which order. Raises
    :class:`CommandError`."""

    __slots__ = ("_count", "_offset", "_range", "_reverse", "by", "has_scores")

    def __init__(
        self,
        args: Arguments,
        by: str | None,
        reverse: bool = False,
        *,
        first: int = 2,
        lists: bool = True,
    ) -> None:
        self._offset, self._count = 0, -1
        self._reverse = reverse
        self.has_scores = False
        by = self._options(args, first + 2, by, lists)
        if by == RANK and self._count != -1:
            raise CommandError(zset_errors.LIMIT_ALONE)
        if by == LEX and self.has_scores:
            raise CommandError(zset_errors.SCORES_BY_LEX)
        start, stop = args[first], args[first + 1]
        self.by = by
        self._range = self._made(by, start, stop)

    def _options(self, args: Arguments, at: int, by: str | None, lists: bool) -> str:
        """Takes the options; returns by what the range is."""
        free = by is None
        while at < len(args):
            word = args[at].upper()
            if word == b"WITHSCORES" and lists:
                self.has_scores = True
            elif word == b"LIMIT" and at + 2 < len(args):
                self._offset, self._count = integer(args[at + 1]), integer(args[at + 2])
                at += 2
            elif word == b"REV" and free and not self._reverse:
                self._reverse = True
            elif word in _BY and by is None:
                by = _BY[word]
            else:
                raise CommandError(errors.SYNTAX)
            at += 1
        return by or RANK

    def _made(self, by: str, start: bytes, stop: bytes) -> Range:
        if by == RANK:
            self._offset = 0
            return RankRange(start, stop, self._reverse)
        if self._reverse:
            start, stop = stop, start
        return ScoreRange(start, stop) if by == SCORE else LexRange(start, stop)

    def items(self, value: SortedSet | None) -> Items:
        """The items of a sorted set that are asked for, in their order."""
        if value is None:
            return items_of(())
        start, stop = self._range.span(value)
        offset = self._offset
        if offset < 0 and not value.is_small:
            offset += stop - start  # Redis counts it from the end of the range.
        if offset < 0:
            return items_of(())
        if self._reverse:
            stop -= offset
            if self._count >= 0:
                start = max(start, stop - self._count)
        else:
            start += offset
            if self._count >= 0:
                stop = min(stop, start + self._count)
        items = value.items(start, stop)
        if self._reverse:
            items.reverse()
        return items


# --- as a reply ------------------------------------------------------------------------------


def listed(items: Items, has_scores: bool, resp3: bool) -> Outcome:
    """Items as a reply: the members, each with its score behind it or, in RESP3, beside it."""
    count = len(items)
    if not has_scores:
        return write_texts(array_line(count), items.members)
    if resp3 or 2 * count > FEW_TEXTS:
        return listed_each(items.pairs(), count, True, resp3)
    texts: list[bytes] = []
    for score, member in items.pairs():
        texts.append(member)
        texts.append(text_of(score))
    return write_texts(b"*%d" % (2 * count), texts)


def listed_each(items: Iterable[Item], count: int, has_scores: bool, resp3: bool) -> Outcome:
    """Like :func:`listed`, of so many items that are taken one by one."""
    if not has_scores:
        return write_each(b"*%d\r\n" % count, map(_member, items), count)
    if resp3:
        return write_each(b"*%d\r\n" % count, map(_paired, items), count)
    return write_each(b"*%d\r\n" % (2 * count), map(_flat, items), count)


def _member(item: Item) -> bytes:
    return bulk(item[1])


def _flat(item: Item) -> bytes:
    return bulk(item[1]) + written(item[0], False)


def _paired(item: Item) -> bytes:
    return b"*2\r\n" + bulk(item[1]) + written(item[0], True)
