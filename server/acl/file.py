"""The file of users (``aclfile``): a line for each, as ACL LIST shows it.

Words are separated by single blanks, and there are no quotes. Empty lines are passed over, and so
are lines that begin with ``#``. A file is taken as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from server.acl import errors
from server.acl.rules import OpenSelector, RuleError, apply_all, is_name, joined
from server.acl.users import User, Users
from server.config.file import replace

_AROUND: Final = b" \t\r"


class FileError(Exception):
    """The file cannot be used; the text says which lines are wrong, and how."""


def read(users: Users, path: str) -> list[User]:
    """The users of a file; raises :class:`FileError`."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        reason = errors.file_not_opened(path, str(error.strerror))
        raise FileError(reason) from error
    return parse(users, text, path)


def parse(users: Users, text: bytes, path: str) -> list[User]:
    """The users of such a text; ``path`` is what errors call it. Raises :class:`FileError`."""
    found: dict[bytes, User] = {}
    wrong: list[str] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        line = line.strip(_AROUND)
        if line and not line.startswith(b"#"):
            problem = _take(users, found, line, path, number)
            if problem is not None:
                wrong.append(problem)
    if wrong:
        raise FileError("".join(wrong) + errors.FILE_UNCHANGED)
    return list(found.values())


def _take(
    users: Users, found: dict[bytes, User], line: bytes, path: str, number: int
) -> str | None:
    """Makes the user of a line; returns what is wrong with it, if something is."""
    words = line.split(b" ")
    if words[0] != b"user" or len(words) < 2:
        return errors.no_user_keyword(path, number)
    name = words[1]
    if name in found:
        return errors.user_twice(name, number)
    if not is_name(name):
        return errors.bad_user_name(path, number, name)
    user = found[name] = users.new_user(name)
    try:
        apply_all(users, user, joined(words[2:]))
    except OpenSelector:
        return errors.bad_line(path, number, b"", errors.SYNTAX)
    except RuleError as error:
        return errors.bad_line(path, number, error.rule, error.reason)
    return None


def write(path: str, lines: Iterable[bytes]) -> None:
    """Replaces the file by one with these lines, which nobody else may read: there are hashes of
    passwords in it. Raises :class:`OSError` and leaves it as it is."""
    replace(path, b"".join(line + b"\n" for line in lines), 0o600)
