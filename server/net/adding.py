# Compiled by mypyc.
"""Add XADD requests straight from the bytes that a client sent.

**The idea.** What an XADD begins with, up to the ``*`` for its ID, says the key and the options.
What follows is stored as it is (:mod:`protocol.additions`), whatever the fields are called. All
XADDs of a read that follow each other with the same beginning are one *run*: they share one lookup,
one effect, one piece of the append-only file and one reply. All runs of a read, for whatever keys,
share one look at the clock.

**When.** Only while nothing stands between a request and its handler, which :meth:`Adder._is_open`
decides, and only where the outcome is plain: the stream is there, it has IDs left, and no request
of the run makes a trimming remove anything. Where one does, or where a client waits for the key,
requests run one by one, each with all that follows from it. Whatever is not taken here goes the
common way, through the parser and the dispatcher, and has the same outcome there: decision 25.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hiredis import Reader

from protocol import additions, additions_plain
from protocol.additions import AUTOMATIC, Form
from protocol.errors import CommandError
from server.commands.streams.adding import LONGEST_RUN, addition_of, open_stream
from server.commands.streams.trimming import trim_key
from server.net.turns import now_ns
from server.road.reasons import LIMITED
from server.road.session import Session
from server.services import Services
from storage.engine.effects import EntriesAdded, EntryAdded
from storage.engine.limits import StreamLimits
from storage.engine.runs import Run, text_of
from storage.engine.trimming import Trim, quiet_room
from storage.errors import StorageFailure

FormAt = Callable[[bytes, int], Form | None]
Cut = Callable[[bytes, int, Form, int], tuple[list[bytes], int, list[bytes] | None]]

IS_COMPILED: Final = not additions.__file__.endswith(".py")

LEAST: Final = 2 * len(b"*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n")
"""How many bytes two requests have at least: one alone gains nothing here."""

MOST_OPTIONS: Final = 64
"""How many spellings of options are remembered with what they mean."""


class Options:
    """What options of an XADD mean: a trimming, if any; ``plain`` is false for what has to go the
    common way. ``default_limit`` is the setting from which a trimming got how much it removes."""

    __slots__ = ("default_limit", "plain", "trim")

    def __init__(self, text: bytes, limits: StreamLimits) -> None:
        """Reads options that stand in a request as bulk strings; wrong ones are not plain."""
        self.default_limit = limits.approximate_limit
        self.plain = False
        self.trim: Trim | None = None
        words = [b"xadd", b"key", *_built(text), b"*", b"field", b"value"]
        try:
            addition = addition_of(words, limits)
        except (CommandError, StorageFailure):
            return
        self.plain = addition.at == len(words) - 3 and addition.idempotency is None
        self.trim = addition.trim


def _built(proved: bytes) -> list[Any]:
    """Return the requests, or the bulk strings, that follow each other in ``proved``."""
    reader = Reader()
    reader.feed(proved)
    return list(iter(reader.gets, False))


class Adder:
    """Takes the XADDs of all clients of a server that may go the fast path.

    ``form_at`` and ``cut`` are what knows them, see :mod:`protocol.additions`."""

    def __init__(
        self, server: Services, form_at: FormAt | None = None, cut: Cut | None = None
    ) -> None:
        self._state = server.state
        self._keyspace = server.state.keyspace
        self._limits = server.state.keyspace.limits
        self._blocking = server.blocking
        self._reactions = server.reactions
        self._policies = server.policies
        self._timings = server.state.timings
        self._command = server.state.table[b"xadd"]
        if IS_COMPILED:
            self._form_at, self._cut = form_at or additions.form_at, cut or additions.cut
        else:
            self._form_at = form_at or additions_plain.Forms().form_at
            self._cut = cut or additions_plain.cut
        self._options: dict[bytes, Options] = {}

    def _is_open(self, session: Session) -> bool:
        """Whether nothing but the outcome of its handler may answer the client's next XADD.

        What a user may not add is left to the common way; see :meth:`_may_add`."""
        return self._state.reasons | session.reasons | LIMITED == LIMITED

    def take(self, session: Session, data: bytes, start: int) -> tuple[list[bytes], int]:
        """Runs the XADDs that stand at ``start`` in ``data``, as far as they may go the fast path;
        returns their replies, and where the last of them ends."""
        replies: list[bytes] = []
        if not self._is_open(session) or data.find(AUTOMATIC, start + LEAST // 2) < 0:
            return replies, start
        form = self._form_at(data, start)
        if form is None:
            return replies, start
        self._keyspace.now_ms = self._state.clock()
        at = start
        counted = 0
        began = now_ns()
        while form is not None and self._may_add(session, form.key):
            end = self._run(session, form, data, at, replies)
            if end == at:
                break
            at = end
            if self._blocking.waiting:
                self._count(session, data[start:at], counted, len(replies), now_ns() - began)
                counted = len(replies)
                self._reactions.drain()
                began = now_ns()
            if data[at : at + len(form.prefix)] != form.prefix:
                form = self._form_at(data, at)
        self._count(session, data[start:at], counted, len(replies), now_ns() - began)
        return replies, at

    def _may_add(self, session: Session, key: bytes) -> bool:
        """Whether the client's user may add to the stream, whatever else is in the request."""
        if not session.reasons & LIMITED:
            return True
        args = [b"xadd", key]
        return session.account.denial(self._command, args) is None

    def _options_of(self, text: bytes) -> Options:
        """What the options of a request mean, as the settings are now."""
        options = self._options.get(text)
        if options is None or options.default_limit != self._limits.approximate_limit:
            if len(self._options) >= MOST_OPTIONS:
                self._options.clear()
            options = self._options[text] = Options(text, self._limits)
        return options

    def _run(self, session: Session, form: Form, data: bytes, at: int, replies: list[bytes]) -> int:
        """Adds as many entries at once as may be; returns where their requests end."""
        trim: Trim | None = None
        if form.options:
            options = self._options_of(form.options)
            if not options.plain:
                return at
            trim = options.trim
        db, key = session.db, form.key
        now = self._keyspace.now_ms
        stream = open_stream(db, key, now)
        if stream is None or (
            self._policies.active and self._policies.wants_groups(db, key, stream)
        ):
            return at
        room = LONGEST_RUN if trim is None else quiet_room(stream.log, trim)
        most = room
        if room == 0 or (db.index, key) in self._blocking.waiting:
            most = 1
        pieces, end, names = self._cut(data, at, form, most)
        if not pieces:
            return at
        identity = stream.next_id(now)
        if len(pieces) == 1:
            text = text_of(identity)
            payload = stream.add_packed(identity, text, form.header + pieces[0], names)
            db.emit(EntryAdded(db.index, key, identity, payload, False))
            replies.append(text)
            if room == 0 and trim is not None:
                trim_key(db, key, stream, trim)
        else:
            run = Run(identity, form.fields, names, pieces)
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
            for args in _built(data)[low:high]:
                self._timings.notice(session, self._command, args, mean)
