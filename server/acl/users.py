"""Users: who may log in, with which passwords, and what they may do then and how often."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from typing import Final

from server.acl.selector import ANY_KEY, Denial, Selector
from server.core.table import READ, Arguments, Command, Table
from server.runtime.token_bucket import TokenBucket

DEFAULT_USER: Final = b"default"

_NO_PASSWORD: Final = hashlib.sha256(b"").hexdigest()
"""What the password of a user who does not exist is compared with."""


def hashed(password: bytes) -> str:
    """How a password is kept: its SHA-256 in 64 hexadecimal digits."""
    return hashlib.sha256(password).hexdigest()


class User:
    """A user. A new one may not log in, has no password and may do nothing.

    ``limited`` is whether there is anything that it may not do; :meth:`settle` finds out.
    """

    def __init__(self, name: bytes, root: Selector) -> None:
        self.name = name
        self.is_on = False
        self.nopass = False
        self.sanitizes = True
        """A flag that commands show; nothing that comes from a client is taken without a look."""
        self.passwords: dict[str, None] = {}
        """The hashes of its passwords, in the order in which they were given."""
        self.root = root
        """Its own permissions."""
        self.selectors: list[Selector] = []
        """More sets of permissions, each of which may allow a command as a whole."""
        self.limited = True
        self.rate: TokenBucket | None = None
        """How many commands it may run in a time, if that is limited."""

    def copy(self) -> User:
        """A user with the same properties, to be changed."""
        twin = User(self.name, self.root)
        twin.take(self)
        return twin

    def take(self, other: User) -> None:
        """Becomes what another one is; the name stays."""
        self.is_on, self.nopass, self.sanitizes = other.is_on, other.nopass, other.sanitizes
        self.passwords = dict(other.passwords)
        self.root = other.root.copy()
        self.selectors = [selector.copy() for selector in other.selectors]
        self.settle()

    def settle(self) -> None:
        """Sees whether there is anything that the user may not do."""
        self.limited = not any(each.allows_everything for each in (self.root, *self.selectors))

    # --- passwords ------------------------------------------------------------------------

    def has_password(self, password: bytes) -> bool:
        """Whether it is one of the user's. That takes the same time whichever it is."""
        given = hashed(password)
        found = False
        for known in self.passwords or (_NO_PASSWORD,):
            found |= hmac.compare_digest(known, given)
        return self.nopass or (found and bool(self.passwords))

    # --- checks ---------------------------------------------------------------------------

    def permits(self, command: Command, args: Arguments) -> bool:
        """Whether a request is certainly allowed, by the user's own permissions or a selector."""
        return self.root.permits(command, args) or any(
            selector.permits(command, args) for selector in self.selectors
        )

    def denial(self, command: Command, args: Arguments) -> Denial | None:
        """Why the user may not run a request, ``None`` if it may.

        The selectors are tried in turn; what is told is what stopped the one that got furthest."""
        if not self.limited or self.permits(command, args) or "no_auth" in command.flags:
            return None
        uses = command.key_uses(args)
        furthest: Denial | None = None
        for selector in (self.root, *self.selectors):
            denial = selector.denial(command, args, uses)
            if denial is None:
                return None
            if furthest is None or denial.progress > furthest.progress:
                furthest = denial
        return furthest

    def may_read(self, key: bytes) -> bool:
        """Whether the user has the right to read the key, by whichever command."""
        return any(each.grants(key) & 1 << READ for each in (self.root, *self.selectors))

    def may_read_all(self) -> bool:
        """Whether the user has the right to read every key, by whichever command."""
        return any(
            each.all_keys or each.patterns.get(ANY_KEY, 0) & READ
            for each in (self.root, *self.selectors)
        )

    def may_hear(self, channels: Iterable[bytes], patterns: Iterable[bytes]) -> bool:
        """Whether the user may listen to all of these channels and patterns."""
        selectors = (self.root, *self.selectors)
        if any(selector.all_channels for selector in selectors):
            return True
        return all(
            any(selector.allows_channel(name, is_pattern) for selector in selectors)
            for names, is_pattern in ((channels, False), (patterns, True))
            for name in names
        )

    # --- what it shows --------------------------------------------------------------------

    def flags(self) -> list[bytes]:
        """Its flags, as rules."""
        return [
            b"on" if self.is_on else b"off",
            *([b"nopass"] if self.nopass else []),
            b"sanitize-payload" if self.sanitizes else b"skip-sanitize-payload",
        ]

    def line(self) -> bytes:
        """The line of a configuration that makes this user."""
        words = [
            b"user",
            self.name,
            *self.flags(),
            *(b"#" + password.encode() for password in self.passwords),
            self.root.show(),
            *(selector.show_in_parentheses() for selector in self.selectors),
        ]
        return b" ".join(words)


class Users:
    """The users of a server; there is always one called ``default``."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.new_rate: Callable[[bytes], TokenBucket | None] = lambda name: None
        """Makes the limit of commands of a new user, if it has one."""
        self.open_channels = False
        """Whether a new user may use every channel (``acl-pubsub-default``)."""
        self.default = self.unlimited(DEFAULT_USER)
        self._by_name: dict[bytes, User] = {DEFAULT_USER: self.default}

    def new_selector(self) -> Selector:
        """A selector as a new user has it."""
        selector = Selector(self.table)
        selector.set_all_channels(self.open_channels)
        return selector

    def new_user(self, name: bytes) -> User:
        """A user that is not among these yet."""
        return User(name, self.new_selector())

    def unlimited(self, name: bytes) -> User:
        """A user who needs no password and may do everything, and is not among these."""
        user = self.new_user(name)
        user.is_on = user.nopass = True
        user.root.set_all_keys(True)
        user.root.set_all_channels(True)
        user.root.set_all_commands(True)
        user.settle()
        return user

    def get(self, name: bytes) -> User | None:
        """The user of that name."""
        return self._by_name.get(name)

    def exists(self, name: bytes) -> bool:
        """Whether there is a user of that name."""
        return name in self._by_name

    def every(self) -> list[User]:
        """All users, sorted by their names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def lines(self) -> list[bytes]:
        """The lines of a configuration that make these users."""
        return [user.line() for user in self.every()]

    # --- logging in -----------------------------------------------------------------------

    def default_is_open(self) -> bool:
        """Whether a client is the default user without having said so."""
        return self.default.is_on and self.default.nopass

    def log_in(self, name: bytes, password: bytes) -> User | None:
        """The user, if that is its password and it may log in; trying a user who does not exist
        takes as long as trying one who does."""
        user = self._by_name.get(name)
        if user is None:
            hmac.compare_digest(_NO_PASSWORD, hashed(password))
            return None
        return user if user.has_password(password) and user.is_on else None

    # --- changes --------------------------------------------------------------------------

    def put(self, user: User) -> User:
        """Makes a user, or changes the one of that name, to be as ``user`` is."""
        present = self._by_name.get(user.name)
        if present is None:
            self._by_name[user.name] = present = user
            present.rate = self.new_rate(user.name)
        else:
            present.take(user)
        present.settle()
        return present

    def remove(self, name: bytes) -> User | None:
        """Removes a user, who must not be the default one."""
        assert name != DEFAULT_USER
        return self._by_name.pop(name, None)

    def set_default_password(self, password: bytes) -> None:
        """Gives the default user one password, or makes it need none if that is empty."""
        self.default.nopass = not password
        self.default.passwords = {hashed(password): None} if password else {}
