"""Values as a whole: how one is kept (OBJECT), and payloads of them (DUMP and RESTORE).

Any server of the family of Redis takes the payloads. MIGRATE of another server sends what it moves
here as RESTORE, or RESTORE-ASKING from a cluster.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Reply
from server.commands.declare import command, container, help_command
from server.commands.keys import errors as key_errors
from server.commands.keys.long_work import in_steps
from server.core.outcomes import Outcome
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, integer
from server.services import Services
from server.state.session import Session
from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.keyspace.copies import RESTORED
from storage.keyspace.databases import Database
from storage.rdb import codes
from storage.rdb.read import OtherType, WrongFooter, restoring
from storage.rdb.source import DamagedRDB
from storage.rdb.write import dump, dump_chunks
from storage.steps import InSteps, result
from storage.types.collection import Collection
from storage.types.kinds import Value, kind_of

_KEYS: Final = [KeySpec("RO", index=2)]
_TIPS: Final = ("nondeterministic_output",)

_SHARED_INTEGERS: Final = 10_000
"""Small integers are objects that Redis keeps once for all keys ..."""

_SHARED_REFERENCES: Final = 2**31 - 1
"""... which therefore have no count of references that means anything."""

container(
    "OBJECT",
    summary="Looks at how values are kept.",
    since="2.2.3",
    flags="readonly",
    syntax="key",
    keys=_KEYS,
    tips=_TIPS,
)


def encoding_of(database: Database, key: bytes) -> str:
    """Return what OBJECT ENCODING says of a key that is there."""
    value = database.values[key]
    return database.encodings.get(key) or kind_of(value).encoding(value)


def references(database: Database, key: bytes) -> int:
    """Return what OBJECT REFCOUNT says of a key that is there."""
    value = database.values[key]
    if type(value) is bytes and encoding_of(database, key) == "int":
        return _SHARED_REFERENCES if 0 <= int(value) < _SHARED_INTEGERS else 1
    return 1


@command("OBJECT ENCODING", summary="Names the form in which a value is kept.")
def encoding(server: Services, session: Session, args: Arguments) -> Reply:
    """``int``, ``listpack`` and so on; null for no key."""
    return None if session.db.inspect(args[2]) is None else encoding_of(session.db, args[2])


@command("OBJECT FREQ", since="4.0.0", summary="Tells how often a value has been used lately.")
def freq(server: Services, session: Session, args: Arguments) -> Reply:
    """Null for no key; otherwise an error, as frequencies are not counted."""
    if session.db.inspect(args[2]) is None:
        return None
    raise CommandError(key_errors.NO_ACCESS_FREQUENCY)


@command("OBJECT IDLETIME", summary="Tells for how many seconds a value has not been used.")
def idletime(server: Services, session: Session, args: Arguments) -> Reply:
    """Whole seconds; null for no key."""
    database, key = session.db, args[2]
    if database.inspect(key) is None:
        return None
    return max(0, database.keyspace.now_ms - database.used_at(key)) // 1000


@command("OBJECT REFCOUNT", summary="Counts the places that share a value.")
def refcount(server: Services, session: Session, args: Arguments) -> Reply:
    """1, or the highest number there is for a small integer; null for no key."""
    if session.db.inspect(args[2]) is None:
        return None
    return references(session.db, args[2])


_HELP: Final = """\
ENCODING <key>
    Return the kind of internal representation used in order to store the value
    associated with a <key>.
FREQ <key>
    Return the access frequency index of the <key>. The returned integer is
    proportional to the logarithm of the recent access frequency of the key.
IDLETIME <key>
    Return the idle time of the <key>, that is the approximated number of
    seconds elapsed since the last access to the key.
REFCOUNT <key>
    Return the number of references of the value associated with the specified
    <key>.
