"""Deliveries of a group with policies: of what is due again, of what is new, and by claims.

A read goes on from the group's last-delivered-id as it always does. Entries that are not for the
group are passed over; those that may not be delivered yet are kept back, pending without an owner,
so that the position can move on and a crash loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from server.delivery.dead_letters import (
    AGAIN_AFTER_MS,
    TOO_OFTEN,
    acknowledge,
    move_to_dead_letters,
)
from server.delivery.group_ref import CLAIMED, READ_AGAIN, TIMED_OUT, RuledGroup
from storage.engine import ids
from storage.engine.pending import MOST, Consumer, PendingEntry

MOST_PASSED: Final = 50_000
"""How many new entries one read looks at, so that none takes long."""

_PORTION: Final = 500

_MOST_EXHAUSTED: Final = 500
"""At how many dead letters a read stops to look for an entry that is due."""


_BURIED_AGAIN: Final = 500
"""How many dead letters a consumer's read of its own entries makes at most."""

_LOOKED_AT: Final = 1000
"""How many of these are looked at at a time."""

_PASSED_AGAIN: Final = 10_000
"""About how many such entries it passes over until it answers with what it has."""


class Reader(NamedTuple):
    """Who reads: the consumer, with NOACK or not, and what tells if an entry fits the reply, where
    not all do."""

    consumer: Consumer
    noack: bool
    fits: Callable[[bytes], bool] | None


Redeliveries = list[tuple[bytes, PendingEntry]]
"""The entries that are delivered, in their RESP form, each with how it was pending before."""


# --- what is due again -----------------------------------------------------------------------


def deliver_due(ruled: RuledGroup, reader: Reader, most: int) -> Redeliveries:
    """Delivers up to ``most`` pending entries that are due to somebody, or were kept back."""
    given: Redeliveries = []
    while len(given) < most:
        before = len(given)
        missing = _give(ruled, reader, most, given)
        if missing:
            ruled.group.acknowledge(missing)
            acknowledge(ruled, missing)  # Which may let others go on.
        elif len(given) == before:
            break
    if given:
        _tell_due(ruled, reader, [entry for _, entry in given])
    if reader.noack:
        # An entry that was kept back is delivered for the first time.
        first = [one.id for _, one in given if not one.deliveries]
        if first:
            ruled.group.acknowledge(first)
            acknowledge(ruled, first)
    return given


def _give(ruled: RuledGroup, reader: Reader, most: int, given: Redeliveries) -> list[int]:
    """Delivers what is due, as far as it fits; returns what the stream does not have any more."""
    group, now = ruled.group, ruled.now
    missing: list[int] = []
    kept: list[int] = []
    for entry in _take(ruled, most - len(given)):
        payload = ruled.stream.log.get(entry.id)
        room = entry.owner is not None or ruled.room_for(reader.consumer) > 0
        if payload is None:
            missing.append(entry.id)
        elif not kept and room and (reader.fits is None or reader.fits(payload)):
            group.pending.set(entry.id, reader.consumer, now, _count_after(entry))
            given.append((payload, entry))
        else:
            kept.append(entry.id)
    for entry_id in kept:
        ruled.agenda.put_back(entry_id)
    return missing


def _take(ruled: RuledGroup, most: int) -> list[PendingEntry]:
    """The next entries that are due, without those that were delivered too often: these become dead
    letters. If they are many, the others do so at their time, which has come as well."""
    agenda, pending = ruled.agenda, ruled.group.pending
    taken: list[PendingEntry] = []
    exhausted: list[PendingEntry] = []
    while len(taken) < most and len(exhausted) < _MOST_EXHAUSTED:
        found = agenda.take(pending, ruled.now, most - len(taken))
        if not found:
            break
        for entry in found:
            late = agenda.rules.is_exhausted(entry.deliveries)
            (exhausted if late else taken).append(entry)
    if exhausted:
        move_exhausted(ruled, exhausted)
    return taken


def move_exhausted(
    ruled: RuledGroup, entries: Sequence[PendingEntry], how: bytes = TIMED_OUT
) -> None:
    """Moves entries to the dead letters that were delivered as often as may be; the last delivery
    ended in this way. What cannot be written is tried again later; it is not delivered
    meanwhile."""
    for entry in move_to_dead_letters(ruled, entries, TOO_OFTEN, how):
        ruled.agenda.file(entry.id, ruled.now + AGAIN_AFTER_MS)


