"""The commands on a stream's entries but XADD, XTRIM and XREAD: deleting, ranges, positions."""

from __future__ import annotations

from protocol import errors
from protocol.encoder import array, array_of
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NULL_ARRAY, OK, Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.commands.streams.entries import MANY, joined
from server.commands.streams.trimming import POLICIES, acknowledge_everywhere
from server.core.outcomes import Steps
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import EntriesDeleted, StreamPositionSet
from storage.engine.stream import Stream
from storage.engine.trimming import ACKED, DELREF, KEEPREF
from storage.keyspace.databases import Database


@command(
    "XDEL",
    flags="write fast",
    since="5.0.0",
    summary="Removes single entries of a stream by ID.",
    complexity="O(1) for each entry, whatever the length of the stream.",
    syntax="key id [id ...]",
    keys=[KeySpec("RW delete")],
)
def xdel(server: Services, session: Session, args: Arguments) -> Reply:
    """How many entries were removed."""
    stream = session.db.stream(args[1])
    if stream is None:
        return 0
    wanted = ids.parse_all(args[2:])
    return len(_delete(session.db, args[1], stream, wanted))


def _delete(db: Database, key: bytes, stream: Stream, wanted: list[int]) -> list[int]:
    deleted = stream.delete(wanted)
    if deleted:
        db.emit(EntriesDeleted(db.index, key, tuple(deleted), False))
    return deleted


def parse_ids_block(args: Arguments, at: int) -> tuple[str, list[int]]:
    """The policy and the IDs of ``[KEEPREF | DELREF | ACKED] IDS numids id [id ...]``.

    Raises :class:`CommandError`, or :class:`InvalidID`.
    """
    policy: str | None = None
    texts: list[bytes] | None = None
    while at < len(args):
        word = args[at].upper()
        if word in POLICIES and policy is None:
            policy = POLICIES[word]
            at += 1
        elif word == b"IDS" and texts is None and at + 1 < len(args):
            count = integer(args[at + 1], stream_errors.NUMIDS_NOT_POSITIVE)
            if count <= 0:
                raise CommandError(stream_errors.NUMIDS_NOT_POSITIVE)
            if count > len(args) - at - 2:
                raise CommandError(stream_errors.NUMIDS_MISMATCH)
            texts = args[at + 2 : at + 2 + count]
            at += 2 + count
        else:
            raise CommandError(errors.SYNTAX)
    assert texts is not None, "there are more words than one policy can be"
    return policy or KEEPREF, ids.parse_all(texts)


def delete_by_policy(db: Database, key: bytes, stream: Stream, entry_id: int, policy: str) -> int:
    """Deletes one entry; 1 if it went, 2 if ACKED keeps it, -1 if the stream does not have it."""
    if policy == DELREF:
        acknowledge_everywhere(db, key, stream.drop_references([entry_id]))
    if stream.log.get(entry_id) is None:
        return -1
    if policy == ACKED and stream.is_referenced(entry_id):
        return 2
    _delete(db, key, stream, [entry_id])
    return 1


@command(
    "XDELEX",
    flags="write fast",
    since="8.2.0",
    summary="Removes single entries by ID, with a say in what becomes of pending references.",
    complexity="O(1) for each entry, whatever the length of the stream.",
    syntax="key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
    keys=[KeySpec("RW delete")],
)
def xdelex(server: Services, session: Session, args: Arguments) -> Reply:
    """For each ID 1 (removed), 2 (kept, as a group still needs it) or -1 (no such entry)."""
    policy, wanted = parse_ids_block(args, 2)
    db, key = session.db, args[1]
    stream = db.stream(key)
    if stream is None:
        return [-1] * len(wanted)
    return [delete_by_policy(db, key, stream, entry_id, policy) for entry_id in wanted]


