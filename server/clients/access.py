"""Access control at work: what a client may do and use up, what is noted of denials, what changes
of users entail.

**Limits.** How many connections a user may have at a time, and how many commands a second, are
settings with a number for every user and numbers for single ones; 0 is no limit. A user with a
limit of commands carries its budget (:class:`.TokenBucket`), and its sessions are ``RATED``
(:mod:`server.core.reasons`), so that the dispatcher looks at their requests more closely; nobody
else's requests are asked anything. Decision 32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from server.acl import errors as acl_errors
from server.acl import file, rules
from server.acl.log import AclLog, LogEntry
from server.acl.selector import Denial
from server.acl.users import DEFAULT_USER, User
from server.clients.client_line import client_line
from server.config.file import ConfigError
from server.config.types import PerUser
from server.core.table import Arguments, Command, find
from server.runtime.token_bucket import TokenBucket
from server.state.server_state import ServerState
from server.state.session import Session


class UserLimits:
    """The limits of the users of a server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._connections = PerUser.NO_LIMIT
        self._commands = PerUser.NO_LIMIT
        state.config.listen("user-max-connections", self._limit_connections)
        state.config.listen("user-max-commands-per-second", self._limit_commands)

    def _limit_connections(self, limits: dict[str, int]) -> None:
        self._connections = limits

    def _limit_commands(self, limits: dict[str, int]) -> None:
        """Every user begins with a full budget; one whose limit stays keeps what it has left."""
        self._commands = limits
        for user in self._state.users.every():
            if user.rate is None or user.rate.limit != self._limit_of(limits, user.name):
                user.rate = self.new_rate(user.name)
        for session in self._state.sessions.values():
            session.update_reasons()

    def refill(self) -> None:
        """Gives every user a full budget."""
        for user in self._state.users.every():
            user.rate = self.new_rate(user.name)

    def new_rate(self, name: bytes) -> TokenBucket | None:
        """Return a full budget for a user, ``None`` if there is no limit for it."""
        limit = self._limit_of(self._commands, name)
        return TokenBucket(limit, 1000, self._state.clock()) if limit else None

    @staticmethod
    def _limit_of(limits: dict[str, int], name: bytes) -> int:
        return limits.get(errors.shown(name), limits[PerUser.EVERYONE])

    # --- checks ---------------------------------------------------------------------------

    def refuse_connection(self, session: Session, user: User) -> str | None:
        """Why the client may not be the user, besides all others that are it; ``None`` if it may.
        A client that is the user already may stay."""
        limit = self._limit_of(self._connections, user.name)
        if not limit:
            return None
        others = 0
        for other in self._state.sessions.values():
            if other.account is user and other.authenticated and other is not session:
                others += 1
        return None if others < limit else acl_errors.too_many_connections(user.name, limit)

    def refuse_command(self, session: Session) -> str | None:
        """Why the client's user may not run one more command now; ``None`` if it may, which then
        counts."""
        rate = session.account.rate
        if rate is None:
            return None
        now = self._state.clock()
        if rate.admits(now, self._state.timekeeper.due_by(now)):
            return None
        return acl_errors.too_many_commands(session.user, rate.limit)


TOPLEVEL: Final = "toplevel"
IN_MULTI: Final = "multi"
IN_SCRIPT: Final = "lua"
"""Where a command was denied, as the log calls it."""


def denial_text(session: Session, denial: Denial) -> str:
    """Return the text for a client, without a code; neither key nor channel is named."""
    if denial.kind == "command":
        return acl_errors.no_command(session.user, errors.shown(denial.subject))
    return acl_errors.NO_KEY if denial.kind == "key" else acl_errors.NO_CHANNEL


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _nothing() -> None:
    """Stand for a notice that was not to be sent."""


