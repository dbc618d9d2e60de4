"""Who a client may say it is.

There is one user so far, ``default``, who needs no password and may do everything.
"""

from __future__ import annotations

from typing import Final

DEFAULT_USER: Final = b"default"


class Users:
    """The users of a server."""

    def default_is_open(self) -> bool:
        """Whether a client is the default user without having said so."""
        return True

    def exists(self, name: bytes) -> bool:
        """Whether there is a user of that name."""
        return name == DEFAULT_USER

    def accepts(self, name: bytes, password: bytes) -> bool:
        """Whether the password is that of the user; one without a password takes any."""
        return self.exists(name)
