"""Sets: members in the order in which they came, or of integers alone in theirs."""

from __future__ import annotations

from collections.abc import Collection as Elements
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from storage.engine.limits import CollectionLimits, Table
from storage.steps import STEP
from storage.types.collection import SAMPLE, Collection, Members, Words, in_portions
from storage.types.strings import encoding_of

SADD: Final = b"SADD"

_INTEGERS: Final = "intset"
_SMALL: Final = "listpack"
_LARGE: Final = "hashtable"

_COSTLIER: Final = 4
"""How much longer it takes to remove a member from an index than to put one into a new one."""


class SetValue(Collection):
    """A set. ``members.names`` is for reading, and :meth:`ordered` where the order counts."""

    __slots__ = ("_encoding", "_names", "_sorted", "members")

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__(limits)
        self._names: dict[bytes, None] = {}
        self.members = Members(self._names)
        self._encoding = _INTEGERS
        self._sorted = True

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, member: bytes) -> bool:
        return member in self._names

    def add(self, member: bytes) -> bool:
        """Adds a member; returns whether it is new."""
        names = self._names
        if member in names:
            return False
        if self._encoding != _LARGE:
            self._make_room(member)
        names[member] = None
        if self.members.index is not None:
            self.members.index.add(member)
        return True

    def expect(self, member: bytes, count: int) -> None:
        """Changes the encoding, if it is not one for so many members more, the first of which is
        this. They count as Redis counts them: whether or not they are new, and without those that
        are there."""
        limits = self._limits
        encoding = self._encoding
        if not self._names and encoding_of(member) != "int":
            encoding = _SMALL
        if encoding == _INTEGERS and count > limits.set_max_intset_entries:
            encoding = _LARGE if self._names else _SMALL
        if encoding == _SMALL and count > limits.set_max_listpack_entries:
            encoding = _LARGE
        if encoding != self._encoding:
            self._become(encoding)

    def filling(self, members: Elements[bytes], *, tight: bool = False) -> Iterator[None]:
        """Adds different members to an empty set, in steps: one after the other for the encoding,
        or all of them to the smallest one that they fit in, if that is to be ``tight``."""
        limits = self._limits
        if len(members) > max(limits.set_max_intset_entries, limits.set_max_listpack_entries):
            self._encoding = _LARGE
        elif tight:
            self._encoding = self._tightest(members)
        else:
            for member in members:
                self.add(member)
            return
        self._sorted = self._encoding != _INTEGERS
        left = iter(members)
        while some := dict.fromkeys(islice(left, STEP)):
            self._names.update(some)
            yield

    def _tightest(self, members: Elements[bytes]) -> str:
        limits = self._limits
        if len(members) <= limits.set_max_intset_entries and _only_integers(members):
            return _INTEGERS
        fits = max(map(len, members)) <= limits.set_max_listpack_value
        return _SMALL if fits and len(members) <= limits.set_max_listpack_entries else _LARGE

    def _make_room(self, member: bytes) -> None:
        """Changes the encoding, if it is not one for this member as well."""
        limits, count = self._limits, len(self._names)
        if self._encoding == _INTEGERS:
            if encoding_of(member) == "int":
                self._sorted = not count
                if count >= limits.set_max_intset_entries:
                    self._become(_LARGE)
                return
            self._become(_SMALL)
            longest = max(map(len, self._names), default=0)
            if longest > limits.set_max_listpack_value:
                self._become(_LARGE)
        if count >= limits.set_max_listpack_entries or len(member) > limits.set_max_listpack_value:
            self._become(_LARGE)

    def _become(self, encoding: str) -> None:
        self.ordered()
        self._encoding = encoding

    def remove(self, member: bytes) -> bool:
        """Removes a member; returns whether it was there."""
        try:
            del self._names[member]
        except KeyError:
            return False
        if self.members.index is not None:
            self.members.index.discard(member)
        return True

    def remove_all(self, members: list[bytes]) -> None:
        """Removes members that are there."""
        names = self._names
        if len(members) * _COSTLIER > len(names):
            self.members.index = None
        index = self.members.index
        for member in members:
            del names[member]
            if index is not None:
                index.discard(member)

    def ordered(self) -> dict[bytes, None]:
        """The members in their order; integers are put into theirs when somebody looks."""
        names = self._names
        if not self._sorted:
            numbers = sorted(names, key=int)
            names.clear()
            names.update(dict.fromkeys(numbers))
            self._sorted = True
        return names

    # --- as a value -----------------------------------------------------------------------

    def copy(self) -> SetValue:
        """Return a set of its own that is equal to this one."""
        copy = SetValue(self._limits)
        copy._names.update(self._names)
        copy._encoding, copy._sorted = self._encoding, self._sorted
        return copy

    @property
    def is_small(self) -> bool:
        """Whether Redis keeps it in one piece of memory; it never does again once it did not."""
        return self._encoding != _LARGE

    def encoding(self) -> str:
        """``intset``, ``listpack`` or ``hashtable``."""
        return self._encoding

    def words(self, key: bytes) -> Iterator[Words]:
        """SADDs."""
        return in_portions((SADD, key), iter(self.ordered()))

    def sample(self) -> Sequence[int]:
        """How many bytes some members have."""
        return list(map(len, islice(self._names, SAMPLE)))

    def tables(self) -> Sequence[Table]:
        """What holds its members."""
        index = self.members.index
        return [self._names, *(() if index is None else index.parts)]

    def check(self) -> None:
        """Verifies the invariants."""
        self.members.check()
        if self._encoding == _INTEGERS:
            numbers = list(map(int, self.ordered()))
            assert numbers == sorted(numbers)


def _only_integers(members: Elements[bytes]) -> bool:
    return all(encoding_of(member) == "int" for member in members)
