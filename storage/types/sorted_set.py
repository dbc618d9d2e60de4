"""Sorted sets: a score for each member, and all of them in order.

The order is by score, then by the bytes of the member. It is kept in blocks of up to
:data:`MOST` items: where one belongs is found by bisection over the first items of the blocks, then
within a block. Scores lie side by side there, so a search touches little memory, and adding one to
a million takes little more than adding one to a thousand; the rank of an item takes a sum over the
lengths of the blocks up to it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection as Sized
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from random import randrange
from typing import Final

from storage.engine.limits import CollectionLimits, Table
from storage.steps import STEP
from storage.types.collection import SAMPLE, Collection, Members, Words, in_portions

ZADD: Final = b"ZADD"

MOST: Final = 2048
"""How many items a block has at most: to move some of those takes less than a search, and the rank
of an item in the middle of a million is a sum of some hundred lengths."""

FEWEST: Final = MOST // 2
"""Two blocks beside each other have more items than this."""

_SAMPLED: Final = 4096
_SAMPLE_STEP: Final = 8
"""How many items say where sorted parts end, and each how manieth of them does."""

_ITEM_BYTES: Final = 48
"""What a member takes for its score, twice, and its place in the order."""

Item = tuple[float, bytes]
"""A score and its member."""


class Items:
    """Members and their scores, in order."""

    __slots__ = ("members", "scores")

    def __init__(self, members: list[bytes], scores: array[float]) -> None:
        self.members = members
        self.scores = scores

    def __len__(self) -> int:
        return len(self.members)

    def pairs(self) -> Iterator[Item]:
        """Return them one by one."""
        return zip(self.scores, self.members, strict=True)

    def reverse(self) -> None:
        """Turns the order."""
        self.members.reverse()
        self.scores.reverse()

    def place(self, score: float, member: bytes) -> int:
        """How many of them stand before an item, which may be there or not."""
        scores = self.scores
        at = bisect_left(scores, score)
        if at == len(scores) or scores[at] != score:
            return at
        return bisect_left(self.members, member, at, bisect_right(scores, score, at))

    def insert(self, at: int, score: float, member: bytes) -> None:
        """Puts an item at a place."""
        self.members.insert(at, member)
        self.scores.insert(at, score)

    def part(self, start: int, stop: int) -> Items:
        """Return some of them."""
        return Items(self.members[start:stop], self.scores[start:stop])

    def extend(self, others: Items) -> None:
        """Adds others behind them."""
        self.members.extend(others.members)
        self.scores.extend(others.scores)

    def cut(self, start: int, stop: int) -> None:
        """Removes some of them."""
        del self.members[start:stop]
        del self.scores[start:stop]


def items_of(pairs: Sequence[Item]) -> Items:
    """Return items that are given one by one."""
    return Items([member for _, member in pairs], array("d", [score for score, _ in pairs]))


def in_order(pairs: Iterable[Item]) -> Generator[None, None, list[Item]]:
    """Sort items in steps: a sample of them says into how many parts, of about the same length,
    they are divided, of which each is sorted by itself."""
    items: list[Item] = []
    left = iter(pairs)
    while some := list(islice(left, STEP)):
        items += some
        yield
    ends = sorted(items[:: max(len(items) // _SAMPLED, 1)])[_SAMPLE_STEP::_SAMPLE_STEP]
    parts: list[list[Item]] = [[] for _ in range(len(ends) + 1)]
    for start in range(0, len(items), STEP):
        for item in items[start : start + STEP]:
            parts[bisect_right(ends, item)].append(item)
        yield
    items = []
    for part in parts:
        part.sort()
        items += part
        yield
    return items


class SortedSet(Collection):
    """A sorted set. ``scores`` is for reading; no score is not a number."""

    __slots__ = ("_blocks", "_firsts", "_large", "members", "scores")

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__(limits)
        self.scores: dict[bytes, float] = {}
        self._blocks: list[Items] = []
        self._firsts = items_of(())
        self.members = RankedMembers(self.scores, self._blocks)
        self._large = not limits.zset_max_listpack_entries

    def __len__(self) -> int:
        return len(self.scores)

    # --- changing -------------------------------------------------------------------------

    def expect(self, count: int, longest: int = 0) -> None:
        """Says that there may be so many members, of up to so many bytes: if that is too much for a
        small value, it is no such value from now on."""
        limits = self._limits
        if count > limits.zset_max_listpack_entries or longest > limits.zset_max_listpack_value:
            self._large = True

    def set(self, member: bytes, score: float) -> None:
        """Gives a member its score, which is other than the one that it has."""
        scores = self.scores
        former = scores.get(member)
        if former is None:
            if not self._large:
                self.expect(len(scores) + 1, len(member))
            if self.members.index is not None:
                self.members.index.add(member)
        else:
            self._take_out(former, member)
        if not self._large:
            score += 0.0  # A small value of Redis does not know -0 from 0.
        scores[member] = score
        self._put_in(score, member)

    def _put_in(self, score: float, member: bytes) -> None:
        blocks = self._blocks
        at = max(self._firsts.place(score, member) - 1, 0)
        if not blocks:
            self._add_block(0, Items([member], array("d", [score])))
            return
        block = blocks[at]
        place = block.place(score, member)
        block.insert(place, score, member)
        if not place:
            self._note_first(at)
        if len(block) > MOST:
            # Scores are often times: what is full at the end stays full.
            kept = MOST // 2 if at + 1 < len(blocks) else MOST
            self._add_block(at + 1, block.part(kept, MOST + 1))
            block.cut(kept, MOST + 1)

    def _add_block(self, at: int, block: Items) -> None:
        self._blocks.insert(at, block)
        self._firsts.insert(at, block.scores[0], block.members[0])

    def _drop_block(self, at: int) -> None:
        del self._blocks[at]
        self._firsts.cut(at, at + 1)

    def _note_first(self, at: int) -> None:
        block, firsts = self._blocks[at], self._firsts
        firsts.scores[at] = block.scores[0]
        firsts.members[at] = block.members[0]

    def fill(self, scores: dict[bytes, float]) -> None:
        """Gives an empty set all these members at once."""
        for _ in self.filling(scores.keys(), scores.values()):
            pass

    def filling(self, members: Sized[bytes], scores: Iterable[float]) -> Iterator[None]:
        """Gives an empty set these members with their scores, in steps."""
        self.expect(len(members))
        if not self._large:
            self.expect(len(members), max(map(len, members), default=0))
        left = zip(members, scores, strict=True)
        while some := dict(islice(left, STEP)):
            if not self._large:
                some = {member: score + 0.0 for member, score in some.items()}
            self.scores.update(some)
            yield
        pairs = yield from in_order(zip(self.scores.values(), self.scores.keys(), strict=True))
        for start in range(0, len(pairs), MOST):
            self._add_block(len(self._blocks), items_of(pairs[start : start + MOST]))
            yield
        if len(self._blocks) > 1:
            self._mend(len(self._blocks) - 1)

    def remove(self, member: bytes) -> bool:
        """Removes a member; returns whether it was there."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self._take_out(score, member)
        if self.members.index is not None:
            self.members.index.discard(member)
        return True

    def _take_out(self, score: float, member: bytes) -> None:
        firsts = self._firsts
        at = firsts.place(score, member)
        if at == len(firsts) or firsts.members[at] != member:
            at -= 1
        block = self._blocks[at]
        place = block.place(score, member)
        block.cut(place, place + 1)
        self._mend(at)

    def _mend(self, at: int) -> None:
        """After items have been removed from a block: removes an empty one, and joins small ones
        that are beside each other."""
        blocks = self._blocks
        block = blocks[at]
        if not len(block):
            self._drop_block(at)
            return
        self._note_first(at)
        if len(block) > FEWEST:
            return
        if at + 1 < len(blocks) and len(block) + len(blocks[at + 1]) <= FEWEST:
            block.extend(blocks[at + 1])
            self._drop_block(at + 1)
        if at and len(blocks[at - 1]) + len(block) <= FEWEST:
            blocks[at - 1].extend(block)
            self._drop_block(at)

    def pop(self, *, low: bool) -> Item:
        """Removes the first item, or the last one; there has to be one."""
        block = self._blocks[0] if low else self._blocks[-1]
        at = 0 if low else -1
        item = (block.scores[at], block.members[at])
        self.remove(item[1])
        return item

    def take(self, start: int, stop: int) -> Items:
        """Removes the items of these ranks; returns them."""
        items = self.items(start, stop)
        if not len(items):
            return items
        first, place = _place_of(self._blocks, len(self.scores), start)
        self._cut(first, place, len(items))
        scores, index = self.scores, self.members.index
        for member in items.members:
            del scores[member]
            if index is not None:
                index.discard(member)
        for near in (first + 1, first, first - 1):
            if 0 <= near < len(self._blocks):
                self._mend(near)
        return items

    def _cut(self, at: int, place: int, count: int) -> None:
        """Removes items from a place in a block on."""
        while count:
            block = self._blocks[at]
            cut = min(count, len(block) - place)
            count -= cut
            if cut == len(block):
                self._drop_block(at)
            else:
                block.cut(place, place + cut)
                self._note_first(at)
                at += 1
                place = 0

    # --- order ----------------------------------------------------------------------------

    def _blocks_before(self, at: int) -> int:
        """How many items the blocks before this one have."""
        if 2 * at <= len(self._blocks):
            return sum(map(len, self._blocks[:at]))
        return len(self.scores) - sum(map(len, self._blocks[at:]))

    def below(self, score: float, *, included: bool) -> int:
        """How many items have a lower score, or this one where it is included."""
        bisect = bisect_right if included else bisect_left
        at = bisect(self._firsts.scores, score) - 1
        if at < 0:
            return 0
        return self._blocks_before(at) + bisect(self._blocks[at].scores, score)

    def before(self, score: float, member: bytes) -> int:
        """How many items stand before one, which may be there or not."""
        at = self._firsts.place(score, member) - 1
        if at < 0:
            return 0
        return self._blocks_before(at) + self._blocks[at].place(score, member)

    def before_member(self, member: bytes) -> int:
        """How many items stand before a member, if they are in the order of their members, as
        those of one score are."""
        at = bisect_left(self._firsts.members, member) - 1
        if at < 0:
            return 0
        return self._blocks_before(at) + bisect_left(self._blocks[at].members, member)

    def items(self, start: int, stop: int) -> Items:
        """The items of the ranks from ``start`` to below ``stop``, as far as there are any."""
        left = min(stop, len(self.scores)) - start
        if left <= 0:
            return items_of(())
        at, place = _place_of(self._blocks, len(self.scores), start)
        found = self._blocks[at].part(place, place + left)
        while len(found) < left:
            at += 1
            found.extend(self._blocks[at].part(0, left - len(found)))
        return found

    def names(self, start: int, stop: int) -> list[bytes]:
        """The members alone of what :meth:`items` returns."""
        left = min(stop, len(self.scores)) - start
        if left <= 0:
            return []
        at, place = _place_of(self._blocks, len(self.scores), start)
        found = self._blocks[at].members[place : place + left]
        return found if len(found) == left else self.items(start, stop).members

    def ordered(self) -> Iterator[Item]:
        """Yield all items; none may come or go meanwhile."""
        return chain.from_iterable(map(Items.pairs, self._blocks))

    # --- as a value -----------------------------------------------------------------------

    def copy(self) -> SortedSet:
        """Return a sorted set of its own that is equal to this one."""
        copy = SortedSet(self._limits)
        copy.scores.update(self.scores)
        copy._blocks += [block.part(0, len(block)) for block in self._blocks]
        copy._firsts.extend(self._firsts)
        copy._large = self._large
        return copy

    @property
    def is_small(self) -> bool:
        """Whether Redis keeps it in one piece of memory; it never does again once it did not."""
        return not self._large

    def encoding(self) -> str:
        """``listpack`` or ``skiplist``."""
        return "skiplist" if self._large else "listpack"

    def words(self, key: bytes) -> Iterator[Words]:
        """ZADDs."""
        return in_portions((ZADD, key), chain.from_iterable(map(_words, self.ordered())), 2)

    def sample(self) -> Sequence[int]:
        """How many bytes some members have, with what their scores take."""
        return [len(member) + _ITEM_BYTES for member in islice(self.scores, SAMPLE)]

    def tables(self) -> Sequence[Table]:
        """What holds its elements."""
        index = self.members.index
        parts = [] if index is None else index.parts
        return [self.scores, *[block.members for block in self._blocks], *parts]

    def check(self) -> None:
        """Verifies the invariants."""
        blocks = self._blocks
        pairs = list(self.ordered())
        assert pairs == sorted(zip(self.scores.values(), self.scores.keys(), strict=True))
        assert list(self._firsts.pairs()) == [next(block.pairs()) for block in blocks]
        assert all(len(block.members) == len(block.scores) <= MOST for block in blocks)
        assert all(len(one) + len(two) > FEWEST for one, two in pairwise(blocks))
        assert not any(score != score for score in self.scores.values())
        self.members.check()


