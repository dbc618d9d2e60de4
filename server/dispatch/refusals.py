"""Why a request may not run: every reason, and the order in which they count, by who calls.

A request that breaks several rules gets one error, and clients see which one. Redis asks in one
order for the requests of clients, and in another, with other texts, for the commands that scripts
call. Of a command that EXEC runs only the rules of its user are asked again, which may have changed
since it was queued; the commands of an append-only file need no server that is ready::

    a client, or the file     a script                  EXEC
    ------------------------  ------------------------  ------------------------
    number of words           number of words
    DEBUG not allowed
                              not for scripts
    not logged in
    not inside MULTI
    rules of ACL              rules of ACL              rules of ACL
                              a script that only reads
    memory (not the file)
    loading (not the file)
    busy (not the file)
    disk (not the file)       disk
    save point (not the file) save point
    replicas (not the file)   replicas
                              memory
    subscriptions
    MONITOR

Each reason stands in :data:`ORDER` with the bit of :mod:`server.core.reasons` without which it is
not asked; a new reason is a bit, a function below, and a line there. That there is no such command
comes before all of them. What a request uses up is in :data:`USED_UP`, and comes after them: it is
asked where the request would run, as others look at requests more than once (during a pause).
DEBUG RESET is asked for less (:data:`OF_RESET`): it is how a test gets out of any state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol import errors
from server.acl import errors as acl_errors
from server.clients.access import IN_MULTI, IN_SCRIPT, AccessControl, denial_text
from server.core import reasons
from server.core.table import REPLICATED, Arguments, Command, find
from server.runtime.version import REDIS_VERSION, family_of
from server.state.server_state import ServerState
from server.state.session import CLIENT, EXEC, FILE, SCRIPT, Session

ALWAYS_ALLOWED: Final = frozenset({"auth", "hello", "quit", "reset"})
"""What a client may call before it has authenticated."""

SUBSCRIBING: Final = frozenset(
    {"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}
)
"""What answers with pushes, which CLIENT REPLY does not hold back."""

SUBSCRIBER_COMMANDS: Final = SUBSCRIBING | {"ping", "quit", "reset"}
"""What a RESP2 client with subscriptions may call."""

PUBLISHING: Final = frozenset({"publish", "spublish", "eval", "evalsha", "fcall"})
"""Commands without a flag for it that may change data, or that tell others something."""


def is_reset(command: Command, args: Arguments) -> bool:
    """Whether a request is DEBUG RESET, with which tests get out of whatever there is: no state of
    the server or of its client keeps it from running at once, where DEBUG is allowed."""
    return command.protected and len(args) > 1 and args[1].upper() == b"RESET"


class Refusals:
    """Finds out why a session may not run a command now. Nothing is counted or noted here, but a
    denial by ACL in a script or in EXEC, which is asked about once."""

    def __init__(self, state: ServerState, access: AccessControl) -> None:
        self.state = state
        self.access = access
        self._named: set[str] = set()
        """The families of newer commands that the log has told of."""

    def resolve(self, session: Session, args: Arguments) -> tuple[Command | None, str | None]:
        """Return the command that a request names, if it does, and the error that keeps it from
        running, if one does."""
        command = find(self.state.table, args)
        if command is not None and not (command.subcommands and len(args) > 1):
            return command, self.find(session, command, args)
        if session.caller == SCRIPT:
            return command, errors.SCRIPT_UNKNOWN_COMMAND
        if command is None:
            self._name_family(args[0])
            return None, errors.unknown_command(args[0], args[1:])
        return None, errors.unknown_subcommand(command.name, args[1])

    def _name_family(self, name: bytes) -> None:
        """Tell the log, once for each family, that a client took a command for granted."""
        family = family_of(name)
        if family is not None and family not in self._named:
            self._named.add(family)
            called = name.decode("ascii", "replace").upper()
            self.state.log.notice(
                f"A client has called {called}: Penstock does not have the commands of Redis"
                f" {REDIS_VERSION} for {family}, which the redis_version in INFO may make clients"
                " expect; this is said once"
            )

    def find(self, session: Session, command: Command, args: Arguments) -> str | None:
        """Return the first error that counts, ``None`` if the command may run."""
        if session.caller == CLIENT and is_reset(command, args):
            return self._first(OF_RESET, session, command, args)
        return self._first(ORDER[session.caller], session, command, args)

    def use_up(self, session: Session, command: Command, args: Arguments) -> str | None:
        """Return the error of a command that may run, but for which nothing is left of what its
        client may use up; ``None`` if there is, which is less by one now."""
        if is_reset(command, args):
            return None
        return self._first(USED_UP, session, command, args)

    def _first(
        self, checks: Checks, session: Session, command: Command, args: Arguments
    ) -> str | None:
        why = self.state.reasons | session.reasons
        for bit, check in checks:
            if bit == ALWAYS or why & bit:
                text = check(self, session, command, args)
                if text is not None:
                    return text
        return None


Check = Callable[[Refusals, Session, Command, Arguments], "str | None"]
"""Returns the error text that keeps a session from running a command, ``None`` if none does."""

Checks = tuple[tuple[int, Check], ...]
"""What is asked one after the other, each if its bit is set in the words of reasons."""

ALWAYS: Final = 0
"""In place of a bit: this is asked of every request."""


# --- what is wrong with the request ----------------------------------------------------------


def _arity(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    if command.fits(len(args)):
        return None
    if session.caller == SCRIPT:
        return errors.SCRIPT_WRONG_ARITY
    return errors.wrong_arity(command.fullname)


def _debugging(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    if not command.protected:
        return None
    allowed = on.state.config.enable_debug_command
    if allowed == "yes" or (allowed == "local" and session.is_local):
        return None
    return errors.DEBUG_NOT_ALLOWED


def _not_in_scripts(
    on: Refusals, session: Session, command: Command, args: Arguments
) -> str | None:
    return errors.SCRIPT_NOT_ALLOWED if "noscript" in command.flags else None


def _not_in_multi(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return errors.NOT_INSIDE_MULTI if "no_multi" in command.flags else None


# --- who calls -------------------------------------------------------------------------------


def _login(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return None if command.name in ALWAYS_ALLOWED else errors.NO_AUTHENTICATION


def _rules(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    """ACL. A script is denied in the name of its client."""
    if session.caller == SCRIPT and session.script is not None:
        client = session.script.client
        denial = on.access.check(session, client, command, args, IN_SCRIPT)
        return None if denial is None else acl_errors.IN_SCRIPT + denial_text(session, denial)
    if session.caller == EXEC:
        denial = on.access.check(session, session, command, args, IN_MULTI)
        if denial is None:
            return None
        return acl_errors.RULES_CHANGED + acl_errors.CHANGED_REASONS[denial.kind]
    return on.access.refusal(session, command, args)


def _subscriber(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    if command.name in SUBSCRIBER_COMMANDS:
        return None
    return errors.only_subscriptions(command.fullname)


def _monitor(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    """A client that monitors reads, changes and publishes nothing."""
    if command.writes or "readonly" in command.flags or command.name in PUBLISHING:
        return errors.MONITORS_ONLY
    return None


def _reader(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    heard_of = command.writes or command.fullname in REPLICATED
    return errors.SCRIPT_READ_ONLY if heard_of else None


def _reset(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return on.access.refuse_reset(session, command, args)


# --- the state of the server -----------------------------------------------------------------


def _memory(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    """EXEC may take what its commands do."""
    if command.name == "exec":
        takes = any("denyoom" in queued.flags for queued, _ in session.queue)
    else:
        takes = "denyoom" in command.flags
    return errors.OUT_OF_MEMORY if takes and on.state.memory.check() else None


def _memory_of_script(
    on: Refusals, session: Session, command: Command, args: Arguments
) -> str | None:
    """A script that has written may go on to do so."""
    if session.script is not None and session.script.wrote:
        return None
    return errors.OUT_OF_MEMORY if command.writes and "denyoom" in command.flags else None


def _loading(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return None if "loading" in command.flags else errors.LOADING


def _busy(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return None if "allow_busy" in command.flags else on.state.busy


def _writes(session: Session, command: Command) -> bool:
    """Whether the command may change data; EXEC does what its commands do."""
    if command.name == "exec":
        return any(queued.writes for queued, _ in session.queue)
    return command.writes


def _tells_of_disk(session: Session, command: Command) -> bool:
    """PING of a client counts as a write: so it tells of a server that cannot."""
    return _writes(session, command) or (command.name == "ping" and session.caller == CLIENT)


def _disk(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    reason = on.state.disk_error
    if reason is None or not _tells_of_disk(session, command):
        return None
    return errors.disk_error(reason)


def _save_point(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return errors.SAVE_POINT_FAILED if _tells_of_disk(session, command) else None


def _replicas(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    return errors.TOO_FEW_REPLICAS if _writes(session, command) else None


# --- what is used up -------------------------------------------------------------------------


def _rate(on: Refusals, session: Session, command: Command, args: Arguments) -> str | None:
    """A user with no command left may leave, and become another one."""
    return None if command.name in ALWAYS_ALLOWED else on.access.limits.refuse_command(session)


# --- their order -----------------------------------------------------------------------------

_OF_REQUEST: Final[tuple[tuple[int, Check], ...]] = (
    (ALWAYS, _arity),
    (ALWAYS, _debugging),
    (reasons.STRANGER, _login),
    (reasons.MULTI, _not_in_multi),
    (reasons.LIMITED, _rules),
)
_OF_SERVER: Final[tuple[tuple[int, Check], ...]] = (
    (reasons.MEMORY, _memory),
    (reasons.LOADING, _loading),
    (reasons.BUSY, _busy),
    (reasons.DISK, _disk),
    (reasons.SAVES, _save_point),
    (reasons.REPLICAS, _replicas),
)
_OF_CLIENT: Final[tuple[tuple[int, Check], ...]] = (
    (reasons.SUBSCRIBED, _subscriber),
    (reasons.MONITORING, _monitor),
)
_OF_SCRIPT: Final[tuple[tuple[int, Check], ...]] = (
    (ALWAYS, _arity),
    (ALWAYS, _not_in_scripts),
    (reasons.LIMITED, _rules),
    (reasons.READING, _reader),
    (reasons.DISK, _disk),
    (reasons.SAVES, _save_point),
    (reasons.REPLICAS, _replicas),
    (reasons.FRUGAL, _memory_of_script),
)

ORDER: Final[dict[int, Checks]] = {
    CLIENT: _OF_REQUEST + _OF_SERVER + _OF_CLIENT,
    FILE: _OF_REQUEST + _OF_CLIENT,
    SCRIPT: _OF_SCRIPT,
    EXEC: ((reasons.LIMITED, _rules),),
}
"""What is asked about a request, by who calls; the first that answers counts."""

OF_RESET: Final[Checks] = ((ALWAYS, _arity), (ALWAYS, _debugging), (ALWAYS, _reset))
"""What is asked about DEBUG RESET of a client, in place of all that."""

USED_UP: Final[Checks] = ((reasons.RATED, _rate),)
"""What a client's request uses up, where nothing else stands against it."""
