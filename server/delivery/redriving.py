"""Dead letters go back to where they came from (XGROUP REDRIVE)."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol import policy_errors
from protocol.errors import CommandError
from server.delivery.dead_letters import Letter, read_letter
from server.delivery.retention import add_entry
from storage import ids
from storage.effects import EntriesDeleted, Released
from storage.errors import StreamExhausted
from storage.groups import Group
from storage.keyspace import Database
from storage.stream import Stream

_PORTION: Final = 500


class Found(NamedTuple):
    """A dead letter, its ID, and the stream and the group that it goes back to."""

    id: int
    letter: Letter
    origin: Stream
    group: Group


def _origin(db: Database, letter: Letter) -> tuple[Stream, Group] | None:
    value = db.get(letter.stream)
    group = value.groups.get(letter.group) if isinstance(value, Stream) else None
    return (value, group) if isinstance(value, Stream) and group is not None else None


def one_letter(db: Database, key: bytes, stream: Stream | None, identity: int) -> Found:
    """The dead letter with this ID; raises :class:`CommandError` if there is none, or if it has
    nowhere to go back to."""
    payload = None if stream is None else stream.log.get(identity)
    letter = None if payload is None else read_letter(payload)
    text = ids.text(identity).decode()
    if letter is None:
        raise CommandError(policy_errors.not_a_dead_letter(text, key))
    origin = _origin(db, letter)
    if origin is None:
        raise CommandError(policy_errors.no_origin(text, letter.stream, letter.group))
    return Found(identity, letter, *origin)


def find_letters(db: Database, stream: Stream | None, count: int | None) -> list[Found]:
    """Up to ``count`` dead letters, the oldest first, that have somewhere to go back to."""
    found: list[Found] = []
    start = ids.MIN
    while stream is not None and (count is None or len(found) < count):
        identities, payloads = stream.log.range_with_ids(start, ids.MAX, _PORTION)
        if not identities:
            break
        start = identities[-1] + 1
        for identity, payload in zip(identities, payloads, strict=True):
            letter = read_letter(payload)
            origin = None if letter is None else _origin(db, letter)
            if letter is not None and origin is not None:
                found.append(Found(identity, letter, *origin))
    return found[:count]


class Redrive:
    """Moves dead letters of the stream at ``key``."""

    def __init__(self, db: Database, key: bytes) -> None:
        self._db = db
        self._key = key

    def move(self, letters: list[Found]) -> int:
        """Moves them; returns how many. An entry that its stream still has is given back to the
        group (XNACK), with no delivery counted; otherwise it is added anew. Raises
        :class:`StreamExhausted` if a stream may not have enough IDs left; nothing is moved then."""
        db = self._db
        for found in letters:
            lost = found.letter.id not in found.origin.log
            if lost and ids.MAX - found.origin.last_id < len(letters):
                raise StreamExhausted
        for found in letters:
            letter, origin = found.letter, found.origin
            if letter.id not in origin.log:
                add_entry(db, letter.stream, origin, letter.items, 0)
            elif letter.id not in found.group.pending:
                found.group.pending.set(letter.id, None, 0, 0)
                db.emit(Released(db.index, letter.stream, letter.group, (letter.id,), (0,)))
        moved = [found.id for found in letters]
        stream = db.stream(self._key)
        if moved and stream is not None:
            deleted = stream.delete(moved)
            db.emit(EntriesDeleted(db.index, self._key, tuple(deleted), False))
        return len(moved)
