"""What each user may use up: how many connections at a time, how many commands a second.

Both are settings with a number for every user and numbers for single ones; 0 is no limit. A user
with a limit of commands carries its budget (:class:`~server.acl.rate.RateLimit`), and its sessions
are ``RATED`` (:mod:`server.road.reasons`), so that the dispatcher looks at their requests more
closely; nobody else's requests are asked anything. Decision 32."""

from __future__ import annotations

from protocol import acl_errors, errors
from server.acl.rate import RateLimit
from server.acl.users import User
from server.config.types import PerUser
from server.road.session import Session
from server.road.state import ServerState


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

    def new_rate(self, name: bytes) -> RateLimit | None:
        """Return a full budget for a user, ``None`` if there is no limit for it."""
        limit = self._limit_of(self._commands, name)
        return RateLimit(limit, self._state.clock()) if limit else None

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
        if rate is None or rate.admits(self._state.clock()):
            return None
        return acl_errors.too_many_commands(session.user, rate.limit)
