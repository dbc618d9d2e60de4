"""Keyspace events: what happened to which key, published to those who listen.

A table says which events each effect stands for. An event has a class, one letter of the setting
notify-keyspace-events, and is published only while its class is named there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from server.clients.pubsub import PubSub
from server.config.types import KeyspaceEvents
from storage.engine import effects as e
from storage.engine.effects import GENERIC, HASH, MISS, NEW, OVERWRITTEN, STREAM, TYPE_CHANGED
from storage.types.hash import FIELDS


class KeyspaceEvent(NamedTuple):
    """Something that happened to a key, as its listeners are told."""

    letter: str
    name: str
    db: int
    key: bytes


class KeyspaceNotifier:
    """Publishes the events of the classes that notify-keyspace-events names."""

    def __init__(self, pubsub: PubSub) -> None:
        self._pubsub = pubsub
        self._classes: frozenset[str] = frozenset()
        self._field_classes: frozenset[str] = frozenset()
        self.active = False
        """Whether any event of an effect is published at all."""
        self.tells_misses = False
        """Whether it is published that a key was looked for in vain."""

    def configure(self, flags: str) -> None:
        """Takes a value of notify-keyspace-events."""
        self._classes = frozenset(flags.replace("A", KeyspaceEvents.ALL))
        self._field_classes = self._classes & {*KeyspaceEvents.OF_FIELDS}
        channels = self._classes & {"K", "E", *KeyspaceEvents.OF_FIELDS}
        listens = bool(channels)
        self.active = listens and self._classes > channels
        self.tells_misses = listens and MISS in self._classes

    def announce(self, effect: e.Effect) -> None:
        """Publishes the events that an effect stands for."""
        events = EVENTS.get(type(effect))
        if events is not None:
            for event in events(effect):
                self._publish(event)
                if self._field_classes and event.letter == HASH:
                    self._publish_fields(event, fields_of(effect.words))  # type: ignore[union-attr]

    def announce_miss(self, db: int, key: bytes) -> None:
        """Publishes that a key was looked for in vain."""
        self._publish(KeyspaceEvent(MISS, "keymiss", db, key))

    def _publish(self, event: KeyspaceEvent) -> None:
        """Publishes one event by its key, then by its name."""
        if event.letter not in self._classes:
            return
        name, publish = event.name.encode(), self._pubsub.publish
        if "K" in self._classes:
            publish(b"__keyspace@%d__:%b" % (event.db, event.key), name)
        if "E" in self._classes:
            publish(b"__keyevent@%d__:%b" % (event.db, name), event.key)

    def _publish_fields(self, event: KeyspaceEvent, fields: list[bytes]) -> None:
        """Publishes which fields of a hash an event is about: by the key, by the name of the
        event, by each field, and by both (Redis 8.8)."""
        classes, publish = self._field_classes, self._pubsub.publish
        if event.letter not in self._classes or not fields:
            return
        db, key, name = event.db, event.key, event.name.encode()
        listed = b",".join([b"%d:%b" % (len(field), field) for field in fields])
        if "S" in classes:
            publish(b"__subkeyspace@%d__:%b" % (db, key), b"%b|%b" % (name, listed))
        if "T" in classes:
            payload = b"%d:%b|%b" % (len(key), key, listed)
            publish(b"__subkeyevent@%d__:%b" % (db, name), payload)
        for field in fields if "I" in classes else ():
            publish(b"__subkeyspaceitem@%d__:%b\n%b" % (db, key, field), name)
        if "V" in classes:
            publish(b"__subkeyspaceevent@%d__:%b|%b" % (db, name, key), listed)


def fields_of(words: Sequence[bytes]) -> list[bytes]:
    """The fields that a command names which changes a hash."""
    name = words[0]
    if name in (b"HSET", b"HDEL", b"HINCRBY"):
        return [*{b"HSET": words[2::2], b"HDEL": words[2:], b"HINCRBY": words[2:3]}[name]]
    upper = [word.upper() for word in words]
    named = words[upper.index(FIELDS, 2) + 2 :] if FIELDS in upper[2:] else ()
    return [*(named[::2] if name == b"HSETEX" else named)]


# --- the events of each effect ---------------------------------------------------------------


def _one(letter: str, name: str) -> Callable[[Any], list[KeyspaceEvent]]:
    def events(effect: Any) -> list[KeyspaceEvent]:
        return [KeyspaceEvent(letter, name, effect.db, effect.key)]

    return events


def _replaced(db: int, key: bytes, replaced: bool, retyped: bool) -> list[KeyspaceEvent]:
    """Return the events of a value that has taken the place of another."""
    events = [KeyspaceEvent(OVERWRITTEN, "overwritten", db, key)] if replaced else []
    return [*events, KeyspaceEvent(TYPE_CHANGED, "type_changed", db, key)] if retyped else events


def _changed(effect: e.Changed) -> list[KeyspaceEvent]:
    return [
        KeyspaceEvent(letter, name, effect.db, key)
        for key in effect.keys
        for letter, name in effect.events
    ]


def _key_renamed(effect: e.KeyRenamed) -> list[KeyspaceEvent]:
    return [
        KeyspaceEvent(NEW, "new", effect.db, effect.target),
        *_replaced(effect.db, effect.target, effect.replaced, effect.retyped),
        KeyspaceEvent(GENERIC, "rename_from", effect.db, effect.key),
        KeyspaceEvent(GENERIC, "rename_to", effect.db, effect.target),
    ]


def _key_copied(effect: e.KeyCopied) -> list[KeyspaceEvent]:
    return [
        KeyspaceEvent(NEW, "new", effect.target_db, effect.target),
        *_replaced(effect.target_db, effect.target, effect.replaced, effect.retyped),
        KeyspaceEvent(GENERIC, "copy_to", effect.target_db, effect.target),
    ]


def _key_moved(effect: e.KeyMoved) -> list[KeyspaceEvent]:
    return [
        KeyspaceEvent(NEW, "new", effect.target_db, effect.key),
        KeyspaceEvent(GENERIC, "move_from", effect.db, effect.key),
        KeyspaceEvent(GENERIC, "move_to", effect.target_db, effect.key),
    ]


def _stream_restored(effect: e.StreamRestored) -> list[KeyspaceEvent]:
    events = [] if effect.replaced else [KeyspaceEvent(NEW, "new", effect.db, effect.key)]
    events += _replaced(effect.db, effect.key, effect.replaced, effect.retyped)
    return [*events, KeyspaceEvent(GENERIC, "restore", effect.db, effect.key)]


def _stream_put_back(effect: e.StreamPutBack) -> list[KeyspaceEvent]:
    place = effect.db, effect.key
    return [KeyspaceEvent(NEW, "new", *place), KeyspaceEvent(GENERIC, "restore", *place)]


def _entry_added(effect: e.EntryAdded) -> list[KeyspaceEvent]:
    events = [KeyspaceEvent(NEW, "new", effect.db, effect.key)] if effect.created else []
    return [*events, KeyspaceEvent(STREAM, "xadd", effect.db, effect.key)]


def _entries_deleted(effect: e.EntriesDeleted) -> list[KeyspaceEvent]:
    return [KeyspaceEvent(STREAM, "xtrim" if effect.trimmed else "xdel", effect.db, effect.key)]


def _group_position_set(effect: e.GroupPositionSet) -> list[KeyspaceEvent]:
    """Only a position that a client asked for; one that a delivery moves is no event."""
    return [KeyspaceEvent(STREAM, "xgroup-setid", effect.db, effect.key)] if effect.explicit else []


EVENTS: Final[dict[type, Callable[[Any], list[KeyspaceEvent]]]] = {
    e.Changed: _changed,
    e.KeyRenamed: _key_renamed,
    e.KeyCopied: _key_copied,
    e.StreamRestored: _stream_restored,
    e.StreamPutBack: _stream_put_back,
    e.KeyMoved: _key_moved,
    e.StreamCreated: _one(NEW, "new"),
    e.EntryAdded: _entry_added,
    e.StreamTrimmed: _one(STREAM, "xtrim"),
    e.EntriesDeleted: _entries_deleted,
    e.StreamPositionSet: _one(STREAM, "xsetid"),
    e.GroupCreated: _one(STREAM, "xgroup-create"),
    e.GroupPositionSet: _group_position_set,
    e.GroupDestroyed: _one(STREAM, "xgroup-destroy"),
    e.ConsumerCreated: _one(STREAM, "xgroup-createconsumer"),
    e.ConsumerDeleted: _one(STREAM, "xgroup-delconsumer"),
}
"""Effects without an entry are nothing that listeners are told of."""
