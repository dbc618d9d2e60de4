"""What follows from an effect: transactions that must not run, readers that may be served, events.

Each kind of effect is in a table or it is not; no command knows what follows from what it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage import effects as e

if TYPE_CHECKING:
    from server.app import Server

MODIFYING: Final[frozenset[type]] = frozenset(
    {
        e.StringSet,
        e.StringEdited,
        e.KeyDeleted,
        e.ExpirySet,
        e.ExpiryCleared,
        e.KeyRenamed,
        e.KeyMoved,
        e.StreamCreated,
        e.EntryAdded,
        e.StreamTrimmed,
        e.EntriesDeleted,
    }
)
"""Effects that abort the transaction of a client that watches their key."""

WAKING: Final[frozenset[type]] = frozenset(
    {
        e.StringSet,
        e.StringEdited,
        e.KeyDeleted,
        e.KeyRenamed,
        e.KeyMoved,
        e.StreamCreated,
        e.EntryAdded,
        e.GroupDestroyed,
        e.Released,
    }
)
"""Effects that may end the wait of a reader parked on their key."""


def settle(server: Server, effect: e.Effect) -> None:
    """Lets one effect have its consequences."""
    kind = type(effect)
    if isinstance(effect, e.Flushed | e.Swapped):
        _settle_databases(server, effect)
        return
    if isinstance(effect, e.LibraryLoaded | e.LibraryDeleted | e.LibrariesFlushed):
        return
    watching, blocking = server.watching, server.blocking
    if isinstance(effect, e.KeysDeleted):
        _settle_deleted(server, effect)
        return
    if watching.watchers and kind in MODIFYING:
        if isinstance(effect, e.KeyDeleted) and effect.event == "expired":
            watching.expire(effect.db, effect.key)
        else:
            watching.touch(effect.db, effect.key)
    if blocking.waiting and kind in WAKING:
        blocking.signal(effect.db, effect.key)
    if isinstance(effect, e.KeyRenamed | e.KeyCopied | e.KeyMoved):
        _settle_target(server, effect)
    if server.notifier.active:
        server.notifier.announce(effect)


def _settle_target(server: Server, effect: e.KeyRenamed | e.KeyCopied | e.KeyMoved) -> None:
    db = effect.db if isinstance(effect, e.KeyRenamed) else effect.target_db
    key = effect.key if isinstance(effect, e.KeyMoved) else effect.target
    server.watching.touch(db, key)
    server.blocking.signal(db, key)


def _settle_deleted(server: Server, effect: e.KeysDeleted) -> None:
    for key in effect.keys if server.watching.watchers or server.blocking.waiting else ():
        server.watching.touch(effect.db, key)
        server.blocking.signal(effect.db, key)
    if server.notifier.active:
        server.notifier.announce(effect)


def _settle_databases(server: Server, effect: e.Flushed | e.Swapped) -> None:
    held = {effect.db: effect.held}
    if isinstance(effect, e.Swapped):
        held[effect.other] = effect.other_held
    for db, before in held.items():
        server.blocking.signal_database(db)
        server.watching.replace(server.keyspace.databases[db], before)
