"""The arguments of commands in an append-only file, as far as Redis and Penstock write them."""

from __future__ import annotations

from typing import Final

from storage.aof.framing import LoadError, shown
from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.engine.trimming import KEEPREF, Trim
from storage.errors import InvalidID
from storage.keyspace.databases import Database

Arguments = list[bytes]

_HELD: Final = [b"TIME", b"RETRYCOUNT", b"JUSTID"]
_HELD_WORDS: Final = 12
"""Every other word, and the number of words, of an XCLAIM as rewrites hold them ..."""
_DELIVERED: Final = [b"TIME", b"RETRYCOUNT", b"FORCE", b"LASTID"]
_DELIVERED_WORDS: Final = 14
"""... and those of the end, and the fewest words, of those that tell of a delivery."""


def stream_at(db: Database, key: bytes) -> Stream:
    """The stream at a key; raises :class:`LoadError` if there is none."""
    value = db.values.get(key)
    if type(value) is not Stream:
        raise LoadError(f"there is no stream at the key {shown(key)}")
    return value


def group_at(db: Database, key: bytes, name: bytes) -> tuple[Stream, Group]:
    """A stream and one of its groups; raises :class:`LoadError` if there is none."""
    stream = stream_at(db, key)
    group = stream.groups.get(name)
    if group is None:
        raise LoadError(f"the stream {shown(key)} has no consumer group {shown(name)}")
    return stream, group


def integer(text: bytes) -> int:
    """The integer that an argument spells; raises :class:`ValueError`."""
    if not text.removeprefix(b"-").isdigit():
        raise ValueError("not an integer")
    return int(text)


# --- options ---------------------------------------------------------------------------------


class TrimOption:
    """An exact trimming. Redis writes down the LIMIT of the approximate one that it came from."""

    __slots__ = ("order",)

    def __init__(self) -> None:
        self.order: Trim | None = None

    def take(self, args: Arguments, at: int) -> int:
        """Reads the option at ``at``; returns the place behind it, or ``at`` if it is another.

        Raises :class:`ValueError`, :class:`IndexError` or :class:`InvalidID` for a bad value.
        """
        word = args[at].upper()
        if word == b"LIMIT":
            integer(args[at + 1])
            return at + 2
        if word not in (b"MAXLEN", b"MINID"):
            return at
        value = at + 1
        if args[value] == b"~":
            return at
        if args[value] == b"=":
            value += 1
        threshold = integer(args[value]) if word == b"MAXLEN" else ids.parse(args[value])
        self.order = Trim(word == b"MAXLEN", threshold, False, 0, KEEPREF)
        return value + 1


class AddOptions:
    """The options of an XADD. ``at`` is the place of its ID; ``understood`` is false if there are
    options of which only the command itself knows what they mean."""

    __slots__ = ("at", "make", "order", "understood")

    def __init__(self, args: Arguments) -> None:
        trim = TrimOption()
        self.make = True
        self.understood = True
        at = 2
        while not args[at][:1].isdigit():
            following = trim.take(args, at)
            if following == at:
                if args[at].upper() != b"NOMKSTREAM":
                    self.understood = _is_id(args[at])
                    break
                self.make = False
                following = at + 1
            at = following
        self.at = at
        self.order = trim.order


def _is_id(text: bytes) -> bool:
    """Whether this is an ID. Redis writes it as the client did, with a plus sign for example."""
    try:
        ids.parse(text)
    except InvalidID:
        return False
    return True


class ClaimOptions:
    """The arguments of an XCLAIM behind the minimal idle time. ``time`` and ``count`` are ``None``
    where they are not given."""

    __slots__ = ("count", "force", "ids", "justid", "last_id", "time")

    def __init__(self, args: Arguments, now_ms: int) -> None:
        self.ids: list[int] = []
        self.time: int = now_ms
        self.count: int | None = None
        self.force = self.justid = False
        self.last_id = ids.MIN
        if self._tells_of_delivery(args):
            self._take_state(args, len(args) - 8)
            self.last_id = ids.parse(args[-1])
        elif len(args) == _HELD_WORDS and args[6:11:2] == _HELD and args[11] == b"FORCE":
            self._take_state(args, 6)
        else:
            self._take_words(args)

    def _tells_of_delivery(self, args: Arguments) -> bool:
        return (
            len(args) >= _DELIVERED_WORDS
            and args[-8::2] == _DELIVERED
            and args[-3] == b"JUSTID"
            and all(word[:1].isdigit() for word in args[6:-8])
        )

    def _take_state(self, args: Arguments, at: int) -> None:
        """Entries with their delivery time, which stands behind the place ``at``, and their
        delivery count."""
        self.ids = list(map(ids.parse, args[5:at]))
        self.time = integer(args[at + 1])
        self.count = integer(args[at + 3])
        self.force = self.justid = True

    def _take_words(self, args: Arguments) -> None:
        at = 5
        while at < len(args) and args[at][:1].isdigit():
            self.ids.append(ids.parse(args[at]))
            at += 1
        if not self.ids:
            raise InvalidID
        while at < len(args):
            at = self._take(args, at)

    def _take(self, args: Arguments, at: int) -> int:
        word = args[at].upper()
        if word == b"TIME":
            self.time = integer(args[at + 1])
        elif word == b"RETRYCOUNT":
            self.count = integer(args[at + 1])
        elif word == b"LASTID":
            self.last_id = ids.parse(args[at + 1])
        elif word == b"FORCE":
            self.force = True
            return at + 1
        elif word == b"JUSTID":
            self.justid = True
            return at + 1
        else:
            raise ValueError("an unknown option")
        return at + 2
