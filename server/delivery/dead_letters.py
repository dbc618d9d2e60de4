"""Entries that are not delivered any more go to another stream, with what is known of them, and
back to where they came from (PENSTOCK REDRIVE)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.config.types import quoted_word
from server.delivery import errors as policy_errors
from server.delivery.group_ref import GroupRef, RuledGroup, group_of_value
from server.delivery.happenings import BURIED
from server.delivery.retention import add_entry, drop_acknowledged
from storage.engine import ids
from storage.engine.effects import EntriesDeleted
from storage.engine.entries import decode_entry
from storage.engine.groups import Group
from storage.engine.histories import MOST_LINES, EndedDelivery
from storage.engine.pending import PendingEntry
from storage.engine.stream import Stream
from storage.errors import StorageFailure
from storage.keyspace.databases import Database

PREFIX: Final = b"dead-letter-"
STREAM: Final = b"dead-letter-stream"
ID: Final = b"dead-letter-id"
GROUP: Final = b"dead-letter-group"
CONSUMER: Final = b"dead-letter-consumer"
DELIVERIES: Final = b"dead-letter-deliveries"
TIME: Final = b"dead-letter-time"
ERROR: Final = b"dead-letter-error"
HISTORY: Final = b"dead-letter-history"
REASON: Final = b"dead-letter-reason"
"""The fields that stand before those of the entry, in this order."""

_FIELDS: Final = (STREAM, ID, GROUP, CONSUMER, DELIVERIES, TIME, REASON)

_WITH_REASONS: Final = (STREAM, ID, GROUP, CONSUMER, DELIVERIES, TIME, ERROR, HISTORY, REASON)
"""The same of a group that keeps why deliveries failed."""

_FIRST: Final = (
    b"dead-letter-first-stream",
    b"dead-letter-first-id",
    b"dead-letter-first-group",
)
"""Fields behind them that say where an entry was at first which was a dead letter already."""

TOO_OFTEN: Final = b"max-deliveries"
FATAL: Final = b"fatal"
"""The reasons: it was delivered as often as may be, or XNACK FATAL."""

AGAIN_AFTER_MS: Final = 1000
"""When a letter is tried again that could not be written."""


class Letter(NamedTuple):
    """A dead letter as REDRIVE reads it: where the entry was, for which group, and its fields."""

    stream: bytes
    id: int
    group: bytes
    items: list[bytes]


def move_to_dead_letters(
    ruled: RuledGroup,
    entries: Sequence[PendingEntry],
    reason: bytes,
    how: bytes,
    error: bytes = b"",
) -> list[PendingEntry]:
    """Moves pending entries into the group's stream of dead letters and acknowledges them; those
    that the stream does not have any more are only acknowledged. ``how`` tells how their last
    delivery has ended, and ``error`` what was said of it.

    Returns those that had to stay: no stream can be made at that key, it is full, or letters would
    come back from there."""
    goes_round = len(ruled.circle()) > 0
    done: list[int] = []
    written = 0
    kept: list[PendingEntry] = []
    # Claims may name an entry twice.
    for entry in {entry.id: entry for entry in entries}.values():
        payload = ruled.stream.log.get(entry.id)
        lines = _lines_of(ruled, entry, how, error)
        if payload is None or (not goes_round and _write(ruled, entry, payload, reason, lines)):
            ruled.group.acknowledge([entry.id])
            done.append(entry.id)
            written += payload is not None
        else:
            kept.append(entry)
    if done:
        acknowledge(ruled, done)
    if written:
        ruled.group.own_counts().bury(reason, written, ruled.now)
        ruled.happenings.note(ruled.happening(BURIED, number=written))
    return kept


def acknowledge(ruled: RuledGroup, entry_ids: list[int]) -> None:
    """Tells that the entries are pending no more, and lets what follows from that happen."""
    ruled.agenda.leave(entry_ids)
    ruled.emit_acknowledged(entry_ids)
    agenda = ruled.of_stream
    if agenda is not None and agenda.rules.delete_acked:
        db, key, stream = ruled.db, ruled.key, ruled.stream
        ruled.tally.deleted += drop_acknowledged(db, key, stream, agenda, entry_ids)


def _lines_of(
    ruled: RuledGroup, entry: PendingEntry, how: bytes, error: bytes
) -> Sequence[EndedDelivery] | None:
    """Returns how the deliveries of an entry ended, the last one now if anybody has it; ``None`` in
    a group that does not keep it."""
    if not ruled.agenda.rules.reasons:
        return None
    lines = ruled.group.pending.extras.histories.lines(entry.id)
    if entry.owner is None and not error:
        return lines
    owner = b"" if entry.owner is None else entry.owner.name
    return [*lines, EndedDelivery(ruled.now, owner, how, error)][-MOST_LINES:]


def history_text(lines: Sequence[EndedDelivery]) -> bytes:
    """Return the lines as a text: words with blanks between them, in quotes where they need it."""
    return b"\n".join(
        [
            b"%d %b %b %b" % (line.time, _word(line.consumer), line.how, _word(line.reason))
            for line in lines
        ]
    )


def _word(text: bytes) -> bytes:
    word = quoted_word(text.decode("utf-8", "surrogateescape"))
    return word.encode("utf-8", "surrogateescape")


def _write(
    ruled: RuledGroup,
    entry: PendingEntry,
    payload: bytes,
    reason: bytes,
    lines: Sequence[EndedDelivery] | None,
) -> bool:
    """Adds the letter; false where that is not possible."""
    db, rules = ruled.db, ruled.agenda.rules
    values = (
        ruled.key,
        ids.text(entry.id),
        ruled.group.name,
        b"" if entry.owner is None else entry.owner.name,
        b"%d" % entry.deliveries,
        b"%d" % ruled.now,
        *_told(lines),
        reason,
    )
    fields = _FIELDS if lines is None else _WITH_REASONS
    items = [word for pair in zip(fields, values, strict=True) for word in pair]
    items += _kept_fields(payload)
    try:
        stream = db.stream(rules.dead_letter) or Stream(db.keyspace.limits)
        add_entry(db, rules.dead_letter, stream, items, rules.dead_letter_maxlen)
    except StorageFailure:
        return False
    ruled.tally.dead_letters += 1
    return True


def _told(lines: Sequence[EndedDelivery] | None) -> Sequence[bytes]:
    """The last text that was given as a reason, and all lines."""
    if lines is None:
        return ()
    error = next((line.reason for line in reversed(lines) if line.reason), b"")
    return error, history_text(lines)


def _kept_fields(payload: bytes) -> list[bytes]:
    """The fields that the letter of an entry has behind what is added. If that is a letter itself,
    its own: they would be more each time."""
    letter = read_letter(payload)
    if letter is None:
        return decode_entry(payload)[1]
    items = letter.items
    if tuple(items[: 2 * len(_FIRST) : 2]) == _FIRST:
        return items
    origin = (letter.stream, ids.text(letter.id), letter.group)
    return [word for pair in zip(_FIRST, origin, strict=True) for word in pair] + items


def read_letter(payload: bytes) -> Letter | None:
    """The dead letter that an entry is, ``None`` if no policy has written it."""
    _, items = decode_entry(payload)
    fields = _WITH_REASONS if items[12:13] == [ERROR] else _FIELDS
    head = len(fields) * 2
    if tuple(items[:head:2]) != fields or len(items) <= head:
        return None
    stream, entry_id, group = items[1:6:2]
    try:
        return Letter(stream, ids.parse(entry_id), group, items[head:])
    except StorageFailure:
        return None


# --- moving them back ------------------------------------------------------------------------

_PORTION: Final = 100
"""How many letters are moved before others may be answered."""


class FoundLetter(NamedTuple):
    """A dead letter, its ID, and the group that it goes back to."""

    id: int
    letter: Letter
    origin: GroupRef


def _origin(db: Database, letter: Letter) -> GroupRef | None:
    return group_of_value(db, letter.stream, db.get(letter.stream), letter.group)


def _with_origin(db: Database, entry_id: int, letter: Letter) -> FoundLetter | None:
    """Returns the dead letter with where it goes back to, ``None`` if that is not there any
    more."""
    origin = _origin(db, letter)
    return None if origin is None else FoundLetter(entry_id, letter, origin)


def one_letter(db: Database, key: bytes, stream: Stream | None, entry_id: int) -> FoundLetter:
    """The dead letter with this ID; raises :class:`CommandError` if there is none, or if it has
    nowhere to go back to."""
    payload = None if stream is None else stream.log.get(entry_id)
    letter = None if payload is None else read_letter(payload)
    text = ids.text(entry_id).decode()
    if letter is None:
        raise CommandError(policy_errors.not_a_dead_letter(text, key))
    origin = _origin(db, letter)
    if origin is None:
        raise CommandError(policy_errors.no_origin(text, letter.stream, letter.group))
    return FoundLetter(entry_id, letter, origin)


class Redrive:
    """Moves dead letters of the stream at ``key``.

    ``allow`` is called with the streams that they come from, before anything is moved, and raises
    :class:`CommandError` if the client may not add to one of them; ``note`` with each group that is
    given one back."""

    def __init__(
        self,
        db: Database,
        key: bytes,
        allow: Callable[[Iterable[bytes]], None],
        note: Callable[[GroupRef], None],
    ) -> None:
        self._db = db
        self._note = note
        self._key = key
        self._allow = allow
        self._any = False
        """Whether the stream has dead letters, with somewhere to go back to or not."""

    def move_these(
        self, entry_ids: Sequence[int], count: int | None, may_go_on: Callable[[], bool]
    ) -> Generator[None, None, Reply]:
        """Moves the first ``count`` of the letters with these IDs; otherwise as :meth:`move_all`.
        Raises :class:`CommandError` if one of the IDs is of no letter, or of one that has nowhere
        to go back to; nothing is moved then."""
        chosen: list[int] = []
        origins: dict[bytes, None] = {}
        for at in range(0, len(entry_ids), _PORTION):
            stream = self._db.stream(self._key)
            for entry_id in entry_ids[at : at + _PORTION]:
                found = one_letter(self._db, self._key, stream, entry_id)
                if count is None or len(chosen) < count:
                    chosen.append(entry_id)
                    origins[found.letter.stream] = None
            yield
        return (yield from self._move_chosen(chosen, origins, may_go_on))

    def move_all(
        self, count: int | None, may_go_on: Callable[[], bool]
    ) -> Generator[None, None, Reply]:
        """Moves up to ``count`` letters, the oldest first, of those that have somewhere to go back
        to; returns how many. Gives way from time to time; when it may not go on then, it ends
        early, as what was moved so far is whole. Raises :class:`CommandError` if there is no such
        stream, or one that has other entries alone; one that is empty may be so because this is
        sent again after its reply was lost."""
        chosen: list[int] = []
        origins: dict[bytes, None] = {}
        last = self._last_id()
        start = ids.MIN
        while (found := self._portion(start, last))[1] and (count is None or len(chosen) < count):
            letters = found[0] if count is None else found[0][: count - len(chosen)]
            chosen += [each.id for each in letters]
            origins.update(dict.fromkeys(each.letter.stream for each in letters))
            start = found[1] + 1
            yield
        stream = self._stream()
        if not self._any and (stream is None or stream.log.length):
            raise CommandError(policy_errors.no_dead_letters(self._key))
        return (yield from self._move_chosen(chosen, origins, may_go_on))

    def _move_chosen(
        self, chosen: Sequence[int], origins: Iterable[bytes], may_go_on: Callable[[], bool]
    ) -> Generator[None, None, Reply]:
        """Moves the letters with these IDs that are still there, a portion at a time."""
        self._allow(origins)
        moved = 0
        for at in range(0, len(chosen), _PORTION):
            if at and not may_go_on():
                break
            moved += self._move(self._still_there(chosen[at : at + _PORTION]))
            yield
        return moved

    def _stream(self) -> Stream | None:
        value = self._db.get(self._key)
        return value if isinstance(value, Stream) else None

    def _last_id(self) -> int:
        stream = self._db.stream(self._key)
        return 0 if stream is None else stream.last_id

    def _portion(self, start: int, last: int) -> tuple[list[FoundLetter], int]:
        """The letters among the next entries that have somewhere to go back to, and the ID of the
        last of these entries; 0 if there are no more."""
        stream = self._stream()
        if stream is None:
            return [], 0
        entry_ids, payloads = stream.log.range_with_ids(start, last, _PORTION)
        return self._letters(entry_ids, payloads), entry_ids[-1] if entry_ids else 0

    def _letters(
        self, entry_ids: Sequence[int], payloads: Sequence[bytes | None]
    ) -> list[FoundLetter]:
        """Returns those of the entries that are dead letters and have somewhere to go back to."""
        letters = [
            (entry_id, letter)
            for entry_id, payload in zip(entry_ids, payloads, strict=True)
            if payload is not None and (letter := read_letter(payload)) is not None
        ]
        self._any = self._any or len(letters) > 0
        found = [_with_origin(self._db, entry_id, letter) for entry_id, letter in letters]
        return [each for each in found if each is not None]

    def _still_there(self, entry_ids: Sequence[int]) -> list[FoundLetter]:
        """Returns those of the letters that can still be moved, as they are now."""
        stream = self._stream()
        if stream is None:
            return []
        return self._letters(entry_ids, [stream.log.get(each) for each in entry_ids])

    def _move(self, letters: list[FoundLetter]) -> int:
        """Moves them; returns how many. An entry that its stream still has is given back to the
        group (XNACK), with no delivery counted; otherwise it is added again. Raises
        :class:`CommandError` if a stream may not have enough IDs left; none is moved then."""
        db = self._db
        for found in letters:
            stream = found.origin.stream
            lost = found.letter.id not in stream.log
            if lost and ids.MAX - stream.last_id < len(letters):
                raise CommandError(errors.STREAM_EXHAUSTED)
        released: dict[Group, tuple[GroupRef, list[int]]] = {}
        for found in letters:
            letter, origin = found.letter, found.origin
            if letter.id not in origin.stream.log:
                add_entry(db, letter.stream, origin.stream, letter.items, 0)
            elif letter.id not in origin.group.pending:
                origin.group.pending.set(letter.id, None, 0, 0)
                released.setdefault(origin.group, (origin, []))[1].append(letter.id)
            self._note(origin)
        for origin, entry_ids in released.values():
            origin.emit_released(entry_ids, [0] * len(entry_ids))
        letters_stream = self._stream()
        if letters and letters_stream is not None:
            deleted = letters_stream.delete([found.id for found in letters])
            db.emit(EntriesDeleted(db.index, self._key, tuple(deleted), False))
        return len(letters)
