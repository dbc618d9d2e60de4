"""The policies of all streams and groups of a server: which are in force, and what is due when.

**The idea.** What a policy does is done where it matters: by XREADGROUP and XACK, by the commands
that claim, and at times that come by themselves (:mod:`server.delivery.due_work`). All of it is
ordinary effects, so the file and replicas need not know of policies, and a crash at any point
leaves a state from which the same rules go on. Policies themselves are values of the stream and the
group; the lines of the settings are added when they are used. Nothing is looked at while nobody has
any (``active``).

**Following.** :class:`~server.dispatch.reactions.Reactions` shows every effect to :meth:`follow`,
which keeps the index of each group up to date (:mod:`server.delivery.agenda`), notes when a stream
has something to do, and wakes readers that may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from server.clients.blocking import BlockedClients
from server.config import policy_lines
from server.config.policies import (
    AUTO_GROUP,
    DEAD_LETTER,
    GROUP,
    STREAM,
    GroupRules,
    Settings,
    StreamRules,
)
from server.config.policy_lines import PolicyLine
from server.core.table import Arguments
from server.delivery import retention
from server.delivery.agenda import Agenda
from server.delivery.due_times import DueTimes
from server.delivery.group_ref import (
    GroupRef,
    RuledGroup,
    add_group,
    find_group,
    group_of_value,
)
from server.delivery.happenings import Happenings
from server.delivery.retention import AGE_STEP_MS, NEVER, StreamAgenda, Tally
from server.state.server_state import ServerState
from server.state.session import Session
from storage.engine import effects as e
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

_MOST_STRAIGHT: Final = 10_000
"""Of how many streams it is known at most that their dead letters do not come back."""


class _Known:
    """The knowledge of the policies of a stream: ``agenda`` if it has any, and of the groups that
    were looked at those that have some, and those that have none.

    It holds for a ``version`` of all policies. What is known of a group has a version of its own.
    """

    __slots__ = ("agenda", "groups", "stream", "version")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.version = -1
        self.agenda: StreamAgenda | None = None
        self.groups: dict[bytes, _KnownGroup] = {}


class _KnownGroup:
    """The knowledge of a group: ``ruled`` if it has policies."""

    __slots__ = ("group", "ruled", "version")

    def __init__(self, group: Group, version: int, ruled: RuledGroup | None) -> None:
        self.group = group
        self.version = version
        self.ruled = ruled


class PolicyState:
    """Finds the policies that are in force, follows effects, and notes when something is due.

    ``when_due`` is called then; ``require`` raises :class:`.CommandError` for a request that the
    user of a client may not run.
    """

    def __init__(self, state: ServerState, blocking: BlockedClients) -> None:
        self._state = state
        self._blocking = blocking
        self._version = 0
        self._lines: tuple[PolicyLine, ...] = ()
        self.active = False
        """Whether any stream or group may have policies."""
        self.seed = int(state.instance.id, 16)
        """What is at random in policies follows from it, and from what it is asked for."""
        self._known: dict[int, dict[bytes, _Known]] = {}
        """The streams that were looked at while any had policies, by database and key."""
        self._straight: set[tuple[int, bytes, bytes]] = set()
        """The streams whose dead letters are known not to come back, each with its database and
        where they go: until some others are somewhere, or policies are."""
        self.tally = Tally()
        self.happenings = Happenings()
        """What happened lately to groups, with policies or without."""
        self.due = DueTimes(state.timekeeper, lambda: self.when_due())
        self.when_due: Callable[[], object] = lambda: None
        self.require: Callable[[Session, Arguments], None] = lambda session, request: None
        self._followers: Final[dict[type, Callable[[Any], None]]] = {
            e.EntryAdded: lambda effect: self._follow_added(effect, effect.id),
            e.EntriesAdded: lambda effect: self._follow_added(effect, effect.run.first),
            e.StreamCreated: lambda effect: self._look_at(effect.db, effect.key),
            e.GroupCreated: self._follow_created,
            e.StreamRestored: lambda effect: self._look_at(effect.db, effect.key),
            e.StreamPutBack: lambda effect: self._look_at(effect.db, effect.key),
            e.Changed: lambda effect: self._forget_gone(effect.db, effect.keys),
            e.Flushed: lambda effect: self._forget_all_gone(),
            e.GroupDestroyed: self._follow_destroyed,
            e.KeyRenamed: self._follow_renamed,
            e.KeyCopied: lambda effect: self._look_at(effect.target_db, effect.target),
            e.KeyMoved: self._follow_moved,
            e.Swapped: self._follow_swapped,
            e.PolicySet: self._follow_policy,
            e.GroupPositionSet: self._follow_position,
            e.StreamPositionSet: lambda effect: self._rank_again(effect.db, effect.key),
            e.Delivered: self._in_group(self._follow_delivered),
            e.Redelivered: self._in_group(self._follow_redelivered),
            e.Released: self._in_group(self._follow_released),
            e.KeptBack: self._in_group(self._follow_kept_back),
            e.Acknowledged: self._follow_acknowledged,
            e.ConsumerCreated: self._in_group(self._follow_consumer),
            e.ConsumerDeleted: self._in_group(self._follow_consumer_deleted),
        }
        self._free = self._in_group(self._follow_freed)
        state.config.listen("stream-policy", self._configure)

    def _configure(self, lines: tuple[PolicyLine, ...]) -> None:
        self._lines = lines
        self.reload()

    def reload(self) -> None:
        """Other policies may be in force, or other data is there: looks at all streams."""
        keyspace = self._state.keyspace
        self._version += 1
        self._straight.clear()
        self.active = bool(self._lines) or keyspace.policies
        self.due.forget()
        if not self.active:
            self._known.clear()
            return
        self._forget_all_gone()
        for database in keyspace.databases:
            for key, value in database.values.items():
                if isinstance(value, Stream):
                    self.note(database, key, value)

    @property
    def now(self) -> int:
        """The server's time, where no command is running."""
        return self._state.clock()

    # --- which are in force ---------------------------------------------------------------

    def settings_of_stream(
        self, key: bytes, stream: Stream, own: Settings | None = None
    ) -> Settings:
        """The policies of a stream, by name: its own, else what a line of the settings says. With
        ``own`` those that it would have with these of its own."""
        mine = stream.policy if own is None else own
        of_stream = {name: value for name, value in mine.items() if name in STREAM}
        return {**policy_lines.settings_of_stream(self._lines, key), **of_stream}

    def settings_of_group(self, ref: GroupRef, own: Settings | None = None) -> Settings:
        """The policies of a group: its own, else those of the stream for all groups, else what a
        line of the settings says. With ``own`` those that it would have with these of its own."""
        shared = {name: value for name, value in ref.stream.policy.items() if name in GROUP}
        lines = policy_lines.settings_of_group(self._lines, ref.key, ref.group.name)
        return {**lines, **shared, **(ref.group.policy if own is None else own)}

    def group_to_read(self, session: Session, key: bytes, name: bytes) -> GroupRef | None:
        """Return the group that a client reads as, with its policies if it has any. It is made if
        ``auto-group`` says so; ``None`` if there is none then. Raises :class:`.CommandError` if
        the user may make no groups there."""
        ref = find_group(session.db, key, name) or self._make_group(session, key, name)
        return None if ref is None else self.ruled(ref) or ref

    def ruled(self, ref: GroupRef) -> RuledGroup | None:
        """Return the group with its policies, ready for use; ``None`` if it has none."""
        ruled = self.followed(ref)
        if ruled is not None and ruled.agenda.is_unbegun:
            ruled.agenda.build(ref.group.pending, ref.stream.log)
        return ruled

    def followed(self, ref: GroupRef) -> RuledGroup | None:
        """Return the group as :meth:`ruled` does, where nothing is delivered: lanes may still be to
        be made. It takes no longer where very much is pending."""
        if not self.active:
            return None
        known = self._known_at(ref.db, ref.key, ref.stream)
        of_group = known.groups.get(ref.group.name)
        if of_group is None or of_group.version != self._version or of_group.group is not ref.group:
            of_group = self._resolve_group(known, ref, of_group)
        ruled = of_group.ruled
        if ruled is not None and ruled.agenda.stale:
            ruled.agenda.refresh(ref.group.pending, ref.stream.log)
        return ruled

    def known_as_ruled(self, ref: GroupRef) -> RuledGroup | None:
        """Return the group with the policies that it had when they were last looked at, ``None``
        without any. Nothing is looked at here: the group need not be there any more."""
        known = self._known_in(ref.db.index).get(ref.key)
        of_group = None if known is None else known.groups.get(ref.group.name)
        return None if of_group is None or of_group.group is not ref.group else of_group.ruled

    def _resolve_group(
        self, known: _Known, ref: GroupRef, former: _KnownGroup | None
    ) -> _KnownGroup:
        """Finds the policies of a group. The index is kept where they are as they were."""
        group, ruled = ref.group, None
        rules = GroupRules(self.settings_of_group(ref), ref.key, self.seed)
        if rules.anything:
            agenda = Agenda(rules)
            if former is not None and former.group is group and former.ruled is not None:
                had = former.ruled.agenda
                agenda = had if had.rules.settings == rules.settings else agenda
            ruled = RuledGroup(
                ref, agenda, known.agenda, self.tally, self.happenings, self.circle_of
            )
        of_group = known.groups[group.name] = _KnownGroup(group, self._version, ruled)
        return of_group

    def of_stream(self, db: Database, key: bytes, stream: Stream) -> StreamAgenda | None:
        """Return what is kept of a stream with policies; ``None`` without any."""
        return self._known_at(db, key, stream).agenda

    def _known_at(self, db: Database, key: bytes, stream: Stream) -> _Known:
        of_database = self._known_in(db.index)
        known = of_database.get(key)
        if known is None or known.stream is not stream:
            known = of_database[key] = _Known(stream)
        if known.version != self._version:
            known.version = self._version
            known.agenda = self._resolve_stream(key, stream, known.agenda)
        return known

    def _resolve_stream(
        self, key: bytes, stream: Stream, former: StreamAgenda | None
    ) -> StreamAgenda | None:
        settings = self.settings_of_stream(key, stream)
        to_make = [
            (name, start)
            for name in policy_lines.groups_to_make(self._lines, key)
            if (start := self._start_of(key, stream, name)) is not None
        ]
        if not settings and not to_make:
            return None
        if former is not None and former.rules.settings == settings:
            former.groups_to_make = to_make
            return former
        return StreamAgenda(StreamRules(settings), to_make)

    # --- which streams are known ----------------------------------------------------------

    def _known_in(self, db: int) -> dict[bytes, _Known]:
        return self._known.setdefault(db, {})

    def _forget_gone(self, db: int, keys: Iterable[bytes]) -> None:
        """Forgets streams of a database that were at these keys and are not there any more."""
        values, known_here = self._state.keyspace.databases[db].values, self._known_in(db)
        disposal = self._state.keyspace.limits.disposal
        for key in keys:
            known = known_here.get(key)
            if known is not None and values.get(key) is not known.stream:
                del known_here[key]
                disposal.drop(known.groups)

    def _forget_all_gone(self) -> None:
        """Forgets what is not there any more; of a database that is empty all at once."""
        disposal = self._state.keyspace.limits.disposal
        for db, known in list(self._known.items()):
            if self._state.keyspace.databases[db].values:
                self._forget_gone(db, list(known))
            else:
                disposal.drop(self._known.pop(db))
                disposal.drop(self.due.forget_in(db))

    def _follow_created(self, effect: e.GroupCreated) -> None:
        found = self._stream_at(effect.db, effect.key)
        if found is not None:
            self.note_entries(found[0], effect.key, found[1])
            self.due.note((effect.db, effect.key), 0, effect.group)

    def _follow_destroyed(self, effect: e.GroupDestroyed) -> None:
        known = self._known_in(effect.db).get(effect.key)
        if known is not None:
            known.groups.pop(effect.group, None)

    def _follow_renamed(self, effect: e.KeyRenamed) -> None:
        self._forget_gone(effect.db, (effect.key,))
        self._look_at(effect.db, effect.target)

    def _follow_moved(self, effect: e.KeyMoved) -> None:
        """Takes what is known of the stream along: its policies are the same."""
        known = self._known_in(effect.db).pop(effect.key, None)
        if known is not None:
            self._version += 1
            self._known_in(effect.target_db)[effect.key] = known
        self._look_at(effect.target_db, effect.key)

    def _follow_swapped(self, effect: e.Swapped) -> None:
        """Takes what is known of streams along, without a look at any."""
        self._version += 1
        self._straight.clear()
        one, two = self._known_in(effect.db), self._known_in(effect.other)
        self._known[effect.other], self._known[effect.db] = one, two
        self.due.swap(effect.db, effect.other)

    def memory_usage(self, db: int, key: bytes) -> int:
        """Return the bytes that is taken by what is known of the groups of a stream, about."""
        known = self._known_in(db).get(key)
        groups = () if known is None else known.groups.values()
        return sum([each.ruled.agenda.memory_usage() for each in groups if each.ruled is not None])

    def check(self) -> None:
        """Asserts that nothing is known but of streams and groups that there are."""
        assert self.active or not any(self._known.values())
        for db, of_database in self._known.items():
            values = self._state.keyspace.databases[db].values
            for key, known in of_database.items():
                assert values.get(key) is known.stream, key
                for name, of_group in known.groups.items():
                    assert known.stream.groups.get(name) is of_group.group, (key, name)

    # --- groups that are made -------------------------------------------------------------

    def _start_of(self, key: bytes, stream: Stream | None, group: bytes) -> bytes | None:
        start = None if stream is None else stream.policy.get(AUTO_GROUP.name)
        if start is None:
            start = policy_lines.auto_group(self._lines, key, group)
        return None if start == b"no" else start

    def _make_group(self, session: Session, key: bytes, name: bytes) -> GroupRef | None:
        """Makes a group, and its stream, as ``auto-group`` says."""
        db = session.db
        stream = db.stream(key)
        start = self._start_of(key, stream, name)
        if start is None:
            return None
        self.require(session, [b"XGROUP", b"CREATE", key, name, start])
        if stream is None:
            stream = db.make_stream(key)
        last_id = stream.last_id if start == b"$" else ids.MIN
        return add_group(db, key, stream, name, last_id, None)

    def wants_groups(self, db: Database, key: bytes, stream: Stream) -> bool:
        """Whether an XADD has to make groups."""
        agenda = self.of_stream(db, key, stream)
        return agenda is not None and any(
            name not in stream.groups for name, _ in agenda.groups_to_make
        )

    def make_groups(self, db: Database, key: bytes, stream: Stream, before: int) -> None:
        """Makes the groups that an XADD has to make; ``before`` is the last ID before its own."""
        agenda = self.of_stream(db, key, stream)
        for name, start in () if agenda is None else agenda.groups_to_make:
            if name not in stream.groups:
                add_group(db, key, stream, name, before if start == b"$" else ids.MIN, None)

    # --- entries that nobody needs any more -----------------------------------------------

    def deletes_acknowledged(self, ref: GroupRef) -> bool:
        """Whether entries of the stream go when all groups have acknowledged them."""
        agenda = self.of_stream(ref.db, ref.key, ref.stream) if self.active else None
        return agenda is not None and agenda.rules.delete_acked

    def note_acknowledged(self, ref: GroupRef, entry_ids: Sequence[int]) -> None:
        """A group has acknowledged the entries: with ``delete acked`` those go that all have."""
        db, key, stream = ref.db, ref.key, ref.stream
        agenda = self.of_stream(db, key, stream)
        if agenda is not None and agenda.rules.delete_acked:
            self.tally.deleted += retention.drop_acknowledged(db, key, stream, agenda, entry_ids)
            if agenda.in_grace:
                self.due.note((db.index, key), agenda.next_due(stream))

    # --- dead letters in circles ----------------------------------------------------------

    def circle_of(self, db: Database, key: bytes, target: bytes) -> list[bytes]:
        """The streams through which dead letters of the stream ``key`` would come back to it, if
        they went to ``target``; empty if they do not."""
        place = (db.index, key, target)
        if place in self._straight:
            return []
        way = policy_lines.circle(key, [target], lambda at: self._targets(db, at))
        if not way:
            if len(self._straight) == _MOST_STRAIGHT:
                self._straight.clear()
            self._straight.add(place)
        return way

    def _targets(self, db: Database, key: bytes) -> Iterator[bytes]:
        """Where dead letters of a stream's groups go, those that there are and those that may
        come; nothing for a group without."""
        yield from policy_lines.targets_of(self._lines, key)
        stream = db.values.get(key)
        if isinstance(stream, Stream):
            for settings in (stream.policy, *[each.policy for each in stream.groups.values()]):
                target = settings.get(DEAD_LETTER.name, b"")
                yield b"" if target == key else target

    # --- following ------------------------------------------------------------------------

    def follow(self, effects: Sequence[e.Effect]) -> None:
        """Takes note of effects. Nothing is changed here."""
        for effect in effects:
            follower = self._followers.get(type(effect))
            if follower is not None:
                follower(effect)

    def note(self, database: Database, key: bytes, stream: Stream) -> None:
        """Finds out which policies the stream has, and notes when it has something to do next. Its
        groups, of which there may be very many, are looked at one after the other as what is due
        is done."""
        self.note_entries(database, key, stream)
        for name in stream.groups:
            self.due.note((database.index, key), 0, name)

    def note_entries(
        self, database: Database, key: bytes, stream: Stream, after: int = -AGE_STEP_MS
    ) -> None:
        """Notes when some of the entries may have to go next; ``after`` as in
        :meth:`.StreamAgenda.next_due`."""
        of_stream = self.of_stream(database, key, stream)
        at = NEVER if of_stream is None else of_stream.next_due(stream, after)
        if at < NEVER:
            self.due.note((database.index, key), max(at, after))

    def note_group(self, ruled: RuledGroup, after: int) -> None:
        """Notes when the group has something to do next, after this time."""
        at = min(ruled.agenda.next_due, ruled.agenda.seen_due)
        if at < NEVER:
            self._note_in(ruled, max(at, after))

    def _stream_at(self, db: int, key: bytes) -> tuple[Database, Stream] | None:
        database = self._state.keyspace.databases[db]
        value = database.values.get(key)
        return (database, value) if isinstance(value, Stream) else None

    def _look_at(self, db: int, key: bytes) -> None:
        """Something else is at the key, or a stream has got other policies or groups."""
        self._straight.clear()
        self._forget_gone(db, (key,))
        found = self._stream_at(db, key)
        if found is not None:
            self.note(found[0], key, found[1])

    def _follow_policy(self, effect: e.PolicySet) -> None:
        """Wakes those who wait: what was held back may go on."""
        self._version += 1
        self._straight.clear()
        if effect.group is None:
            self._look_at(effect.db, effect.key)
        else:
            database = self._state.keyspace.databases[effect.db]
            value = database.values.get(effect.key)
            ref = group_of_value(database, effect.key, value, effect.group)
            if ref is not None:
                self.followed(ref)
                self.due.note((effect.db, effect.key), 0, effect.group)
        self._blocking.signal(effect.db, effect.key)

    def _follow_added(self, effect: e.EntryAdded | e.EntriesAdded, first: int) -> None:
        place = (effect.db, effect.key)
        found = self._stream_at(*place)
        agenda = None if found is None else self.of_stream(found[0], effect.key, found[1])
        if agenda is None or not agenda.rules.trims:
            return
        self.due.note(place, agenda.due_after_adding(first, self._state.keyspace.now_ms))

    def _follow_position(self, effect: e.GroupPositionSet) -> None:
        if effect.explicit:
            self._rank_again(effect.db, effect.key)

    def _rank_again(self, db: int, key: bytes) -> None:
        """Other entries may be new to the groups of a stream than those that are ranked."""
        known = self._known_in(db).get(key)
        for of_group in () if known is None else known.groups.values():
            if of_group.ruled is not None and of_group.ruled.agenda.ranking is not None:
                of_group.ruled.agenda.stale = True

    # --- following groups -----------------------------------------------------------------

    def _in_group(self, follow: Callable[[RuledGroup, Any], None]) -> Callable[[Any], None]:
        """Returns what calls ``follow`` for effects in groups that have policies."""

        def follower(effect: Any) -> None:
            database = self._state.keyspace.databases[effect.db]
            value = database.values.get(effect.key)
            ref = group_of_value(database, effect.key, value, effect.group)
            ruled = None if ref is None else self.followed(ref)
            if ruled is not None:
                follow(ruled, effect)

        return follower

    def _note_in(self, ref: RuledGroup, at: int) -> None:
        self.due.note((ref.db.index, ref.key), at, ref.group.name)

    def _note_filed(self, ruled: RuledGroup) -> None:
        """Notes when the group has something to do, of which some has just been filed."""
        ruled.agenda.bound(ruled.group.pending)
        self._note_in(ruled, ruled.agenda.next_due)

    def await_next(self, ruled: RuledGroup) -> None:
        """Somebody waits for entries of the group: has its stream looked at when the time of the
        next one comes, or ``rate-limit`` lets it through, if that is what there is to wait for."""
        agenda, due = ruled.agenda, ruled.due
        at = due if agenda.bucket is None else agenda.bucket.next_room(ruled.now, due)
        if at > due:
            agenda.rate_due = at
        if agenda.next_due > due:
            self._note_in(ruled, agenda.next_due)

    def _follow_delivered(self, ruled: RuledGroup, effect: e.Delivered) -> None:
        agenda = ruled.agenda
        # What is new was put into its lane in flight, and is alone there.
        if agenda.lanes is not None and not effect.new:
            agenda.lanes.take_off(effect.ids)
        if agenda.rules.retries:
            agenda.file_delivered(effect.ids, effect.counts, effect.time)
            self._note_filed(ruled)

    def _follow_redelivered(self, ruled: RuledGroup, effect: e.Redelivered) -> None:
        agenda = ruled.agenda
        if not agenda.rules.retries:
            return
        for entry_id in effect.ids:
            entry = ruled.group.pending.get(entry_id)
            if entry is not None:
                agenda.file(entry_id, agenda.due_of(entry))
        self._note_filed(ruled)

    def _follow_released(self, ruled: RuledGroup, effect: e.Released) -> None:
        agenda, lanes = ruled.agenda, ruled.agenda.lanes
        for entry_id in () if lanes is None else effect.ids:
            if lanes is not None and entry_id not in lanes:
                agenda.enter(entry_id, ruled.stream.log.get(entry_id), False)
            agenda.land(entry_id)
        agenda.file_released(effect.ids, effect.times)
        self._note_filed(ruled)

    def _follow_kept_back(self, ruled: RuledGroup, effect: e.KeptBack) -> None:
        agenda = ruled.agenda
        agenda.file_kept_back(effect.ids, effect.until)
        self._note_filed(ruled)

    def _follow_acknowledged(self, effect: e.Acknowledged) -> None:
        self._wake_early(effect)
        self._free(effect)

    def _wake_early(self, effect: e.Acknowledged) -> None:
        """Entries that were kept for the group may go."""
        found = self._stream_at(effect.db, effect.key)
        agenda = None if found is None else self.of_stream(found[0], effect.key, found[1])
        if found is None or agenda is None or not agenda.not_before:
            return
        group = found[1].groups.get(effect.group)
        pending = 0 if group is None else len(group.pending)
        agenda.wake_early(self._state.keyspace.now_ms, pending)
        self.due.note((effect.db, effect.key), agenda.next_due(found[1]))

    def _follow_freed(self, ruled: RuledGroup, effect: e.Acknowledged) -> None:
        agenda = ruled.agenda
        agenda.leave(effect.ids)
        agenda.bound(ruled.group.pending)
        if agenda.freed or agenda.rules.bounds_pending:
            agenda.freed = False
            self._blocking.signal(effect.db, effect.key)

    def _follow_consumer(self, ruled: RuledGroup, effect: e.ConsumerCreated) -> None:
        agenda = ruled.agenda
        ttl = agenda.rules.consumer_ttl
        if ttl:
            agenda.seen_due = min(agenda.seen_due, effect.seen + ttl)
            self._note_in(ruled, agenda.seen_due)

    def _follow_consumer_deleted(self, ruled: RuledGroup, effect: e.ConsumerDeleted) -> None:
        ruled.agenda.leave(effect.owned)
        ruled.agenda.bound(ruled.group.pending)
        ruled.agenda.freed = False
        self._blocking.signal(effect.db, effect.key)

    def close(self) -> None:
        """Stops the timer."""
        self.due.close()
