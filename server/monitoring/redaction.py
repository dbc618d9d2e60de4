"""Which arguments are shown of a command: none that is a password."""

from __future__ import annotations

from typing import Final

from server.road.table import Arguments, Command

HIDDEN: Final = b"(redacted)"
"""What stands in place of an argument."""

SECRET_SETTINGS: Final = frozenset(
    {
        b"masterauth",
        b"masteruser",
        b"requirepass",
        b"tls-client-key-file-pass",
        b"tls-key-file-pass",
    }
)
"""Settings whose values are not shown."""

_HIDDEN_FROM: Final = {"auth": 1, "acl|setuser": 2, "acl|getuser": 2, "acl|deluser": 2}
"""Commands all of whose arguments are hidden, from this one on."""


def visible(command: Command, args: Arguments) -> Arguments:
    """The request as it may be shown to others."""
    first = _HIDDEN_FROM.get(command.fullname)
    if first is not None:
        return args[:first] + [HIDDEN] * (len(args) - first)
    if command.fullname == "hello":
        return _without_login(args)
    if command.fullname == "config|set":
        return _without_secrets(args)
    return args


def _without_login(args: Arguments) -> Arguments:
    """HELLO without the user and the password that follow the word AUTH."""
    for at in range(2, len(args), 2):  # Before AUTH there may be SETNAME, which has a word, too.
        if args[at].upper() == b"AUTH":
            hidden = len(args[at + 1 : at + 3])
            return [*args[: at + 1], *[HIDDEN] * hidden, *args[at + 3 :]]
    return args


def _without_secrets(args: Arguments) -> Arguments:
    """CONFIG SET without the values of what is secret."""
    shown = list(args)
    for at in range(3, len(args), 2):
        if args[at - 1].lower() in SECRET_SETTINGS:
            shown[at] = HIDDEN
    return shown
