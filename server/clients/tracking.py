"""Client-side caching: who keeps copies of which keys, and who is told that they are out of date.

There are two modes. By default the server notes the keys that a client reads, and tells it once
when one of them changes; then the key is forgotten until it is read again. With BCAST nothing is
noted: a client is told of every key that has changed and begins with one of its prefixes.

**Noting reads costs nothing while nobody tracks.** The commands that only read are run by their
handlers as always. While any client tracks in the default mode, each of these handlers is replaced
by one that notes the keys afterwards (:meth:`KeyTracking._noting`): a transaction, a script and a
blocked reader run the same handlers, so there is nothing else to think of.

**Order.** A notice for the client whose own command changed the key goes behind the reply of that
command, as every push does. Keys for BCAST are gathered until the requests of this round of the
event loop have been answered, and go out in one notice for each prefix.

**The table** keeps the number of a client, not its session: a client that has turned tracking off
and on again is still told of what it read before, as in Redis. Numbers of clients that are gone
stay until their key changes, until the bound ``tracking-table-max-keys`` pushes it out, or until no
client is left that has ever tracked. Decision 31.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from protocol.encoder import encode
from protocol.replies import Bulk, Push, Reply
from server.core.outcomes import Outcome, Wait
from server.core.table import Arguments, Command, Handler, every
from server.runtime.clockwork import EndOfRound
from server.state.server_state import ServerState
from server.state.session import ClientTracking, Session
from storage.engine import effects as e

CHANNEL: Final = "__redis__:invalidate"
"""Where a RESP2 client that others redirect to gets its notices, as messages."""


def _own(effect: Any) -> tuple[bytes, ...]:
    return (effect.key,)


CHANGED: Final[dict[type, Callable[[Any], tuple[bytes, ...]]]] = {
    e.Changed: lambda effect: effect.keys,
    e.KeyRenamed: lambda effect: (effect.key, effect.target),
    e.KeyCopied: lambda effect: (effect.target,),
    e.KeyMoved: _own,
    e.StreamRestored: _own,
    e.StreamPutBack: _own,
    e.StreamCreated: _own,
    e.EntryAdded: _own,
    e.EntriesAdded: _own,
    e.StreamTrimmed: _own,
    e.EntriesDeleted: _own,
}
"""Which keys are not what they were after an effect of this kind, in the order in which clients are
told. What only changes groups is not here, and neither are whole databases, see
:meth:`KeyTracking.flush`."""


class Notice:
    """A message to clients: that these keys have changed, or all there are (``None``). It is
    encoded once for each protocol."""

    __slots__ = ("_keys", "_message", "_push")

    def __init__(self, keys: list[bytes] | None) -> None:
        self._keys = keys
        self._push = b""
        self._message = b""

    def _payload(self) -> Reply:
        return None if self._keys is None else [Bulk(key) for key in self._keys]

    def push(self) -> bytes:
        """For a client that speaks RESP3."""
        if not self._push:
            self._push = encode(Push(["invalidate", self._payload()]), True)
        return self._push

    def message(self) -> bytes:
        """For a subscriber that speaks RESP2."""
        if not self._message:
            self._message = encode(Push(["message", CHANNEL, self._payload()]), False)
        return self._message


class Prefix:
    """The clients that are told of all keys with a prefix, and the keys that have changed since
    they were told, each with the client that changed it last, if a client's own command did."""

    __slots__ = ("changed", "sessions")

    def __init__(self) -> None:
        self.sessions: dict[Session, None] = {}
        self.changed: dict[bytes, Session | None] = {}


