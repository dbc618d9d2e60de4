"""The tables of a database: the values by key, until when they are there, when they were used.

:mod:`storage.types.kinds` says what a value may be. Reading a key that is past its expiry removes
it first, which emits an effect like any other removal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storage.engine.effects import (
    DELETED,
    FIELDS_HAVE_EXPIRED,
    HAS_EXPIRED,
    Changed,
    Effect,
)
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.errors import WrongType
from storage.indexes import ExpiryQueue, ScanIndex
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.kinds import Value
from storage.types.strings import Lending

AnyCollection = TypeVar("AnyCollection", bound=Collection)


class KeyspaceState:
    """What all databases share: the time of the running command, the effects it has had so far."""

    __slots__ = (
        "due_by",
        "effects",
        "expired",
        "expired_fields",
        "hits",
        "lending",
        "limits",
        "misses",
        "now_ms",
        "on_miss",
        "policies",
    )

    def __init__(self, limits: StreamLimits | None = None) -> None:
        self.effects: list[Effect] = []
        self.limits = limits or StreamLimits()
        self.lending = Lending()
        self.now_ms = 0
        self.due_by: Callable[[int], int] = lambda now_ms: now_ms
        """Tells up to which time things are due at the time of a command: storage has no clock."""
        self.hits = 0
        self.misses = 0
        self.on_miss: Callable[[int, bytes], None] | None = None
        """Called with each key that a reading command did not find, and the database's index."""
        self.expired = 0
        self.expired_fields = 0
        self.policies = False
        """Whether a stream or a group ever had a policy of its own."""

    def forget_counts(self) -> None:
        """Sets the counters to zero."""
        self.hits = self.misses = self.expired = self.expired_fields = 0

    @property
    def due_ms(self) -> int:
        """Up to which time things are due for the running command."""
        return self.due_by(self.now_ms)

    def is_due(self, at: int) -> bool:
        """Whether what is to happen at a time is due; of what is far away that takes no call."""
        return at <= self.now_ms and at <= self.due_by(self.now_ms)


