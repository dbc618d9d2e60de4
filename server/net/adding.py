"""Add XADD requests straight from the bytes that a client sent.

**The idea.** What an XADD begins with, its ID included, says the key and the options.
What follows is stored as it is (:mod:`protocol.additions`), whatever the fields are called. All
XADDs of a read that follow each other with the same beginning are one *run*: they share one lookup,
one effect, one piece of the append-only file and one reply. All runs of a read, for whatever keys,
share one look at the clock.

**When.** Only while nothing stands between a request and its handler, which the connection sees
(:mod:`server.core.reasons`), and only where the outcome is plain: the stream is there, it has IDs
left, and no request of the run makes a trimming remove anything. Where one does, or where a client
waits for the key, requests run one by one, each with all that follows from it. Whatever is not
taken here goes the common way, through the parser and the dispatcher, and has the same outcome
there: decision 25.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hiredis import Reader

from protocol import additions, additions_plain
from protocol.additions import Form
from protocol.errors import CommandError
from server.commands.streams.adding import LONGEST_RUN, addition_of, open_stream
from server.commands.streams.trimming import trim_key
from server.core.reasons import LIMITED
from server.services import Services
from server.state.session import Session
from storage.engine import ids
from storage.engine.effects import EntriesAdded, EntryAdded
from storage.engine.limits import StreamLimits
from storage.engine.runs import Moment, Run, text_of
from storage.engine.stream import Stream
from storage.engine.trimming import Trim, quiet_room
from storage.errors import StorageFailure

FormAt = Callable[[bytes, int], Form | None]
Cut = Callable[[bytes, int, Form, int, list[bytes]], tuple[list[bytes], int, bool]]

IS_COMPILED: Final = not additions.__file__.endswith(".py")

LEAST: Final = len(b"*5\r\n$4\r\nXADD\r\n$0\r\n\r\n$1\r\n*\r\n$0\r\n\r\n$0\r\n\r\n")
"""How many bytes a request has at least."""

MOST_OPTIONS: Final = 64
"""How many spellings of options are remembered with what they mean."""


class Options:
    """The meaning of the options of an XADD: a trimming, if any; ``plain`` is false for what has to
    go the common way. ``default_limit`` is the setting from which a trimming got how much it
    removes."""

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


_FEW: Final = 8
"""So many entries are added sooner one by one than as a run, if nobody wants to know of them."""
_NO_OPTIONS: Final = Options(b"", StreamLimits())


class Read:
    """The bytes of one read of a client, and the replies to its XADDs. ``heeded`` tells whether
    somebody wants to know of each entry (see :attr:`.Reactions.heeded`)."""

    __slots__ = ("data", "db", "heeded", "moment", "replies", "session")

    def __init__(self, session: Session, data: bytes, moment: Moment, heeded: bool) -> None:
        self.session = session
        self.db = session.db
        self.data = data
        self.moment = moment
        self.heeded = heeded
        self.replies: list[bytes] = []


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
        self._watch = server.state.stopwatch
        self._command = server.state.table[b"xadd"]
        # Compiled functions call each other directly, which saves a tenth of a request.
        self._direct = IS_COMPILED and form_at is None and cut is None
        self._other_form_at = form_at or additions_plain.Forms().form_at
        self._other_cut = cut or additions_plain.cut
        self._options: dict[bytes, Options] = {}
        self._moment = Moment(0)

    def take(
        self, session: Session, data: bytes, start: int, until_ns: int
    ) -> tuple[list[bytes], int]:
        """Runs the XADDs that stand at ``start`` in ``data``, as far as they may go the fast path;
        returns their replies, and where the last of them ends. Nothing but :data:`.LIMITED` may
        stand between the client's requests and their handlers; what its user may not add is left
        to the common way, key by key.

        Where each of them may wake others, none begins after ``until_ns`` of the stopwatch."""
        form = self._form_at(data, start, None)
        if form is None:
            return [], start
        watch = self._watch
        if watch.ns >= watch.stale_ns:
            watch.begin()
        self._keyspace.now_ms = watch.ms
        if self._moment.ms != watch.ms:
            self._moment = Moment(watch.ms)
        read = Read(session, data, self._moment, self._reactions.heeded)
        session.command = self._command
        at = start
        counted = 0
        began = watch.ns
        limited = session.reasons & LIMITED
        while form is not None and (not limited or self._may_add(session, form.key)):
            end = self._run(read, form, at)
            if end == at:
                break
            at = end
            if self._blocking.waiting:
                self._count(read, start, at, counted, watch.tick() - began)
                counted = len(read.replies)
                self._reactions.drain()
                began = watch.tick()
                if began > until_ns:
                    break
            if at == len(data):
                break
            # An entry that is followed by a trimming was added alone: others like it may follow.
            if not form.options or not additions.goes_on(data, at, form):
                form = self._form_at(data, at, form)
        if len(read.replies) > counted:
            self._count(read, start, at, counted, watch.tick() - began)
        return read.replies, at

    def _form_at(self, data: bytes, at: int, spare: Form | None) -> Form | None:
        """See :func:`protocol.additions.form_at`."""
        return additions.form_at(data, at, spare) if self._direct else self._other_form_at(data, at)

    def _cut(
        self, data: bytes, at: int, form: Form, most: int, names: list[bytes]
    ) -> tuple[list[bytes], int, bool]:
        """See :func:`protocol.additions.cut`."""
        if self._direct:
            return additions.cut(data, at, form, most, names)
        return self._other_cut(data, at, form, most, names)

    def _may_add(self, session: Session, key: bytes) -> bool:
        """Whether the client's user may add to the stream, whatever else is in the request."""
        args = [b"xadd", key]
        return session.account.denial(self._command, args) is None

    def _options_of(self, text: bytes) -> Options:
        """Return the meaning of the options of a request, as the settings are now."""
        options = self._options.get(text)
        if options is None or options.default_limit != self._limits.approximate_limit:
            if len(self._options) >= MOST_OPTIONS:
                self._options.clear()
            options = self._options[text] = Options(text, self._limits)
        return options

    def _run(self, read: Read, form: Form, at: int) -> int:
        """Adds as many entries at once as may be; returns where their requests end."""
        options = self._options_of(form.options) if form.options else _NO_OPTIONS
        if not options.plain:
            return at
        stream = open_stream(read.db, form.key, self._keyspace.now_ms)
        if stream is None or (
            self._policies.active and self._policies.wants_groups(read.db, form.key, stream)
        ):
            return at
        entry_id = ids.MIN
        if form.ms >= 0:
            if not stream.admits(form.ms, form.seq):
                return at
            entry_id = ids.join(form.ms, form.seq)
        trim = options.trim
        room = LONGEST_RUN if trim is None else quiet_room(stream, trim)
        waiting = self._blocking.waiting
        alone = room == 0 or (len(waiting) > 0 and (read.db.index, form.key) in waiting)
        heeded = read.heeded or alone
        most = 1 if alone or form.ms >= 0 else room
        count, end = self._add(read, form, stream, entry_id, at, most, heeded)
        if room == 0 and count and trim is not None:
            trim_key(read.db, form.key, stream, trim)
        if heeded:
            self._reactions.apply(read.session)
        else:
            self._state.changes += count
        return end

    def _add(
        self,
        read: Read,
        form: Form,
        stream: Stream,
        entry_id: int,
        at: int,
        most: int,
        heeded: bool,
    ) -> tuple[int, int]:
        """Adds up to so many entries; returns how many, and where their requests end."""
        names = stream.log.names()
        if self._direct:
            # Nothing is put into lists for a request that stands alone.
            start = at + form.size
            end, alike = additions.end_of(read.data, start, form, names)
            if end < 0:
                return 0, at
            if most == 1 or not additions.goes_on(read.data, end, form):
                piece = read.data[start:end]
                self._add_one(read, form, stream, entry_id, piece, alike, heeded)
                return 1, end
        pieces, end, alike = self._cut(read.data, at, form, most, names)
        if len(pieces) > 1 and (heeded or len(pieces) > _FEW):
            self._add_together(read, form, stream, pieces, names if alike else None)
        else:
            for piece in pieces:
                self._add_one(read, form, stream, entry_id, piece, alike, heeded)
        return len(pieces), end

    def _add_one(
        self,
        read: Read,
        form: Form,
        stream: Stream,
        entry_id: int,
        piece: bytes,
        alike: bool,
        heeded: bool,
    ) -> None:
        """Adds an entry with these fields and values, and with this ID if the form gives one."""
        ms, seq, text = form.ms, form.seq, form.text
        if ms < 0:
            moment = read.moment
            number: int = stream.next_usual(moment)
            ms, seq = moment.ms, number
            if number >= 0:
                entry_id, text = moment.id_of(number)
            else:
                entry_id = stream.next_from(moment.first)
                ms, text = ids.UNKNOWN, text_of(*ids.split(entry_id))
        payload = b"*2\r\n%b%b%b" % (text, form.header, piece)
        stream.add_packed(entry_id, ms, seq, payload, len(form.header) + len(piece), alike)
        read.replies.append(text)
        if heeded:
            read.db.emit(EntryAdded(read.db.index, form.key, entry_id, payload, False))

    def _add_together(
        self, read: Read, form: Form, stream: Stream, pieces: list[bytes], names: list[bytes] | None
    ) -> None:
        """Adds entries with these fields and values as a run."""
        moment = read.moment
        number: int = stream.next_usual(moment)
        if number >= 0:
            first = moment.first + number
            run = Run(first, form.fields, names, pieces, moment.ms, number)
        else:
            run = Run(stream.next_from(moment.first), form.fields, names, pieces)
        stream.add_run(run)
        read.replies += run.texts
        if read.heeded:
            read.db.emit(EntriesAdded(read.db.index, form.key, run, False))

    def _count(self, read: Read, start: int, end: int, counted: int, nanoseconds: int) -> None:
        """Counts the commands that were answered behind so many others, which took this long
        together; the first of all is at ``start``, and the last one ends at ``end``."""
        session, high = read.session, len(read.replies)
        count = high - counted
        session.commands += count
        mean = self._timings.count_run(self._command, count, nanoseconds)
        if mean >= self._timings.threshold:
            for args in _built(read.data[start:end])[counted:high]:
                self._timings.notice(session, self._command, args, mean)
