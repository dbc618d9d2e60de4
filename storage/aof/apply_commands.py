"""The commands that fill an append-only file, applied to a keyspace.

They are applied to the engine directly and skip the dispatcher: there may be millions of them, and
while loading there are no replies, no watched keys and no keyspace events. All other commands are
left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import lt
from typing import Final

from storage.aof import extension_records as own
from storage.aof.apply_runs import RunRestorer
from storage.aof.arguments import AddOptions, ClaimOptions, TrimOption, group_at, integer, stream_at
from storage.aof.extension_records import RecordRestorer
from storage.aof.framing import Annotation, LoadError, shown
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.limits import StreamLimits
from storage.engine.pending import HIGHEST, Consumer
from storage.engine.stream import Stream, unsigned
from storage.engine.trimming import Trim, trim
from storage.keyspace.databases import Database, Keyspace
from storage.rdb.read import OtherType, WrongFooter, restore
from storage.rdb.source import DamagedRDB
from storage.types.kinds import Value

Arguments = list[bytes]

_FEWEST_OF_XADD: Final = 5
_WORDS_OF_SET: Final = 3
_WORDS_OF_PEXPIREAT: Final = 3
_MOST_DIGITS: Final = 15
_SHORT: Final = 2**20
"""Strings of this length are never too long."""
_COUNTERS: Final = [b"ENTRIESADDED", b"MAXDELETEDID"]
_UNKNOWN: Final = -1
_OF_KEPT_BACK: Final = (b"TIME", b"0", b"RETRYCOUNT", b"0", b"FORCE", b"JUSTID")
"""How the XCLAIM of entries ends that are kept back."""
_VALUED: Final = (b"IDLETIME", b"FREQ")
"""Options of RESTORE that have a value."""


class Restorer:
    """Applies the commands of files to ``keyspace``; ``now_ms`` is the time of loading."""

    __slots__ = ("_commands", "_keyspace", "_now_ms", "_records", "_runs", "_subcommands", "db")

    def __init__(self, keyspace: Keyspace, now_ms: int) -> None:
        self._keyspace = keyspace
        self._now_ms = now_ms
        self._records = RecordRestorer(keyspace)
        self._runs = RunRestorer()
        self.db: Database = keyspace.databases[0]
        """The selected database."""
        # By each name in its spelling, also those of commands that are left to others.
        self._commands: Final[dict[bytes, Callable[[Arguments], bool] | None]] = {
            b"XADD": self._xadd,
            b"SET": self._set,
            b"SETRANGE": self._setrange,
            b"APPEND": self._append,
            b"DEL": self._delete,
            b"PEXPIREAT": self._pexpireat,
            b"XCLAIM": self._xclaim,
            b"XACK": self._xack,
            b"XDEL": self._xdel,
            b"XTRIM": self._xtrim,
            b"XSETID": self._xsetid,
            b"XGROUP": self._xgroup,
            b"XIDMPRECORD": self._xidmprecord,
            b"RESTORE": self._restore_stream,
            b"SELECT": self._select,
            b"ECHO": self._echo,
        }
        self._subcommands: Final[dict[bytes, Callable[[Arguments], bool]]] = {
            b"CREATE": self._create_group,
            b"SETID": self._set_group_position,
            b"CREATECONSUMER": self._create_consumer,
        }

    def begin_file(self) -> None:
        """The next command is the first of a file."""
        self.db.index_loaded()
        self.db = self._keyspace.databases[0]
        self._records.begin_file()

    def take_run(self, data: bytes, at: int) -> tuple[int, int, list[Annotation]]:
        """Applies the XADDs with which the bytes of a file go on at a place, as far as they are
        alike.

        Returns where they end, how many there were, the place itself and 0 if there is nothing of
        the kind, and which bytes are checksum lines."""
        return (at, 0, []) if self._records.skipping else self._runs.take(self.db, data, at)

    def apply(self, args: Arguments) -> bool:
        """Applies one command; false if that must be done elsewhere, and nothing was done.

        The times of use and the index for SCAN wait for :meth:`Database.index_loaded` of
        :attr:`db`.

        Raises :class:`LoadError` if it does not fit the state, and :class:`ValueError`,
        :class:`IndexError` or :class:`StorageFailure` for arguments that cannot be right.
        """
        records = self._records
        if records.skipping:
            records.skipping -= 1
            return True
        name = args[0]
        if name not in self._commands:
            self._commands[name] = self._commands.get(name.upper())
        restore = self._commands[name]
        return restore is not None and restore(args)

    # --- databases and records ------------------------------------------------------------

    def _select(self, args: Arguments) -> bool:
        index = integer(args[1])
        databases = self._keyspace.databases
        if not 0 <= index < len(databases):
            raise LoadError(f"there is no database {index}: there are {len(databases)}")
        self.db.index_loaded()
        self.db = databases[index]
        return True

    def _echo(self, args: Arguments) -> bool:
        words = own.parse(args[1])
        if words is not None:
            self._records.apply(self.db, words)
        return True

    # --- strings and entries --------------------------------------------------------------

    def _set(self, args: Arguments) -> bool:
        """Leave what has options other than PXAT to the command."""
        if len(args) == _WORDS_OF_SET:
            self.db.load(args[1], args[2])
            return True
        if len(args) != _WORDS_OF_SET + 2 or args[3] != b"PXAT" or not _is_positive(args[4]):
            return False
        self.db.load(args[1], args[2], int(args[4]))
        return True

    def _setrange(self, args: Arguments) -> bool:
        _, key, offset, data = args
        if not data or (offset != b"0" and not _is_positive(offset)):
            return False
        return self._overwrite(key, int(offset), data)

    def _append(self, args: Arguments) -> bool:
        _, key, data = args
        value = self.db.values.get(key)
        return isinstance(value, bytes | bytearray) and self._overwrite(key, len(value), data)

    def _overwrite(self, key: bytes, offset: int, data: bytes) -> bool:
        """Writes over a part of a string; what may be too long for one is left to the command."""
        if offset + len(data) > _SHORT or isinstance(self.db.values.get(key), Stream):
            return False
        self.db.load_piece(key, offset, data)
        return True

    def _delete(self, args: Arguments) -> bool:
        for key in args[1:]:
            self.db.unload(key)
        return len(args) > 1

    def _pexpireat(self, args: Arguments) -> bool:
        """Leave to the command what has options, or a time at which keys are deleted."""
        if len(args) != _WORDS_OF_PEXPIREAT or not _is_positive(args[2]):
            return False
        if args[1] in self.db.values:
            self.db.schedule(args[1], int(args[2]))
        return True

    def _xadd(self, args: Arguments) -> bool:
        key, at = args[1], 2
        order: Trim | None = None
        make = True
        if not args[2][:1].isdigit():
            options = AddOptions(args)
            if not options.understood:
                return False
            at, order, make = options.at, options.order, options.make
        if len(args) - at < _FEWEST_OF_XADD - 2 or (len(args) - at) % 2 == 0:
            raise ValueError("the number of arguments")
        entry_id = ids.parse(args[at])
        stream = self.db.values.get(key)
        if type(stream) is Stream:
            if entry_id <= stream.last_id:
                raise LoadError("the ID is not above that of the newest entry")
            stream.add(entry_id, args[at + 1 :])
        elif make:
            stream = self._new_stream(key)
            stream.add(entry_id, args[at + 1 :])
        if order is not None:
            trim(stream_at(self.db, key), order)
        return True

    def _new_stream(self, key: bytes) -> Stream:
        if key in self.db.values:
            raise LoadError(f"the key {shown(key)} holds a string")
        stream = Stream(self._keyspace.limits)
        self.db.load(key, stream)
        return stream

    def _xtrim(self, args: Arguments) -> bool:
        options = TrimOption()
        at = 2
        while at < len(args):
            following = options.take(args, at)
            if following == at:
                return False
            at = following
        if options.order is None:
            raise ValueError("no threshold")
        trim(stream_at(self.db, args[1]), options.order)
        return True

    def _xdel(self, args: Arguments) -> bool:
        wanted = [ids.parse(text) for text in args[2:]]
        stream_at(self.db, args[1]).delete(wanted)
        return True

    def _xsetid(self, args: Arguments) -> bool:
        """Take all counters as they stand; what a client has sent is left to the command."""
        if args[3::2] != _COUNTERS:
            return False
        stream = stream_at(self.db, args[1])
        last_id, added = ids.parse(args[2]), unsigned(integer(args[4]))
        deleted = ids.parse(args[6]) or stream.max_deleted_id
        if not stream.set_counters(last_id, added, deleted):
            raise LoadError("the counters do not fit the entries")
        return True

    def _xidmprecord(self, args: Arguments) -> bool:
        _, key, producer, iid, entry_id = args
        table = stream_at(self.db, key).idempotency
        table.record(producer, iid, ids.parse(entry_id), self._now_ms)
        return True

    def _restore_stream(self, args: Arguments) -> bool:
        """Puts the stream of a payload at its key: Redis writes RESTORE for keys that a client
        restored or moved here. False, and nothing is done, if it is a string, or if its time to
        live is not a time."""
        key, at, payload = args[1], integer(args[2]), args[3]
        options = _restore_options(args)
        if at and b"ABSTTL" not in options:
            return False
        value = _value(payload, self._keyspace.limits)
        if not isinstance(value, Stream):
            return False
        if key in self.db.values:
            if b"REPLACE" not in options:
                raise LoadError(f"the key {shown(key)} is there already")
            self.db.unload(key)
        self.db.load(key, value, at or None)
        return True

    # --- groups ---------------------------------------------------------------------------

    def _xgroup(self, args: Arguments) -> bool:
        restore = self._subcommands.get(args[1].upper())
        return restore is not None and restore(args)

    def _create_group(self, args: Arguments) -> bool:
        key, name, position = args[2], args[3], args[4]
        make, entries_read = _position_options(args)
        if make and key not in self.db.values:
            self._new_stream(key)
        stream = stream_at(self.db, key)
        if name in stream.groups:
            raise LoadError(f"the stream {shown(key)} has a consumer group {shown(name)} already")
        last_id = stream.last_id if position == b"$" else ids.parse(position)
        stream.add_group(name, last_id, self._counter(stream, entries_read))
        return True

    def _counter(self, stream: Stream, entries_read: int) -> int | None:
        """Entries-read as it is kept. Redis's files say what a client asked for, of which no more
        counts than there is; Penstock's say what came of it."""
        if entries_read == _UNKNOWN:
            return None
        read = unsigned(entries_read)
        return read if self._records.is_own else min(read, stream.entries_added)

    def _set_group_position(self, args: Arguments) -> bool:
        stream, group = group_at(self.db, args[2], args[3])
        position = args[4]
        last_id = stream.last_id if position == b"$" else ids.parse_bound(position)
        _, entries_read = _position_options(args)
        group.last_id = last_id
        group.entries_read = self._counter(stream, entries_read)
        return True

    def _create_consumer(self, args: Arguments) -> bool:
        _, group = group_at(self.db, args[2], args[3])
        if args[4] not in group.consumers:
            group.add_consumer(args[4], self._now_ms)
        return True

    def _xack(self, args: Arguments) -> bool:
        _, group = group_at(self.db, args[1], args[2])
        group.acknowledge([ids.parse(text) for text in args[3:]])
        return True

    def _xclaim(self, args: Arguments) -> bool:
        if args[4] != b"0":
            raise LoadError("a minimal idle time other than 0 does not say what was claimed")
        stream, group = group_at(self.db, args[1], args[2])
        if self._records.until:
            return self._keep_back(group, args)
        claim = ClaimOptions(args, self._now_ms)
        consumer = group.consumers.get(args[3])
        if consumer is None:
            consumer = group.add_consumer(args[3], self._now_ms)
        if claim.last_id > group.last_id:
            group.last_id = claim.last_id
        if self._records.is_own:
            self._claim_own(group, consumer, claim)
        else:
            self._claim(stream, group, consumer, claim)
        return True

    def _keep_back(self, group: Group, args: Arguments) -> bool:
        """Take the IDs alone from a claim: a record has told the rest."""
        wanted = list(map(ids.parse, args[5 : -len(_OF_KEPT_BACK)]))
        until, self._records.until = self._records.until, []
        if len(until) == 1:
            until = until * len(wanted)
        if len(until) != len(wanted) or not _ascend(wanted):
            raise LoadError("the entries that are kept back do not fit their times")
        group.pending.keep_back(wanted, until)
        return True

    def _claim_own(self, group: Group, consumer: Consumer, claim: ClaimOptions) -> None:
        """Penstock claims what is there, and what only the pending entries list has any more.

        Other than a second reading, a claim tells when its consumer was last seen and active."""
        wanted = claim.ids
        if claim.count == 1 and claim.force and _are_new(group, wanted):
            group.pending.append_run(wanted, consumer, claim.time)
        else:
            for entry_id in wanted:
                _make_pending(group, consumer, entry_id, claim)
        if claim.count is not None:
            consumer.seen = consumer.active = claim.time

    def _claim(self, stream: Stream, group: Group, consumer: Consumer, claim: ClaimOptions) -> None:
        """Redis claims what is there, and drops the rest. It takes all that for the consumer's
        activity at the time of loading, and so does this."""
        consumer.seen = self._now_ms
        claim.time = min(claim.time, self._now_ms)
        for entry_id in claim.ids:
            if stream.log.get(entry_id) is None:
                group.pending.remove(entry_id)
            elif _make_pending(group, consumer, entry_id, claim):
                consumer.active = self._now_ms


