"""PENSTOCK: policies of streams and groups, and dead letters that are moved back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError, shown
from protocol.replies import OK, Bulk, Map, Reply
from server.commands.declare import command, container, help_command
from server.commands.groups.many import MANY, parse_ids
from server.config.policies import (
    ALL,
    DEAD_LETTER,
    GROUP,
    PAUSED,
    BadPolicy,
    Settings,
    check_together,
    read_settings,
)
from server.config.policy_lines import circle_text
from server.core.outcomes import Steps, reply_of
from server.core.table import Arguments, KeySpec
from server.delivery import errors as policy_errors
from server.delivery import happenings
from server.delivery.dead_letters import Redrive
from server.delivery.group_ref import GroupRef, group_of_key
from server.delivery.happenings import Happening
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine.stream import Stream

container(
    "PENSTOCK",
    summary="Policies of streams and groups, and what becomes of deliveries. Only Penstock has it.",
    since="0.1.0",
)


_GROUP: Final = b"GROUP"


class _Change(NamedTuple):
    """A change that SET or DEL ask for: policies to set, or names of others that go."""

    set: Settings
    delete: list[bytes]


class _PolicyArguments:
    """The arguments of PENSTOCK POLICY: ``key``, the ``group`` if one is named, and ``rest``."""

    __slots__ = ("group", "key", "rest", "word")

    def __init__(self, args: Arguments) -> None:
        self.word, self.key, self.rest = args[2].upper(), args[3], args[4:]
        self.group: bytes | None = None
        if self.rest and self.rest[0].upper() == _GROUP:
            if len(self.rest) == 1:
                raise CommandError(policy_errors.POLICY_SYNTAX)
            self.group, self.rest = self.rest[1], self.rest[2:]

    def change(self, server: Services, session: Session) -> _Change | None:
        """Return the change that is asked for, ``None`` for GET; raises :class:`CommandError`."""
        word, rest = self.word, self.rest
        if word == b"GET" and not rest:
            return None
        if word == b"SET" and rest and len(rest) % 2 == 0:
            settings = read_settings(rest, ALL if self.group is None else GROUP)
            _require_adding(server, session, [settings.get(DEAD_LETTER.name, b"")])
            return _Change(settings, [])
        if word == b"DEL" and rest:
            names = [name.lower() for name in rest]
            for name in names:
                if name not in ALL:
                    raise BadPolicy(f"unknown policy '{shown(name)}'")
            return _Change({}, names)
        raise CommandError(policy_errors.POLICY_SYNTAX)


def _require_adding(server: Services, session: Session, keys: Iterable[bytes]) -> None:
    """Raises :class:`CommandError` if the client's user may not add to these streams: a policy or a
    letter that names one gives no right to it. Empty names are of no stream."""
    for key in filter(None, keys):
        server.access.require(session, [b"XADD", key, b"*", b"field", b"value"])


def _apply(
    server: Services,
    session: Session,
    key: bytes,
    stream: Stream,
    ref: GroupRef | None,
    change: _Change,
) -> Reply:
    """Changes the policies of the stream, or of its group if one is given, if those in force then
    go together."""
    db = session.db
    group = None if ref is None else ref.group
    own = (stream if group is None else group).policy
    gone = {name for name in change.delete if name in own}
    changed = {name: value for name, value in own.items() if name not in gone} | change.set
    if ref is None:
        check_together(_of_stream(server, key, stream, changed))
    else:
        check_together(server.policies.settings_of_group(ref, changed))
    target = changed.get(DEAD_LETTER.name)
    way = server.policies.circle_of(db, key, target) if target else []
    if way:
        raise BadPolicy(circle_text(way))
    if changed != own:
        server.policies.active = True
        db.set_policy(key, group, changed)
        _note_pause(server, session, key, b"" if group is None else group.name, own, changed)
    return OK if change.set else len(gone)


def _note_pause(
    server: Services, session: Session, key: bytes, group: bytes, before: Settings, after: Settings
) -> None:
    """Notes who has paused the group, or lets it go on."""
    paused, db = PAUSED.is_on(after), session.db
    if paused != PAUSED.is_on(before):
        kind = happenings.PAUSED if paused else happenings.RESUMED
        now = db.keyspace.now_ms
        happened = Happening(now, kind, db.index, key, group, session.user)
        server.policies.happenings.note(happened)


def _of_stream(server: Services, key: bytes, stream: Stream, own: Settings) -> Settings:
    """Returns the policies of a stream with these of its own, those for all its groups among
    them."""
    shared = {name: value for name, value in own.items() if name in GROUP}
    return {**server.policies.settings_of_stream(key, stream, own), **shared}


def _shown(settings: Settings) -> Reply:
    return Map([(Bulk(name), Bulk(settings[name])) for name in sorted(settings)])


@command(
    "PENSTOCK POLICY",
    flags="write denyoom",
    summary="Shows and changes the policies of a stream, or of a consumer group.",
    syntax="<SET key [GROUP group] name value [name value ...] | GET key [GROUP group]"
    " | DEL key [GROUP group] name [name ...]>",
    keys=[KeySpec("RW update", index=3)],
)
def policy(server: Services, session: Session, args: Arguments) -> Reply:
    """OK to SET, a map of the policies in force to GET, how many went to DEL."""
    given = _PolicyArguments(args)
    change = given.change(server, session)
    db, key, ref = session.db, given.key, None
    stream = db.stream(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if given.group is not None:
        ref = group_of_key(db, key, given.group)
    if change is not None:
        return _apply(server, session, key, stream, ref, change)
    if ref is not None:
        return _shown(server.policies.settings_of_group(ref))
    return _shown(_of_stream(server, key, stream, stream.policy))


help_command("PENSTOCK", since="0.1.0")


# --- dead letters ----------------------------------------------------------------------------

_COUNT: Final = b"COUNT"


@command(
    "PENSTOCK REDRIVE",
    flags="write denyoom",
    summary="Moves dead letters back to the groups that they come from.",
    complexity="O(N) for N entries of the stream of dead letters.",
    syntax="key [COUNT count] [id [id ...]]",
    keys=[KeySpec("RW update delete", index=2)],
)
def redrive(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """How many dead letters were moved back."""
    count: int | None = None
    texts = args[3:]
    if texts and texts[0].upper() == _COUNT:
        if len(texts) == 1:
            raise CommandError(policy_errors.REDRIVE_SYNTAX)
        count = integer(texts[1])
        texts = texts[2:]
        if count <= 0:
            raise CommandError(policy_errors.COUNT_NOT_POSITIVE)
    db, key = session.db, args[2]
    letters = Redrive(
        db,
        key,
        lambda streams: _require_adding(server, session, streams),
        lambda ref: server.policies.happenings.note(
            ref.happening(happenings.REDRIVEN, session.user)
        ),
    )
    may_go_on = server.due_work.going_on()
    if texts:
        many, work = len(texts), _move_these(letters, texts, count, may_go_on)
    else:
        stream = db.stream(key)
        many = 0 if stream is None else stream.log.length
        work = letters.move_all(count, may_go_on)
    return reply_of(work, session.resp3, long=many > MANY)


def _move_these(
    letters: Redrive, texts: list[bytes], count: int | None, may_go_on: Callable[[], bool]
) -> Generator[None, None, Reply]:
    """Moves back the letters with these IDs, each of them once."""
    wanted = list(dict.fromkeys((yield from parse_ids(texts))))
    return (yield from letters.move_these(wanted, count, may_go_on))
