"""XINFO: what a stream, its groups and its consumers look like from inside."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from protocol import errors
from protocol.encoder import array, bulk, encode, integer_line
from protocol.errors import CommandError
from protocol.replies import Bulk, Encoded, Map, Reply
from server.commands.declare import command, container, help_command
from server.commands.streams.entries import join_entries
from server.core.outcomes import Pieces, Steps, Work, write_each
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.pending import HIGHEST, NEVER, Columns, Consumer, PendingList, Segment
from storage.engine.stream import Stream, signed
from storage.keyspace.databases import Database

# --- XINFO STREAM ... FULL ---------------------------------------------------------------------


_CONSUMERS: Final = 50
"""How many consumers are."""

Fields = list[tuple[Reply, Reply]]
Rows = dict[Consumer, tuple[int, Pieces]]
"""The pending entries of each consumer that has any: their number, and how they are written."""


def full_form(stream: Stream, head: Fields, count: int, resp3: bool) -> Steps:
    """The reply: ``head``, then up to ``count`` entries and pending entries (0: all of them)."""
    entries = stream.log.hold(ids.MIN, ids.MAX, count or stream.log.length)
    groups = [_HeldGroup(stream, group, count) for group in stream.groups_in_order()]
    return Steps(_write(_Writer(resp3), head, entries, groups))


def entries_read(group: Group) -> int | None:
    """How many entries the group has read, as a reply shows it."""
    return None if group.entries_read is None else signed(group.entries_read)


class _Writer:
    """Gathers the pieces of the reply."""

    def __init__(self, resp3: bool) -> None:
        self._resp3 = resp3
        self.pieces: Pieces = []

    def begin_map(self, pairs: int) -> None:
        """A map of so many pairs begins."""
        self.pieces.append(b"%%%d\r\n" % pairs if self._resp3 else b"*%d\r\n" % (2 * pairs))

    def begin_array(self, name: str, count: int) -> None:
        """A pair of the map is this name and an array, whose elements follow."""
        self.pieces.append(bulk(name.encode()) + b"*%d\r\n" % count)

    def fold(self, start: int) -> int:
        """Joins the pieces from this place on; returns the place of the next one."""
        self.pieces[start:] = [b"".join(self.pieces[start:])]
        return start + 1

    def fields(self, fields: Fields) -> None:
        """Pairs of the map that has begun."""
        for name, value in fields:
            self.pieces.append(encode(name, self._resp3) + encode(value, self._resp3))


def _write(
    writer: _Writer,
    head: Fields,
    entries: tuple[int, Iterator[list[bytes]]],
    groups: list[_HeldGroup],
) -> Work:
    writer.begin_map(len(head) + 2)
    writer.fields(head)
    writer.begin_array("entries", entries[0])
    yield from join_entries(entries[1], writer.pieces)
    writer.begin_array("groups", len(groups))
    for group in groups:
        yield from group.write(writer)
    return writer.pieces


class _HeldGroup:
    """A group as it is now. ``few`` are its consumers' pending entries where only some of them are
    asked for; else they are found among those of the group."""

    def __init__(self, stream: Stream, group: Group, count: int) -> None:
        pending = group.pending
        self._head: Fields = [
            ("name", Bulk(group.name)),
            ("last-delivered-id", Bulk(ids.text(group.last_id))),
            ("entries-read", entries_read(group)),
            ("lag", stream.lag(group)),
            ("pel-count", len(pending)),
        ]
        self._tail: Fields = [("nacked-count", pending.unowned)]
        self._most = count or len(pending)
        consumers = _by_name(group)
        self._count, self._consumers = len(consumers), _held_consumers(consumers)
        picked = 0 < count * len(consumers) < len(pending)
        self._held, self._length = _held(pending, count if picked else len(pending))
        self._few = [_columns_of(group, each, count) for each in consumers] if picked else None

    def write(self, writer: _Writer) -> Generator[None, None, None]:
        """Writes the group out."""
        shown = min(self._most, self._length)
        writer.begin_map(len(self._head) + len(self._tail) + 2)
        writer.fields(self._head)
        writer.begin_array("pending", shown)
        rows: Rows = {}
        yield from self._write_pending(writer, rows)
        if self._few is not None:
            rows = {}
            for columns in self._few:
                _write_rows(columns, self._most, rows)
        writer.begin_array("consumers", self._count)
        start = len(writer.pieces)
        for at, held in enumerate(self._consumers, start=1):
            head = _consumer_head(held)
            count, pieces = rows.get(held[0], (0, []))
            writer.begin_map(len(head) + 1)
            writer.fields(head)
            writer.begin_array("pending", count)
            writer.pieces += pieces
            if at % _CONSUMERS == 0:
                start = writer.fold(start)
                yield
        writer.fields(self._tail)

    def _write_pending(self, writer: _Writer, rows: Rows) -> Generator[None, None, None]:
        done = 0
        for segment in self._held:
            places = segment.pending_places(0, len(segment), self._length - done)
            written = _write_rows(Columns([(segment, places)]), self._most, rows)
            if done < self._most:
                writer.pieces.append(b"".join(written[: self._most - done]))
            done += len(places)
            yield


def _held(pending: PendingList, most: int) -> tuple[list[Segment], int]:
    """The segments with up to ``most`` pending entries as they are now, and how many these are."""
    held: list[Segment] = []
    length = 0
    for segment in pending.segments:
        if length >= most:
            break
        held.append(segment.held())
        length += segment.live
    return held, min(length, most)


_HeldConsumer = tuple[Consumer, int, int, int]
"""A consumer, and at one moment how many pending entries it had, and when it was seen and active
last."""


def _by_name(group: Group) -> list[Consumer]:
    return sorted(group.consumers.values(), key=attrgetter("name"))


def _held_consumers(consumers: list[Consumer]) -> Iterator[_HeldConsumer]:
    """Return consumers as they are now; a tuple of each is only made when it is asked for, as to
    make very many at once takes long."""
    owned = [each.owned for each in consumers]
    seen = [each.seen for each in consumers]
    active = [each.active for each in consumers]
    return zip(consumers, owned, seen, active, strict=True)


def _consumer_head(held: _HeldConsumer) -> Fields:
    consumer, owned, seen, active = held
    return [
        ("name", Bulk(consumer.name)),
        ("seen-time", seen),
        ("active-time", active),
        ("pel-count", owned),
    ]


def _columns_of(group: Group, consumer: Consumer, count: int) -> Columns:
    """The first pending entries of a consumer."""
    return Columns(group.pending.spans_owned(consumer, ids.MIN, ids.MAX, HIGHEST, count))


def _write_rows(columns: Columns, most: int, rows: Rows) -> list[bytes]:
    """Pending entries as their group lists them; as their consumers do they are added to ``rows``,
    up to ``most`` for each."""
    written: list[bytes] = []
    own: dict[Consumer, list[bytes]] = {}
    for entry_id, owner, time, count in zip(
        columns.ids, columns.owners, columns.times, columns.counts, strict=True
    ):
        text = bulk(ids.text(entry_id))
        name = b"" if owner is None else owner.name
        written.append(
            b"*4\r\n%b$%d\r\n%b\r\n:%d\r\n:%d\r\n" % (text, len(name), name, time, count)
        )
        if owner is not None:
            own.setdefault(owner, []).append(b"*3\r\n%b:%d\r\n:%d\r\n" % (text, time, count))
    for consumer, lines in own.items():
        number, pieces = rows.setdefault(consumer, (0, []))
        lines = lines[: most - number]
        pieces.append(b"".join(lines))
        rows[consumer] = (number + len(lines), pieces)
    return written


# --- XINFO -------------------------------------------------------------------------------------


container(
    "XINFO",
    since="5.0.0",
    summary="Shows streams, consumer groups and consumers from inside.",
)

_DEFAULT_FULL_COUNT: Final = 10


def _stream_of(db: Database, key: bytes) -> Stream:
    stream = db.stream_to_read(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def _id(entry_id: int) -> Bulk:
    return Bulk(ids.text(entry_id))


def _head(stream: Stream, due_ms: int) -> Fields:
    """The fields that the short and the full form share."""
    table = stream.idempotency
    table.forget_old(due_ms)
    return [
        ("length", stream.log.length),
        ("radix-tree-keys", stream.log.block_count),
        ("radix-tree-nodes", stream.tree_nodes),
        ("last-generated-id", _id(stream.last_id)),
        ("max-deleted-entry-id", _id(stream.max_deleted_id)),
        ("entries-added", signed(stream.entries_added)),
        ("recorded-first-entry-id", _id(stream.log.first)),
        ("idmp-duration", table.duration),
        ("idmp-maxsize", table.maxsize),
        ("pids-tracked", table.producers),
        ("iids-tracked", table.tracked),
        ("iids-added", table.added),
        ("iids-duplicates", table.duplicates),
    ]


@command(
    "XINFO STREAM",
    flags="readonly",
    since="5.0.0",
    summary="Shows a stream: its counters, and with FULL its entries and groups.",
    syntax="key [FULL [COUNT count]]",
    keys=[KeySpec("RO access", index=2)],
    history=[
        ("6.0.0", "FULL."),
        ("7.0.0", "Fields for deleted and added entries, entries read and lag."),
        ("7.2.0", "active-time of consumers; seen-time means any attempt."),
        ("8.6.0", "Fields for idempotent producing."),
    ],
)
def xinfo_stream(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """A map of the stream's counters, with its first and last entry; with FULL its entries and
    groups."""
    stream = _stream_of(session.db, args[2])
    count = _full_count(args)
    fields = _head(stream, session.db.keyspace.due_ms)
    if count is None:
        return Map(fields + _edges(stream))
    return full_form(stream, fields, count, session.resp3)


def _full_count(args: Arguments) -> int | None:
    """COUNT of the full form (0: everything), ``None`` for the short form."""
    if len(args) == 3:
        return None
    if args[3].upper() != b"FULL" or len(args) not in (4, 6):
        raise CommandError(errors.bad_subcommand("xinfo", args[1]))
    if len(args) == 4:
        return _DEFAULT_FULL_COUNT
    if args[4].upper() != b"COUNT":
        raise CommandError(errors.bad_subcommand("xinfo", args[1]))
    count = integer(args[5])
    return count if count >= 0 else _DEFAULT_FULL_COUNT


def _edges(stream: Stream) -> Fields:
    log = stream.log
    first, last = log.get(log.first), log.get(log.last)
    return [
        ("groups", len(stream.groups)),
        ("first-entry", None if first is None else Encoded(first)),
        ("last-entry", None if last is None else Encoded(last)),
    ]


@command(
    "XINFO GROUPS",
    flags="readonly",
    since="5.0.0",
    summary="Lists the consumer groups of a stream.",
    syntax="key",
    keys=[KeySpec("RO access", index=2)],
    history=[("7.0.0", "entries-read and lag.")],
)
def xinfo_groups(server: Services, session: Session, args: Arguments) -> Reply:
    """A map for each group: consumers, pending entries, last-delivered-id and lag."""
    stream = _stream_of(session.db, args[2])
    groups = stream.groups_in_order()
    return array([_group_map(stream, group, session.resp3) for group in groups])


def _group_map(stream: Stream, group: Group, resp3: bool) -> bytes:
    """Writes the fields of a group at once, which takes a third of what a reply of values does."""
    last = ids.text(group.last_id)
    return (
        b"%b$4\r\nname\r\n$%d\r\n%b\r\n$9\r\nconsumers\r\n:%d\r\n$7\r\npending\r\n:%d\r\n"
        b"$17\r\nlast-delivered-id\r\n$%d\r\n%b\r\n$12\r\nentries-read\r\n%b$3\r\nlag\r\n%b"
    ) % (
        b"%6\r\n" if resp3 else b"*12\r\n",
        len(group.name),
        group.name,
        len(group.consumers),
        len(group.pending),
        len(last),
        last,
        _number(entries_read(group), resp3),
        _number(stream.lag(group), resp3),
    )


def _number(value: int | None, resp3: bool) -> bytes:
    return encode(None, resp3) if value is None else integer_line(value)


@command(
    "XINFO CONSUMERS",
    flags="readonly",
    since="5.0.0",
    summary="Lists the consumers of a group.",
    syntax="key group",
    keys=[KeySpec("RO access", index=2)],
    tips=["nondeterministic_output"],
    history=[("7.2.0", "inactive; idle means time since any attempt.")],
)
def xinfo_consumers(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """A map for each consumer: its pending entries, and the milliseconds since it last asked for
    some, and since it last got some."""
    stream = _stream_of(session.db, args[2])
    group = stream.groups.get(args[3])
    if group is None:
        raise CommandError(errors.no_group_for_key(args[3], args[2]))
    now, resp3, count = session.db.keyspace.now_ms, session.resp3, len(group.consumers)
    elements = map(partial(_consumer_map, now, resp3), _held_consumers(_by_name(group)))
    return write_each(b"*%d\r\n" % count, elements, count)


def _consumer_map(now: int, resp3: bool, held: _HeldConsumer) -> bytes:
    """Writes the fields of a consumer at once, as :func:`_group_map` does."""
    consumer, owned, seen, active = held
    return (
        b"%b$4\r\nname\r\n%b$7\r\npending\r\n:%d\r\n$4\r\nidle\r\n:%d\r\n$8\r\ninactive\r\n:%d\r\n"
        % (
            b"%4\r\n" if resp3 else b"*8\r\n",
            bulk(consumer.name),
            owned,
            max(0, now - seen),
            NEVER if active == NEVER else max(0, now - active),
        )
    )


_HELP: Final = """\
CONSUMERS <key> <groupname>
    Show consumers of <groupname>.
GROUPS <key>
    Show the stream consumer groups.
STREAM <key> [FULL [COUNT <count>]
    Show information about the stream.
"""

help_command("XINFO", since="5.0.0", text=_HELP)
