"""Hashes: values by field, in the order in which the fields came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from storage.engine.limits import CollectionLimits, Table
from storage.types.collection import SAMPLE, Collection, Members, Words, in_portions

HSET: Final = b"HSET"


class Hash(Collection):
    """A hash. ``fields`` is for reading; it is changed by the methods."""

    __slots__ = ("_large", "fields", "members")

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__(limits)
        self.fields: dict[bytes, bytes] = {}
        self.members = Members(self.fields)
        self._large = False

    def __len__(self) -> int:
        return len(self.fields)

    def set(self, field: bytes, value: bytes) -> bool:
        """Gives a field a value; returns whether the field is new."""
        fields = self.fields
        known = len(fields)
        fields[field] = value
        if not self._large:
            self._large = (
                max(len(field), len(value)) > self._limits.hash_max_listpack_value
                or len(fields) > self._limits.hash_max_listpack_entries
            )
        if len(fields) == known:
            return False
        if self.members.index is not None:
            self.members.index.add(field)
        return True

    def remove(self, field: bytes) -> bool:
        """Removes a field; returns whether it was there."""
        if self.fields.pop(field, None) is None:
            return False
        if self.members.index is not None:
            self.members.index.discard(field)
        return True

    # --- as a value -----------------------------------------------------------------------

    def copy(self) -> Hash:
        """Return a hash of its own that is equal to this one."""
        copy = Hash(self._limits)
        copy.fields.update(self.fields)
        copy._large = self._large
        return copy

    @property
    def is_small(self) -> bool:
        """Whether Redis keeps it in one piece of memory; it never does again once it did not."""
        return not self._large

    def encoding(self) -> str:
        """``listpack`` or ``hashtable``."""
        return "hashtable" if self._large else "listpack"

    def words(self, key: bytes) -> Iterator[Words]:
        """HSETs."""
        return in_portions((HSET, key), chain.from_iterable(self.fields.items()), 2)

    def sample(self) -> Sequence[int]:
        """How many bytes some fields have with their values."""
        return [len(field) + len(value) for field, value in islice(self.fields.items(), SAMPLE)]

    def tables(self) -> Sequence[Table]:
        """What holds its elements."""
        index = self.members.index
        return [self.fields, *(() if index is None else index.parts)]

    def check(self) -> None:
        """Verifies the invariants."""
        self.members.check()
