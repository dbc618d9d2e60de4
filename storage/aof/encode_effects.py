"""Encodes effects for the append-only file: as Redis's commands, or as records where it has none.

The commands are those that Redis 8.0 propagates for the same effects, so that its file and this one
are equivalent. Each call of :meth:`EffectEncoder.append` writes one unit, which is loaded
completely or not at all: if it takes more than one command, they are wrapped in MULTI and EXEC.
Deliveries of new entries of one group, one after the other, share a unit as long as it has not been
taken to be written (:class:`_Deliveries`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from storage.aof import extension_records as own
from storage.aof.commands import (
    CLAIMED_AT_ONCE,
    EXEC,
    MULTI,
    ClaimCommand,
    add_entry,
    bulk_id,
    bulk_ids,
    command,
    deliver,
    number,
)
from storage.aof.effect_commands import (
    PLAIN,
    acknowledge,
    create_group,
    set_group_position,
)
from storage.aof.snapshot import stream_commands
from storage.engine import effects as e
from storage.engine.stream import Stream
from storage.keyspace.databases import Keyspace

_NO_DATABASE: Final = -1

_REPLACING: Final[frozenset[type]] = frozenset(
    {
        e.KeyRenamed,
        e.KeyCopied,
        e.KeyMoved,
        e.StreamRestored,
        e.StreamPutBack,
        e.Flushed,
        e.Swapped,
        e.GroupDestroyed,
    }
)
"""Effects after which another group may have the same name ..."""

_REPLACING_WORDS: Final = frozenset({b"SET", b"DEL"})
"""... and the first words of those :class:`~storage.engine.effects.Changed` that are such, too."""

_Group = tuple[int, bytes, bytes]
_OfConsumer = e.Delivered | e.ConsumerCreated | e.ConsumerSeen

_CARRYING: Final[frozenset[type]] = frozenset(
    {e.KeyRenamed, e.KeyCopied, e.KeyMoved, e.Swapped, e.StreamRestored}
)
"""Effects that take consumers to another place, with the times at which they were seen, or that
bring other ones."""


def _group_of(effect: _OfConsumer | e.GroupPositionSet) -> _Group:
    """Which group an effect is about."""
    return effect.db, effect.key, effect.group


def _replaces(effect: e.Effect) -> bool:
    """Whether another group may have the same name behind the effect."""
    if isinstance(effect, e.Changed):
        return effect.words[0] in _REPLACING_WORDS
    return type(effect) in _REPLACING


def _deleted(effect: e.Effect, db: int) -> tuple[bytes, ...]:
    """Return the keys of the database that the effect deletes, if that is all it does."""
    if isinstance(effect, e.Changed) and effect.db == db and effect.words[0] == b"DEL":
        return effect.keys
    return ()


class _SeenTimes:
    """Seen-times and active-times of consumers that are not in the file yet, in Unix milliseconds.

    Every poll of a consumer changes its seen-time. Writing each change would make up most of the
    file; the latest time of each consumer is kept here and written periodically.
    """

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[_Group, dict[bytes, tuple[int, int]]] = {}

    def note(self, group: _Group, consumer: bytes, seen: int, active: int) -> None:
        """The consumer was last seen and active at these times."""
        consumers = self._groups.get(group)
        if consumers is None:
            consumers = self._groups[group] = {}
        consumers[consumer] = (seen, active)

    def forget(self, group: _Group, consumer: bytes) -> None:
        """The file says it by itself."""
        consumers = self._groups.get(group)
        if consumers is not None:
            consumers.pop(consumer, None)

    def take(self) -> Iterator[tuple[_Group, list[tuple[bytes, int, int]]]]:
        """Yield what was noted, by group: name, seen-time and active-time; it is forgotten."""
        groups, self._groups = self._groups, {}
        for group, consumers in groups.items():
            if consumers:
                yield group, [(name, seen, active) for name, (seen, active) in consumers.items()]


class _Deliveries:
    """The unit with which the file ends so far, if it is one of deliveries of new entries.

    It is MULTI, an XCLAIM for each consumer, XGROUP SETID, EXEC. Another delivery of the same group
    takes the place of the last two; one to the same consumer is added to the last XCLAIM. So
    consumers that read one entry at a time do not take four commands for each. Whether the unit is
    still the end of what is to be written is told from its last piece being there.
    """

    __slots__ = ("_claim", "_claimed", "_end", "_group", "_pieces")

    def __init__(self) -> None:
        self._group: _Group = (_NO_DATABASE, b"", b"")
        self._claim: ClaimCommand | None = None
        self._claimed = b""
        """The end of its last XCLAIM."""
        self._pieces = 0
        """How many pieces with IDs that one has, which lie between its head and the last piece."""
        self._end = b""
        """The last piece: the end of that XCLAIM, XGROUP SETID, EXEC."""

    def begin(self, effect: e.Delivered, position: e.GroupPositionSet, out: list[bytes]) -> None:
        """Adds a delivery to what follows a MULTI."""
        self._group = _group_of(effect)
        claim = self._claim = ClaimCommand(effect, effect.counts[0])
        self._pieces = claim.count = 0
        out += (b"", b"")
        self._add(claim, effect, position, out)

    def go_on(self, effect: e.Delivered, position: e.GroupPositionSet, out: list[bytes]) -> bool:
        """Adds a delivery to the unit; false if it has to be one by itself."""
        claim = self._claim
        if claim is None or not out or out[-1] is not self._end:
            return False
        if self._group != _group_of(effect):
            return False
        if claim.same != (effect.consumer, effect.time, effect.counts[0]):
            out[-1] = self._claimed
            self.begin(effect, position, out)
        elif claim.count + len(effect.ids) <= CLAIMED_AT_ONCE:
            self._add(claim, effect, position, out)
        else:
            return False
        return True

    def _add(
        self,
        claim: ClaimCommand,
        effect: e.Delivered,
        position: e.GroupPositionSet,
        out: list[bytes],
    ) -> None:
        """Adds the IDs to the XCLAIM with which the pieces end."""
        claim.count += len(effect.ids)
        out[-2 - self._pieces] = claim.head()
        named = out[-1] = bulk_ids(effect.ids, ascending=True)
        self._pieces += 1
        last_id = named[named.rindex(b"$") :]
        self._claimed = claim.end(last_id)
        self._end = self._claimed + set_group_position(position, last_id) + EXEC
        out.append(self._end)


class EffectEncoder:
    """Writes effects as commands. ``keyspace`` is what they were had on, in its present state."""

    __slots__ = (
        "_commands",
        "_db",
        "_deliveries",
        "_forms",
        "_keyspace",
        "_limits",
        "_seen",
        "_settings",
        "_unit",
    )

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._limits = keyspace.limits
        self._seen = _SeenTimes()
        self._deliveries = _Deliveries()
        self._db = _NO_DATABASE
        self._settings = (0, 0, 0, 0)
        self._unit: list[bytes] = []
        self._commands = 0
        self._forms: dict[type, Callable[[Sequence[e.Effect], int], int]] = {
            e.Changed: self._changed,
            e.EntryAdded: self._entry_added,
            e.EntriesAdded: self._entries_added,
            e.Delivered: self._delivered,
            e.ConsumerCreated: self._consumer_created,
            e.ConsumerSeen: self._consumer_seen,
            e.GroupPositionSet: self._group_position_set,
            e.StreamCreated: self._stream_created,
            e.StreamPutBack: self._stream_put_back,
            e.Flushed: self._flushed,
        }

    def begin(self, out: list[bytes]) -> None:
        """Begins a file: what is written from now on does not depend on what was before."""
        self._db = _NO_DATABASE
        self._write_settings(out)

    @property
    def selected(self) -> bytes:
        """The SELECT that was written last, empty where there was none since the beginning."""
        return b"" if self._db == _NO_DATABASE else command(b"SELECT", number(self._db))

    def append(self, effects: Sequence[e.Effect], out: list[bytes]) -> None:
        """Appends what says the effects of one command, or of one whole transaction, to ``out``."""
        if not effects:
            return
        first = effects[0]
        self.write_new_settings(out)
        if len(effects) == 1 and first.db == self._db:  # Most units are like these.
            if type(first) is e.EntryAdded:
                out.append(add_entry(first.key, first.payload))
                return
            if type(first) is e.Acknowledged:
                out.append(acknowledge(first))
                return
        if type(first) is e.EntriesAdded and not first.atomic:
            self._write(first.db, first.run.commands(first.key), 0)  # Each XADD is a unit.
            self._close(out)
            return
        if len(effects) == 2 and self._delivery(effects, out):
            return
        at = 0
        while at < len(effects):
            kind = type(effects[at])
            form = self._forms.get(kind)
            if form is not None:
                at = form(effects, at)
            else:
                self._plain(effects[at])
                at += 1
        self._close(out)

    def split(self) -> None:
        """Let what comes next be a unit by itself, whatever it is."""
        self._deliveries = _Deliveries()

    def flush_seen(self, out: list[bytes]) -> None:
        """Appends when consumers were last seen and active, as far as that was not said yet."""
        self._write_seen()
        self._close(out)

    # --- units ----------------------------------------------------------------------------

    def write_new_settings(self, out: list[bytes]) -> None:
        """Writes the settings if they have changed: blocks depend on them."""
        if self._settings != own.told_of(self._limits):
            self._write_settings(out)

    def _write_settings(self, out: list[bytes]) -> None:
        self._settings = own.told_of(self._limits)
        out.append(own.settings(self._limits))

    def _write(self, db: int, data: bytes, commands: int = 1) -> None:
        """Adds commands on a database to the unit."""
        if db != self._db:
            self._unit.append(command(b"SELECT", number(db)))
            self._db = db
        self._unit.append(data)
        self._commands += commands

    def _write_seen(self) -> None:
        for (db, key, group), consumers in self._seen.take():
            for record in own.seen(key, group, consumers):
                self._write(db, record)

    def _close(self, out: list[bytes]) -> None:
        """Ends the unit."""
        unit = self._unit
        if self._commands > 1:
            out.append(MULTI)
            out += unit
            out.append(EXEC)
        else:
            out += unit
        unit.clear()
        self._commands = 0

    def _plain(self, effect: e.Effect) -> None:
        """Write what can be said of an effect by itself."""
        kind = type(effect)
        if kind in _CARRYING:
            self._write_seen()
        for data in PLAIN[kind](effect):
            self._write(effect.db, data)

    # --- forms that look at what comes next -----------------------------------------------

    def _entry_added(self, effects: Sequence[e.Effect], at: int) -> int:
        """XADD, with the trimming that came with it."""
        effect = effects[at]
        assert isinstance(effect, e.EntryAdded)
        at += 1
        if at < len(effects):
            trimmed = effects[at]
            if (
                isinstance(trimmed, e.StreamTrimmed)
                and trimmed.key == effect.key
                and trimmed.db == effect.db
            ):
                self._write(effect.db, add_entry(effect.key, effect.payload, trimmed.length))
                return at + 1
        self._write(effect.db, add_entry(effect.key, effect.payload))
        return at

    def _entries_added(self, effects: Sequence[e.Effect], at: int) -> int:
        """The XADDs of a run, within a transaction."""
        effect = effects[at]
        assert isinstance(effect, e.EntriesAdded)
        self._write(effect.db, effect.run.commands(effect.key), len(effect.run))
        return at + 1

    def _delivery(self, effects: Sequence[e.Effect], out: list[bytes]) -> bool:
        """The whole unit, if all that it says is that a consumer was given new entries."""
        effect, position = effects
        if (
            not isinstance(effect, e.Delivered)
            or not effect.new
            or not isinstance(position, e.GroupPositionSet)
            or len(effect.ids) > CLAIMED_AT_ONCE
        ):
            return False
        deliveries = self._deliveries
        if not deliveries.go_on(effect, position, out):
            out.append(MULTI)
            if effect.db != self._db:
                out.append(command(b"SELECT", number(effect.db)))
                self._db = effect.db
            deliveries.begin(effect, position, out)
        self._note_seen(effect)
        return True

    def _delivered(self, effects: Sequence[e.Effect], at: int) -> int:
        """XCLAIMs. Those of a delivery move the group from entry to entry; claims leave it."""
        effect = effects[at]
        assert isinstance(effect, e.Delivered)
        last_id = None if effect.new else self._last_id(effects, effect)
        for data in deliver(effect, last_id):
            self._write(effect.db, data)
        self._note_seen(effect)
        return at + 1

    def _note_seen(self, effect: e.Delivered) -> None:
        """A claim tells when its consumer was seen, if that is when the entries were delivered."""
        if effect.time == effect.seen:
            self._seen.forget(_group_of(effect), effect.consumer)
        else:
            self._seen.note(_group_of(effect), effect.consumer, effect.seen, effect.seen)

    def _last_id(self, effects: Sequence[e.Effect], delivered: e.Delivered) -> int:
        """The group's last-delivered-id, 0 if it may be another group's by now."""
        if any(map(_replaces, effects)):
            return 0
        value = self._keyspace.databases[delivered.db].values[delivered.key]
        assert isinstance(value, Stream)
        return value.groups[delivered.group].last_id

    def _consumer_created(self, effects: Sequence[e.Effect], at: int) -> int:
        """XGROUP CREATECONSUMER, unless a claim follows, which makes the consumer."""
        effect = effects[at]
        assert isinstance(effect, e.ConsumerCreated)
        db, key, group, consumer, seen = effect
        if not self._is_given(effects, at + 1, effect):
            self._write(db, command(b"XGROUP", b"CREATECONSUMER", key, group, consumer))
        self._seen.note((db, key, group), consumer, seen, -1)
        return at + 1

    def _consumer_seen(self, effects: Sequence[e.Effect], at: int) -> int:
        """Write nothing yet (see :meth:`flush_seen`)."""
        effect = effects[at]
        assert isinstance(effect, e.ConsumerSeen)
        self._seen.note(_group_of(effect), effect.consumer, effect.seen, effect.active)
        return at + 1

    def _is_given(self, effects: Sequence[e.Effect], at: int, created: e.ConsumerCreated) -> bool:
        """Whether the next thing that happens is that the consumer gets entries."""
        while at < len(effects) and type(effects[at]) is e.Acknowledged:
            at += 1
        if at == len(effects):
            return False
        effect = effects[at]
        return (
            isinstance(effect, e.Delivered)
            and _group_of(effect) == _group_of(created)
            and effect.consumer == created.consumer
        )

    def _group_position_set(self, effects: Sequence[e.Effect], at: int) -> int:
        """XGROUP SETID, unless it is XCLAIM's LASTID, which the claims will name."""
        effect = effects[at]
        assert isinstance(effect, e.GroupPositionSet)
        if at > 0 or not self._is_claimed(effects, effect):
            self._write(effect.db, set_group_position(effect, bulk_id(effect.last_id)))
        return at + 1

    def _is_claimed(self, effects: Sequence[e.Effect], position: e.GroupPositionSet) -> bool:
        """Whether entries are claimed in the group next. A unit that begins with its position is
        either an XGROUP SETID or an XCLAIM, which leaves entries-read as it is."""
        at = 1
        while at < len(effects) and type(effects[at]) in (e.Acknowledged, e.ConsumerCreated):
            at += 1
        if at == len(effects) or position.explicit:
            return False
        effect = effects[at]
        return (
            isinstance(effect, e.Delivered)
            and _group_of(effect) == _group_of(position)
            and self._last_id(effects, effect) == position.last_id
        )

    def _stream_created(self, effects: Sequence[e.Effect], at: int) -> int:
        """XGROUP CREATE ... MKSTREAM: nothing else makes an empty stream."""
        effect = effects[at + 1]
        assert isinstance(effect, e.GroupCreated)
        self._write(effect.db, create_group(effect, make_stream=True))
        return at + 2

    def _changed(self, effects: Sequence[e.Effect], at: int) -> int:
        """The command that the effect names; one DEL of all keys that go one after the other."""
        effect = effects[at]
        assert isinstance(effect, e.Changed)
        at += 1
        if effect.words[0] != b"DEL":
            self._write(effect.db, command(*effect.words))
            return at
        words = list(effect.words)
        while at < len(effects) and (more := _deleted(effects[at], effect.db)):
            words += more
            at += 1
        self._write(effect.db, command(*words))
        return at

    def _stream_put_back(self, effects: Sequence[e.Effect], at: int) -> int:
        """Write what a base has of the stream, which says more than a payload."""
        effect = effects[at]
        assert isinstance(effect, e.StreamPutBack)
        assert isinstance(effect.stream, Stream)
        self._write_seen()
        for data in stream_commands(effect.key, effect.stream, self._limits):
            self._write(effect.db, data)
        if effect.expires_at is not None:
            self._write(effect.db, command(b"PEXPIREAT", effect.key, number(effect.expires_at)))
        return at + 1

    def _flushed(self, effects: Sequence[e.Effect], at: int) -> int:
        """FLUSHALL if all databases were emptied in turn, else FLUSHDB."""
        effect = effects[at]
        every = len(self._keyspace.databases)
        run = effects[at : at + every]
        if [other.db for other in run if isinstance(other, e.Flushed)] == list(range(every)):
            self._unit.append(command(b"FLUSHALL"))  # It says nothing of a database.
            self._commands += 1
            return at + every
        self._write(effect.db, command(b"FLUSHDB"))
        return at + 1
