"""XTRIM; the options of trimming, which XADD takes too; references to what goes."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.streams import errors as stream_errors
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import (
    Acknowledged,
    EntriesDeleted,
    StreamTrimmed,
)
from storage.engine.stream import Stream
from storage.engine.trimming import ACKED, DELREF, KEEPREF, Trim, trim
from storage.keyspace.databases import Database

POLICIES: Final = {b"KEEPREF": KEEPREF, b"DELREF": DELREF, b"ACKED": ACKED}


class TrimOptions:
    """Collects trimming options word by word; :meth:`order` makes a trimming of them."""

    __slots__ = ("_approximate", "_by_length", "_limit", "_policy", "_threshold")

    def __init__(self) -> None:
        self._by_length: bool | None = None
        self._threshold = 0
        self._approximate = False
        self._limit: int | None = None
        self._policy: str | None = None

    def take(self, args: Arguments, at: int) -> int:
        """Reads the option at ``at``; returns the place behind it, or ``at`` if it is none of
        these.

        Raises :class:`CommandError` for a bad value.
        """
        word = args[at].upper()
        more = len(args) - 1 - at
        if word in (b"MAXLEN", b"MINID") and more:
            return self._take_threshold(args, at, word == b"MAXLEN")
        if word == b"LIMIT" and more:
            self._limit = integer(args[at + 1])
            if self._limit < 0:
                raise CommandError(stream_errors.LIMIT_NEGATIVE)
            return at + 2
        if word in POLICIES:
            if self._policy is not None:
                raise CommandError(errors.SYNTAX)
            self._policy = POLICIES[word]
            return at + 1
        return at

    def _take_threshold(self, args: Arguments, at: int, by_length: bool) -> int:
        if self._by_length is not None:
            raise CommandError(stream_errors.TRIM_STRATEGY_TWICE)
        self._by_length = by_length
        at += 1
        if len(args) - at >= 2 and args[at] in (b"~", b"="):
            self._approximate = args[at] == b"~"
            at += 1
        if by_length:
            self._threshold = integer(args[at])
            if self._threshold < 0:
                raise CommandError(stream_errors.MAXLEN_NEGATIVE)
        else:
            self._threshold = ids.parse(args[at])
        return at + 1

    def order(self, default_limit: int) -> Trim | None:
        """The trimming asked for, or ``None``; raises :class:`CommandError` if options clash.

        ``default_limit`` bounds an approximate trimming that names no limit.
        """
        self._refuse_limit_alone()
        self._refuse_limit_of_exact()
        if self._by_length is None:
            return None
        return self._order(self._by_length, default_limit)

    def required_order(self, default_limit: int) -> Trim:
        """Return the trimming, which must have been asked for; raises :class:`CommandError`."""
        self._refuse_limit_alone()
        if self._by_length is None:
            raise CommandError(stream_errors.TRIM_STRATEGY_MISSING)
        self._refuse_limit_of_exact()
        return self._order(self._by_length, default_limit)

    def _refuse_limit_alone(self) -> None:
        if self._limit and self._by_length is None:
            raise CommandError(stream_errors.LIMIT_WITHOUT_STRATEGY)

    def _refuse_limit_of_exact(self) -> None:
        if self._limit is not None and not self._approximate:
            raise CommandError(stream_errors.LIMIT_WITHOUT_TILDE)

    def _order(self, by_length: bool, default_limit: int) -> Trim:
        limit = default_limit if self._limit is None else self._limit
        return Trim(by_length, self._threshold, self._approximate, limit, self._policy or KEEPREF)


def trim_key(db: Database, key: bytes, stream: Stream, order: Trim) -> int:
    """Trims the stream at ``key``; returns how many entries were removed."""
    if order.by_length and stream.log.length <= order.threshold and order.policy != DELREF:
        return 0
    done = trim(stream, order)
    if done.holes:
        db.emit(EntriesDeleted(db.index, key, tuple(done.holes), True))
    elif done.removed:
        log = stream.log
        db.emit(StreamTrimmed(db.index, key, done.removed, log.length, log.first))
    acknowledge_everywhere(db, key, done.references)
    return done.removed


def acknowledge_everywhere(db: Database, key: bytes, references: dict[bytes, list[int]]) -> None:
    """Tells of references that went from the pending entries lists of groups."""
    for group, gone in references.items():
        db.emit(Acknowledged(db.index, key, group, tuple(gone)))


@command(
    "XTRIM",
    flags="write",
    since="5.0.0",
    summary="Removes the oldest entries of a stream.",
    complexity="O(N) for N entries removed.",
    syntax="key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
    keys=[KeySpec("RW delete")],
    tips=["nondeterministic_output"],
    history=[("6.2.0", "MINID and LIMIT."), ("8.2.0", "KEEPREF, DELREF and ACKED.")],
)
def xtrim(server: Services, session: Session, args: Arguments) -> Reply:
    """How many entries were removed."""
    options = TrimOptions()
    at = 2
    while at < len(args):
        following = options.take(args, at)
        if following == at:
            raise CommandError(errors.SYNTAX)
        at = following
    db = session.db
    order = options.required_order(db.keyspace.limits.approximate_limit)
    stream = db.stream(args[1])
    return 0 if stream is None else trim_key(db, args[1], stream, order)
