"""Databases: what is done to keys and their values, and the effects of that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import filterfalse, islice, repeat
from typing import Final

from storage.engine.effects import (
    DELETED,
    GENERIC,
    NEW,
    OVERWRITTEN,
    TYPE_CHANGED,
    Changed,
    Events,
    Flushed,
    KeyCopied,
    KeyMoved,
    KeyRenamed,
    PolicySet,
    StreamCreated,
    StreamPutBack,
    StreamRestored,
    Swapped,
)
from storage.engine.groups import Group
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.indexes import ScanIndex
from storage.keyspace.tables import KeyspaceState, KeyTable
from storage.types.collection import Collection, Words
from storage.types.kinds import Value, kind_of
from storage.types.strings import Piece, news_of, overwrite, words_for_encoding

_NONE: Final[set[bytes]] = set()

_EXPIRE: Final[Events] = ((GENERIC, "expire"),)
_PERSIST: Final[Events] = ((GENERIC, "persist"),)

_CREATED: Final[Events] = ((NEW, "new"),)
_REPLACED: Final[Events] = ((OVERWRITTEN, "overwritten"),)
_RETYPED: Final[Events] = ((OVERWRITTEN, "overwritten"), (TYPE_CHANGED, "type_changed"))

_FUNCTION: Final = b"FUNCTION"

_TABLES: Final = (
    *("values", "expires", "encodings", "used", "scan", "field_times"),
    *("_expiries", "_field_expiries"),
)
"""What two databases exchange."""


def _differ(former: Value | None, value: Value) -> bool:
    """Whether a value replaces one of another type."""
    return former is not None and kind_of(former) is not kind_of(value)


class Database(KeyTable):
    """A numbered database of a :class:`Keyspace`."""

    __slots__ = ()

    # --- changing -------------------------------------------------------------------------

    def attach(self, key: bytes, value: Value) -> None:
        """Puts a value at a key without an effect: the next effect implies it, or it is loaded."""
        self._place(key, value)

    def load_piece(self, key: bytes, offset: int, data: bytes) -> None:
        """Like :meth:`overwrite`, without an effect while a file is loaded."""
        buffer = self.values[key] = self.edit(key)
        overwrite(buffer, offset, data)
        self.encodings[key] = "raw"

    def unload(self, key: bytes) -> None:
        """Removes a key, if it is there, without an effect while a file is loaded."""
        if key in self.values:
            self._remove(key)

    def index_loaded(self) -> None:
        """Enters the keys that :meth:`load` has added, which are among the last ones, into the
        times of use and the index for SCAN; that takes less time for many at once."""
        missing = len(self.values) - len(self.used)
        now_ms = self.keyspace.now_ms
        if missing > len(self.used):
            self.used = dict.fromkeys(self.values, now_ms)
            self.scan = ScanIndex(self.values)
            return
        for key in islice(filterfalse(self.used.__contains__, reversed(self.values)), missing):
            self.used[key] = now_ms
            self.scan.add(key)

    def make_stream(self, key: bytes) -> Stream:
        """A new empty stream at a free key (XGROUP CREATE ... MKSTREAM)."""
        stream = Stream(self.keyspace.limits)
        self._place(key, stream)
        self.emit(StreamCreated(self.index, key))
        return stream

    def restore_stream(
        self, key: bytes, stream: Stream, payload: bytes, expires_at: int | None
    ) -> None:
        """Puts a stream at the key, replacing any value and expiry; ``payload`` is what RESTORE
        makes it of on any server."""
        former = self.get(key)
        self._place(key, stream, expires_at)
        replaced, retyped = former is not None, _differ(former, stream)
        layout, times = tuple(stream.log.layout()), tuple(stream.seen_and_active_times())
        self.emit(
            StreamRestored(self.index, key, payload, expires_at, layout, times, replaced, retyped)
        )

    def set_policy(self, key: bytes, group: Group | None, settings: dict[bytes, bytes]) -> None:
        """Gives the stream at the key, or one of its groups, these policies of its own."""
        value = self.values[key]
        assert isinstance(value, Stream)
        if group is None:
            value.policy = settings
        else:
            group.policy = settings
        self.keyspace.policies = True
        name = None if group is None else group.name
        self.emit(PolicySet(self.index, key, name, tuple(sorted(settings.items()))))

    def put_back(self, key: bytes, stream: Stream, expires_at: int | None) -> None:
        """Puts a copy of a stream, which must not change any more, at a free key."""
        self._place(key, stream.copy(), expires_at)
        self.emit(StreamPutBack(self.index, key, stream, expires_at))

    def set_string(
        self,
        key: bytes,
        value: bytes,
        expires_at: int | None = None,
        event: str = "set",
        encoding: str | None = None,
    ) -> None:
        """Puts a string at the key, replacing any value and expiry.

        ``encoding`` is what OBJECT ENCODING says of it, if that does not follow from the value."""
        former = self.get(key)
        self._place(key, value, expires_at, encoding)
        news = news_of(event)
        if former is None:
            events = news.created
        else:
            events = news.retyped if _differ(former, value) else news.replaced
        words: tuple[bytes, ...] = (b"SET", key, value)
        if event == "incrbyfloat":
            words = (b"SET", key, value, b"KEEPTTL")
        elif expires_at is not None:
            words = (b"SET", key, value, b"PXAT", b"%d" % expires_at)
        self.emit(Changed(self.index, (key,), words, events, True))
        if encoding is not None:
            self._tell_encoding(words_for_encoding(key, value, encoding))

    def _tell_encoding(self, words: tuple[bytes, ...]) -> None:
        """Emits what gives a string its encoding, if it takes a command; it is no change."""
        if words:
            self.emit(Changed(self.index, (), words, weight=0))

    def changed(
        self,
        key: bytes,
        value: Collection,
        words: Words,
        events: Events,
        *,
        wakes: bool = False,
        weight: int = 1,
    ) -> None:
        """Tells what was done to the collection of a key: it is stored if it is new, and goes with
        its key if it is empty. ``words`` are the command that does the same elsewhere."""
        if not len(value):
            self._remove(key)
            events += DELETED
        elif key not in self.values:
            self._place(key, value)
            events = _CREATED + events
            wakes = True
        elif value.due_at >= 0 or self.field_times:
            self.note_fields(key, value)
        self.emit(Changed(self.index, (key,), words, events, wakes, weight))

    def put(
        self,
        key: bytes,
        value: Collection,
        words: Iterable[Words],
        events: Events,
        expires_at: int | None = None,
        weight: int = 1,
    ) -> None:
        """Puts a collection that is not empty at the key, replacing any value and expiry;
        ``words`` are commands that do the same elsewhere."""
        former = self.get(key)
        news = _CREATED if former is None else _RETYPED if _differ(former, value) else _REPLACED
        self._place(key, value, expires_at)
        events = news + events
        for command in words:
            self.emit(Changed(self.index, (key,), command, events, True, weight))
            events = ()

    def edit(self, key: bytes) -> bytearray:
        """The string at the key for editing in place; an empty one, not stored, if there is none.

        :meth:`edited` must follow, or :meth:`left` if nothing is changed. Raises
        :class:`WrongType`."""
        value = self.buffer(key)
        if value is None:
            return bytearray()
        if type(value) is bytearray and not self.keyspace.lending.is_lent(value):
            return value
        buffer = self.values[key] = bytearray(value)
        return buffer

    def edited(self, key: bytes, buffer: bytearray, pieces: tuple[Piece, ...], event: str) -> None:
        """Stores the string that :meth:`edit` returned; ``pieces`` say what was changed in it."""
        news = news_of(event)
        events = news.replaced if key in self.values else news.created
        self._place(key, buffer, self.expires.get(key), "raw")
        for offset, data in pieces:
            # Only APPEND can add nothing and be a change.
            words: tuple[bytes, ...] = (b"APPEND", key, data)
            if event != "append":
                words = (b"SETRANGE", key, b"%d" % offset, data)
            self.emit(Changed(self.index, (key,), words, events, True))
            events = ()

    def edited_by(self, key: bytes, buffer: bytearray, words: Words, event: str) -> None:
        """Like :meth:`edited`, where one command does the same elsewhere."""
        news = news_of(event)
        events = news.replaced if key in self.values else news.created
        self._place(key, buffer, self.expires.get(key), "raw")
        self.emit(Changed(self.index, (key,), words, events, True))

    def left(self, key: bytes) -> None:
        """Ends an :meth:`edit` of an existing key that changed nothing. The string is no longer
        encoded as an integer or embedded."""
        self.used[key] = self.keyspace.now_ms
        if self.encodings.get(key) != "raw":
            self.encodings[key] = "raw"
            self._tell_encoding((b"APPEND", key, b""))

    def overwrite(self, key: bytes, offset: int, data: bytes, event: str) -> int:
        """Writes ``data`` over a part of the string at the key; returns the length of the string.

        No key counts as an empty string, and what is missing before ``offset`` is filled with
        zeros. Raises :class:`WrongType`."""
        buffer = self.edit(key)
        overwrite(buffer, offset, data)
        self.edited(key, buffer, ((offset, data),), event)
        return len(buffer)

    def delete(self, key: bytes) -> bool:
        """Removes the key; false if there was none."""
        if self.get(key) is None:
            return False
        self._remove(key)
        self._tell_deleted((key,))
        return True

    def delete_all(self, keys: Sequence[bytes]) -> int:
        """Removes the keys; returns how many of them there were."""
        if len(keys) == 1:
            return int(self.delete(keys[0]))
        overdue = self.overdue() if self.expires else _NONE
        stops = [at for at, key in enumerate(keys) if key in overdue] if overdue else []
        gone: list[bytes] = []
        values: list[Value] = []
        start = 0
        for stop in (*stops, len(keys)):
            told = len(gone)
            self._pop(keys[start:stop], gone, values)
            self._tell_deleted(tuple(gone[told:]))
            if stop < len(keys):
                self._expire_if_due(keys[stop])
            start = stop
        self._forget(gone)
        self.keyspace.limits.disposal.drop(values)
        return len(gone)

    def _pop(self, keys: Sequence[bytes], gone: list[bytes], values: list[Value]) -> None:
        """Takes keys out of the table of values; adds those that were there, and what they held."""
        before = len(self.values)
        found = list(map(self.values.pop, keys, repeat(None)))  # Half of what a loop here takes.
        if before - len(self.values) == len(keys):
            gone += keys
        else:
            gone += [key for key, value in zip(keys, found, strict=True) if value is not None]
        values += [value for value in found if value is not None]

    def _forget(self, gone: list[bytes]) -> None:
        """Removes keys whose values have been removed from the other tables. Where few are left,
        tables are made of these; the former ones are freed later."""
        disposal = self.keyspace.limits.disposal
        if 2 * len(gone) > len(self.values):
            used = self.used
            self.used = {key: used[key] for key in self.values}
            disposal.drop(used, *self.scan.parts)
            self.scan = ScanIndex(self.values)
        else:
            for key in gone:
                self.used.pop(key, None)
                self.scan.discard(key)
        for table in (self.expires, self.encodings, self.field_times):
            if table:
                for key in gone:
                    table.pop(key, None)

    def _tell_deleted(self, gone: tuple[bytes, ...]) -> None:
        if gone:
            self.emit(Changed(self.index, gone, (b"DEL", *gone), DELETED, True, len(gone)))

    def expire_at(self, key: bytes, at: int) -> None:
        """Sets the expiry of an existing key; removes it if ``at`` is not in the future."""
        if at <= self.keyspace.now_ms:
            self._remove(key)
            self._tell_deleted((key,))
            return
        self.schedule(key, at)
        self.emit(Changed(self.index, (key,), (b"PEXPIREAT", key, b"%d" % at), _EXPIRE))

    def persist(self, key: bytes) -> bool:
        """Removes the key's expiry; false if it had none."""
        if self.use(key) is None or self.expires.pop(key, None) is None:
            return False
        self.emit(Changed(self.index, (key,), (b"PERSIST", key), _PERSIST))
        return True

    def rename(self, key: bytes, target: bytes) -> None:
        """Moves an existing key's value and expiry to another key, replacing what is there."""
        former = self.get(target)
        retyped = _differ(former, self.values[key])
        self._transfer(key, self, target)
        self.emit(KeyRenamed(self.index, key, target, former is not None, retyped))

    def copy(self, key: bytes, to: Database, target: bytes) -> None:
        """Copies an existing key's value and expiry to ``target`` of ``to``, replacing it."""
        former = to.get(target)
        value = self.values[key]
        copied = kind_of(value).copy(value)
        to._place(target, copied, self.expires.get(key), self.encodings.get(key))
        replaced, retyped = former is not None, _differ(former, value)
        self.emit(KeyCopied(self.index, key, to.index, target, replaced, retyped))

    def move(self, key: bytes, to: Database) -> None:
        """Moves an existing key to the same key of ``to``, where there is none."""
        self._transfer(key, to, key)
        self.emit(KeyMoved(self.index, key, to.index))

    def _transfer(self, key: bytes, to: Database, target: bytes) -> None:
        value, at = self.values[key], self.expires.get(key)
        used, encoding = self.used_at(key), self.encodings.get(key)
        self._remove(key)
        to._place(target, value, at, encoding)
        to.used[target] = used

    def flush(self) -> None:
        """Removes every key."""
        held = self.values
        self.keyspace.limits.disposal.drop(
            held,
            self.expires,
            self.used,
            self.encodings,
            self.field_times,
            *self._expiries.parts,
            *self._field_expiries.parts,
            *self.scan.parts,
        )
        self._begin()
        self.emit(Flushed(self.index, held.keys()))

    def expire_due(self, most: int) -> int:
        """Removes up to ``most`` keys that are past their expiry; returns how many it examined."""
        keys = list(self._expiries.due(self.keyspace.due_ms, most))
        for key in keys:
            self._expire_if_due(key)
        with_fields = list(self._field_expiries.due(self.keyspace.due_ms, most - len(keys)))
        for key in with_fields:
            self.expire_fields(key)
        return len(keys) + len(with_fields)

    # --- walking --------------------------------------------------------------------------

    def check(self) -> None:
        """Verifies the invariants of the database and of every stream in it."""
        assert self.expires.keys() <= self.values.keys()
        assert self.encodings.keys() <= self.values.keys()
        assert self.used.keys() == self.values.keys()
        self._expiries.check()
        self._field_expiries.check()
        assert self.field_times.keys() <= self.values.keys()
        self.scan.check(self.values)
        for key, value in self.values.items():
            kind_of(value).check(value)
            if isinstance(value, Collection):
                assert self.field_times.get(key, -1) == value.due_at
            if isinstance(value, bytearray):
                assert self.encodings[key] == "raw"


