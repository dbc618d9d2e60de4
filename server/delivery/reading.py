"""Deliveries of a group with policies: of what is due again, of what is new, and by claims.

A read goes on from the group's last-delivered-id as it always does. Entries that are not for the
group are passed over; those that may not be delivered yet are kept back, pending without an owner,
so that the position can move on and a crash loses nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from server.delivery.dead_letters import (
    AGAIN_AFTER_MS,
    TOO_OFTEN,
    acknowledge,
    move_to_dead_letters,
)
from server.delivery.group_ref import CLAIMED, READ_AGAIN, TIMED_OUT, RuledGroup
from storage.engine import ids
from storage.engine.entries import Stretch
from storage.engine.pending import HIGHEST, Consumer, PendingEntry

PASSED_AT_ONCE: Final = 1000
"""How many new entries one attempt to read looks at, so that nobody waits long meanwhile."""

_PORTION: Final = 500
"""How many entries are looked up together."""

_MOST_EXHAUSTED: Final = 500
"""At how many dead letters a read stops to look for an entry that is due."""


_BURIED_AGAIN: Final = 500
"""How many dead letters a consumer's read of its own entries makes at most."""

_LOOKED_AT: Final = 1000
"""How many of these are looked at at a time."""

_PASSED_AGAIN: Final = 10_000
"""About how many such entries it passes over until it answers with what it has."""


class GroupReader(NamedTuple):
    """Who reads: the consumer, with NOACK or not, whether the entries are needed one by one, and
    what tells if one fits the reply, where not all do."""

    consumer: Consumer
    noack: bool
    apart: bool
    fits: Callable[[bytes], bool] | None


_entry_id: Final = itemgetter(0)
"""The ID of a pending entry, to sort by."""

Redeliveries = list[tuple[bytes, PendingEntry]]
"""The entries that are delivered, in their RESP form, each with how it was pending before."""


# --- what is due again -----------------------------------------------------------------------


def deliver_due(ruled: RuledGroup, reader: GroupReader, most: int) -> tuple[Redeliveries, bool]:
    """Delivers up to ``most`` pending entries that are due to somebody, or were kept back.

    Returns them, and whether there may be more that were not looked at."""
    ruled.agenda.cut_short = False
    given: Redeliveries = []
    position = ruled.group.last_id
    while len(given) < most:
        before = len(given)
        missing = _give(ruled, reader, most, given)
        if missing:
            _drop(ruled, missing)  # Which may let others go on.
        elif len(given) == before:
            break
    if given:
        _tell_due(ruled, reader, sorted([entry for _, entry in given], key=_entry_id))
    if reader.noack:
        # An entry that was kept back is delivered for the first time.
        _drop(ruled, [one.id for _, one in given if not one.deliveries])
    if ruled.group.last_id != position:
        ruled.emit_position()
    return given, ruled.agenda.cut_short


def _drop(ruled: RuledGroup, entry_ids: list[int]) -> None:
    """Acknowledges those of the entries that are pending."""
    dropped = ruled.group.acknowledge(entry_ids)
    if dropped:
        acknowledge(ruled, dropped)


def _give(ruled: RuledGroup, reader: GroupReader, most: int, given: Redeliveries) -> list[int]:
    """Delivers what is due, as far as it fits; returns what the stream does not have any more."""
    group, consumer = ruled.group, reader.consumer
    taken = _take(ruled, min(most - len(given), _PORTION))
    if ruled.agenda.ranking is None:
        taken.sort(key=_entry_id)
    wanted = sorted([entry.id for entry in taken])
    passed = _passed_with(ruled, wanted)
    if len(passed) > PASSED_AT_ONCE:
        _keep_back_some(ruled, passed, wanted)
        return []
    payloads = dict(zip(wanted, ruled.stream.log.get_many(wanted), strict=True))
    room = min(ruled.room_for(consumer), len(taken))
    missing: list[int] = []
    to_give: list[int] = []
    kept = False
    for entry in taken:
        payload = payloads[entry.id]
        if payload is None:
            missing.append(entry.id)
        elif (
            not kept
            and (entry.owner is not None or room > 0)
            and (reader.fits is None or reader.fits(payload))
        ):
            room -= entry.owner is not consumer
            to_give.append(entry.id)
            given.append((payload, entry))
        else:
            kept = True
            ruled.agenda.put_back(entry.id, payload)
    if kept:  # What is behind them has to wait as well.
        ruled.agenda.cut_short = False
    if to_give:
        to_give = wanted if len(to_give) == len(wanted) else sorted(to_give)
        if passed:
            to_give = _pass_over(ruled, reader, passed, to_give)
        group.pending.take_over(to_give, consumer, ruled.now, HIGHEST, 1, None)
    return missing


