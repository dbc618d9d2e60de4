"""XREAD: reading on from places in one or several streams, and waiting for more."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.commands.streams.entries import Entries, Served, by_stream, held_range, in_portions
from server.core.outcomes import Steps, Wait
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, integer
from server.services import Services
from server.state.session import Place, Session
from storage.engine import ids
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

# --- options and budget, which XREADGROUP shares -----------------------------------------------


UNREAD: Final = -3
"""In place of an ID that has not been read."""
UNLIMITED: Final = 2**62 - 1
"""Compiled, a higher number is an object."""
_LONG_WAIT: Final = 2**32
"""Milliseconds of BLOCK that nobody asks for, but that may be too many to add to a time."""


class ReadOptions:
    """The arguments of XREAD or XREADGROUP up to the IDs, which :attr:`places` holds as text; only
    :meth:`take_moved` changes them. :attr:`words` are those that they were read from.
    :attr:`numbers` is what XREAD reads as IDs, each :data:`UNREAD` until it has."""

    __slots__ = (
        "_in_database",
        "_queues",
        "block",
        "claim",
        "consumer",
        "count",
        "group",
        "is_usual",
        "keys",
        "maxcount",
        "maxsize",
        "noack",
        "numbers",
        "places",
        "wants_new",
        "words",
    )

    def __init__(self, args: Arguments, grouped: bool) -> None:
        self.words = args
        self.block: int | None = None
        self.count = UNLIMITED
        self.maxcount = UNLIMITED
        self.maxsize = UNLIMITED
        self.noack = False
        self.claim: int | None = None
        self.group: bytes | None = None
        self.consumer = b""
        at = self._scan(args, grouped)
        middle = at + (len(args) - at) // 2
        if len(args) - middle != middle - at:
            raise CommandError(_unbalanced(grouped))
        self.keys = args[at:middle]
        self.places = args[middle:]
        self.numbers = [UNREAD] * len(self.places)
        self._in_database = -1
        self._queues: list[Place] = []
        self._check(grouped)

    def _check(self, grouped: bool) -> None:
        """Refuses options that do not go together, and looks whether they are usual ones."""
        if grouped and self.group is None:
            raise CommandError(stream_errors.GROUP_MISSING)
        if self.maxcount < self.count < UNLIMITED:
            raise CommandError(stream_errors.MAXCOUNT_BELOW_COUNT)
        self.wants_new = (
            self.places[0] == b">"
            and (len(self.places) == 1 or self.places.count(b">") == len(self.places))
            and self.claim is None
            and self.maxcount == self.maxsize == UNLIMITED
            and (self.block is None or self.block < _LONG_WAIT)
        )
        """Whether this is an XREADGROUP of nothing but new entries, COUNT or not."""
        self.is_usual = self.wants_new and len(self.places) == 1
        """Whether it is one of a single stream, as most are."""

    def queues(self, db: int) -> list[Place]:
        """Return where to wait for entries of the streams in this database, each place once."""
        if self._in_database != db:
            self._in_database = db
            self._queues = list(dict.fromkeys([(db, key) for key in self.keys]))
        return self._queues

    def take_moved(self, args: Arguments) -> bool:
        """Take an XREAD that differs in some IDs alone, as one does that reads on; return whether
        it does."""
        middle = len(self.words) - len(self.places)
        if self.group is not None or len(args) != len(self.words):
            return False
        if args[:middle] != self.words[:middle]:
            return False
        places = args[middle:]
        for at in range(len(places)):
            if places[at] != self.places[at]:
                self.numbers[at] = UNREAD
        self.words, self.places = args, places
        return True

    def _scan(self, args: Arguments, grouped: bool) -> int:
        """Takes the options, and returns where the keys begin."""
        at = 1
        last = len(args) - 1
        while at < last:
            word = _in_capitals(args[at])
            if word == b"STREAMS":
                return at + 1
            if not grouped and word in _GROUP_OPTIONS:
                raise CommandError(stream_errors.group_only_option(word.decode()))
            if word == b"NOACK":
                self.noack = True
                at += 1
            elif word == b"GROUP" and at + 2 <= last:
                self.group, self.consumer = args[at + 1], args[at + 2]
                at += 3
            else:
                self._take_number(word, args[at + 1])
                at += 2
        if at == last and args[at].upper() == b"NOACK" and not grouped:
            raise CommandError(stream_errors.group_only_option("NOACK"))
        raise CommandError(errors.SYNTAX)

    def _take_number(self, word: bytes, value: bytes) -> None:
        if word == b"COUNT":
            count = integer(value)
            self.count = count if count > 0 else UNLIMITED
        elif word == b"BLOCK":
            self.block = integer(value, errors.TIMEOUT_NOT_INTEGER)
            if self.block < 0:
                raise CommandError(errors.TIMEOUT_NEGATIVE)
        elif word == b"CLAIM":
            self.claim = integer(value, stream_errors.CLAIM_NOT_INTEGER)
            if self.claim < 0:
                raise CommandError(stream_errors.CLAIM_NEGATIVE)
        elif word == b"MAXCOUNT":
            self.maxcount = _positive(value, stream_errors.MAXCOUNT_NOT_POSITIVE)
        elif word == b"MAXSIZE":
            self.maxsize = _positive(value, stream_errors.MAXSIZE_NOT_POSITIVE)
        else:
            raise CommandError(errors.SYNTAX)

    def deadline(self, now: int) -> int | None:
        """When waiting ends, ``None`` for never; raises :class:`CommandError` if that overflows."""
        if not self.block:
            return None
        if now + self.block > INT64_MAX:
            raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
        return now + self.block


def _unbalanced(grouped: bool) -> str:
    if grouped:
        return stream_errors.unbalanced("xreadgroup", " or '>'")
    return stream_errors.unbalanced("xread", ", '+', or '$'")


_KEPT: Final = 64 * 1024
"""How many bytes of a request are kept for the next one, at most."""


def options_of(session: Session, args: Arguments, grouped: bool) -> ReadOptions:
    """Return the options of a request, which most often is that of before."""
    known = session.reading
    options: ReadOptions | None = None
    if isinstance(known, ReadOptions):
        if known.words is args or (grouped and known.words == args):
            return known
        if not grouped and known.take_moved(args):
            options = known
    if options is None:
        options = ReadOptions(args, grouped)
    size = 0
    for arg in args:
        size += len(arg)
    session.reading = options if size <= _KEPT else None
    return options


_GROUP_OPTIONS: Final = frozenset({b"GROUP", b"NOACK", b"CLAIM"})
_WORDS: Final = [b"STREAMS", b"GROUP", b"COUNT", b"BLOCK", b"NOACK"]


def _in_capitals(word: bytes) -> bytes:
    """Returns an option in capitals. Hardly anybody spells them in another way, and to compare the
    usual ones takes less than to make a new object."""
    for usual in _WORDS:
        if word == usual:
            return usual
    return word.upper()


def keys_to_read(args: Arguments, grouped: bool) -> list[bytes] | None:
    """The streams that a request reads; ``None`` if it will be refused."""
    try:
        return ReadOptions(args, grouped).keys
    except CommandError:
        return None


def _positive(value: bytes, error: str) -> int:
    number = integer(value, error)
    if number <= 0:
        raise CommandError(error)
    return number


class Budget:
    """How much a reply may still hold (MAXCOUNT and MAXSIZE); the first entry always fits."""

    __slots__ = ("_empty", "_room", "entries", "unlimited")

    def __init__(self, options: ReadOptions) -> None:
        self.unlimited = options.maxcount == options.maxsize == UNLIMITED
        self.entries = options.maxcount
        self._room = options.maxsize
        self._empty = True

    def fits(self, payload: bytes) -> bool:
        """Whether an entry may be added; if so it is counted."""
        if self.entries <= 0 or (self._room <= 0 and not self._empty):
            return False
        self.entries -= 1
        self._room -= len(payload)
        self._empty = False
        return True

    def cut(self, payloads: list[bytes]) -> int:
        """How many of these entries may be added, in order; they are counted."""
        if self.unlimited:
            return len(payloads)
        taken = 0
        while taken < len(payloads) and self.fits(payloads[taken]):
            taken += 1
        return taken


# --- XREAD -------------------------------------------------------------------------------------


LAST: Final = -1
"""In place of an ID: just below the last entry (``+``)."""


END: Final = -2
"""In place of an ID: the last one that the stream has taken by now (``$``)."""


def _place(text: bytes) -> int:
    """After which ID to read a stream, :data:`LAST` or :data:`END`."""
    if text == b"$":
        return END
    if text == b"+":
        return LAST
    if text == b">":
        raise CommandError(stream_errors.NEW_ID_OUTSIDE_GROUP)
    return ids.parse(text)


def _find(db: Database, options: ReadOptions) -> tuple[list[Stream | None], list[int]]:
    """Return the streams, and after which ID to read each, or :data:`LAST`."""
    keys, numbers = options.keys, options.numbers
    streams: list[Stream | None] = []
    places: list[int] = []
    for at in range(len(keys)):
        stream = db.stream_to_read(keys[at])
        number = numbers[at]
        if number == UNREAD:
            number = numbers[at] = _place(options.places[at])
        streams.append(stream)
        if number == END:
            number = ids.MIN if stream is None else stream.last_id
        places.append(number)
    return streams, places


def _read(options: ReadOptions, streams: list[Stream | None], places: list[int]) -> Served:
    budget = Budget(options)
    served: Served = []
    for at in range(len(places)):
        stream, place = streams[at], places[at]
        if stream is None or place >= stream.last_id:
            continue
        if not stream.log.length or place >= stream.log.last:
            continue
        start = stream.log.last if place == LAST else place + 1
        entries = _entries_from(stream, start, options.count, budget)
        if entries[0]:
            served.append((options.keys[at], entries))
    return served


def _entries_from(stream: Stream, start: int, count: int, budget: Budget) -> Entries:
    """Up to ``count`` entries from ``start`` on; there may be no room for any in the budget."""
    if budget.unlimited:
        return held_range(stream, start, ids.MAX, count)
    payloads = stream.log.range(start, ids.MAX, min(count, budget.entries))
    payloads = payloads[: budget.cut(payloads)]
    return len(payloads), in_portions(payloads)


def _keys(args: Arguments) -> list[bytes] | None:
    return keys_to_read(args, grouped=False)


@command(
    "XREAD",
    flags="readonly blocking movablekeys",
    since="5.0.0",
    summary="Reads entries above given IDs from one or several streams, waiting if there are none.",
    complexity="",
    syntax="[COUNT count] [MAXCOUNT maxcount] [MAXSIZE bytes] [BLOCK milliseconds]"
    " STREAMS key [key ...] id [id ...]",
    keys=[KeySpec("RO access", keyword="STREAMS", last=-1, limit=2, find=_keys)],
)
def xread(server: Services, session: Session, args: Arguments) -> Reply | Wait | Steps:
    """The entries of each stream that has some; null if none has, or the time is over."""
    options = options_of(session, args, grouped=False)
    db = session.db
    deadline = options.deadline(db.keyspace.now_ms)
    streams, places = _find(db, options)

    def read(streams: list[Stream | None]) -> Reply | Wait | Steps:
        served = _read(options, streams, places)
        if served or options.block is None:
            return by_stream(served, session.resp3)
        return Wait(options.queues(db.index), deadline, read_again, kind=Stream)

    def read_again() -> Reply | Wait | Steps:
        return read([db.stream(key) for key in options.keys])

    return read(streams)
