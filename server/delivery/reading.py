# Compiled by mypyc.
"""What XREADGROUP gives a consumer of a group with policies: what is due again, then what is new.

A read goes on from the group's last-delivered-id as it always does. Entries that are not for the
group are passed over; those that may not be delivered yet are kept back, pending without an owner,
so that the position can move on and a crash loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from server.delivery.agenda import Agenda
from server.delivery.dead_letters import AGAIN_AFTER_MS, TOO_OFTEN, bury, settle
from server.delivery.place import GroupPlace
from storage.engine import ids
from storage.engine.effects import Delivered, GroupPositionSet, Released
from storage.engine.pending import MOST, Consumer, PendingEntry, PendingList

MOST_PASSED: Final = 50_000
"""How many new entries one read looks at, so that none takes long."""

_PORTION: Final = 500

_MOST_BURIED: Final = 500
"""At how many dead letters a read stops to look for an entry that is due."""


class Reader(NamedTuple):
    """Who reads: the consumer, with NOACK or not, and what tells if an entry fits the reply, where
    not all do."""

    consumer: Consumer
    noack: bool
    fits: Callable[[bytes], bool] | None


Given = list[tuple[bytes, PendingEntry]]
"""The entries that are delivered, in their RESP form, each with how it was pending before."""


def room_for(agenda: Agenda, pending: PendingList, consumer: Consumer) -> int:
    """How many more entries the consumer may have in flight."""
    rules = agenda.rules
    room = ids.MAX
    if rules.max_pending:
        room = rules.max_pending - (len(pending) - len(pending.released))
    if rules.max_pending_consumer:
        room = min(room, rules.max_pending_consumer - consumer.owned)
    return max(room, 0)


# --- what is due again -----------------------------------------------------------------------


def deliver_due(place: GroupPlace, reader: Reader, most: int) -> Given:
    """Delivers up to ``most`` pending entries that are due to somebody, or were kept back."""
    given: Given = []
    while len(given) < most:
        before = len(given)
        missing = _give(place, reader, most, given)
        if missing:
            place.group.acknowledge(missing)
            settle(place, missing)  # Which may let others go on.
        elif len(given) == before:
            break
    if given:
        _tell_due(place, reader, [entry for _, entry in given])
    if reader.noack:
        # An entry that was kept back is delivered for the first time.
        first = [one.id for _, one in given if not one.deliveries]
        if first:
            place.group.acknowledge(first)
            settle(place, first)
    return given


def _give(place: GroupPlace, reader: Reader, most: int, given: Given) -> list[int]:
    """Delivers what is due, as far as it fits; returns what the stream does not have any more."""
    group, now = place.group, place.now
    missing: list[int] = []
    kept: list[int] = []
    for entry in _take(place, most - len(given)):
        payload = place.stream.log.get(entry.id)
        room = entry.owner is not None or room_for(place.agenda, group.pending, reader.consumer) > 0
        if payload is None:
            missing.append(entry.id)
        elif not kept and room and (reader.fits is None or reader.fits(payload)):
            group.pending.set(entry.id, reader.consumer, now, _count_after(entry))
            given.append((payload, entry))
        else:
            kept.append(entry.id)
    for identity in kept:
        place.agenda.put_back(identity)
    return missing


def _take(place: GroupPlace, most: int) -> list[PendingEntry]:
    """The next entries that are due, without those that were delivered too often: these become dead
    letters. If they are many, the others do so at their time, which has come as well."""
    agenda, pending = place.agenda, place.group.pending
    taken: list[PendingEntry] = []
    exhausted: list[PendingEntry] = []
    while len(taken) < most and len(exhausted) < _MOST_BURIED:
        found = agenda.take(pending, place.now, most - len(taken))
        if not found:
            break
        for entry in found:
            late = agenda.rules.is_exhausted(entry.deliveries)
            (exhausted if late else taken).append(entry)
    if exhausted:
        bury_exhausted(place, exhausted)
    return taken


def bury_exhausted(place: GroupPlace, entries: Sequence[PendingEntry]) -> None:
    """Moves entries to the dead letters that were delivered as often as may be. What cannot be
    written is tried again later; it is not delivered meanwhile."""
    for entry in bury(place, entries, TOO_OFTEN):
        place.agenda.file(entry.id, place.now + AGAIN_AFTER_MS)


def _count_after(entry: PendingEntry) -> int:
    """The delivery count after one more; XNACK FATAL gives an entry the highest there is."""
    return min(entry.deliveries + 1, MOST)


def _tell_due(place: GroupPlace, reader: Reader, before: list[PendingEntry]) -> None:
    group, now = place.group, place.now
    counts = tuple([_count_after(entry) for entry in before])
    again = sum(count > 1 for count in counts)
    group.delivered += len(counts) - again
    group.redelivered += again
    place.tally.redelivered += again
    reader.consumer.active = now
    identities = tuple([entry.id for entry in before])
    name = reader.consumer.name
    place.db.emit(
        Delivered(place.db.index, place.key, group.name, name, identities, now, counts, now)
    )


# --- what is new -----------------------------------------------------------------------------


class _Sorted:
    """New entries in turn: those that are delivered, and those that are kept back until a time."""

    __slots__ = ("given", "held", "identities", "passed", "until")

    def __init__(self) -> None:
        self.passed: list[int] = []
        self.identities: list[int] = []
        self.given: list[bytes] = []
        self.held: list[int] = []
        self.until: list[int] = []


def deliver_selected(place: GroupPlace, reader: Reader, most: int) -> tuple[list[bytes], bool]:
    """Delivers up to ``most`` new entries, of those that are for the group and whose time it is.

    Returns them, and whether there may be more behind them that were not looked at."""
    stream, group = place.stream, place.group
    found = _Sorted()
    complete = False
    while len(found.passed) < MOST_PASSED and len(found.given) < most and not complete:
        start = (found.passed[-1] if found.passed else group.last_id) + 1
        wanted = min(_PORTION, max(most - len(found.given), 1))
        portion = stream.log.range_with_ids(start, ids.MAX, wanted)
        complete = len(portion[0]) < wanted
        if _is_simple(place, reader, portion[0]):
            _sort_all(place, portion, found)
        elif not _sort(place, reader, most, portion, found):
            complete = True
    if not found.passed:
        return [], False
    _hand_out(place, reader, found)
    return found.given, not complete and len(found.given) < most


def _is_simple(place: GroupPlace, reader: Reader, identities: list[int]) -> bool:
    """Whether all entries of a portion are new to the group, and the reader can take each."""
    if reader.fits is not None or not identities:
        return False
    return place.group.pending.last < identities[0]


def _sort_all(place: GroupPlace, portion: tuple[list[int], list[bytes]], found: _Sorted) -> None:
    """Decides about all entries of a portion, in half of the time."""
    only, delays, now = place.agenda.rules.only, place.agenda.rules.delay_field, place.now
    lanes, until = place.agenda.lanes, 0
    numbers, payloads = portion
    found.passed += numbers
    identities, given = found.identities, found.given
    # Not zip(), which makes a pair for every entry in compiled code, too.
    for at, payload in enumerate(payloads):
        identity = numbers[at]
        if only is not None and not only.holds(payload):
            continue
        if delays is not None:
            until = delays.time_in(payload)
        flies = until <= now
        if (lanes is not None and not lanes.enter(identity, payload, flies)) or not flies:
            found.held.append(identity)
            found.until.append(0 if flies else until)
            continue
        identities.append(identity)
        given.append(payload)


def _sort(
    place: GroupPlace,
    reader: Reader,
    most: int,
    portion: tuple[list[int], list[bytes]],
    found: _Sorted,
) -> bool:
    """Decides about each entry of a portion; false if the reader can take no more."""
    rules, lanes, pending = place.agenda.rules, place.agenda.lanes, place.group.pending
    behind = pending.last
    only, delays, fits = rules.only, rules.delay_field, reader.fits
    now, until = place.now, 0
    for identity, payload in zip(*portion, strict=True):
        if only is not None and not only.holds(payload):
            found.passed.append(identity)
            continue
        if delays is not None:
            until = delays.time_in(payload)
        if len(found.given) >= most or (fits is not None and until <= now and not fits(payload)):
            return False
        if identity <= behind and identity in pending:
            # XGROUP SETID went back: it is delivered when it is due, as what it is.
            found.passed.append(identity)
            continue
        flies = until <= now
        first = lanes is None or lanes.enter(identity, payload, flies)
        found.passed.append(identity)
        if first and flies:
            found.identities.append(identity)
            found.given.append(payload)
        else:
            found.held.append(identity)
            found.until.append(0 if flies else until)
    return True


def _hand_out(place: GroupPlace, reader: Reader, found: _Sorted) -> None:
    """Moves the group past all of them, and tells what has become of each."""
    db, key, group, consumer = place.db, place.key, place.group, reader.consumer
    now = place.now
    place.stream.pass_over(group, found.passed)
    group.delivered += len(found.identities)
    if found.identities:
        consumer.active = now
    if found.identities and not reader.noack:
        given = tuple(found.identities)
        _make_pending(group.pending, found.identities, consumer, now)
        ones = (1,) * len(given)
        db.emit(Delivered(db.index, key, group.name, consumer.name, given, now, ones, now))
    elif found.identities:
        place.agenda.leave(found.identities)
    if found.held:
        for identity, until in zip(found.held, found.until, strict=True):
            group.pending.set(identity, None, until, 0)
        zeros = (0,) * len(found.held)
        db.emit(Released(db.index, key, group.name, tuple(found.held), zeros, tuple(found.until)))
    db.emit(GroupPositionSet(db.index, key, group.name, group.last_id, group.entries_read, False))


def _make_pending(pending: PendingList, run: list[int], consumer: Consumer, now: int) -> None:
    if pending.last < run[0]:
        pending.append_run(run, consumer, now)
    else:
        for identity in run:
            pending.set(identity, consumer, now, 1)