def _take(ruled: RuledGroup, most: int) -> list[PendingEntry]:
    """The next entries that are due, without those that were delivered too often: these become dead
    letters. If they are many, the others do so at their time, which has come as well."""
    agenda, buried = ruled.agenda, 0
    while True:
        taken = agenda.take(ruled.group, ruled.due, most)
        exhausted = agenda.take_exhausted()
        if exhausted:
            move_exhausted(ruled, exhausted)
        buried += len(exhausted)
        if taken or not exhausted or buried >= _MOST_EXHAUSTED:
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
    return min(entry.deliveries + 1, HIGHEST)


def _tell_due(ruled: RuledGroup, reader: GroupReader, before: list[PendingEntry]) -> None:
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


def _passed_with(ruled: RuledGroup, wanted: list[int]) -> list[int]:
    """The entries that the group has to pass over, or be given, for the last new one of those
    wanted; one more than may be in one go if they are too many."""
    group, pending = ruled.group, ruled.group.pending
    if ruled.agenda.ranking is None or not wanted or wanted[-1] <= group.last_id:
        return []
    last = wanted[-1]
    if pending.last > group.last_id:  # XGROUP SETID went back.
        last = max([each for each in wanted if each not in pending], default=ids.MIN)
    return ruled.stream.log.ids_of(group.last_id + 1, last, PASSED_AT_ONCE + 1)


def _keep_back_some(ruled: RuledGroup, passed: list[int], wanted: list[int]) -> None:
    """Moves the group past as many as may be in one go; what is wanted stays ranked."""
    ranking = ruled.agenda.ranking
    assert ranking is not None
    ranking.add_all(wanted)
    ruled.agenda.cut_short = True
    del passed[PASSED_AT_ONCE:]
    ruled.stream.pass_over(ruled.group, passed)
    _keep_back_new(ruled, passed)


def _keep_back_new(ruled: RuledGroup, entry_ids: list[int]) -> None:
    """Keeps back those of the entries that are not pending yet; XGROUP SETID may have gone back."""
    pending = ruled.group.pending
    if entry_ids and entry_ids[0] <= pending.last:
        entry_ids = [each for each in entry_ids if each not in pending]
    if entry_ids:
        ruled.keep_back(entry_ids, [0] * len(entry_ids))


def _pass_over(
    ruled: RuledGroup, reader: GroupReader, passed: list[int], given: list[int]
) -> list[int]:
    """Moves the group past the last of the new entries that are given. These are pending for the
    consumer then if they follow each other, and what is before them is kept back; otherwise all
    are kept back. Returns what is still to be taken over."""
    group = ruled.group
    at = bisect_right(given, group.last_id)
    del passed[bisect_right(passed, given[-1]) :]
    if not passed:
        return given
    ruled.stream.pass_over(group, passed)
    new = given[at:]
    if reader.noack or passed[-len(new) :] != new or group.pending.last >= new[0]:
        _keep_back_new(ruled, passed)
        return given
    _keep_back_new(ruled, passed[: -len(new)])
    group.deliver(new, reader.consumer, ruled.now)
    return given[:at]


class _Selection:
    """New entries in turn: those that are delivered, and those that are kept back until a time."""

    __slots__ = ("bad_delays", "entry_ids", "given", "held", "passed", "ranked", "until")

    def __init__(self) -> None:
        self.bad_delays: list[tuple[int, bytes]] = []
        """Those that have no time in the field for it, with what they have there."""
        self.ranked = 0
        """How many are kept back to be delivered by their number."""
        self.passed: list[int] = []
        self.entry_ids: list[int] = []
        self.given: list[bytes] = []
        """The RESP forms of those that are delivered, in pieces."""
        self.held: list[int] = []
        self.until: list[int] = []

    @property
    def chosen(self) -> int:
        """How many may be delivered now."""
        return len(self.entry_ids) + self.ranked

    def give(self, stretch: Stretch, low: int, high: int, apart: bool) -> None:
        """Delivers the entries at the places from ``low`` to below ``high``."""
        raw, ends = stretch.raw, stretch.ends
        self.entry_ids += stretch.ids[low:high]
        if apart:
            self.given += [raw[ends[at] : ends[at + 1]] for at in range(low, high)]
        elif low < high:
            self.given.append(raw[ends[low] : ends[high]])


