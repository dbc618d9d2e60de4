"""XGROUP, XACK and XACKDEL: making groups, and acknowledging entries."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Reply
from server.commands.declare import command, container, help_command
from server.commands.groups import errors as group_errors
from server.commands.groups.many import PORTION, portions
from server.commands.streams.streams import delete_by_policy, parse_ids_block
from server.core.outcomes import Steps, reply_of
from server.core.table import Arguments, KeySpec
from server.delivery.group_ref import GroupRef, add_group, find_group, group_of_key
from server.delivery.happenings import LEFT, MOVED
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import GroupDestroyed
from storage.engine.stream import Stream

container(
    "XGROUP",
    summary="Makes, changes and removes consumer groups and consumers.",
    since="5.0.0",
    flags="write",
)

UNKNOWN: Final = -1
"""ENTRIESREAD of a group of which nobody knows how many entries it has read."""

_MOST_TO_CREATE: Final = 8
_MOST_TO_SET: Final = 7


class _Position:
    """The options of XGROUP CREATE and SETID: ENTRIESREAD n, and MKSTREAM where it is allowed."""

    __slots__ = ("entries_read", "make")

    def __init__(self, args: Arguments, may_make: bool) -> None:
        self.make = False
        self.entries_read: int | None = None
        at = 5
        while at < len(args):
            word = args[at].upper()
            if word == b"MKSTREAM" and may_make:
                self.make = True
                at += 1
            elif word == b"ENTRIESREAD" and at + 1 < len(args):
                self.entries_read = _entries_read(args[at + 1])
                at += 2
            else:
                raise CommandError(errors.bad_subcommand("xgroup", args[1]))

    def capped(self, stream: Stream) -> int | None:
        """The counter as it is kept: no group has read more entries than were ever added."""
        if self.entries_read is None:
            return None
        return min(self.entries_read, stream.entries_added)


def _refuse_more_than(most: int, args: Arguments) -> None:
    """Options that are given twice: what else is wrong, with the key too, has been said before."""
    if len(args) > most:
        raise CommandError(errors.bad_subcommand("xgroup", args[1]))


def _entries_read(text: bytes) -> int | None:
    value = integer(text)
    if value < UNKNOWN:
        raise CommandError(group_errors.ENTRIESREAD_NEGATIVE)
    return None if value == UNKNOWN else value


@command(
    "XGROUP CREATE",
    flags="write denyoom",
    summary="Makes a consumer group.",
    syntax="key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
    keys=[KeySpec("RW insert", index=2)],
    history=[("7.0.0", "ENTRIESREAD.")],
)
def xgroup_create(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the error BUSYGROUP if there is such a group."""
    position = _Position(args, may_make=True)
    db, key, name, text = session.db, args[2], args[3], args[4]
    stream = db.stream(key)
    if stream is None and not position.make:
        raise CommandError(errors.GROUP_NEEDS_KEY)
    _refuse_more_than(_MOST_TO_CREATE, args)
    if text == b"$":
        last_id = ids.MIN if stream is None else stream.last_id
    else:
        last_id = ids.parse(text)
    if stream is None:
        stream = db.make_stream(key)
    elif name in stream.groups:
        raise CommandError(group_errors.GROUP_EXISTS)
    add_group(db, key, stream, name, last_id, position.capped(stream))
    return OK


