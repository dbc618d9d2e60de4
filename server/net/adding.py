# Compiled by mypyc.
"""The fast path for XADD: requests that are added straight from the bytes that a client sent.

**The idea.** Producers send the same XADD over and over, with other values. What such a request
begins with, up to the ``*`` for its ID, says the key and the options; it is parsed once and
remembered by its bytes. What follows is stored as it is (:mod:`protocol.additions`). All XADDs of a
read that follow each other with the same beginning and the same field names are one *run*: they
share one look at the clock, one lookup, one effect, one piece of the append-only file and one
reply.

**When.** Only while nothing stands between a request and its handler, which :meth:`Adder._is_open`
decides, and only where the outcome is plain: the stream is there, it has IDs left, and no request
of the run makes a trimming remove anything. Where one does, or where a client waits for the key,
requests run one by one, each with all that follows from it. Whatever is not taken here goes the
common way, through the parser and the dispatcher, and has the same outcome there: decision 25.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from hiredis import Reader

from protocol import additions, additions_plain
from protocol.additions import AUTOMATIC, Fields, bulks_end
from protocol.errors import CommandError
from server.command_table import Command
from server.commands.add_options import addition_of
from server.commands.entry_runs import LONGEST_RUN, open_stream
from server.commands.trimming import trim_key
from server.net.turns import now_ns
from server.services import Services
from server.session import Session
from storage.effects import EntriesAdded, EntryAdded
from storage.entries import unpack
from storage.errors import StorageFailure
from storage.keyspace import Database
from storage.limits import StreamLimits
from storage.runs import Run
from storage.trimming import Trim, quiet_room

Cut = Callable[[bytes, int, bytes, Fields, int], tuple[list[bytes], int]]

IS_COMPILED: Final = not additions.__file__.endswith(".py")

LONGEST: Final = 512
"""How long what a request begins with may be to be remembered, in bytes."""
MOST: Final = 1024
"""How many of them are remembered."""
MOST_SHAPES: Final = 4
"""How many lists of field names are remembered for each."""

LEAST: Final = 2 * len(b"*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n")
"""How many bytes two requests have at least: one alone is parsed, which is as quick."""

_HEAD: Final = re.compile(rb"\*([1-9][0-9]{0,6})\r\n(?=\$4\r\n[Xx][Aa][Dd][Dd]\r\n)")


class Beginning:
    """What XADDs with the same key, options and number of fields begin with, understood.

    ``shapes`` are the lists of field names that have come with it, the newest first."""

    __slots__ = ("default_limit", "items", "key", "prefix", "shapes", "trim")

    def __init__(
        self, prefix: bytes, key: bytes, items: int, trim: Trim | None, default_limit: int
    ) -> None:
        self.prefix = prefix
        self.key = key
        self.items = items
        self.trim = trim
        self.default_limit = default_limit
        self.shapes: list[Fields] = []

    def cut(
        self, quickly: Cut, data: bytes, at: int, most: int
    ) -> tuple[list[bytes], int, Fields | None]:
        """Up to ``most`` requests at ``at`` with the same field names: what they add, where they
        end, and the names."""
        for fields in self.shapes:
            pieces, end = quickly(data, at, self.prefix, fields, most)
            if pieces:
                return pieces, end, fields
        learnt = self._learn(data, at)
        if learnt is None:
            return [], at, None
        pieces, end = quickly(data, at, self.prefix, learnt, most)
        return pieces, end, learnt

    def _learn(self, data: bytes, at: int) -> Fields | None:
        """The field names of the request at ``at``, which are remembered."""
        start = at + len(self.prefix)
        end = bulks_end(data, start, self.items)
        if end < 0:
            return None
        fields = Fields(unpack(b"*%d\r\n%b" % (self.items, data[start:end]))[::2])
        self.shapes.insert(0, fields)
        del self.shapes[MOST_SHAPES:]
        return fields


def understand(prefix: bytes, limits: StreamLimits) -> Beginning | None:
    """What requests mean that begin like this; ``None`` if they have to go the common way."""
    head = _HEAD.match(prefix)
    if head is None:
        return None
    count = 0
    end = head.end()
    while 0 <= end < len(prefix):
        end = bulks_end(prefix, end, 1)
        count += 1
    items = int(head[1]) - count
    if end < 0 or count < _FEWEST_WORDS or items < 2 or items % 2:
        return None
    words: list[bytes] = unpack(b"*%d\r\n%b" % (count, prefix[head.end() :]))
    default_limit = limits.approximate_limit
    try:
        addition = addition_of([*words, b"field", b"value"], limits)
    except (CommandError, StorageFailure):
        return None
    if addition.at != count - 1 or addition.idempotency is not None:
        return None
    return Beginning(prefix, words[1], items, addition.trim, default_limit)


_FEWEST_WORDS: Final = 3


def all_requests(data: bytes) -> list[list[bytes]]:
    """The requests that ``data`` consists of, each a list of its words."""
    reader = Reader()
    reader.feed(data)
    found: list[list[bytes]] = []
    while (words := reader.gets()) is not False:
        found.append(words)
    return found


class Adder:
    """Takes the XADDs of all clients of a server that may go the fast path.

    ``cut`` is what recognizes them, see :mod:`protocol.additions`."""

    def __init__(self, server: Services, cut: Cut | None = None) -> None:
        self._state = server.state
        self._keyspace = server.state.keyspace
        self._limits = server.state.keyspace.limits
        self._blocking = server.blocking
        self._reactions = server.reactions
        self._notifier = server.notifier
        self._pauses = server.pauses
        self._policies = server.policies
        self._interception = server.interception
        self._timings = server.state.timings
        self._command = server.state.table[b"xadd"]
        self._cut = cut or (additions.cut if IS_COMPILED else additions_plain.cut)
        self._known: dict[bytes, Beginning | None] = {}

    def _is_open(self, session: Session) -> bool:
        """Whether nothing but the outcome of its handler may answer the client's next XADD.

        Not in MULTI, before authentication, with RESP2 and subscriptions (``gated``), while CLIENT
        REPLY is OFF or SKIP, where the client is told of changes between its replies
        (``tracking``), while the server loads, a script takes long or the disk fails (``barred``),
        while clients are paused, while requests are traced or faults strike them, while every
        change is announced, and while somebody wants to see every command or how long it took
        (``single``). What a user may not add is left to the common way; see :meth:`_may_add`."""
        return not (
            session.gated
            or session.muting is not None
            or session.tracking is not None
            or self._state.barred
            or self._pauses.active
            or self._interception.active
            or self._notifier.active
            or self._timings.single
        )

    def take(self, session: Session, data: bytes) -> tuple[list[bytes], int]:
        """Runs the XADDs that ``data`` begins with, as far as they may go the fast path; returns
        their replies, and where the last of them ends."""
        replies: list[bytes] = []
        at = 0
        beginning = self._beginning_at(data, 0)
        if beginning is None or not self._is_open(session):
            return replies, 0
        if data.find(beginning.prefix, len(beginning.prefix)) < 0:
            return replies, 0  # One alone gains nothing.
        while beginning is not None and (not session.limited or self._may_add(session, beginning)):
            end = self._run(session, beginning, data, at, replies)
            if end == at:
                break
            at = end
            if data[at : at + len(beginning.prefix)] != beginning.prefix:
                beginning = self._beginning_at(data, at)
        return replies, at

    def _may_add(self, session: Session, beginning: Beginning) -> bool:
        """Whether the client's user may add to the stream, whatever else is in the request."""
        args = [b"xadd", beginning.key]
        return session.account.denial(self._command, args) is None

    def _beginning_at(self, data: bytes, at: int) -> Beginning | None:
        """How the request at ``at`` begins, if that is understood."""
        end = data.find(AUTOMATIC, at, at + LONGEST)
        if end < 0:
            return None
        prefix = data[at : end + len(AUTOMATIC)]
        known = self._known.get(prefix)
        if known is not None:
            if known.trim is None or known.default_limit == self._limits.approximate_limit:
                return known
        elif prefix in self._known:
            return None
        if len(self._known) >= MOST:
            self._known.clear()
        known = self._known[prefix] = understand(prefix, self._limits)
        return known

    def _run(
        self, session: Session, beginning: Beginning, data: bytes, at: int, replies: list[bytes]
    ) -> int:
        """Adds as many entries at once as may be; returns where their requests end."""
        db, key = session.db, beginning.key
        now = self._keyspace.now_ms = self._state.clock()
        stream = open_stream(db, key, now)
        if stream is None or (self._policies.active and self._policies.wants_groups(key, stream)):
            return at
        trim = beginning.trim
        room = LONGEST_RUN if trim is None else quiet_room(stream.log, trim)
        waited = len(self._blocking.waiting) > 0
        most = room
        if room == 0 or (waited and (db.index, key) in self._blocking.waiting):
            most = 1
        started = now_ns()
        pieces, end, fields = beginning.cut(self._cut, data, at, most)
        if fields is None:
            return at
        run = Run(stream.next_id(now), fields.names, fields.header, pieces)
        payloads = stream.add_run(run)
        self._tell(db, key, run, payloads)
        if room == 0 and trim is not None:
            trim_key(db, key, stream, trim)
        session.command = command = self._command
        self._reactions.apply(session)
        mean = self._count(session, command, len(payloads), now_ns() - started)
        if mean >= self._timings.threshold:
            for args in all_requests(data[at:end]):
                self._timings.notice(session, command, args, mean)
        if waited:
            self._reactions.drain()
        replies += run.texts
        return end

    def _count(self, session: Session, command: Command, count: int, nanoseconds: int) -> int:
        """Counts the commands of a run, which took this long together; returns the mean."""
        session.commands += count
        session.batches += 1
        session.batched += count
        self._state.stats.batches += 1
        self._state.stats.batched += count
        return self._timings.count_run(command, count, nanoseconds)

    def _tell(self, db: Database, key: bytes, run: Run, payloads: list[bytes]) -> None:
        """Emits the effect of the run; that of a single entry may be followed by a trimming's."""
        if len(payloads) == 1:
            db.emit(EntryAdded(db.index, key, run.first, payloads[0], False))
        else:
            db.emit(EntriesAdded(db.index, key, run, False))