@command(
    "XLEN",
    flags="readonly fast",
    since="5.0.0",
    summary="Tells how many entries a stream has.",
    syntax="key",
    keys=[KeySpec("RO")],
)
def xlen(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of entries; 0 for no key."""
    stream = session.db.stream_to_read(args[1])
    return 0 if stream is None else stream.log.length


def _range(session: Session, args: Arguments, low: int, high: int) -> Reply | Steps:
    """XRANGE and XREVRANGE; ``low`` and ``high`` say where the bounds stand."""
    start, end = ids.parse_start(args[low]), ids.parse_end(args[high])
    count = _count_option(args)
    stream = session.db.stream_to_read(args[1])
    if stream is None:
        return EMPTY_ARRAY
    if count is not None and count <= 0:
        return NULL_ARRAY
    most = stream.log.length if count is None else count
    if min(most, stream.log.length) < MANY:
        if low < high:
            number, chunks = stream.log.chunks(start, end, most)
            return array_of(number, chunks)
        return array(stream.log.reverse(start, end, most))
    hold = stream.log.hold if low < high else stream.log.hold_reverse
    return joined([(b"", *hold(start, end, most))])


def _count_option(args: Arguments) -> int | None:
    count: int | None = None
    for at in range(4, len(args), 2):
        if args[at].upper() != b"COUNT" or at + 1 == len(args):
            raise CommandError(errors.SYNTAX)
        count = integer(args[at + 1])
    return count


@command(
    "XRANGE",
    flags="readonly",
    since="5.0.0",
    summary="Returns the entries between two IDs, oldest first.",
    complexity="O(N) for N entries returned.",
    syntax="key start end [COUNT count]",
    keys=[KeySpec("RO access")],
    history=[("6.2.0", "Bounds that exclude their ID.")],
)
def xrange(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """The entries, ascending: of each its ID, and its fields and values in turn."""
    return _range(session, args, 2, 3)


@command(
    "XREVRANGE",
    flags="readonly",
    since="5.0.0",
    summary="Returns the entries between two IDs, newest first.",
    complexity="O(N) for N entries returned.",
    syntax="key end start [COUNT count]",
    keys=[KeySpec("RO access")],
    history=[("6.2.0", "Bounds that exclude their ID.")],
)
def xrevrange(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """The entries, descending: of each its ID, and its fields and values in turn."""
    return _range(session, args, 3, 2)


def _position_options(args: Arguments, entry_id: int) -> tuple[int | None, int]:
    """ENTRIESADDED and MAXDELETEDID of XSETID."""
    added: int | None = None
    deleted = ids.MIN
    for at in range(3, len(args), 2):
        word = args[at].upper()
        if word not in (b"ENTRIESADDED", b"MAXDELETEDID") or at + 1 == len(args):
            raise CommandError(errors.SYNTAX)
        if word == b"ENTRIESADDED":
            added = integer(args[at + 1])
            if added < 0:
                raise CommandError(stream_errors.ENTRIES_ADDED_NEGATIVE)
        else:
            deleted = ids.parse(args[at + 1])
            if deleted > entry_id:
                raise CommandError(stream_errors.XSETID_BELOW_GIVEN_DELETED)
    return added, deleted


@command(
    "XSETID",
    flags="write denyoom fast",
    since="5.0.0",
    summary="Sets a stream's last-generated-id and counters.",
    syntax="key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
    keys=[KeySpec("RW update")],
    history=[("7.0.0", "ENTRIESADDED and MAXDELETEDID.")],
)
def xsetid(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; an error if the last entry has a higher ID."""
    entry_id = ids.parse(args[2])
    added, deleted = _position_options(args, entry_id)
    db = session.db
    stream = db.stream(args[1])
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if entry_id < stream.max_deleted_id:
        raise CommandError(stream_errors.XSETID_BELOW_DELETED)
    if stream.log.length and entry_id < stream.log.last:
        raise CommandError(stream_errors.XSETID_BELOW_TOP)
    if added is not None and added < stream.log.length:
        raise CommandError(stream_errors.XSETID_ADDED_BELOW_LENGTH)
    stream.last_id = entry_id
    if added is not None:
        stream.entries_added = added
    if deleted != ids.MIN:
        stream.max_deleted_id = deleted
    db.emit(
        StreamPositionSet(db.index, args[1], entry_id, stream.entries_added, stream.max_deleted_id)
    )
    return OK