@command(
    "XGROUP SETID",
    summary="Sets the last-delivered-id of a consumer group.",
    syntax="key group <id | $> [ENTRIESREAD entries-read]",
    keys=[KeySpec("RW update", index=2)],
    history=[("7.0.0", "ENTRIESREAD.")],
)
def xgroup_setid(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the error NOGROUP if there is no such group."""
    position = _Position(args, may_make=False)
    ref = group_of_key(session.db, args[2], args[3])
    _refuse_more_than(_MOST_TO_SET, args)
    stream, group = ref.stream, ref.group
    group.last_id = stream.last_id if args[4] == b"$" else ids.parse_bound(args[4])
    group.entries_read = position.capped(stream)
    ref.emit_position(explicit=True)
    server.policies.happenings.note(ref.happening(MOVED, session.user))
    return OK


@command(
    "XGROUP DESTROY",
    summary="Removes a consumer group with its consumers and pending entries.",
    complexity="O(N) for N pending entries.",
    syntax="key group",
    keys=[KeySpec("RW delete", index=2)],
)
def xgroup_destroy(server: Services, session: Session, args: Arguments) -> Reply:
    """1, or 0 if there was no such group."""
    db = session.db
    stream = db.stream(args[2])
    if stream is None:
        raise CommandError(errors.GROUP_NEEDS_KEY)
    if not stream.drop_group(args[3]):
        return 0
    db.emit(GroupDestroyed(db.index, args[2], args[3]))
    return 1


@command(
    "XGROUP CREATECONSUMER",
    flags="write denyoom",
    since="6.2.0",
    summary="Makes a consumer in a group.",
    syntax="key group consumer",
    keys=[KeySpec("RW insert", index=2)],
)
def xgroup_createconsumer(server: Services, session: Session, args: Arguments) -> Reply:
    """1, or 0 if it was there."""
    ref = group_of_key(session.db, args[2], args[3])
    if args[4] in ref.group.consumers:
        return 0
    ref.consumer(args[4])
    return 1


@command(
    "XGROUP DELCONSUMER",
    summary="Removes a consumer of a group with its pending entries.",
    complexity="O(N) for N pending entries of the consumer.",
    syntax="key group consumer",
    keys=[KeySpec("RW delete", index=2)],
)
def xgroup_delconsumer(server: Services, session: Session, args: Arguments) -> Reply:
    """How many pending entries went with it."""
    ref = group_of_key(session.db, args[2], args[3])
    if args[4] not in ref.group.consumers:
        return 0
    server.policies.happenings.note(ref.happening(LEFT, session.user))
    return ref.remove_consumer(args[4])


_HELP: Final = """\
CREATE <key> <groupname> <id|$> [option]
    Create a new consumer group. Options are:
    * MKSTREAM
      Create the empty stream if it does not exist.
    * ENTRIESREAD entries_read
      Set the group's entries_read counter (internal use).
CREATECONSUMER <key> <groupname> <consumer>
    Create a new consumer in the specified group.
DELCONSUMER <key> <groupname> <consumer>
    Remove the specified consumer.
DESTROY <key> <groupname>
    Remove the specified group.
SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]
    Set the current group ID and entries_read counter.
"""

help_command("XGROUP", since="5.0.0", text=_HELP)


@command(
    "XACK",
    flags="write fast",
    since="5.0.0",
    summary="Acknowledges entries: they are no longer pending in the group.",
    complexity="O(1) for each ID.",
    syntax="key group id [id ...]",
    keys=[KeySpec("RW update")],
)
def xack(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many of the IDs were pending."""
    ref = find_group(session.db, args[1], args[2])
    if ref is None:
        return 0
    words = args[3:]
    wanted = ids.parse_all(words)
    if len(wanted) > PORTION and server.policies.deletes_acknowledged(ref):
        return reply_of(_acknowledge_in_steps(server, ref, wanted), session.resp3, long=True)
    return _acknowledge(server, ref, wanted, words)


def _acknowledge_in_steps(
    server: Services, ref: GroupRef, wanted: list[int]
) -> Generator[None, None, Reply]:
    """XACK where those go that every group has acknowledged (``delete acked``). Ends early where
    that may not go on after a step."""
    acknowledged = 0
    for now, some in portions(server, ref, wanted):
        acknowledged += _acknowledge(server, now, some)
        yield
    return acknowledged


def _acknowledge(
    server: Services, ref: GroupRef, wanted: list[int], words: Sequence[bytes] = ()
) -> int:
    """Acknowledges entries, which the client has named by these words; returns how many were
    pending."""
    acknowledged = ref.group.acknowledge(wanted, counting=True)
    if acknowledged:
        ref.emit_acknowledged(acknowledged, words)
        if server.policies.active:
            server.policies.note_acknowledged(ref, acknowledged)
    return len(acknowledged)


@command(
    "XACKDEL",
    flags="write fast",
    since="8.2.0",
    summary="Acknowledges entries and removes them from the stream.",
    complexity="O(1) for each ID.",
    syntax="key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
    keys=[KeySpec("RW update delete")],
)
def xackdel(server: Services, session: Session, args: Arguments) -> Reply:
    """For each ID 1 (acknowledged and removed), 2 (acknowledged, but kept as another group needs
    it) or -1 (not pending)."""
    policy, wanted = parse_ids_block(args, 3)
    ref = find_group(session.db, args[1], args[2])
    if ref is None:
        return [-1] * len(wanted)
    replies: list[Reply] = []
    for entry_id in wanted:
        if not ref.group.acknowledge([entry_id], counting=True):
            replies.append(-1)
            continue
        ref.emit_acknowledged([entry_id])
        kept = delete_by_policy(ref.db, ref.key, ref.stream, entry_id, policy) == 2
        replies.append(2 if kept else 1)
    return replies
