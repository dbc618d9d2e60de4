"""How messages show what is in a file."""

from __future__ import annotations

import pytest

from storage.aof.lookup import shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"XADD", "'XADD'"),
        (b"", "''"),
        (b"a b", "'a b'"),
        (b"*1\r\n$1\r\n\x00\xff", r"'*1\x0d\x0a$1\x0d\x0a\x00\xff'"),
        (b"x" * 64, f"'{'x' * 64}'"),
        (b"x" * 65, f"'{'x' * 64}...'"),
    ],
)
def test_an_argument_is_shown_in_one_line(text: bytes, expected: str) -> None:
    assert shown(text) == expected
