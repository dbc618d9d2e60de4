"""What the tools share: names as commands have them."""

from __future__ import annotations

import pytest

from penstock.operate.common import word


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        (b"orders:eu-1", "orders:eu-1"),
        (b"two words", '"two words"'),
        (b'a"b\\c', r'"a\"b\\c"'),
        (b"\xff\n", r'"\xff\x0a"'),
        ("é\x9b\u202e".encode(), r'"é\xc2\x9b\xe2\x80\xae"'),
    ],
)
def test_a_name_is_typed_as_redis_cli_reads_it(name: bytes, typed: str) -> None:
    assert word(name) == typed