def library_words(code: bytes) -> tuple[bytes, ...]:
    """Return the command that loads a library, whatever is there by its name."""
    return (_FUNCTION, b"LOAD", b"REPLACE", code)


class Keyspace(KeyspaceState):
    """All databases, and the libraries of functions."""

    __slots__ = ("databases", "libraries")

    def __init__(self, databases: int = 16, limits: StreamLimits | None = None) -> None:
        super().__init__(limits)
        self.libraries: dict[bytes, bytes] = {}
        """The code of each library of functions, which belongs to no database."""
        self.databases = [Database(self, index) for index in range(databases)]

    def keep_library(self, db: int, name: bytes, code: bytes) -> None:
        """Stores a library's code; ``db`` is the database of the client that loaded it."""
        self.libraries[name] = code
        self.effects.append(Changed(db, (), library_words(code)))

    def drop_library(self, db: int, name: bytes) -> None:
        """Removes an existing library."""
        del self.libraries[name]
        self.effects.append(Changed(db, (), (_FUNCTION, b"DELETE", name)))

    def drop_libraries(self, db: int) -> None:
        """Removes every library."""
        self.libraries.clear()
        self.effects.append(Changed(db, (), (_FUNCTION, b"FLUSH")))

    def swap(self, first: int, second: int) -> None:
        """Exchanges the contents of two databases."""
        if first == second:
            return
        one, two = self.databases[first], self.databases[second]
        held, other_held = one.values.keys(), two.values.keys()
        for name in _TABLES:
            ours, theirs = getattr(one, name), getattr(two, name)
            setattr(one, name, theirs)
            setattr(two, name, ours)
        self.effects.append(Swapped(first, second, held, other_held))

    def check(self) -> None:
        """Verifies the invariants of every database."""
        for index, database in enumerate(self.databases):
            assert database.index == index
            database.check()
