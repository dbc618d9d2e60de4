"""Who has logged in to the page, and for how long."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

from server.acl.users import User, Users, hashed
from server.core.table import find
from server.services import Services

IDLE_S: Final = 8 * 3600.0
"""A login ends when it has not been used for so long."""

MAX_LOGINS: Final = 1000
"""How many logins there may be; the one that was not used for the longest time ends."""


class Login:
    """One browser that has logged in as a user; ``csrf`` is what its forms have to bring."""

    __slots__ = ("_password", "csrf", "key", "used", "user")

    def __init__(self, key: bytes, user: User, password: bytes, now: float) -> None:
        self.key = key
        self.user = user
        self._password = hashed(password)
        self.csrf = secrets.token_urlsafe(32)
        self.used = now

    def is_valid(self) -> bool:
        """Whether the user could still log in with that password."""
        return self.user.is_on and (self.user.nopass or self._password in self.user.passwords)

    def sent(self, token: str) -> bool:
        """Whether a form that brings this token comes from a page that this login was shown."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())


class Logins:
    """All logins, by the token that a cookie holds; only its hash is kept. ``now`` is a clock in
    seconds."""

    def __init__(self, users: Users, now: Callable[[], float] = time.monotonic) -> None:
        self._users = users
        self._now = now
        self._by_token: dict[bytes, Login] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def add(self, user: User, password: bytes) -> str:
        """A login of a user who has said that password; returns the token."""
        token = secrets.token_urlsafe(32)
        while len(self._by_token) >= MAX_LOGINS:
            del self._by_token[next(iter(self._by_token))]
        key = _key(token)
        self._by_token[key] = Login(key, user, password, self._now())
        return token

    def find(self, token: str) -> Login | None:
        """The login with this token, if it has not ended. That uses it."""
        login = self._by_token.pop(_key(token), None)
        if login is None or self._now() - login.used > IDLE_S:
            return None
        if self._users.get(login.user.name) is not login.user or not login.is_valid():
            return None
        login.used = self._now()
        self._by_token[login.key] = login  # At the end: it was used last.
        return login

    def end(self, login: Login) -> None:
        """Ends a login."""
        self._by_token.pop(login.key, None)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


_READS: Final = (b"XINFO", b"STREAM")


class Viewer:
    """A user who looks: one who has logged in, or the default user where that needs no password
    (``login`` is then ``None``)."""

    def __init__(self, server: Services, user: User, login: Login | None) -> None:
        self._server = server
        self.user = user
        self.login = login

    def may(self, *request: bytes) -> bool:
        """Whether the user may run a request, with these keys."""
        return self.denial(*request) is None

    def denial(self, *request: bytes) -> str | None:
        """Why the user may not run it, ``None`` if it may. Nothing is noted of that: looking at a
        page is no attempt."""
        args = list(request)
        command = find(self._server.state.table, args)
        assert command is not None
        found = self.user.denial(command, args)
        if found is None:
            return None
        what = command.fullname.upper().replace("|", " ")
        where = " on this key" if found.kind == "key" else ""
        return f"Your user may not run {what}{where}."

    def may_see(self, key: bytes) -> bool:
        """Whether the user may know that there is a stream at that key."""
        return not self.user.limited or self.may(*_READS, key)

    @property
    def may_act(self) -> bool:
        """Whether there are actions at all for whoever looks: rights are another question."""
        return self.login is not None and bool(self._server.state.config.web_actions)
