"""The journal: what happens, encoded once, for whoever reads it.

**Readers.** There are two at most: the append-only file (:mod:`server.persistence.commit`) and
the stream of replication (:mod:`server.replication.feed`). Nothing is taken, encoded or kept while
there is none. Each takes what is new when it can do something with it: the file when the disk is
free, the stream at the end of each round of the event loop.

**Units.** A command, a transaction or a script is one unit, which a reader gets as a whole or not
at all. Units may be nested; the outermost counts. Units are counted, so a client's last change has
a number (``session.noted``), by which it is known whether it is on the disk, and whom a write that
fails concerns. What cuts a file or a stream (a rewrite, DEBUG RELOAD, a full synchronisation)
splits an open unit first.

**Encoding.** The commands are those of :mod:`storage.aof.encode_effects`, which a real Redis runs.
They follow each other: a database is selected when it is another than before, and a delivery may
be added to the one with which ``log`` ends, as long as no reader has taken that. So where there are
two readers, deliveries share a unit up to the end of a round. A reader that begins anew is told the
database, and the other one is not told again what it knows: that SELECT is left out of what it
gets.

**Rejected.** An encoder for each reader: it would encode everything twice to save a SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from server.dispatch.reactions import Reactions
from server.state.server_state import ServerState
from server.state.session import Session
from storage.aof.commands import SELECT
from storage.aof.encode_effects import EffectEncoder
from storage.engine.effects import Effect


class Journal:
    """Takes the effects of all commands, and lets its readers know."""

    def __init__(self, state: ServerState, reactions: Reactions) -> None:
        self._state = state
        self._reactions = reactions
        self._readers: list[JournalReader] = []
        self._beginning: list[JournalReader] = []
        """Those that have begun anew, and have not been told since which database is selected."""
        self._selected = b""
        """The SELECT that the others were told last."""
        self._encoder = EffectEncoder(state.keyspace)
        self.log: list[bytes] = []
        """What has been encoded and no reader has been given yet."""
        self.unit: list[Effect] | None = None
        """What has happened in the unit that is open, if one is."""
        self._unit_authors: dict[Session, None] = {}
        self._units_open = 0
        self.count = 0
        """How many units there have been."""
        self.authors: dict[Session, None] | None = None
        """Whose changes the stream of replication has not got yet, while there is one."""
        self._dated = self._dating = False
        self._second = 0
        state.config.listen("aof-timestamp-enabled", self._set_dating)

    def _set_dating(self, wanted: bool) -> None:
        self._dating = wanted

    # --- readers --------------------------------------------------------------------------

    def add(self, reader: JournalReader) -> None:
        """Lets a reader have what happens from now on."""
        self.share()
        if not self._readers:
            self._encoder = EffectEncoder(self._state.keyspace)
        self._readers.append(reader)
        self._note_readers()

    def remove(self, reader: JournalReader) -> None:
        """Lets a reader have nothing any more."""
        self.share()
        self._readers.remove(reader)
        if reader in self._beginning:
            self._beginning.remove(reader)
        self._note_readers()

    def _note_readers(self) -> None:
        self._reactions.record = self.note if self._readers else None
        self._dated = any(reader.dated for reader in self._readers)

    def share(self) -> None:
        """Gives each reader what has been encoded; what comes next is a unit by itself."""
        if self.log:
            for reader in self._readers:
                reader.pieces += self.log
            if self._beginning:
                self._spare_others()
            self.log.clear()

    def _spare_others(self) -> None:
        """Takes back the first SELECT from those who know it: it is for those who begin anew."""
        first = next((piece for piece in self.log if piece.startswith(SELECT)), b"")
        for reader in self._readers if first and first == self._selected else ():
            if reader not in self._beginning:
                del reader.pieces[reader.pieces.index(first, -len(self.log))]
        if first:
            self._beginning.clear()

    def begin(self, reader: JournalReader) -> None:
        """Begins a file or a stream: what the reader gets from now on depends on nothing before."""
        if len(self._readers) > 1:
            self._encoder.write_new_settings(self.log)
            self.share()
            if not self._beginning:
                self._selected = self._encoder.selected
            self._beginning.append(reader)
        self._encoder.begin(reader.pieces)

    # --- taking effects -------------------------------------------------------------------

    def note(self, effects: Sequence[Effect], session: Session | None) -> None:
        """Takes the effects of one command; inside a unit they are kept until its end."""
        if session is not None and self.authors is not None:
            self.authors[session] = None
        if self.unit is None:
            self._append(effects)
            if session is not None:
                session.noted = self.count
        else:
            self.unit += effects
            if session is not None:
                self._unit_authors[session] = None
            if self._state.busy is None:  # What takes long has not happened before its end.
                self._tell()

    def begin_unit(self) -> None:
        """Let what follows count as a whole or not at all; units within count as part of it."""
        self._units_open += 1
        if self.unit is None:
            self.unit = []

    def end_unit(self) -> None:
        """The unit is complete."""
        self._units_open -= 1
        if not self._units_open:
            effects, self.unit = self.unit, None
            self._append_unit(effects)

    def split_unit(self) -> None:
        """Let what the unit holds so far be written now; what follows is another."""
        if self.unit is not None:
            effects, self.unit = self.unit, []
            self._append_unit(effects)

    def _append_unit(self, effects: Sequence[Effect] | None) -> None:
        if effects and self._readers:
            self._append(effects)
        for session in self._unit_authors:
            session.noted = self.count
        self._unit_authors.clear()

    def _append(self, effects: Sequence[Effect]) -> None:
        self.count += 1
        log = self.log
        before = len(log)
        dated = self._dated and self._dating
        if dated:  # The time may have to stand before it.
            self._encoder.split()
        self._encoder.append(effects, log)
        if len(log) > before:
            if dated:
                self._date(before)
            self._tell()

    def _date(self, at: int) -> None:
        """Puts the time in front of what was just encoded, once a second, where it is wanted."""
        second = self._state.keyspace.now_ms // 1000
        if second != self._second:
            self._second = second
            unit = self.log[at:]
            del self.log[at:]
            self.share()
            for reader in self._readers:
                if reader.dated:
                    reader.pieces.append(b"#TS:%d\r\n" % second)
            self.log += unit

    def note_seen(self) -> None:
        """Encodes when consumers were last seen, as far as that was not said yet; this, and how a
        file begins that has nothing else yet, is then to be written."""
        self._encoder.flush_seen(self.log)
        if self.log or any(reader.pieces for reader in self._readers):
            self._tell()

    def _tell(self) -> None:
        """Lets readers know that there is something new, or will be at the end of the unit."""
        for reader in self._readers:
            reader.on_news()


class JournalReader:
    """Reads the journal from when it is attached on.

    ``on_news`` is called when there is something new, or will be when the unit has ended. One that
    is ``dated`` is told the time, once a second, if ``aof-timestamp-enabled`` says so.
    """

    __slots__ = ("_journal", "attached", "dated", "on_news", "pieces")

    def __init__(
        self, journal: Journal, on_news: Callable[[], None], *, dated: bool = False
    ) -> None:
        self._journal = journal
        self.on_news = on_news
        self.dated = dated
        self.attached = False
        self.pieces: list[bytes] = []
        """What it has been given and has not taken yet, before what is in the log."""

    def attach(self) -> None:
        """Lets the reader have what happens from now on."""
        if not self.attached:
            self.attached = True
            self._journal.add(self)

    def detach(self) -> None:
        """Forgets what was not taken; what happens from now on is not for this reader."""
        if self.attached:
            self.attached = False
            self._journal.remove(self)
        self.pieces.clear()

    @property
    def has_news(self) -> bool:
        """Whether there is anything to take."""
        return bool(self.pieces) or (self.attached and bool(self._journal.log))

    @property
    def size(self) -> int:
        """How many bytes there are to take."""
        log = self._journal.log if self.attached else ()
        return sum(map(len, self.pieces)) + sum(map(len, log))

    def take(self) -> bytes:
        """Takes all that is new."""
        self._journal.share()
        data = b"".join(self.pieces)
        self.pieces.clear()
        return data

    def give_back(self, data: bytes) -> None:
        """Puts what was taken in its place again: it could not be written."""
        self.pieces.insert(0, data)

    def begin(self) -> None:
        """Begins a file or a stream: what the reader gets from now on depends on nothing before."""
        self._journal.begin(self)

    def say(self, data: bytes) -> None:
        """Adds what is no effect, for this reader alone."""
        self._journal.share()
        self.pieces.append(data)
        self.on_news()
