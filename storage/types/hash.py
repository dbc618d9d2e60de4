"""Hashes: values by field, and until when fields are there.

Fields stand in the order in which they came; in a small hash those that expire stand before the
others, the first to expire first, as in Redis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from storage.engine.limits import CollectionLimits, Table
from storage.indexes import ExpiryQueue
from storage.types.collection import SAMPLE, Collection, Members, Words, in_portions

HSET: Final = b"HSET"
HPEXPIREAT: Final = b"HPEXPIREAT"
FIELDS: Final = b"FIELDS"

_NEVER: Final = 2**63


class Hash(Collection):
    """A hash. ``fields`` is for reading, and so is ``times``, which has the Unix time in
    milliseconds at which a field expires, for those that do."""

    __slots__ = ("_large", "_queue", "_timed", "fields", "members", "times")

    def __init__(self, limits: CollectionLimits) -> None:
        super().__init__(limits)
        self.fields: dict[bytes, bytes] = {}
        self.members = Members(self.fields)
        self.times: dict[bytes, int] = {}
        self._queue = ExpiryQueue(self.times)
        self._large = self._timed = False

    def __len__(self) -> int:
        return len(self.fields)

    def set(self, field: bytes, value: bytes) -> bool:
        """Gives a field a value, with which it never expires; returns whether it is new."""
        if self.times:
            self.persist(field)
        return self.edit(field, value)

    def edit(self, field: bytes, value: bytes) -> bool:
        """Like :meth:`set`, but the field expires as before."""
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
        self.times.pop(field, None)
        if self.members.index is not None:
            self.members.index.discard(field)
        return True

    # --- times ----------------------------------------------------------------------------

    def expect_times(self) -> None:
        """Changes the encoding to one with times, as every command does that may set one."""
        self._timed = True

    def expire_at(self, field: bytes, at: int) -> None:
        """Lets an existing field expire at this time."""
        self.expect_times()
        self.times[field] = at
        self._queue.push(at, field)
        self.due_at = self._queue.first
        if not self._large:
            # Among those that expire at the same time the last one comes first.
            moved = (field, self.fields.pop(field))
            ordered = sorted([moved, *self.fields.items()], key=self._place)
            self.fields.clear()
            self.fields.update(ordered)

    def persist(self, field: bytes) -> bool:
        """Lets a field stay for ever; returns whether it would have expired."""
        if self.times.pop(field, None) is None:
            return False
        if not self._large:
            self.fields[field] = self.fields.pop(field)
        return True

    def _place(self, item: tuple[bytes, bytes]) -> int:
        return self.times.get(item[0], _NEVER)

    def drop_due(self, due_ms: int) -> list[bytes]:
        """Removes the fields that have expired by then; returns them."""
        gone = [*self._queue.due(due_ms, len(self._queue))]
        for field in gone:
            self.remove(field)
        self.due_at = self._queue.first
        return gone

    # --- as a value -----------------------------------------------------------------------

    def copy(self) -> Hash:
        """Return a hash of its own that is equal to this one."""
        copy = Hash(self._limits)
        copy.fields.update(self.fields)
        copy._large, copy._timed = self._large, self._timed
        for field, at in self.times.items():
            copy.times[field] = at
            copy._queue.push(at, field)
        copy.due_at = copy._queue.first
        return copy

    @property
    def is_small(self) -> bool:
        """Whether Redis keeps it in one piece of memory; it never does again once it did not."""
        return not self._large

    def encoding(self) -> str:
        """``listpack``, ``listpackex`` once a field may have been to expire, or ``hashtable``."""
        if self._large:
            return "hashtable"
        return "listpackex" if self._timed else "listpack"

    def words(self, key: bytes) -> Iterator[Words]:
        """HSETs, and an HPEXPIREAT for each time."""
        yield from in_portions((HSET, key), chain.from_iterable(self.fields.items()), 2)
        together: dict[int, list[bytes]] = {}
        for field, at in self.times.items():
            together.setdefault(at, []).append(field)
        for at, fields in together.items():
            yield time_words(key, at, fields)

    def sample(self) -> Sequence[int]:
        """How many bytes some fields have with their values."""
        return [len(field) + len(value) for field, value in islice(self.fields.items(), SAMPLE)]

    def tables(self) -> Sequence[Table]:
        """What holds its elements."""
        index = self.members.index
        parts = [] if index is None else index.parts
        return [self.fields, self.times, *self._queue.parts, *parts]

    def check(self) -> None:
        """Verifies the invariants."""
        self.members.check()
        self._queue.check()
        assert self.times.keys() <= self.fields.keys()
        assert not self.times or 0 <= self.due_at <= min(self.times.values())
        places = list(map(self._place, self.fields.items()))
        assert self._large or places == sorted(places)


def time_words(key: bytes, at: int, fields: list[bytes]) -> Words:
    """Return the command that lets fields expire."""
    return (HPEXPIREAT, key, b"%d" % at, FIELDS, b"%d" % len(fields), *fields)
