"""What hashes, lists, sets and sorted sets have in common: values of many elements.

A collection knows neither its key nor the time. Handlers change it and then say what they did
(:meth:`storage.keyspace.databases.Database.changed`); an empty one goes with its key.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Collection as Sized
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import Final

from storage.engine.limits import FEW, CollectionLimits, Table
from storage.indexes import ScanIndex

Words = tuple[bytes, ...]
"""A command."""

AT_ONCE: Final = 64
"""How many elements a command has that makes a value anew."""

SAMPLE: Final = 64
"""How many elements are looked at to estimate how much memory all of them take."""

_PORTION: Final = 2000
"""How many names are put into an index at a time."""

_DEARER: Final = 100
"""How much longer it takes to pick a name from an index than to put one into a list."""

ELEMENT_BYTES: Final = 88
"""What an element takes beside its own bytes: a header of Python's, and its place in a table."""


class Collection:
    """A value of many elements. None of them expires before ``due_at``, which is -1 for never.

    It is no ``ABC``: compiled, all classes below it would share what ``isinstance`` has found out
    about one of them.
    """

    __slots__ = ("_limits", "due_at")

    def __init__(self, limits: CollectionLimits) -> None:
        self._limits = limits
        self.due_at = -1

    def __del__(self) -> None:
        if len(self) > FEW:
            self._limits.disposal.drop(*self.tables())

    @abstractmethod
    def __len__(self) -> int:
        """How many elements it has."""

    @abstractmethod
    def copy(self) -> Collection:
        """Return a value of its own that is equal to this one."""

    @abstractmethod
    def encoding(self) -> str:
        """What OBJECT ENCODING says."""

    @abstractmethod
    def words(self, key: bytes) -> Iterator[Words]:
        """Yield the commands that make the value anew at a free key."""

    @abstractmethod
    def sample(self) -> Sequence[int]:
        """How many bytes each of some elements has."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """What holds its elements, to be freed when it is no longer used."""

    @abstractmethod
    def check(self) -> None:
        """Verifies the invariants."""

    def memory(self) -> int:
        """About how many bytes it takes, judging by some of its elements."""
        sample = self.sample()
        if not sample:
            return 0
        return len(self) * (sum(sample) // len(sample) + ELEMENT_BYTES)


class Members:
    """The names in a collection that SCAN walks through and random picks are made of.

    The index for that is made when it is first needed, and kept up to date from then on; of few
    names there is none. ``names`` belongs to the collection, which reports what it adds and
    removes there, while the index is made as well."""

    __slots__ = ("_left", "index", "names")

    def __init__(self, names: Sized[bytes]) -> None:
        self.names = names
        self.index: ScanIndex | None = None
        self._left: Iterator[bytes] | None = None

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About ``count`` names from ``cursor`` on, and the cursor of what follows (0: nothing)."""
        return self._indexed().page(cursor, count)

    def _indexed(self) -> ScanIndex:
        for _ in self.indexing():
            pass
        assert self.index is not None
        return self.index

    @property
    def needs_index(self) -> bool:
        """Whether it takes long to make the index that a random pick of one name needs."""
        return len(self.names) > _PORTION and (self.index is None or self._left is not None)

    def indexing(self) -> Generator[None, None, None]:
        """Make the index, in steps between which names may come and go; whoever else needs it
        helps."""
        while self.index is None or self._left is not None:
            if self.index is None or self._left is None:
                self.index = ScanIndex(room=len(self.names))
                self._left = iter(list(self.names))
            index, portion = self.index, list(islice(self._left, _PORTION))
            for name in portion:
                if name in self.names and name not in index:
                    index.add(name)
            if len(portion) < _PORTION:
                self._left = None
                index.fit()
            yield

    def pick(self) -> bytes:
        """One name at random; there has to be one."""
        if self.index is None and len(self.names) <= SAMPLE:
            return next(islice(self.names, random.randrange(len(self.names)), None))
        name = self._indexed().random()
        assert name is not None
        return name

    def picks(self, count: int) -> list[bytes]:
        """So many different names at random, or all in their order if there are no more."""
        if count >= len(self.names):
            return list(self.names)
        if self.are_listed_for(count):
            return list(drawn(list(self.names), count))
        found: dict[bytes, None] = {}
        while len(found) < count:
            found[self.pick()] = None
        return list(found)

    def are_listed_for(self, count: int) -> bool:
        """Whether so many names are better drawn from a list of all than picked one by one."""
        return count * _DEARER > len(self.names)

    def check(self) -> None:
        """Verifies that the index has exactly the names."""
        if self.index is not None and self._left is None:
            self.index.check(self.names)


def drawn(names: list[bytes], count: int) -> Iterator[bytes]:
    """Yield so many of these names at random, each once; the list is used up."""
    total = len(names)
    for at in range(count):
        place = at + int(random.random() * (total - at))
        name = names[place]
        names[place] = names[at]
        yield name


def in_portions(head: Words, elements: Iterator[bytes], each: int = 1) -> Iterator[Words]:
    """Yield commands that begin with ``head`` and have some of the elements each, of which
    ``each`` belong together."""
    while portion := tuple(islice(elements, each * AT_ONCE)):
        yield head + portion
