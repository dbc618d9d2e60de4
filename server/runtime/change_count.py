"""How much a command has changed, as ``rdb_changes_since_last_save`` of INFO counts it.

Redis keeps one counter, ``dirty``, to which each command adds what it has changed, in its own way:
DEL adds the number of keys, XTRIM that of entries, XADD one, whatever it trims, XREADGROUP one for
each stream of which it delivers something. The counter decides when a snapshot is due (``save``),
and clients see it. Here no command counts. A :class:`~storage.engine.effects.Changed` says what it
counts; any other effect counts what stands in a table, less what is only part of something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from storage.engine import effects as e
from storage.engine.effects import (
    Acknowledged,
    Delivered,
    EntriesDeleted,
    EntryAdded,
    GroupPositionSet,
    StreamTrimmed,
)

_WEIGHTS: Final[dict[type, Callable[[Any], int]]] = {
    e.Changed: lambda effect: effect.weight,
    e.Flushed: lambda effect: len(effect.held),
    e.StreamCreated: lambda effect: 0,
    e.EntriesAdded: lambda effect: len(effect.run),
    e.StreamTrimmed: lambda effect: effect.removed,
    e.EntriesDeleted: lambda effect: len(effect.ids),
    e.ConsumerSeen: lambda effect: 0,
    e.Delivered: lambda effect: len(effect.ids),
    e.Redelivered: lambda effect: 0,
    e.Released: lambda effect: len(effect.ids),
    e.KeptBack: lambda effect: len(effect.ids),
    e.DeliveriesEnded: lambda effect: 0,
    e.Acknowledged: lambda effect: len(effect.ids),
}
"""What an effect of this kind counts; any other counts 1."""


def changes_of(effects: list[e.Effect]) -> int:
    """Return what the effects of one command count.

    What comes with something else does not count by itself: the trimming of an XADD, the entries of
    a read, which counts once for each stream, and the position that an XCLAIM gives its group.
    """
    if len(effects) == 1:
        only = effects[0]
        # The most frequent ones. An attribute, compiled, takes less than the table.
        if isinstance(only, EntryAdded):
            return 1
        return len(only.ids) if isinstance(only, Acknowledged) else _weight(only)
    if len(effects) == 2 and type(effects[0]) is Delivered and type(effects[1]) is GroupPositionSet:
        return 1  # The most frequent case of those below.
    total = 0
    for at, effect in enumerate(effects):
        kind = type(effect)
        if kind is Delivered:
            if at + 1 < len(effects) and type(effects[at + 1]) is GroupPositionSet:
                continue
        elif kind is GroupPositionSet:
            is_read = at > 0 and type(effects[at - 1]) is Delivered
            if not is_read and _delivers(effects, at):  # It stands before what is claimed.
                continue
        elif (kind is StreamTrimmed or kind is EntriesDeleted) and _adds(effects):
            continue
        total += _weight(effect)
    return total


def _weight(effect: e.Effect) -> int:
    weight = _WEIGHTS.get(type(effect))
    return 1 if weight is None else weight(effect)


def _adds(effects: list[e.Effect]) -> bool:
    return any(type(effect) is EntryAdded for effect in effects)


def _delivers(effects: list[e.Effect], at: int) -> bool:
    return any(type(effect) is Delivered for effect in effects[at:])