def readable_again(ruled: RuledGroup, consumer: Consumer, start: int, most: int) -> list[int]:
    """Return up to ``most`` of a consumer's next pending entries from ``start`` on that it may be
    given once more.

    Those that were delivered as often as may be are passed over and become dead letters; if they
    are many, the others do so when they are read again, or when they fall due."""
    rules, pending = ruled.agenda.rules, ruled.group.pending
    if not rules.max_deliveries:
        return pending.owned_ids(consumer, start, most)
    readable: list[int] = []
    exhausted: list[PendingEntry] = []
    while len(readable) < most and len(exhausted) < _PASSED_AGAIN:
        owned = pending.owned_ids(consumer, start, min(most - len(readable), _LOOKED_AT))
        if not owned:
            break
        start = owned[-1] + 1
        for entry_id in owned:
            entry = pending.get(entry_id)
            if entry is not None and rules.is_exhausted(entry.deliveries):
                exhausted.append(entry)
            else:
                readable.append(entry_id)
    if exhausted:
        move_exhausted(ruled, exhausted[:_BURIED_AGAIN], READ_AGAIN)
    return readable


def _count_after(entry: PendingEntry) -> int:
    """The delivery count after one more; XNACK FATAL gives an entry the highest there is."""
    return min(entry.deliveries + 1, MOST)


def _tell_due(ruled: RuledGroup, reader: Reader, before: list[PendingEntry]) -> None:
    group, now = ruled.group, ruled.now
    counts = tuple([_count_after(entry) for entry in before])
    again = sum([count > 1 for count in counts])
    group.delivered += len(counts) - again
    group.redelivered += again
    ruled.tally.redelivered += again
    ruled.spend(len(counts))
    reader.consumer.redelivered += again
    reader.consumer.active = now
    ruled.emit_delivered(reader.consumer, tuple([entry.id for entry in before]), now, counts)
    ruled.note_ended(before, TIMED_OUT)


# --- what is new -----------------------------------------------------------------------------


class _Sorted:
    """New entries in turn: those that are delivered, and those that are kept back until a time."""

    __slots__ = ("bad_delays", "entry_ids", "given", "held", "passed", "until")

    def __init__(self) -> None:
        self.bad_delays = 0
        """How many have no time in the field for it."""
        self.passed: list[int] = []
        self.entry_ids: list[int] = []
        self.given: list[bytes] = []
        self.held: list[int] = []
        self.until: list[int] = []


def deliver_selected(ruled: RuledGroup, reader: Reader, most: int) -> tuple[list[bytes], bool]:
    """Delivers up to ``most`` new entries, of those that are for the group and whose time it is.

    Returns them, and whether there may be more behind them that were not looked at."""
    stream, group = ruled.stream, ruled.group
    found = _Sorted()
    complete = False
    while len(found.passed) < MOST_PASSED and len(found.given) < most and not complete:
        start = (found.passed[-1] if found.passed else group.last_id) + 1
        wanted = min(_PORTION, max(most - len(found.given), 1))
        portion = stream.log.range_with_ids(start, ids.MAX, wanted)
        complete = len(portion[0]) < wanted
        if _is_simple(ruled, reader, portion[0]):
            _sort_all(ruled, portion, found)
        elif not _sort(ruled, reader, most, portion, found):
            complete = True
    if not found.passed:
        return [], False
    _hand_out(ruled, reader, found)
    return found.given, not complete and len(found.given) < most


def _is_simple(ruled: RuledGroup, reader: Reader, entry_ids: list[int]) -> bool:
    """Whether all entries of a portion are new to the group, and the reader can take each."""
    if reader.fits is not None or not entry_ids:
        return False
    return ruled.group.pending.ends_below(entry_ids[0])