class KeyTable:
    """What a numbered database of a :class:`Keyspace` holds, and how it is looked up."""

    __slots__ = (
        "_expiries",
        "_field_expiries",
        "emit",
        "encodings",
        "expires",
        "field_times",
        "index",
        "keyspace",
        "scan",
        "used",
        "values",
    )

    def __init__(self, keyspace: KeyspaceState, index: int) -> None:
        self.keyspace = keyspace
        self.index = index
        self.emit: Callable[[Effect], None] = keyspace.effects.append
        self.values: dict[bytes, Value] = {}
        self.expires: dict[bytes, int] = {}
        self.used: dict[bytes, int] = {}
        """When each key was last used; a stream knows itself when it was read or changed."""
        self.encodings: dict[bytes, str] = {}
        """The encodings of strings where they do not follow from the value."""
        self._expiries = ExpiryQueue(self.expires)
        self.field_times: dict[bytes, int] = {}
        """A time before which no field of the hash at a key expires, where some do."""
        self._field_expiries = ExpiryQueue(self.field_times)
        self.scan = ScanIndex()
        """The index for SCAN."""

    def __len__(self) -> int:
        return len(self.values)

    # --- looking up -----------------------------------------------------------------------

    def get(self, key: bytes) -> Value | None:
        """The key's value, or ``None`` if there is none or it has expired."""
        if self.expires:
            self._expire_if_due(key)
        if self.field_times:
            self.expire_fields(key)
        return self.values.get(key)

    def inspect(self, key: bytes) -> Value | None:
        """Like :meth:`get`, and counts a hit or a miss; it is no use of the key."""
        value = self.get(key)
        if value is None:
            self.keyspace.misses += 1
        else:
            self.keyspace.hits += 1
        return value

    def read(self, key: bytes, *, touch: bool = True) -> Value | None:
        """Like :meth:`inspect`, for a command that reads: reports a miss, updates the time of use.

        With ``touch`` false the time of use stays, as for a command that reads no value."""
        value = self.inspect(key)
        if value is None:
            if self.keyspace.on_miss is not None:
                self.keyspace.on_miss(self.index, key)
        elif type(value) is Stream and touch:
            value.used_ms = self.keyspace.now_ms
        elif touch:
            self.used[key] = self.keyspace.now_ms
        return value

    def use(self, key: bytes) -> Value | None:
        """Like :meth:`get`, for a command that may change the key: updates the time of use."""
        value = self.get(key)
        if value is not None:
            self.used[key] = self.keyspace.now_ms
        return value

    def stream(self, key: bytes) -> Stream | None:
        """The stream at the key, or ``None``; raises :class:`WrongType` for a string. Updates the
        time of use."""
        if self.expires:
            self._expire_if_due(key)
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) is Stream:
            value.used_ms = self.keyspace.now_ms
            return value
        self.used[key] = self.keyspace.now_ms
        raise WrongType

    def used_at(self, key: bytes) -> int:
        """When an existing key was last used."""
        value, used = self.values[key], self.used[key]
        return max(used, value.used_ms) if type(value) is Stream else used

    def stream_to_read(self, key: bytes) -> Stream | None:
        """Like :meth:`stream`, for a command that reads (see :meth:`read`)."""
        value = self.read(key)
        if value is None or type(value) is Stream:
            return value
        raise WrongType

    def string(self, key: bytes) -> bytes | None:
        """The string at the key, or ``None``; raises :class:`WrongType` for a stream."""
        return self._whole(key, self.get(key))

    def string_to_read(self, key: bytes, *, touch: bool = True) -> bytes | None:
        """Like :meth:`string`, for a command that reads (see :meth:`read`)."""
        return self._whole(key, self.read(key, touch=touch))

    def _whole(self, key: bytes, value: Value | None) -> bytes | None:
        if value is None or type(value) is bytes:
            return value
        if type(value) is bytearray:
            whole = self.values[key] = bytes(value)
            return whole
        raise WrongType

    def buffer(self, key: bytes) -> bytes | bytearray | None:
        """Like :meth:`string`, for a command that reads parts of the string, without copying it.
        The result must be lent, not kept: it may be edited in place."""
        return _string_only(self.get(key))

    def buffer_to_read(self, key: bytes, *, touch: bool = True) -> bytes | bytearray | None:
        """Like :meth:`buffer`, for a command that reads (see :meth:`read`)."""
        return _string_only(self.read(key, touch=touch))

    def collection(self, key: bytes, kind: type[AnyCollection]) -> AnyCollection | None:
        """The value of this class at the key, or ``None``; raises :class:`WrongType` for another.
        Updates the time of use."""
        if self.expires:
            self._expire_if_due(key)
        if self.field_times:
            self.expire_fields(key)
        value = self.values.get(key)
        if value is None:
            return None
        self.used[key] = self.keyspace.now_ms
        if type(value) is kind:
            return value
        raise WrongType

    def collection_to_fill(self, key: bytes, kind: type[AnyCollection]) -> AnyCollection:
        """Like :meth:`collection`; where there is no key an empty value, not stored before
        :meth:`changed`."""
        value = self.collection(key, kind)
        return kind(self.keyspace.limits.collections) if value is None else value

    def collection_to_read(
        self, key: bytes, kind: type[AnyCollection], *, touch: bool = True
    ) -> AnyCollection | None:
        """Like :meth:`collection`, for a command that reads (see :meth:`read`)."""
        value = self.read(key, touch=touch)
        if value is None or type(value) is kind:
            return value
        raise WrongType

    def _expire_if_due(self, key: bytes) -> None:
        at = self.expires.get(key)
        if at is not None and self.keyspace.is_due(at):
            self._remove(key)
            self.keyspace.expired += 1
            self.emit(Changed(self.index, (key,), (b"DEL", key), HAS_EXPIRED, True))

    def expire_fields(self, key: bytes) -> None:
        """Removes the fields of the hash at a key that have expired, and the key with the last."""
        at = self.field_times.get(key)
        if at is None or not self.keyspace.is_due(at):
            return
        value = self.values[key]
        assert isinstance(value, Hash)
        gone = value.drop_due(self.keyspace.due_ms)
        self.note_fields(key, value)
        if not gone:
            return
        self.keyspace.expired_fields += len(gone)
        events = FIELDS_HAVE_EXPIRED
        if not len(value):
            self._remove(key)
            events += DELETED
        self.emit(Changed(self.index, (key,), (b"HDEL", key, *gone), events))

    def note_fields(self, key: bytes, value: Collection) -> None:
        """Notes when the next field of the hash at a key may expire."""
        at = value.due_at
        if at >= 0 and self.field_times.get(key) == at:
            return
        if at >= 0:
            self.field_times[key] = at
            self._field_expiries.push(at, key)
        else:
            self.field_times.pop(key, None)

    # --- placing --------------------------------------------------------------------------

    def load(self, key: bytes, value: Value, expires_at: int | None = None) -> None:
        """Puts a value at a key without an effect while a file is loaded; others may look at the
        database after :meth:`index_loaded` again."""
        self.values[key] = value
        if self.expires:
            self.expires.pop(key, None)
        if self.encodings:
            self.encodings.pop(key, None)
        if isinstance(value, Collection) or self.field_times:
            self._note_loaded(key, value)
        if expires_at is not None:
            self.schedule(key, expires_at)

    def _note_loaded(self, key: bytes, value: Value) -> None:
        if isinstance(value, Collection):
            self.note_fields(key, value)
        else:
            self.field_times.pop(key, None)

    def schedule(self, key: bytes, at: int) -> None:
        """Lets an existing key expire at ``at``, without an effect."""
        self.expires[key] = at
        self._expiries.push(at, key)

    def _place(
        self,
        key: bytes,
        value: Value,
        expires_at: int | None = None,
        encoding: str | None = None,
    ) -> None:
        if key not in self.values:
            self.scan.add(key)
        self.used[key] = self.keyspace.now_ms
        self.load(key, value, expires_at)
        if encoding is not None:
            self.encodings[key] = encoding

    def _remove(self, key: bytes) -> None:
        del self.values[key]
        self.expires.pop(key, None)
        self.encodings.pop(key, None)
        self.field_times.pop(key, None)
        if self.used.pop(key, None) is not None:
            self.scan.discard(key)

    def _begin(self) -> None:
        """Replaces all tables by empty ones."""
        self.values = {}
        self.expires = {}
        self.used = {}
        self.encodings = {}
        self._expiries = ExpiryQueue(self.expires)
        self.field_times = {}
        self._field_expiries = ExpiryQueue(self.field_times)
        self.scan = ScanIndex()

    # --- expiry ---------------------------------------------------------------------------

    def is_overdue(self, key: bytes) -> bool:
        """Whether the key exists and is past its expiry."""
        at = self.expires.get(key)
        return at is not None and self.keyspace.is_due(at)

    def overdue(self) -> set[bytes]:
        """The keys that are past their expiry and not removed yet."""
        return set(self._expiries.overdue(self.keyspace.due_ms))


def _string_only(value: Value | None) -> bytes | bytearray | None:
    if value is None or type(value) is bytes or type(value) is bytearray:
        return value
    raise WrongType
