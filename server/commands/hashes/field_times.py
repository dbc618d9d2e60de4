"""Until when fields of a hash are there: HEXPIRE's family, and reading and setting with a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.hashes import errors as hash_errors
from server.commands.hashes.hashes import DELETED, SET, hash_to_read, remove_fields, text_or_null
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT32_MAX, integer, parse_integer
from server.services import Services
from server.state.session import Session
from storage.engine.effects import HASH, Events
from storage.types.collection import Words
from storage.types.hash import FIELDS, Hash, time_words

NO_FIELD: Final = -2
NO_TIME: Final = -1
NOT_MET: Final = 0
DONE: Final = 1
GONE: Final = 2
"""What is answered of a field: there is none, it never expires, the condition does not hold, the
time was set or taken away, it has been removed as the time is over."""

_LATEST: Final = 2**46 - 1
"""The last time at which a field may expire, in Unix milliseconds."""

_CONDITIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT"})
_UNITS_MS: Final = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
_RELATIVE: Final = frozenset({b"EX", b"PX"})

_EXPIRES: Final[Events] = ((HASH, "hexpire"),)
_PERSISTS: Final[Events] = ((HASH, "hpersist"),)

_TIPS: Final = ("nondeterministic_output",)

_timed = partial(command, complexity="O(N) in the number of fields that are named.")
_LISTED: Final = "FIELDS numfields field [field ...]"


def _fields(args: Arguments, at: int, too_few: str) -> list[bytes]:
    """The fields that are named from the word FIELDS at this place on. Raises
    :class:`CommandError`."""
    if args[at].upper() != FIELDS:
        raise CommandError(hash_errors.NO_FIELDS)
    if at + 1 == len(args):
        raise CommandError(errors.wrong_arity(args[0].lower().decode()))
    count = parse_integer(args[at + 1])
    if count is None or not 0 < count <= INT32_MAX:
        raise CommandError(too_few)
    if count != len(args) - at - 2:
        raise CommandError(hash_errors.WRONG_NUMBER)
    return args[at + 2 :]


def _time(arg: bytes, unit_ms: int, since_ms: int, name: str) -> int:
    """The time in an argument, in Unix milliseconds. Raises :class:`CommandError`."""
    value = integer(arg)
    if value < 0:
        raise CommandError(hash_errors.NEGATIVE_TIME)
    at = value * unit_ms + since_ms
    if at > _LATEST:
        raise CommandError(errors.invalid_expire_time(name))
    return at


# --- HEXPIRE and its like ----------------------------------------------------------------------


_expirer = partial(
    _timed,
    flags="write fast",
    since="7.4.0",
    keys=[KeySpec("RW update")],
)
_CONDITION: Final = "[NX | XX | GT | LT]"


@_expirer(
    "HEXPIRE",
    summary="Lets fields of a hash expire after some seconds.",
    syntax=f"key seconds {_CONDITION} {_LISTED}",
)
def hexpire(server: Services, session: Session, args: Arguments) -> Reply:
    """What became of each field: -2 there is none, 0 the condition does not hold, 1 it will
    expire, 2 it is gone as the time is over."""
    return _expire(session, args, "hexpire", 1000, session.db.keyspace.now_ms)


@_expirer(
    "HPEXPIRE",
    summary="Lets fields of a hash expire after some milliseconds.",
    syntax=f"key milliseconds {_CONDITION} {_LISTED}",
)
def hpexpire(server: Services, session: Session, args: Arguments) -> Reply:
    """What became of each field: -2 there is none, 0 the condition does not hold, 1 it will expire,
    2 it is gone as the time is over."""
    return _expire(session, args, "hpexpire", 1, session.db.keyspace.now_ms)


@_expirer(
    "HEXPIREAT",
    summary="Lets fields of a hash expire at a Unix time.",
    syntax=f"key unix-time-seconds {_CONDITION} {_LISTED}",
)
def hexpireat(server: Services, session: Session, args: Arguments) -> Reply:
    """What became of each field: -2 there is none, 0 the condition does not hold, 1 it will expire,
    2 it is gone as the time is over."""
    return _expire(session, args, "hexpireat", 1000, 0)


@_expirer(
    "HPEXPIREAT",
    summary="Lets fields of a hash expire at a Unix time in milliseconds.",
    syntax=f"key unix-time-milliseconds {_CONDITION} {_LISTED}",
)
def hpexpireat(server: Services, session: Session, args: Arguments) -> Reply:
    """What became of each field: -2 there is none, 0 the condition does not hold, 1 it will expire,
    2 it is gone as the time is over."""
    return _expire(session, args, "hpexpireat", 1, 0)


def _expire(
    session: Session, args: Arguments, name: str, unit_ms: int, since_ms: int
) -> list[Reply]:
    database, key = session.db, args[1]
    value = database.collection(key, Hash)
    at = _time(args[2], unit_ms, since_ms, name)
    condition = args[3].upper() if args[3].upper() in _CONDITIONS else b""
    fields = _fields(args, 4 if condition else 3, hash_errors.TOO_FEW_TO_EXPIRE)
    if value is None:
        return [NO_FIELD] * len(fields)
    value.expect_times()
    over = at <= database.keyspace.now_ms
    found = [_set_time(value, field, at, condition, over) for field in fields]
    changed = [field for field, each in zip(fields, found, strict=True) if each > NOT_MET]
    tell_times(session, key, value, at, changed, over)
    return [*found]


def _set_time(value: Hash, field: bytes, at: int, condition: bytes, over: bool) -> int:
    """Gives a field its time, or removes it if that is over; returns what became of it."""
    if field not in value.fields:
        return NO_FIELD
    if not _holds(condition, value.times.get(field), at):
        return NOT_MET
    if over:
        value.remove(field)
        return GONE
    value.expire_at(field, at)
    return DONE


def _holds(condition: bytes, present: int | None, at: int) -> bool:
    """Whether a condition holds for a field with its present time; no time is later than all."""
    if not condition:
        return True
    if present is None:
        return condition in (b"NX", b"LT")
    if condition == b"GT":
        return at > present
    return at < present if condition == b"LT" else condition == b"XX"


def tell_times(
    session: Session, key: bytes, value: Hash, at: int, fields: Iterable[bytes], over: bool
) -> None:
    """Tells that fields were given a time, or were removed as it is over."""
    once = [*dict.fromkeys(fields)]
    if not once:
        return
    words = (b"HDEL", key, *once) if over else time_words(key, at, once)
    session.db.changed(key, value, words, DELETED if over else _EXPIRES, weight=len(once))


@_timed(
    "HPERSIST",
    flags="write fast",
    since="7.4.0",
    summary="Lets fields of a hash stay for ever.",
    syntax=f"key {_LISTED}",
    keys=[KeySpec("RW update")],
)
def hpersist(server: Services, session: Session, args: Arguments) -> Reply:
    """What became of each field: -2 there is none, -1 it never expires, 1 it stays now."""
    value = session.db.collection(args[1], Hash)
    fields = _fields(args, 2, hash_errors.TOO_FEW)
    if value is None:
        return [NO_FIELD] * len(fields)
    found = [
        (DONE if value.persist(field) else NO_TIME) if field in value.fields else NO_FIELD
        for field in fields
    ]
    tell_kept(session, args[1], value, fields, found.count(DONE))
    return [*found]


def tell_kept(session: Session, key: bytes, value: Hash, fields: list[bytes], count: int) -> None:
    """Tells that so many of these fields stay for ever now."""
    if count:
        words: Words = (b"HPERSIST", key, FIELDS, b"%d" % len(fields), *fields)
        session.db.changed(key, value, words, _PERSISTS, weight=count)


# --- telling -----------------------------------------------------------------------------------

_teller = partial(
    _timed,
    flags="readonly fast",
    since="7.4.0",
    syntax=f"key {_LISTED}",
    keys=[KeySpec("RO access")],
)


@_teller("HTTL", summary="Tells after how many seconds fields expire.", tips=_TIPS)
def httl(server: Services, session: Session, args: Arguments) -> Reply:
    """Seconds of each field, rounded up; -2 for none, -1 for one that never expires."""
    now_ms = session.db.keyspace.now_ms
    return _told(session, args, lambda at: (max(0, at - now_ms) + 999) // 1000)


@_teller("HPTTL", summary="Tells after how many milliseconds fields expire.", tips=_TIPS)
def hpttl(server: Services, session: Session, args: Arguments) -> Reply:
    """Milliseconds of each field; -2 for none, -1 for one that never expires."""
    now_ms = session.db.keyspace.now_ms
    return _told(session, args, lambda at: max(0, at - now_ms))


@_teller("HEXPIRETIME", summary="Tells at which Unix time fields expire.")
def hexpiretime(server: Services, session: Session, args: Arguments) -> Reply:
    """The time of each field in seconds, rounded up; -2 for none, -1 for one that never expires."""
    return _told(session, args, lambda at: (at + 999) // 1000)


@_teller("HPEXPIRETIME", summary="Tells at which Unix time in milliseconds fields expire.")
def hpexpiretime(server: Services, session: Session, args: Arguments) -> Reply:
    """The time of each field; -2 for none, -1 for one that never expires."""
    return _told(session, args, lambda at: at)


def _told(session: Session, args: Arguments, told: Callable[[int], int]) -> Reply:
    value = hash_to_read(session, args[1])
    fields = _fields(args, 2, hash_errors.TOO_FEW)
    if value is None:
        return [NO_FIELD] * len(fields)
    times = value.times
    return [
        (told(times[field]) if field in times else NO_TIME) if field in value.fields else NO_FIELD
        for field in fields
    ]


# --- reading, setting and removing ---------------------------------------------------------------


class FieldLifetime:
    """One of EX, PX, EXAT, PXAT with its number, read from an argument on, or of other words."""

    __slots__ = ("at", "word")

    def __init__(self) -> None:
        self.word = b""
        self.at = -1

    def take(self, args: Arguments, place: int, others: frozenset[bytes], now_ms: int) -> int:
        """Takes what stands there; returns how many arguments that were, 0 for something else.
        Raises :class:`CommandError`."""
        word = args[place].upper()
        if word not in _UNITS_MS and word not in others:
            return 0
        self.word = word
        if word in others:
            return 1
        since_ms = now_ms if word in _RELATIVE else 0
        name = args[0].lower().decode()
        self.at = _time(args[place + 1], _UNITS_MS[word], since_ms, name)
        return 2


_PERSIST_WORD: Final = frozenset({b"PERSIST"})
_KEEP_WORD: Final = frozenset({b"KEEPTTL"})
_LIFETIMES: Final = (
    "EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds"
)


@_timed(
    "HGETEX",
    flags="write fast",
    since="8.0.0",
    summary="Gets the values of fields of a hash, and sets or takes away their times.",
    syntax=f"key [{_LIFETIMES} | PERSIST] {_LISTED}",
    keys=[KeySpec("RW access update", notes="it may set or take away the time of a field")],
)
def hgetex(server: Services, session: Session, args: Arguments) -> Reply:
    """The value of each field, or null."""
    database, key = session.db, args[1]
    value = database.collection(key, Hash)
    now_ms = database.keyspace.now_ms
    lifetime = FieldLifetime()
    fields = _fields(args, 2 + lifetime.take(args, 2, _PERSIST_WORD, now_ms), hash_errors.TOO_FEW)
    if value is None:
        return [None] * len(fields)
    if lifetime.word:
        value.expect_times()
    at, over = lifetime.at, lifetime.at <= now_ms
    found: list[Reply] = []
    there: list[bytes] = []
    for field in fields:
        found.append(text_or_null(value.fields.get(field)))
        if at >= 0 and _set_time(value, field, at, b"", over) > NOT_MET:
            there.append(field)
    tell_times(session, key, value, at, there, over)
    if lifetime.word == b"PERSIST":
        count = sum([value.persist(field) for field in fields])
        tell_kept(session, key, value, fields, count)
    return found


@_timed(
    "HGETDEL",
    flags="write fast",
    since="8.0.0",
    summary="Gets the values of fields of a hash and removes them, and the key with the last.",
    syntax=f"key {_LISTED}",
    keys=[KeySpec("RW access delete")],
)
def hgetdel(server: Services, session: Session, args: Arguments) -> Reply:
    """The value of each field, or null."""
    value = session.db.collection(args[1], Hash)
    fields = _fields(args, 2, hash_errors.TOO_FEW)
    if value is None:
        return [None] * len(fields)
    known = dict.fromkeys(fields)
    texts = {field: value.fields.get(field) for field in known}
    found = [text_or_null(texts.pop(field, None)) for field in fields]
    remove_fields(session, args[1], value, known, DELETED)
    return found


class _SetOptions:
    """The options of HSETEX, and the fields with their values. Raises :class:`CommandError`."""

    __slots__ = ("condition", "fields", "lifetime", "texts")

    def __init__(self, args: Arguments, now_ms: int) -> None:
        self.condition = b""
        self.lifetime = FieldLifetime()
        self.fields: list[bytes] = []
        self.texts: list[bytes] = []
        place = 2
        while not self.fields:
            if place >= len(args):
                raise CommandError(hash_errors.NO_FIELDS)
            place += self._take(args, place, now_ms)

    def _take(self, args: Arguments, place: int, now_ms: int) -> int:
        word = args[place].upper()
        if word == FIELDS:
            self._take_fields(args, place)
        elif word in (b"FNX", b"FXX"):
            if self.condition:
                raise CommandError(hash_errors.ONE_CONDITION)
            self.condition = word
        else:
            if self.lifetime.word and (word in _UNITS_MS or word in _KEEP_WORD):
                raise CommandError(hash_errors.ONE_LIFETIME)
            taken = self.lifetime.take(args, place, _KEEP_WORD, now_ms)
            if not taken:
                raise CommandError(hash_errors.unknown_argument(args[place]))
            return taken
        return 1

    def _take_fields(self, args: Arguments, place: int) -> None:
        count = parse_integer(args[place + 1]) if place + 1 < len(args) else None
        if count is None or not 0 < count <= INT32_MAX:
            raise CommandError(hash_errors.TOO_FEW_TO_SET)
        if 2 * count != len(args) - place - 2:
            raise CommandError(errors.wrong_arity("hsetex"))
        self.fields = args[place + 2 :: 2]
        self.texts = args[place + 3 :: 2]

    def words(self, key: bytes) -> Words:
        """Return the command with an absolute time."""
        pairs = chain.from_iterable(zip(self.fields, self.texts, strict=True))
        count = b"%d" % len(self.fields)
        return (b"HSETEX", key, b"PXAT", b"%d" % self.lifetime.at, FIELDS, count, *pairs)

    def hold(self, value: Hash) -> bool:
        """Whether the condition holds."""
        if not self.condition:
            return True
        there = [field in value.fields for field in self.fields]
        return all(there) if self.condition == b"FXX" else not any(there)


@_timed(
    "HSETEX",
    flags="write denyoom fast",
    since="8.0.0",
    summary="Gives fields of a hash their values, and the time at which they expire.",
    syntax=f"key [FNX | FXX] [{_LIFETIMES} | KEEPTTL] FIELDS numfields field value"
    " [field value ...]",
    keys=[KeySpec("RW update")],
)
def hsetex(server: Services, session: Session, args: Arguments) -> Reply:
    """1, or 0 if the condition does not hold, and nothing was set."""
    database, key = session.db, args[1]
    now_ms = database.keyspace.now_ms
    options = _SetOptions(args, now_ms)
    value = database.collection_to_fill(key, Hash)
    if not options.hold(value):
        return 0
    at, keeps = options.lifetime.at, options.lifetime.word == b"KEEPTTL"
    put = value.edit if keeps else value.set
    for field, text in zip(options.fields, options.texts, strict=True):
        put(field, text)
    over = 0 <= at <= now_ms
    if over:
        value.expect_times()
    words, events = tuple(args), SET
    if at > now_ms:
        for field in options.fields:
            value.expire_at(field, at)
        words, events = options.words(key), SET + _EXPIRES
    database.changed(key, value, words, events, weight=len(options.fields))
    if over:
        gone = [field for field in options.fields if value.remove(field)]
        tell_times(session, key, value, at, gone, over)
    return 1
