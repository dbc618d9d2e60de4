"""The way of a command: look up, check, run or queue, apply its effects, encode its reply.

**Three ways lead to a handler**, told apart by the words of :mod:`server.core.reasons`:

- *plainly* (:meth:`Dispatcher.execute`): neither the server nor the session has a reason to look,
  the command is an ordinary one and has as many words as it needs. Nothing else is asked.
- *quickly* (:meth:`Dispatcher._execute_closely`): the user of the client has limits, or the client
  is in MULTI, and that is all. One question to ACL, or one entry in the queue.
- *checked* (:meth:`Dispatcher._execute_checked`): everything else.
  :mod:`server.dispatch.refusals` has every reason to refuse a request, in Redis's order, for
  whoever calls.

EXEC and scripts come in by :meth:`Dispatcher.run`, and ask :class:`.Refusals` themselves. A command
that waited comes in by :meth:`Dispatcher.rerun`: only the rules of its user are asked again.

What a request is refused for is counted, and spoils the transaction that it was meant for. A
command that runs and fails has been counted as a call, and spoils nothing.
"""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.encoder import encode, error_line
from protocol.errors import CommandError
from protocol.replies import NO_REPLY, QUEUED, Encoded
from server.acl.errors import NO_PERMISSION
from server.clients.access import AccessControl
from server.clients.blocking import BlockedClients
from server.clients.watch import WatchedKeys
from server.core.outcomes import Outcome, Steps, Wait, finish
from server.core.reasons import CLOSELY, LIMITED, MULTI
from server.core.table import NEVER_QUEUED, Arguments, Command, find
from server.dispatch.reactions import Reactions
from server.dispatch.refusals import SUBSCRIBING, Refusals, is_reset
from server.dispatch.stepped import SteppedCommands
from server.state.server_state import ServerState
from server.state.session import CLIENT, EXEC, ClientTracking, Follower, Session, Waiter
from storage import errors as storage_errors

FAILURE_TEXTS: Final[dict[type[storage_errors.StorageFailure], str]] = {
    storage_errors.WrongType: errors.WRONG_TYPE,
    storage_errors.InvalidID: errors.INVALID_STREAM_ID,
    storage_errors.InvalidIntervalStart: errors.INVALID_START,
    storage_errors.InvalidIntervalEnd: errors.INVALID_END,
    storage_errors.StreamExhausted: errors.STREAM_EXHAUSTED,
    storage_errors.IDTooSmall: errors.XADD_ID_TOO_SMALL,
    storage_errors.EntryTooLarge: errors.ENTRY_TOO_LARGE,
    storage_errors.IdempotentIDTaken: errors.IDMP_DIFFERENT_ENTRY,
}
"""The error text of each refusal of the engine."""

OF_REPLICAS: Final = frozenset({"psync", "replconf", "sync"})
"""What a client may send that is sent the stream of replication."""

OF_WEB_BROWSERS: Final = frozenset({b"post", b"host:"})
"""How a web page speaks that was made to connect here; it gets no answer."""

WARN_EVERY_MS: Final = 60_000
"""How long the log says nothing more of web pages, which may come again and again."""


