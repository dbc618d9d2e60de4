from __future__ import annotations

import pytest

from server import commands
from server.core.table import Command, find, new_table
from server.state.monitors import visible

commands.load()
TABLE = new_table()


def shown(line: str) -> str:
    """A request as others see it."""
    args = line.encode().split(b" ")
    command = find(TABLE, args)
    assert command is not None
    before = list(args)
    found = b" ".join(visible(command, args)).decode()
    assert args == before, "the request itself has to stay as it is"
    return found


@pytest.mark.parametrize(
    ("line", "visible_part"),
    [
        ("AUTH secret", "AUTH (redacted)"),
        ("auth user secret", "auth (redacted) (redacted)"),
        ("AUTH a b c", "AUTH (redacted) (redacted) (redacted)"),
        ("HELLO", "HELLO"),
        ("HELLO 3", "HELLO 3"),
        ("HELLO 3 SETNAME auth", "HELLO 3 SETNAME auth"),
        ("HELLO 3 SETNAME auth AUTH u p", "HELLO 3 SETNAME auth AUTH (redacted) (redacted)"),
        ("HELLO 3 auth u p SETNAME n", "HELLO 3 auth (redacted) (redacted) SETNAME n"),
        ("HELLO 3 AUTH p", "HELLO 3 AUTH (redacted)"),
        ("HELLO 3 AUTH", "HELLO 3 AUTH"),
        ("CONFIG SET requirepass p", "CONFIG SET requirepass (redacted)"),
        ("CONFIG SET hz 10 MASTERAUTH p", "CONFIG SET hz 10 MASTERAUTH (redacted)"),
        ("CONFIG SET masteruser u hz 5", "CONFIG SET masteruser (redacted) hz 5"),
        ("CONFIG SET tls-key-file-pass p", "CONFIG SET tls-key-file-pass (redacted)"),
        ("CONFIG SET requirepass", "CONFIG SET requirepass"),
        ("CONFIG SET hz requirepass", "CONFIG SET hz requirepass"),
        ("CONFIG GET requirepass", "CONFIG GET requirepass"),
        ("SET requirepass p", "SET requirepass p"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(line: str, visible_part: str) -> None:
    assert shown(line) == visible_part


@pytest.mark.parametrize("name", ["SETUSER", "GETUSER", "DELUSER"])
def test_what_names_users_is_hidden(name: str) -> None:
    template = Command(TABLE[b"get"].about)
    template.fullname = f"acl|{name.lower()}"
    args = [b"ACL", name.encode(), b"user", b">password"]
    assert visible(template, args) == [*args[:2], b"(redacted)", b"(redacted)"]
