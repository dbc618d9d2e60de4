"""Dead letters go back to where they came from (XGROUP REDRIVE)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.delivery import errors as policy_errors
from server.delivery.dead_letters import Letter, read_letter
from server.delivery.retention import add_entry
from storage.engine import ids
from storage.engine.effects import EntriesDeleted, Released
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

_PORTION: Final = 100
"""How many letters are moved before others may be answered."""


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


def _find(db: Database, identity: int, payload: bytes) -> Found | None:
    """What this entry is as a dead letter; ``None`` if it is none or has no origin any more."""
    letter = read_letter(payload)
    origin = None if letter is None else _origin(db, letter)
    return None if letter is None or origin is None else Found(identity, letter, *origin)


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


class Redrive:
    """Moves dead letters of the stream at ``key``.

    ``allow`` is called with the streams that they come from, before anything is moved, and raises
    :class:`CommandError` if the client may not add to one of them."""

    def __init__(self, db: Database, key: bytes, allow: Callable[[Iterable[bytes]], None]) -> None:
        self._db = db
        self._key = key
        self._allow = allow

    def move_these(self, identities: Sequence[int], count: int | None) -> int:
        """Moves the first ``count`` of the letters with these IDs; returns how many. Raises
        :class:`CommandError` if one of the IDs is of no letter, or of one that has nowhere to go
        back to; nothing is moved then."""
        stream = self._db.stream(self._key)
        letters = [one_letter(self._db, self._key, stream, each) for each in identities][:count]
        self._allow(dict.fromkeys(each.letter.stream for each in letters))
        return self._move(letters)

    def move_all(
        self, count: int | None, may_go_on: Callable[[], bool]
    ) -> Generator[None, None, Reply]:
        """Moves up to ``count`` letters, the oldest first, of those that have somewhere to go back
        to; returns how many. Gives way from time to time; when it may not go on then, it ends
        early, as what was moved so far is whole."""
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

    def _portion(self, start: int, last: int) -> tuple[list[Found], int]:
        """The letters among the next entries that have somewhere to go back to, and the ID of the
        last of these entries; 0 if there are no more."""
        stream = self._stream()
        if stream is None:
            return [], 0
        identities, payloads = stream.log.range_with_ids(start, last, _PORTION)
        found = [
            letter
            for identity, payload in zip(identities, payloads, strict=True)
            if (letter := _find(self._db, identity, payload)) is not None
        ]
        return found, identities[-1] if identities else 0

    def _still_there(self, identities: Sequence[int]) -> list[Found]:
        """Those of the letters that can still be moved, as they are now."""
        stream = self._stream()
        if stream is None:
            return []
        entries = [(each, stream.log.get(each)) for each in identities]
        found = [_find(self._db, each, payload) for each, payload in entries if payload is not None]
        return [each for each in found if each is not None]

    def _move(self, letters: list[Found]) -> int:
        """Moves them; returns how many. An entry that its stream still has is given back to the
        group (XNACK), with no delivery counted; otherwise it is added anew. Raises
        :class:`CommandError` if a stream may not have enough IDs left; none is moved then."""
        db = self._db
        for found in letters:
            lost = found.letter.id not in found.origin.log
            if lost and ids.MAX - found.origin.last_id < len(letters):
                raise CommandError(errors.STREAM_EXHAUSTED)
        for found in letters:
            letter, origin = found.letter, found.origin
            if letter.id not in origin.log:
                add_entry(db, letter.stream, origin, letter.items, 0)
            elif letter.id not in found.group.pending:
                found.group.pending.set(letter.id, None, 0, 0)
                db.emit(Released(db.index, letter.stream, letter.group, (letter.id,), (0,)))
        stream = self._stream()
        if letters and stream is not None:
            deleted = stream.delete([found.id for found in letters])
            db.emit(EntriesDeleted(db.index, self._key, tuple(deleted), False))
        return len(letters)