def deliver_ranked(ruled: RuledGroup, reader: GroupReader, most: int) -> tuple[Redeliveries, bool]:
    """With ``priority-field``: delivers up to ``most`` entries that may be delivered, those with
    the highest numbers, whether they are due again or new. Before that the read looks ahead.

    Returns them, and whether there may be more that were not looked at."""
    if most <= 0:
        return [], False
    if not _rank(ruled, reader):
        return [], True
    agenda, more = ruled.agenda, False
    ahead = agenda.look_ahead()
    # Nothing is passed over by the first of them, which costs about what any read costs.
    payloads = _deliver_next(ruled, reader, min(most, _PORTION), True)[1]
    given = [(payload, _NEW) for payload in payloads]
    if len(given) < most:
        others, more = deliver_due(ruled, reader, most - len(given))
        given += others
    # What nobody needs any more may have been in the way of what is new.
    return given, more or (not given and agenda.look_ahead() > ahead)


def deliver_first(ruled: RuledGroup, reader: GroupReader, most: int) -> tuple[int, list[bytes]]:
    """With ``priority-field``: delivers up to ``most`` entries as :func:`deliver_ranked` does, if
    they are new and nothing has to be passed over for them. Otherwise none.

    Returns how many, and their RESP forms in pieces."""
    return _deliver_next(ruled, reader, most, False) if _rank(ruled, reader) else (0, [])


def _rank(ruled: RuledGroup, reader: GroupReader) -> bool:
    """Ranks what is due again, and then what is new; false if there is more to rank."""
    agenda = ruled.agenda
    if not agenda.rank(ruled.group.pending, ruled.due):
        return False
    ahead = agenda.look_ahead()
    return ahead <= 0 or not _look_ahead(ruled, reader, ahead)


_NEW: Final = PendingEntry(ids.MIN, None, 0, 0)
"""How a new entry was pending before: not at all."""


def _deliver_next(
    ruled: RuledGroup, reader: GroupReader, most: int, apart: bool
) -> tuple[int, list[bytes]]:
    """Delivers those with the highest numbers, if they are what is next for the group anyway.
    Returns how many, and their RESP forms, in pieces unless they are to be ``apart``."""
    group, log, ranking = ruled.group, ruled.stream.log, ruled.agenda.ranking
    assert ranking is not None
    first = ranking.glance(most)
    if (
        not first
        or reader.fits is not None
        or group.pending.last > group.last_id
        or ruled.room_for(reader.consumer) < len(first)
        or first[-1] <= group.last_id
    ):
        return 0, []
    wanted, pieces = group.cursor.read(log, group.last_id, len(first))
    if apart or wanted != first:
        if wanted != sorted(first):
            return 0, []
        payloads = dict(zip(wanted, log.range(wanted[0], wanted[-1], len(wanted)), strict=True))
        pieces = [payloads[entry_id] for entry_id in first]
    ranking.take(len(first))
    ruled.hand_out(reader.consumer, wanted, reader.noack)
    return len(first), pieces


def _look_ahead(ruled: RuledGroup, reader: GroupReader, most: int) -> bool:
    """Ranks up to ``most`` new entries; returns whether there may be more.

    Where not all of them may be delivered now, all are kept back: what is among them for others
    to come is not sought again. Otherwise the group stays where it is for now."""
    rules, ranking = ruled.agenda.rules, ruled.agenda.ranking
    assert ranking is not None
    if rules.only is not None or rules.order_by is not None or rules.delay_field is not None:
        # They need not fit into this reply.
        return deliver_selected(ruled, reader._replace(fits=None), most)[2]
    pending, behind = ruled.group.pending, ruled.group.pending.last
    start, wanted = max(ruled.group.last_id, ranking.looked_to) + 1, min(most, PASSED_AT_ONCE)
    found = 0
    for stretch in ruled.stream.log.stretches(start, wanted):
        if stretch.ids[0] > behind:
            ranking.add_stretch(stretch)
        else:  # XGROUP SETID went back.
            ranking.add_all([each for each in stretch.ids if each not in pending])
        ranking.looked_to = stretch.ids[-1]
        found += len(stretch.ids)
    return found == wanted < most