class Dispatcher:
    """Runs requests of sessions on the keyspace of a server.

    ``services`` is what handlers are given to work with; nothing here looks into it.
    """

    def __init__(
        self,
        services: object,
        state: ServerState,
        access: AccessControl,
        watching: WatchedKeys,
        blocking: BlockedClients,
        reactions: Reactions,
        stepped: SteppedCommands,
    ) -> None:
        self._services = services
        self._state = state
        self._access = access
        self.refusals = Refusals(state, access)
        self._keyspace = state.keyspace
        self._effects = state.keyspace.effects
        self._watching = watching
        self._blocking = blocking
        self._reactions = reactions
        self._stepped = stepped
        self._timings = state.timings
        self._watch = state.stopwatch
        self._table = state.table
        self._warns_again_ms = 0

    def execute(self, session: Session, args: Arguments) -> bytes | None:
        """Answers one request with bytes, or ``None`` when the client has been parked.

        The turn of the client has begun by :meth:`.Stopwatch.begin`."""
        command = self._table.get(args[0])
        count = len(args)
        if command is not None and command.special and count > 1:
            command = command.subcommands.get(args[1])  # None where it is spelt in another way.
        if (
            command is None
            or command.special
            or (self._state.reasons | session.reasons) & CLOSELY
            or (count != command.arity and (command.arity >= 0 or count < -command.arity))
        ):
            reply = self._execute_closely(session, command, args)
        else:
            session.command = command
            reply = self.run(session, command, args)
        if self._blocking.waiting:
            self._reactions.drain()
        session.commands += 1
        return reply

    def _execute_closely(
        self, session: Session, command: Command | None, args: Arguments
    ) -> bytes | None:
        """Slow road: runs all checks, or the few that a user with limits or MULTI needs."""
        why = (self._state.reasons | session.reasons) & CLOSELY
        if (
            command is not None
            and not command.special
            and (why | LIMITED == LIMITED or (why | LIMITED == MULTI | LIMITED and command.queues))
            and command.fits(len(args))
            and (not why & LIMITED or session.account.permits(command, args))
        ):
            session.command = command
            if session.transaction is None:
                return self.run(session, command, args)
            session.transaction.add(command, args)
            return QUEUED
        reply = self._execute_checked(session, args)
        if session.tracking is not None and session.tracking.caching:
            self._end_caching(session, session.tracking, args)
        if session.muting is not None and reply:  # CLIENT REPLY SKIP has none to leave out.
            return self._mute(session, reply)
        return reply

    def _execute_checked(self, session: Session, args: Arguments) -> bytes | None:
        """Executes a request after all checks."""
        command, refusal = self.refusals.resolve(session, args)
        if session.follower is not None:
            return self._execute_of_replica(session, session.follower, command, refusal, args)
        if command is not None and refusal is None:
            refusal = self.refusals.use_up(session, command, args)
        session.command = command
        if command is None and args[0].lower() in OF_WEB_BROWSERS:
            return self._end_browser(session)
        if refusal is not None:
            if command is not None and refusal.startswith(NO_PERMISSION):
                self._access.note_refusal(session, command, args)
            return self._reject(session, command, refusal)
        assert command is not None
        transaction = session.transaction
        if transaction is None or command.name in NEVER_QUEUED or is_reset(command, args):
            return self.run(session, command, args)
        transaction.add(command, args)
        return QUEUED

    def _end_browser(self, session: Session) -> Encoded:
        """Close the connection of a web page, and warn of it now and then."""
        session.closing = True
        now = self._state.clock()
        if now >= self._warns_again_ms:
            self._warns_again_ms = now + WARN_EVERY_MS
            self._state.log.warning(
                "Possible SECURITY ATTACK detected: POST or Host: came as a command, as from a web"
                f" page that was made to connect here. Connection from {session.link.addr} aborted."
            )
        return NO_REPLY

    def _execute_of_replica(
        self,
        session: Session,
        follower: Follower,
        command: Command | None,
        refusal: str | None,
        args: Arguments,
    ) -> bytes:
        """Runs what a replica says of itself, which has no reply. A reply would stand in the stream
        that it is sent, so nothing else runs, and its link ends."""
        reply = None
        if command is not None and refusal is None and command.name in OF_REPLICAS:
            session.command = command
            reply = self.run(session, command, args)
        if reply != NO_REPLY:
            name = "an unknown command" if command is None else command.fullname
            follower.cut_off(f"replicas do not send this: {name}")
        return NO_REPLY

    def _end_caching(self, session: Session, tracking: ClientTracking, args: Arguments) -> None:
        """What CLIENT CACHING says counts for one command, or for one transaction; commands about
        clients do not count."""
        command = find(self._table, args)
        about_clients = command is not None and command.fullname.startswith("client|")
        if session.transaction is None and not about_clients:
            tracking.caching = False
            session.update_reasons()

    def _mute(self, session: Session, reply: bytes) -> bytes:
        """Return what is sent of a reply while CLIENT REPLY is OFF or SKIP."""
        session.swallow_reply()
        if session.command is not None and session.command.name in SUBSCRIBING:
            return reply
        return b""

    # --- refusing -------------------------------------------------------------------------

    def refuse(
        self, session: Session, command: Command, text: str, *, verbatim: bool = False
    ) -> bytes:
        """Answers a request with this error in place of running it, which nothing else forbids.

        EXEC says that its transaction was discarded because of it, unless that is ``verbatim``."""
        session.command = command
        session.commands += 1
        reply = self._reject(session, command, text, verbatim)
        return reply if session.muting is None else self._mute(session, reply)

    def _reject(
        self, session: Session, command: Command | None, text: str, verbatim: bool = False
    ) -> bytes:
        """Refuses a request before it runs; a transaction that it was meant for is spoiled."""
        if command is not None:
            command.rejected += 1
            if command.name == "exec":
                self._watching.end_transaction(session)
                text = text if verbatim else errors.exec_aborted_by(text)
        if session.transaction is not None:
            session.transaction.broken = True
        return self._fail(text)

    def _fail(self, text: str) -> Encoded:
        self._state.stats.count_error(text)
        return error_line(text)

    # --- running --------------------------------------------------------------------------

    def run(self, session: Session, command: Command, args: Arguments) -> bytes | None:
        """Runs a command that has passed all checks; ``None`` when the client has been parked.

        It begins when the last one has ended, unless a script calls it, which does other things in
        between. The commands of a transaction or a script share the time of day of the whole.
        """
        watch = self._watch
        if session.caller == CLIENT:
            if watch.ns >= watch.stale_ns:
                watch.begin()
            self._keyspace.now_ms = watch.ms
        elif session.caller != EXEC:
            watch.tick()
        started = watch.ns
        try:
            reply = command.handler(self._services, session, args)
        except (CommandError, storage_errors.StorageFailure) as error:
            return self._failed(session, command, args, error, watch.tick() - started)
        finally:
            if self._effects:
                self._reactions.apply(session)
        elapsed = watch.tick() - started
        if type(reply) is bytes:
            answer: bytes = reply
        elif type(reply) is Wait:
            return self._park(session, command, args, reply, elapsed)
        elif type(reply) is Steps:
            return self._work(session, command, args, reply, elapsed)
        else:
            answer = encode(reply, session.resp3)  # type: ignore[arg-type]
        timings = self._timings
        command.calls += 1
        command.nanoseconds += elapsed
        if timings.tracking:
            command.durations.add(elapsed)
        if elapsed >= timings.threshold:
            timings.notice(session, command, args, elapsed)
        return answer

    def _failed(
        self,
        session: Session,
        command: Command,
        args: Arguments,
        error: CommandError | storage_errors.StorageFailure,
        nanoseconds: int,
    ) -> bytes:
        self._timings.announce(session, command, args)
        return self._fail_counted(session, command, args, error, nanoseconds)

    def _fail_counted(
        self,
        session: Session,
        command: Command,
        args: Arguments,
        error: CommandError | storage_errors.StorageFailure,
        nanoseconds: int,
    ) -> bytes:
        """Answers a command that has run and failed."""
        self._timings.count(session, command, args, nanoseconds)
        command.failed += 1
        if isinstance(error, CommandError):
            return error_line(error.text) if error.counted else self._fail(error.text)
        return self._fail(FAILURE_TEXTS[type(error)])

    def _park(
        self, session: Session, command: Command, args: Arguments, wait: Wait, nanoseconds: int
    ) -> bytes | None:
        """Parks the client; where waiting is not possible, its time is up at once."""
        self._timings.announce(session, command, args)
        if session.executing:
            self._timings.count(session, command, args, nanoseconds)
            return encode(wait.on_timeout, session.resp3)
        self._blocking.park(session, command, args, wait, nanoseconds)
        return None

    def _work(
        self, session: Session, command: Command, args: Arguments, steps: Steps, nanoseconds: int
    ) -> bytes | None:
        """Begins with what a command has to do that may take long."""
        self._timings.announce(session, command, args)
        reply = self._stepped.do(session, command, args, steps, nanoseconds)
        self._watch.tick()
        return reply

    def apply(self, session: Session, command: Command, args: Arguments) -> None:
        """Runs the handler of a command alone, to its end: nothing is checked or counted, and
        nobody is told. Raises what the handler raises."""
        try:
            outcome = command.handler(self._services, session, args)
            if isinstance(outcome, Steps):
                finish(outcome)
        finally:
            self._effects.clear()

    def recheck(self, waiter: Waiter) -> bytes | None:
        """Checks a parked client's command again before it runs: its user may have changed.
        Returns the error that ends the wait, ``None`` if it may run."""
        session, command = waiter.session, waiter.command
        refusal = self._access.refusal(session, command, waiter.args)
        if refusal is None:
            return None
        self._access.note_refusal(session, command, waiter.args)
        return self._reject(session, command, refusal)

    def rerun(self, waiter: Waiter) -> bytes | None:
        """Runs a parked client's command again; ``None`` if it must go on waiting."""
        session, command, watch = waiter.session, waiter.command, self._watch
        self._keyspace.now_ms = watch.begin()
        started = watch.ns
        try:
            reply: Outcome = waiter.wait.retry()
            if isinstance(reply, Steps):  # The client waits already, and so do those behind it.
                reply = Encoded(finish(reply))
        except (CommandError, storage_errors.StorageFailure) as error:
            nanoseconds = waiter.nanoseconds + watch.tick() - started
            return self._fail_counted(session, command, waiter.args, error, nanoseconds)
        finally:
            if self._effects:
                self._reactions.apply(session)
        waiter.nanoseconds += watch.tick() - started
        if isinstance(reply, Wait):
            waiter.wait = reply
            return None
        self._timings.count(session, command, waiter.args, waiter.nanoseconds)
        return reply if type(reply) is bytes else encode(reply, session.resp3)