def _is_positive(text: bytes) -> bool:
    """Whether this is how a positive number is written, and not a very large one."""
    return text.isdigit() and text[:1] != b"0" and len(text) <= _MOST_DIGITS


def _are_new(group: Group, wanted: list[int]) -> bool:
    """Whether these are ascending IDs above all pending ones."""
    return wanted[0] > group.pending.last and _ascend(wanted)


def _ascend(entry_ids: list[int]) -> bool:
    return all(map(lt, entry_ids, entry_ids[1:]))


def _make_pending(group: Group, consumer: Consumer, entry_id: int, claim: ClaimOptions) -> bool:
    """Makes the entry pending for the consumer; false if it was not and is not to be."""
    pending, count = group.pending, claim.count
    if count == 1 and claim.force and entry_id > pending.last:
        pending.append_run((entry_id,), consumer, claim.time)
        return True
    before = pending.get(entry_id)
    if before is None and not claim.force:
        return False
    if count is None:
        count = (1 if before is None else before.deliveries) + (not claim.justid)
    pending.set(entry_id, consumer, claim.time, min(count, HIGHEST))
    return True


def _value(payload: bytes, limits: StreamLimits) -> Value:
    """The value in a payload; raises :class:`LoadError`."""
    try:
        return restore(payload, limits)
    except WrongFooter:
        raise LoadError("the version or the checksum of the payload is wrong") from None
    except OtherType as other:
        raise LoadError(f"a {other.kind}, which Penstock does not have") from None
    except DamagedRDB as error:
        raise LoadError(f"the payload is damaged {error}") from None


def _position_options(args: Arguments) -> tuple[bool, int]:
    """The options of XGROUP CREATE and SETID: whether MKSTREAM is there, and ENTRIESREAD."""
    make, entries_read = False, _UNKNOWN
    words = iter(args[5:])
    for word in words:
        option = word.upper()
        if option == b"MKSTREAM":
            make = True
        elif option == b"ENTRIESREAD":
            entries_read = integer(next(words, b""))
        else:
            raise ValueError("an unknown option")
    return make, entries_read


def _restore_options(args: Arguments) -> set[bytes]:
    """The options of RESTORE that have no value."""
    found: set[bytes] = set()
    words = iter(args[4:])
    for word in words:
        option = word.upper()
        if option in _VALUED:
            integer(next(words, b""))
        elif option in (b"REPLACE", b"ABSTTL"):
            found.add(option)
        else:
            raise ValueError("an unknown option")
    return found
