"""How much a command has changed, as ``rdb_changes_since_last_save`` of INFO counts it.

Redis keeps one counter, ``dirty``, to which each command adds what it has changed, in its own way:
DEL adds the number of keys, XTRIM that of entries, XADD one, whatever it trims, XREADGROUP one for
each stream of which it delivers something. The counter decides when a snapshot is due (``save``),
and clients see it. Here no command counts. A :class:`~storage.engine.effects.Changed` says what it
counts; any other effect counts what stands in a table, less what is only part of something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from storage.engine import effects as e

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
    e.Acknowledged: lambda effect: len(effect.ids),
}
"""What an effect of this kind counts; any other counts 1."""

_TRIMMING: Final[frozenset[type]] = frozenset({e.StreamTrimmed, e.EntriesDeleted})


def changes_of(effects: Sequence[e.Effect]) -> int:
    """Return what the effects of one command count.

    What comes with something else does not count by itself: the trimming of an XADD, the entries of
    a read, which counts once for each stream, and the position that an XCLAIM gives its group.
    """
    if len(effects) == 1:  # which most commands have
        weight = _WEIGHTS.get(type(effects[0]))
        return 1 if weight is None else weight(effects[0])
    kinds = tuple(map(type, effects))
    total, weighed = _usual(kinds) if len(kinds) <= _SHORT else _counting(kinds)
    for at in weighed:
        total += _WEIGHTS[kinds[at]](effects[at])
    return total


def _counting(kinds: tuple[type, ...]) -> tuple[int, list[int]]:
    """Return what effects of these kinds in this order count for sure, and the places of those that
    count what their weight says."""
    adding = e.EntryAdded in kinds
    sure = 0
    weighed: list[int] = []
    for at, kind in enumerate(kinds):
        if adding and kind in _TRIMMING:
            continue
        if kind is e.Delivered and e.GroupPositionSet in kinds[at + 1 : at + 2]:
            continue
        if kind is e.GroupPositionSet and _is_claimed_with(kinds, at):
            continue
        if kind in _WEIGHTS:
            weighed.append(at)
        else:
            sure += 1
    return sure, weighed


_SHORT: Final = 4
_usual = lru_cache(maxsize=256)(_counting)
"""Remembers what :func:`_counting` returns: the commands of consumers have few effects, and the
same ones each time."""


def _is_claimed_with(kinds: Sequence[type], at: int) -> bool:
    """Whether a group's position stands before the entries that are claimed, not behind those that
    are read."""
    return e.Delivered not in kinds[max(at - 1, 0) : at] and e.Delivered in kinds[at:]
