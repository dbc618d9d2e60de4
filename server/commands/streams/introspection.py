# Compiled by mypyc.
"""XINFO: what a stream, its groups and its consumers look like from inside."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Bulk, Encoded, Map, Reply
from server.commands.declare import command, container, help_command
from server.commands.streams.full_form import entries_read, full_form
from server.road.outcomes import Steps
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from storage.engine import ids
from storage.engine.pending import NEVER, Consumer
from storage.engine.stream import Stream, signed
from storage.keyspace.databases import Database

container(
    "XINFO",
    since="5.0.0",
    summary="Shows streams, consumer groups and consumers from inside.",
)

Fields = list[tuple[Reply, Reply]]

_DEFAULT_FULL_COUNT: Final = 10


def _stream_of(db: Database, key: bytes) -> Stream:
    stream = db.stream_to_read(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    return stream


def _id(identity: int) -> Bulk:
    return Bulk(ids.text(identity))


def _head(stream: Stream, now: int) -> Fields:
    """The fields that the short and the full form share."""
    table = stream.idempotency
    table.forget_old(now)
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
    """XINFO STREAM key [FULL [COUNT n]]: the stream's fields."""
    stream = _stream_of(session.db, args[2])
    count = _full_count(args)
    fields = _head(stream, session.db.keyspace.now_ms)
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
    """XINFO GROUPS key: the fields of each group."""
    stream = _stream_of(session.db, args[2])
    return [
        Map(
            [
                ("name", Bulk(group.name)),
                ("consumers", len(group.consumers)),
                ("pending", len(group.pending)),
                ("last-delivered-id", _id(group.last_id)),
                ("entries-read", entries_read(group)),
                ("lag", stream.lag(group)),
            ]
        )
        for group in stream.groups_in_order()
    ]


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
def xinfo_consumers(server: Services, session: Session, args: Arguments) -> Reply:
    """XINFO CONSUMERS key group: the fields of each consumer."""
    stream = _stream_of(session.db, args[2])
    group = stream.groups.get(args[3])
    if group is None:
        raise CommandError(errors.no_group_for_key(args[3], args[2]))
    now = session.db.keyspace.now_ms
    return [Map(_consumer(group.consumers[name], now)) for name in sorted(group.consumers)]


def _consumer(consumer: Consumer, now: int) -> Fields:
    inactive = NEVER if consumer.active == NEVER else max(0, now - consumer.active)
    return [
        ("name", Bulk(consumer.name)),
        ("pending", consumer.owned),
        ("idle", max(0, now - consumer.seen)),
        ("inactive", inactive),
    ]


_HELP: Final = """\
CONSUMERS <key> <groupname>
    Show consumers of <groupname>.
GROUPS <key>
    Show the stream consumer groups.
STREAM <key> [FULL [COUNT <count>]
    Show information about the stream.
"""

help_command("XINFO", since="5.0.0", text=_HELP)