class KeyTracking:
    """The keys and the prefixes that the clients of a server track.

    ``apply`` lets effects have their consequences, see :meth:`.Reactions.apply`.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._sessions = state.sessions
        self.apply: Callable[[Session], None] = lambda session: None
        self.clients: dict[Session, None] = {}
        """Those that track now."""
        self.active = False
        """Whether anybody may have to be told of changes."""
        self.items = 0
        """How many pairs of a key and a client there are."""
        self.keys: OrderedDict[bytes, int | set[int]] = OrderedDict()
        """The clients that have read each key, by number: one, or several."""
        self._numbers: set[int] = set()
        """The connected clients that may be among them."""
        self._readers = 0
        self._replaced: dict[Command, Handler] = {}
        self.prefixes: dict[bytes, Prefix] = {}
        self._lengths: list[int] = []
        self._pending: dict[bytes, Prefix] = {}
        self._round = EndOfRound(self.broadcast)
        self._most = 0
        self._later: list[tuple[ClientTracking, Notice]] = []
        state.config.listen("tracking-table-max-keys", self._bound)

    # --- clients --------------------------------------------------------------------------

    def start(self, session: Session, options: ClientTracking) -> None:
        """The client tracks with these options; of a client that tracks already the mode must be
        the same, and prefixes are added to those that it has."""
        tracking = session.tracking
        if tracking is None:
            tracking = session.tracking = ClientTracking(session.id)
            self.clients[session] = None
            if not options.bcast:
                self._readers += 1
                self._numbers.add(session.id)
        tracking.take(options)
        if options.bcast:
            for prefix in options.prefixes or [b""]:
                self._add_prefix(session, tracking, prefix)
        session.update_reasons()
        self._update()

    def stop(self, session: Session) -> None:
        """The client does not track any more, if it did."""
        tracking = session.tracking
        if tracking is None:
            return
        session.tracking = None
        session.update_reasons()
        del self.clients[session]
        if not tracking.bcast:
            self._readers -= 1
        for prefix in tracking.prefixes:
            self._remove_prefix(session, prefix)
        self._update()

    def forget(self, session: Session) -> None:
        """The client is gone; with the last one that has tracked the table goes, too."""
        self.stop(session)
        if session.id in self._numbers:
            self._numbers.discard(session.id)
            if not self._numbers:
                self._clear()
            self._update()

    def _clear(self) -> None:
        self._state.keyspace.limits.disposal.drop(self.keys)
        self.keys = OrderedDict()
        self.items = 0

    def _update(self) -> None:
        """Sees whether changes have to be looked at, and whether reads have to be noted."""
        self.active = len(self.clients) > 0 or len(self.keys) > 0
        if self._readers and not self._replaced:
            for command in every(self._state.table):
                if _is_noted(command):
                    self._replaced[command] = command.handler
                    command.handler = self._noting(command, command.handler)
        elif not self._readers and self._replaced:
            for command, handler in self._replaced.items():
                command.handler = handler
            self._replaced = {}

    # --- what is read ---------------------------------------------------------------------

    def _noting(self, command: Command, handler: Handler) -> Handler:
        """A handler that does what ``handler`` does, and notes the keys if the client wants it."""

        def run(server: Any, session: Session, args: Arguments) -> Outcome:
            tracking = session.tracking
            if tracking is None or not tracking.notes_reads:
                return handler(server, session, args)
            number = tracking.client

            def note() -> None:
                # A key that has expired is forgotten first, and then noted as one that is missing.
                self.apply(session)
                for key, _ in command.key_uses(args):
                    self._note(key, number)

            return _followed(lambda: handler(server, session, args), note)

        return run

    def _note(self, key: bytes, number: int) -> None:
        """The client has read the key."""
        readers = self.keys.get(key)
        if readers is None:
            self.keys[key] = number
            self.items += 1
            if len(self.keys) > self._most > 0:
                self._evict()
        elif isinstance(readers, int):
            if readers != number:
                self.keys[key] = {readers, number}
                self.items += 1
        elif number not in readers:
            readers.add(number)
            self.items += 1

    def _bound(self, most: int) -> None:
        self._most = most
        self._evict()

    def _evict(self) -> None:
        """Forgets the keys that were noted first, until there are no more than allowed."""
        while len(self.keys) > self._most > 0:
            key = next(iter(self.keys))
            self._invalidate(key, None)

    # --- what changes ---------------------------------------------------------------------

    def follow(self, effects: list[e.Effect], session: Session | None) -> None:
        """Tells, or will tell, who tracks the keys that the effects of a command have changed.

        ``session`` is the one that ran it: a client's, or that of a script."""
        own = None if session is None else session.tracking
        for effect in effects:
            find = CHANGED.get(type(effect))
            if find is None:
                continue
            writer = session
            if isinstance(effect, e.Changed) and effect.expired:
                writer = None
            for key in find(effect):
                if self.prefixes:
                    self._note_change(key, writer)
                if key in self.keys:
                    self._invalidate(key, own)

    def _invalidate(self, key: bytes, own: ClientTracking | None) -> None:
        """Forgets the key, and tells the clients that have read it; those with NOLOOP are not told
        what they have done themselves."""
        readers = self.keys.pop(key)
        numbers = [readers] if isinstance(readers, int) else list(readers)
        self.items -= len(numbers)
        notice = Notice([key])
        for number in numbers:
            session = self._sessions.get(number)
            tracking = None if session is None else session.tracking
            if session is None or tracking is None or tracking.bcast:
                continue
            if not (tracking.noloop and tracking is own):
                self._tell_of_own(session, tracking, notice)

    def flush(self) -> None:
        """Tells all clients that no key is what it was; those with NOLOOP, too."""
        self._clear()
        notice = Notice(None)
        for session in list(self.clients):
            tracking = session.tracking
            if tracking is not None:
                self._tell_of_own(session, tracking, notice)

    def _tell_of_own(self, session: Session, tracking: ClientTracking, notice: Notice) -> None:
        """Sends a notice, but to the client whose transaction runs when that has ended: as Redis
        does, in the way that the client has asked for by then."""
        if session.executing:
            self._later.append((tracking, notice))
        else:
            self._tell(session, tracking, notice)

    def end_transaction(self, session: Session) -> None:
        """Tells the client what its own transaction has changed; also if it tracks no more."""
        later, self._later = self._later, []
        for tracking, notice in later:
            self._tell(session, session.tracking or tracking, notice)

    def _tell(self, session: Session, tracking: ClientTracking, notice: Notice) -> None:
        """Sends a notice to the client, or to the one that it redirects to."""
        target: Session | None = session
        if tracking.redirect:
            target = self._sessions.get(tracking.redirect)
        if target is None or target.follower is not None:
            tracking.broken = True
            if session.resp3:
                session.link.send(encode(Push(["tracking-redir-broken", tracking.redirect]), True))
        elif target.resp3:
            target.link.send(notice.push())
        elif tracking.redirect and target.subscriptions:
            target.link.send(notice.message())

    # --- prefixes -------------------------------------------------------------------------

    def _add_prefix(self, session: Session, tracking: ClientTracking, prefix: bytes) -> None:
        if prefix not in self.prefixes:
            self.prefixes[prefix] = Prefix()
            self._measure()
        self.prefixes[prefix].sessions[session] = None
        if prefix not in tracking.prefixes:
            tracking.prefixes = sorted([*tracking.prefixes, prefix])

    def _remove_prefix(self, session: Session, prefix: bytes) -> None:
        sessions = self.prefixes[prefix].sessions
        del sessions[session]
        if not sessions:
            del self.prefixes[prefix]
            self._pending.pop(prefix, None)
            self._measure()

    def _measure(self) -> None:
        """A key is looked up with each of its beginnings that has the length of a prefix."""
        self._lengths = sorted({len(prefix) for prefix in self.prefixes})

    def _note_change(self, key: bytes, writer: Session | None) -> None:
        """The key has changed; those who have a prefix of it will be told."""
        for length in self._lengths:
            if length > len(key):
                return
            beginning = key[:length]
            prefix = self.prefixes.get(beginning)
            if prefix is not None:
                prefix.changed[key] = writer
                self._pending[beginning] = prefix
                self._round.schedule()

    def broadcast(self) -> None:
        """Tells clients of the keys that have changed and begin with their prefixes."""
        pending, self._pending = self._pending, {}
        for beginning in sorted(pending):
            prefix = pending[beginning]
            changed, prefix.changed = prefix.changed, {}
            keys = sorted(changed)
            notice = Notice(keys)
            for session in list(prefix.sessions):
                tracking = session.tracking
                if tracking is None:
                    continue
                if not tracking.noloop and not session.account.limited:
                    self._tell(session, tracking, notice)
                elif chosen := _for_client(session, tracking, keys, changed):
                    self._tell(session, tracking, Notice(chosen))


def _is_noted(command: Command) -> bool:
    """Whether the keys of the command are those that its client reads; a script that only reads
    has its keys noted when it reads them."""
    return (
        "readonly" in command.flags and command.key_at != 0 and command.about.group != "scripting"
    )


def _followed(function: Callable[[], Outcome], note: Callable[[], None]) -> Outcome:
    """The outcome of the function, after which ``note`` is called, whether it fails or not; and
    again whenever it is tried once more after a wait."""
    try:
        outcome = function()
    finally:
        note()
    if isinstance(outcome, Wait):
        retry = outcome.retry
        outcome.retry = lambda: _followed(retry, note)
    return outcome


def _for_client(
    session: Session,
    tracking: ClientTracking,
    keys: list[bytes],
    changed: dict[bytes, Session | None],
) -> list[bytes]:
    """The keys of which the client is told: those that its user may read, and with NOLOOP not those
    that it has changed itself."""
    if tracking.noloop:
        keys = [key for key in keys if changed[key] is not session]
    user = session.account
    return [key for key in keys if user.may_read(key)] if user.limited else keys