def deliver_selected(
    ruled: RuledGroup, reader: GroupReader, most: int
) -> tuple[int, list[bytes], bool]:
    """Delivers up to ``most`` new entries, of those that are for the group and whose time it is; or
    ranks them.

    Returns how many, their RESP forms in pieces, which are the entries if ``reader`` needs them
    ``apart``, and whether there may be more behind them that were not looked at."""
    group, log = ruled.group, ruled.stream.log
    found = _Selection()
    wanted = min(_PORTION, most)
    complete = False
    while not complete and len(found.passed) < PASSED_AT_ONCE and found.chosen < most:
        start = (found.passed[-1] if found.passed else group.last_id) + 1
        left = wanted
        for stretch in log.stretches(start, wanted):
            left -= len(stretch.ids)
            if not _consider(ruled, reader, most, stretch, found):
                complete = True
                break
        complete = complete or left > 0
        wanted = _PORTION
    if found.passed:
        _hand_out(ruled, reader, found)
    more = len(found.passed) > 0 and not complete and found.chosen < most
    return len(found.entry_ids), found.given, more


def _consider(
    ruled: RuledGroup, reader: GroupReader, most: int, stretch: Stretch, found: _Selection
) -> bool:
    """Decides about each entry of a stretch, up to where the reader has what it wants: whether it
    is for the group, may be given now, or is kept back. False if nothing behind is to be looked at.
    """
    rules, lanes, pending = ruled.agenda.rules, ruled.agenda.lanes, ruled.group.pending
    ranking = ruled.agenda.ranking
    only, delays, order, fits = rules.only, rules.delay_field, rules.order_by, reader.fits
    numbers, raw, ends, due = stretch.ids, stretch.raw, stretch.ends, ruled.due
    behind, ahead = pending.last, ruled.agenda.look_ahead()
    is_new = behind < numbers[0]  # Unless XGROUP SETID went back.
    room = most - len(found.entry_ids)
    low = high = 0  # Where a run of entries that are delivered begins and ends.
    is_alone = True
    until, looked_at, end = 0, len(numbers), ends[0]
    for at in range(len(numbers)):  # An ID costs as much as all else, and is seldom needed.
        start, end = end, ends[at + 1]
        if only is not None and not only.holds(raw, start, end):
            continue
        if delays is not None:
            until = delays.time_in(raw, start, end)
        in_flight = until <= due
        if room <= 0 or ahead <= 0 or (fits is not None and in_flight and not fits(raw[start:end])):
            looked_at = at
            break
        if not is_new and numbers[at] in pending:  # It is delivered when it is due, as what it is.
            continue
        if until < 0 and delays is not None:
            found.bad_delays.append((numbers[at], delays.value_in(raw, start, end) or b""))
        if order is not None and lanes is not None:
            value = order.value_in(raw, start, end)
            is_alone = lanes.enter(numbers[at], value, in_flight and ranking is None)
        if not is_alone:
            ahead -= 1
        elif in_flight and ranking is not None:
            ranking.add_at(numbers[at], raw, start, end)
            found.ranked += 1
            ahead -= 1
        elif in_flight:
            if at > high:
                found.give(stretch, low, high, reader.apart)
                low = at
            high = at + 1
            room -= 1
            continue
        found.held.append(numbers[at])
        found.until.append(0 if in_flight else until)
    found.give(stretch, low, high, reader.apart)
    found.passed += numbers[:looked_at]
    return looked_at == len(numbers)


def _hand_out(ruled: RuledGroup, reader: GroupReader, found: _Selection) -> None:
    """Moves the group past all of them, and tells what has become of each."""
    group, consumer = ruled.group, reader.consumer
    ruled.stream.pass_over(group, found.passed)
    if found.bad_delays:
        _count_bad_delays(ruled, found.bad_delays)
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


_SHOWN: Final = 64
"""How many bytes are kept of what is no time."""


def _count_bad_delays(ruled: RuledGroup, found: list[tuple[int, bytes]]) -> None:
    counts = ruled.group.own_counts()
    entry_id, value = found[-1]
    counts.bad_delays += len(found)
    counts.bad_delay = entry_id, value[:_SHOWN]


# --- what may be claimed ---------------------------------------------------------------------


class EntryRefusals:
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
        if agenda.holds(entry, self._ruled.due):
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