class AccessControl:
    """Whatever depends on the users of a server: logins, checks, the log, and clients whose user
    changes. All changes of users go through here."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.limits = UserLimits(state)
        self._users = state.users
        self.log = AclLog()
        self.before_change: Callable[[], None] = _nothing
        """Called before a client becomes another user, or a user changes: what was to be sent with
        the former rights is sent now."""
        self._first: dict[bytes, User] = {}
        """The users that the configuration has made, as they were then."""
        state.config.listen("acl-pubsub-default", self._open_channels)
        state.config.listen("requirepass", self._require_password)

    def _open_channels(self, default: str) -> None:
        self._users.open_channels = default == "allchannels"

    def _require_password(self, password: str) -> None:
        self._users.set_default_password(_to_bytes(password))
        self._follow(self._users.default, None)

    # --- logging in -----------------------------------------------------------------------

    def log_in(self, session: Session, name: bytes, password: bytes, command: str) -> None:
        """Makes the client a user; raises :class:`CommandError` if it may not be that one."""
        user = self._users.log_in(name, password)
        if user is None:
            in_multi = session.transaction is not None or session.executing
            context = IN_MULTI if in_multi else TOPLEVEL
            self._note(session, "auth", command.encode(), name, context)
            raise CommandError(errors.WRONG_PASSWORD)
        refusal = self.limits.refuse_connection(session, user)
        if refusal is not None:
            raise CommandError(refusal)
        self.before_change()
        session.log_in(user)

    def log_in_by_certificate(self, session: Session, name: bytes) -> None:
        """Makes the client the user of this name, which its certificate vouches for, if there is
        one and it may log in. Else the client stays who it is, and that is noted."""
        user = self._users.get(name)
        if user is None or not user.is_on:
            self._note(session, "tls-cert", name, name, TOPLEVEL)
        else:
            session.log_in(user)

    # --- checks ---------------------------------------------------------------------------

    def refusal(self, session: Session, command: Command, args: Arguments) -> str | None:
        """Why the client's user may not run a request, ``None`` if it may. Nothing is noted."""
        denial = session.account.denial(command, args)
        return None if denial is None else acl_errors.NO_PERMISSION + denial_text(session, denial)

    def require(self, session: Session, request: Arguments) -> None:
        """Raises :class:`CommandError` if the client's user may not run a request that its own one
        would lead to. That is noted."""
        command = find(self._state.table, request)
        assert command is not None
        refusal = self.refusal(session, command, request)
        if refusal is not None:
            self.note_refusal(session, command, request)
            raise CommandError(refusal)

    def note_refusal(self, session: Session, command: Command, args: Arguments) -> None:
        """Notes a request that has been refused: it is checked once more for what it lacks."""
        context = TOPLEVEL if session.transaction is None else IN_MULTI
        self.check(session, session, command, args, context)

    def check(
        self, session: Session, client: Session, command: Command, args: Arguments, context: str
    ) -> Denial | None:
        """Why the session's user may not run a request; that is noted of the ``client``."""
        denial = session.account.denial(command, args)
        if denial is not None:
            self._note(client, denial.kind, denial.subject, session.user, context)
        return denial

    def _note(
        self, client: Session, reason: str, subject: bytes, user: bytes, context: str
    ) -> None:
        state = self._state
        state.stats.denied[reason] += 1
        now = state.clock()
        line = client_line(client, now).rstrip(b"\n")
        entry = LogEntry(reason, context, subject, user, line, now)
        self.log.add(entry, state.config.acllog_max_len)

    # --- back to the start ----------------------------------------------------------------

    def refuse_reset(self, session: Session, command: Command, args: Arguments) -> str | None:
        """Why the client may not put the server back to its start; ``None`` if its user may, or
        might if no user had changed since then."""
        refusal = None if session.authenticated else errors.NO_AUTHENTICATION
        refusal = refusal or self.refusal(session, command, args)
        user = self._first.get(session.user)
        if refusal is None or user is None or user.denial(command, args) is not None:
            return refusal
        return None if session.authenticated or (user.is_on and user.nopass) else refusal

    def restore(self, caller: Session) -> None:
        """There are the users that the configuration has made, with full budgets, and nothing has
        been denied. A caller who is none of them is a new client."""
        if caller.user not in self._first:
            caller.reset(caller.db, self._users.default, False)
        self.replace_users(caller, [user.copy() for user in self._first.values()])
        self.limits.refill()
        self.log = AclLog()
        self._state.stats.denied.clear()

    # --- changes --------------------------------------------------------------------------

    def set_user(self, caller: Session, name: bytes, words: Iterable[bytes]) -> None:
        """Makes or changes a user; raises :class:`CommandError` and changes nothing."""
        changed = rules.changed(self._users, name, words)
        self.before_change()
        self._follow(self._users.put(changed), caller)

    def delete_user(self, caller: Session | None, name: bytes) -> bool:
        """Removes a user and ends its connections; whether there was one."""
        user = self._users.remove(name)
        if user is None:
            return False
        for session in self._sessions_of(user):
            self._end(session, caller)
        return True

    def replace_users(self, caller: Session | None, users: Iterable[User]) -> None:
        """There are these users from now on, and the default one, who may be among them."""
        self.before_change()
        given = {user.name: user for user in users}
        given.setdefault(DEFAULT_USER, self._users.unlimited(DEFAULT_USER))
        for user in self._users.every():
            if user.name not in given:
                self.delete_user(caller, user.name)
        for user in given.values():
            self._follow(self._users.put(user), caller)

    def _follow(self, user: User, caller: Session | None) -> None:
        """Lets the clients of a user that has changed notice it."""
        opened = user is self._users.default and self._users.default_is_open()
        for session in self._sessions_of(user):
            heard = session.listening
            if not user.may_hear([*heard.channels, *heard.shards], heard.patterns):
                self._end(session, caller)
            elif opened:
                session.log_in(user)
            else:
                session.update_reasons()

    def _sessions_of(self, user: User) -> list[Session]:
        return [each for each in self._state.sessions.values() if each.account is user]

    def _end(self, session: Session, caller: Session | None) -> None:
        """Ends a connection; that of the caller once it has its answer."""
        if session is caller:
            session.closing = True
        else:
            session.link.close()

    # --- the configuration and the file ---------------------------------------------------

    def configure(self) -> None:
        """Takes the users with which the server begins; raises :class:`ConfigError`."""
        config = self._state.config
        if config.aclfile and config.user_lines:
            raise ConfigError(acl_errors.TWO_SOURCES)
        if config.aclfile:
            try:
                self.load(None)
            except file.FileError as error:
                raise ConfigError(f"{acl_errors.NOT_STARTED}{error}") from None
        for name, (where, words) in config.user_lines.items():
            self._declare(name, where, words)
        for user in self._users.every():
            if not user.is_on:
                self._state.log.notice(acl_errors.is_disabled(user.name))
            self._first[user.name] = user.copy()

    def _declare(self, name: str, where: str, words: list[str]) -> None:
        """Makes the user of a line of the configuration."""
        user = self._users.new_user(_to_bytes(name))
        try:
            if not rules.is_name(user.name):
                raise ConfigError(f"{where}: {acl_errors.BLANK_IN_NAME}")
            rules.apply_all(self._users, user, rules.joined(map(_to_bytes, words)))
        except rules.OpenSelector:
            reason = acl_errors.bad_declaration(user.name, acl_errors.WRONG_FORMAT)
            raise ConfigError(f"{where}: {reason}") from None
        except rules.RuleError as error:
            reason = acl_errors.bad_declared_rule(user.name, error.rule, error.reason)
            raise ConfigError(f"{where}: {reason}") from None
        self._users.put(user)

    def load(self, caller: Session | None) -> None:
        """Takes the users of the file; raises :class:`.FileError` and changes nothing."""
        self.replace_users(caller, file.read(self._users, self._state.config.aclfile))

    def save(self) -> None:
        """Writes the users into the file; raises :class:`OSError`."""
        file.write(self._state.config.aclfile, self._users.lines())
