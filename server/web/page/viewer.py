"""Who looks at the page, and what that user may see there."""

from __future__ import annotations

from typing import Final

from server.acl.users import User
from server.road.table import find
from server.services import Services
from server.web.page.logins import Login

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