def _words(item: Item) -> Words:
    return b"%.17g" % item[0], item[1]


def _place_of(blocks: list[Items], count: int, rank: int) -> tuple[int, int]:
    """In which of the blocks, which have so many items, the one of a rank stands, and where in it.
    There has to be one."""
    if 2 * rank < count:
        at = 0
        while rank >= len(blocks[at]):
            rank -= len(blocks[at])
            at += 1
        return at, rank
    at = len(blocks) - 1
    start = count - len(blocks[at])
    while rank < start:
        at -= 1
        start -= len(blocks[at])
    return at, rank - start


class _InOrder(Sized[bytes]):
    """The members of a sorted set, in its order. It knows no more of it than its tables, or neither
    would go before the garbage collector comes."""

    __slots__ = ("blocks", "scores")

    def __init__(self, scores: dict[bytes, float], blocks: list[Items]) -> None:
        self.scores = scores
        self.blocks = blocks

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable([block.members for block in self.blocks])

    def __contains__(self, member: object) -> bool:
        return member in self.scores


class RankedMembers(Members):
    """The members of a sorted set, of which any can be picked by its rank."""

    __slots__ = ("_ordered",)

    def __init__(self, scores: dict[bytes, float], blocks: list[Items]) -> None:
        self._ordered = _InOrder(scores, blocks)
        super().__init__(self._ordered)

    def pick(self) -> bytes:
        """One member at random; there has to be one."""
        blocks, count = self._ordered.blocks, len(self._ordered)
        at, place = _place_of(blocks, count, randrange(count))
        return blocks[at].members[place]

    def picks(self, count: int) -> list[bytes]:
        """So many different members at random, or all from the last to the first, as in Redis, if
        there are no more."""
        picked = super().picks(count)
        if count >= len(self._ordered):
            picked.reverse()
        return picked
