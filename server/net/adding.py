# Compiled by mypyc.
"""The fast path for XADD: requests that are added straight from the bytes that a client sent.

**The idea.** Producers send the same XADD over and over, with other values. What such a request
begins with, up to the ``*`` for its ID, says the key and the options; it is parsed once and
remembered by its bytes. What follows is stored as it is (:mod:`protocol.additions`). All XADDs of a
read that follow each other with the same beginning are one *run*, whatever their fields are: they
share one lookup, one effect, one piece of the append-only file and one reply. All runs of a read
share one look at the clock.

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
from protocol.additions import AUTOMATIC, Form, bulks_end
from protocol.errors import CommandError
from server.commands.streams.adding import LONGEST_RUN, addition_of, open_stream
from server.commands.streams.trimming import trim_key
from server.net.turns import now_ns
from server.road.reasons import LIMITED
from server.road.session import Session
from server.services import Services
from storage.engine.effects import EntriesAdded, EntryAdded
from storage.engine.entries import unpack
from storage.engine.limits import StreamLimits
from storage.engine.runs import Run, text_of
from storage.engine.trimming import Trim, quiet_room
from storage.errors import StorageFailure

Cut = Callable[[bytes, int, Form, int], tuple[list[bytes], int, list[bytes] | None]]

IS_COMPILED: Final = not additions.__file__.endswith(".py")

LONGEST: Final = 512
"""How long what a request begins with may be to be remembered, in bytes."""
MOST: Final = 1024
"""How many of them are remembered."""

LEAST: Final = 2 * len(b"*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n")
"""How many bytes two requests have at least: one alone is parsed, which is as quick."""

_HEAD: Final = re.compile(rb"\*([1-9][0-9]{0,6})\r\n(?=\$4\r\n[Xx][Aa][Dd][Dd]\r\n)")


class Beginning(Form):
    """What XADDs with the same key, options and number of fields begin with, understood."""

    __slots__ = ("default_limit", "key", "trim")

    def __init__(
        self, prefix: bytes, key: bytes, fields: int, trim: Trim | None, default_limit: int
    ) -> None:
        super().__init__(prefix, fields)
        self.key = key
        self.trim = trim
        self.default_limit = default_limit


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
    return Beginning(prefix, words[1], items // 2, addition.trim, default_limit)


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
        self._policies = server.policies
        self._timings = server.state.timings
        self._command = server.state.table[b"xadd"]
        self._cut = cut or (additions.cut if IS_COMPILED else additions_plain.cut)
        self._known: dict[bytes, Beginning | None] = {}
        self._length = 0
        """How long the last beginning was: most producers have keys of the same length."""

    def _is_open(self, session: Session) -> bool:
        """Whether nothing but the outcome of its handler may answer the client's next XADD.

        What a user may not add is left to the common way; see :meth:`_may_add`."""
        return self._state.reasons | session.reasons | LIMITED == LIMITED

    def take(self, session: Session, data: bytes) -> tuple[list[bytes], int]:
        """Runs the XADDs that ``data`` begins with, as far as they may go the fast path; returns
        their replies, and where the last of them ends."""
        replies: list[bytes] = []
        beginning = self._beginning_at(data, 0)
        if beginning is None or not self._is_open(session):
            return replies, 0
        if data.find(AUTOMATIC, len(beginning.prefix)) < 0:
            return replies, 0  # One alone gains nothing.
        self._keyspace.now_ms = self._state.clock()
        at = counted = 0
        started = now_ns()
        while beginning is not None and self._may_add(session, beginning):
            end = self._run(session, beginning, data, at, replies)
            if end == at:
                break
            at = end
            if self._blocking.waiting:
                self._count(session, data[:at], counted, len(replies), now_ns() - started)
                counted = len(replies)
                self._reactions.drain()
                started = now_ns()
            if data[at : at + len(beginning.prefix)] != beginning.prefix:
                beginning = self._beginning_at(data, at)
        self._count(session, data[:at], counted, len(replies), now_ns() - started)
        return replies, at

    def _may_add(self, session: Session, beginning: Beginning) -> bool:
        """Whether the client's user may add to the stream, whatever else is in the request."""
        if not session.reasons & LIMITED:
            return True
        args = [b"xadd", beginning.key]
        return session.account.denial(self._command, args) is None

    def _beginning_at(self, data: bytes, at: int) -> Beginning | None:
        """How the request at ``at`` begins, if that is understood."""
        usual = self._known.get(data[at : at + self._length])
        if usual is not None and usual.trim is None:
            return usual
        end = data.find(AUTOMATIC, at, at + LONGEST)
        if end < 0:
            return None
        prefix = data[at : end + len(AUTOMATIC)]
        self._length = len(prefix)
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
        now = self._keyspace.now_ms
        stream = open_stream(db, key, now)
        if stream is None or (self._policies.active and self._policies.wants_groups(key, stream)):
            return at
        trim = beginning.trim
        room = LONGEST_RUN if trim is None else quiet_room(stream.log, trim)
        most = room
        if room == 0 or (db.index, key) in self._blocking.waiting:
            most = 1
        pieces, end, names = self._cut(data, at, beginning, most)
        if not pieces:
            return at
        identity = stream.next_id(now)
        if len(pieces) == 1:
            text = text_of(identity)
            payload = stream.add_packed(identity, text, beginning.header + pieces[0], names)
            db.emit(EntryAdded(db.index, key, identity, payload, False))
            replies.append(text)
            if room == 0 and trim is not None:
                trim_key(db, key, stream, trim)
        else:
            run = Run(identity, beginning.fields, names, pieces)
            stream.add_run(run)
            db.emit(EntriesAdded(db.index, key, run, False))
            replies += run.texts
        session.command = self._command
        self._reactions.apply(session)
        return end

    def _count(self, session: Session, data: bytes, low: int, high: int, nanoseconds: int) -> None:
        """Counts the commands from place to place in ``data``, which took this long together."""
        count = high - low
        if not count:
            return
        session.commands += count
        session.link.batches += 1
        session.link.batched += count
        self._state.stats.batches += 1
        self._state.stats.batched += count
        mean = self._timings.count_run(self._command, count, nanoseconds)
        if mean >= self._timings.threshold:
            for args in all_requests(data)[low:high]:
                self._timings.notice(session, self._command, args, mean)