"""

help_command("OBJECT", since="6.2.0", text=_HELP)


# --- DUMP and RESTORE --------------------------------------------------------------------------


_MOST_FREQUENT: Final = 255

_AT_ONCE: Final = 10_000
"""Collections of fewer elements are dumped without giving way."""

_SHORT: Final = 100_000
"""Payloads of fewer bytes are restored without giving way."""


@command(
    "DUMP",
    flags="readonly",
    since="2.6.0",
    summary="Gives a value as a payload that RESTORE takes.",
    complexity="O(N) in the number of elements and their length.",
    syntax="key",
    keys=[KeySpec("RO access")],
    tips=("nondeterministic_output",),
)
def dump_(server: Services, session: Session, args: Arguments) -> Outcome:
    """The payload, in the oldest version that holds all of the value; null for no key."""
    value = session.db.read(args[1], touch=not session.no_touch)
    if not isinstance(value, Collection) or len(value) <= _AT_ONCE:
        return None if value is None else Bulk(dump(value))

    def reply(payload: bytes | None) -> Outcome:
        if payload is None:  # The value has changed meanwhile.
            found = session.db.read(args[1])
            payload = None if found is None else dump(found)
        return None if payload is None else Bulk(payload)

    return in_steps(server, session, _dumped(value), reply, keys=args[1:])


def _dumped(value: Value, version: int | None = None) -> InSteps[bytes]:
    chunks = []
    for chunk in dump_chunks(value, version):
        chunks.append(chunk)
        yield
    return b"".join(chunks)


class _RestoreOptions:
    """The options of RESTORE. Raises :class:`CommandError`."""

    __slots__ = ("absolute", "frequency", "idle", "replace")

    def __init__(self, args: Arguments) -> None:
        self.replace = self.absolute = False
        self.idle: int | None = None
        self.frequency: int | None = None
        words = iter(args[4:])
        for option in words:
            word = option.upper()
            if word == b"REPLACE":
                self.replace = True
            elif word == b"ABSTTL":
                self.absolute = True
            else:
                self._take(word, next(words, None))

    def _take(self, word: bytes, value: bytes | None) -> None:
        """An option with a value; there may be one of the two kinds."""
        if value is not None and word == b"IDLETIME" and self.frequency is None:
            self.idle = integer(value)
            if self.idle < 0:
                raise CommandError(key_errors.NEGATIVE_IDLETIME)
        elif value is not None and word == b"FREQ" and self.idle is None:
            self.frequency = integer(value)
            if not 0 <= self.frequency <= _MOST_FREQUENT:
                raise CommandError(key_errors.FREQUENCY_OUT_OF_RANGE)
        else:
            raise CommandError(errors.SYNTAX)


_restorer = partial(
    command,
    complexity="O(N) in the number of elements and their length.",
    syntax="key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    keys=[KeySpec("OW update")],
    history=[
        ("3.0.0", "The option REPLACE."),
        ("5.0.0", "The option ABSTTL."),
        ("5.0.0", "The options IDLETIME and FREQ."),
    ],
)


@_restorer(
    "RESTORE",
    flags="write denyoom",
    since="2.6.0",
    summary="Makes a key of a payload that DUMP has given.",
    categories="dangerous",
)
@_restorer(
    "RESTORE-ASKING",
    flags="write denyoom asking",
    group="server",
    since="3.0.0",
    summary="Does what RESTORE does, for clusters that move keys.",
    categories="keyspace dangerous",
)
def restore_(server: Services, session: Session, args: Arguments) -> Outcome:
    """OK. A key whose time is over already is not made, but the former one is removed."""
    options = _RestoreOptions(args)
    _expiry_at_free_key(session.db, args, options)
    work = _restored(args[3], session.db.keyspace.limits)
    if len(args[3]) <= _SHORT:
        return _placed(session.db, args, options, *result(work))

    def then(restored: tuple[Value, bytes] | None) -> Outcome:
        assert restored is not None, "there are no keys that could change"
        return _placed(session.db, args, options, *restored)

    return in_steps(server, session, work, then, writes=True)


def _expiry_at_free_key(
    database: Database, args: Arguments, options: _RestoreOptions
) -> int | None:
    """When the key will expire, if ever. Raises :class:`CommandError` if it may not be made."""
    if not options.replace and database.get(args[1]) is not None:
        raise CommandError(errors.BUSY_KEY)
    return _expiry(args[2], options.absolute, database.keyspace.now_ms)


def _expiry(text: bytes, absolute: bool, now_ms: int) -> int | None:
    """When the key expires, if ever."""
    ttl = integer(text)
    if ttl < 0 or (not absolute and ttl > INT64_MAX - now_ms):
        raise CommandError(key_errors.NEGATIVE_TTL)
    if ttl == 0:
        return None
    return ttl if absolute else now_ms + ttl


def _restored(payload: bytes, limits: StreamLimits) -> InSteps[tuple[Value, bytes]]:
    """The value in a payload, and the payload of a collection as it is written here. Raises
    :class:`CommandError`."""
    try:
        value = yield from restoring(payload, limits)
    except WrongFooter:
        raise CommandError(key_errors.WRONG_PAYLOAD) from None
    except OtherType as error:
        where = f"a {error.kind}, which is no type that this server has"
        raise CommandError(f"{key_errors.DAMAGED_PAYLOAD}: {where}") from None
    except DamagedRDB:
        raise CommandError(key_errors.DAMAGED_PAYLOAD) from None
    if isinstance(value, Stream):
        return value, (yield from _dumped(value, codes.REDIS_7_0))
    return value, (yield from _dumped(value)) if isinstance(value, Collection) else b""


def _placed(
    database: Database, args: Arguments, options: _RestoreOptions, value: Value, payload: bytes
) -> Reply:
    """Makes the key, if it may be; the reply."""
    expires_at = _expiry_at_free_key(database, args, options)
    key, now_ms = args[1], database.keyspace.now_ms
    if expires_at is not None and expires_at <= now_ms:
        database.delete(key)
        return OK
    _place(database, key, value, payload, expires_at)
    if options.idle is not None:
        database.used[key] = max(0, now_ms - 1000 * options.idle)
    return OK


def _place(
    database: Database, key: bytes, value: Value, payload: bytes, expires_at: int | None
) -> None:
    if isinstance(value, Stream):
        database.restore_stream(key, value, payload, expires_at)
    elif isinstance(value, Collection):
        words = (b"RESTORE", key, b"%d" % (expires_at or 0), payload, b"REPLACE", b"ABSTTL")
        database.put(key, value, [words], RESTORED, expires_at)
    else:
        database.set_string(key, bytes(value), expires_at, "restore")