def _sort_all(ruled: RuledGroup, portion: tuple[list[int], list[bytes]], found: _Sorted) -> None:
    """Decides about all entries of a portion, in half of the time."""
    only, delays, now = ruled.agenda.rules.only, ruled.agenda.rules.delay_field, ruled.now
    lanes, until = ruled.agenda.lanes, 0
    numbers, payloads = portion
    found.passed += numbers
    entry_ids, given = found.entry_ids, found.given
    # Not zip(), which makes a pair for every entry in compiled code, too.
    for at, payload in enumerate(payloads):
        entry_id = numbers[at]
        if only is not None and not only.holds(payload):
            continue
        if delays is not None:
            until = delays.time_in(payload)
            found.bad_delays += until < 0
        in_flight = until <= now
        if (lanes is not None and not lanes.enter(entry_id, payload, in_flight)) or not in_flight:
            found.held.append(entry_id)
            found.until.append(0 if in_flight else until)
            continue
        entry_ids.append(entry_id)
        given.append(payload)


def _sort(
    ruled: RuledGroup,
    reader: Reader,
    most: int,
    portion: tuple[list[int], list[bytes]],
    found: _Sorted,
) -> bool:
    """Decides about each entry of a portion; false if the reader can take no more."""
    rules, lanes, pending = ruled.agenda.rules, ruled.agenda.lanes, ruled.group.pending
    behind = pending.last
    only, delays, fits = rules.only, rules.delay_field, reader.fits
    now, until = ruled.now, 0
    for entry_id, payload in zip(*portion, strict=True):
        if only is not None and not only.holds(payload):
            found.passed.append(entry_id)
            continue
        if delays is not None:
            until = delays.time_in(payload)
        if len(found.given) >= most or (fits is not None and until <= now and not fits(payload)):
            return False
        if entry_id <= behind and entry_id in pending:
            # XGROUP SETID went back: it is delivered when it is due, as what it is.
            found.passed.append(entry_id)
            continue
        found.bad_delays += until < 0
        in_flight = until <= now
        first = lanes is None or lanes.enter(entry_id, payload, in_flight)
        found.passed.append(entry_id)
        if first and in_flight:
            found.entry_ids.append(entry_id)
            found.given.append(payload)
        else:
            found.held.append(entry_id)
            found.until.append(0 if in_flight else until)
    return True


def _hand_out(ruled: RuledGroup, reader: Reader, found: _Sorted) -> None:
    """Moves the group past all of them, and tells what has become of each."""
    group, consumer = ruled.group, reader.consumer
    ruled.stream.pass_over(group, found.passed)
    group.counts.bad_delays += found.bad_delays
    ruled.spend(len(found.entry_ids))
    if found.held:
        ruled.keep_back(found.held, found.until)
    if found.entry_ids and not reader.noack:
        moved_on = not found.held and group.last_id == found.entry_ids[-1]
        ruled.make_pending(consumer, found.entry_ids, moved_on)
    elif found.entry_ids:
        group.delivered += len(found.entry_ids)
        consumer.active = ruled.now
        ruled.agenda.leave(found.entry_ids)
    ruled.emit_position()


# --- what may be claimed ---------------------------------------------------------------------


class Refusals:
    """Refuses entries that nobody may have yet, and those that were delivered as often as may be
    if claiming them is ``counting`` as a delivery; these are then dead letters."""

    __slots__ = ("_counting", "_exhausted", "_ruled", "_taken")

    def __init__(self, ruled: RuledGroup, counting: bool) -> None:
        self._ruled = ruled
        self._counting = counting
        self._exhausted: list[PendingEntry] = []
        self._taken: list[PendingEntry] = []

    def refuses(self, entry_id: int, entry: PendingEntry) -> bool:
        """Whether an entry that could be claimed is not."""
        agenda = self._ruled.agenda
        if agenda.holds(entry, self._ruled.now):
            return True
        if self._counting and agenda.rules.is_exhausted(entry.deliveries):
            self._exhausted.append(entry)
            return True
        if agenda.rules.reasons:
            self._taken.append(entry)
        return False

    @property
    def allows_force(self) -> bool:
        """Whether entries may be claimed that are not pending: not where policies say which of them
        are delivered when."""
        return not self._ruled.agenda.rules.selects

    def settle(self) -> None:
        """Keeps that the deliveries of what was claimed have ended, and moves what was delivered
        too often to the dead letters."""
        self._ruled.note_ended(self._taken, CLAIMED)
        if self._exhausted:
            move_exhausted(self._ruled, self._exhausted, CLAIMED)
