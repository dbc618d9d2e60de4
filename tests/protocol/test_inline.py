"""Words of inline commands. Every case was answered the same way by Redis 8.0.6."""

from __future__ import annotations

import pytest

from protocol.inline import split_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b" \t\v\f\r", []),
        (b"PING", [b"PING"]),
        (b"  PING  hello ", [b"PING", b"hello"]),
        (b"SET\tkey\rvalue", [b"SET", b"key", b"value"]),
        (b"ECHO \x0ba\x0cb", [b"ECHO", b"a\x0cb"]),
        (b'ECHO "hello world"', [b"ECHO", b"hello world"]),
        (b"ECHO 'hello world'", [b"ECHO", b"hello world"]),
        (b'"" a', [b"", b"a"]),
        (b"''", [b""]),
        (b'ECHO a"b c"', [b"ECHO", b"ab c"]),
        (b"ECHO a'b'", [b"ECHO", b"ab"]),
        (b"ECHO \"a\"\t'b'", [b"ECHO", b"a", b"b"]),
        (b"\xff\x80 \xfe", [b"\xff\x80", b"\xfe"]),
        (b'"\xff"', [b"\xff"]),
    ],
)
def test_words_are_separated_by_blanks_outside_quotes(line: bytes, words: list[bytes]) -> None:
    assert split_words(line) == words


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (rb'"\x41\x7a\xff\x0F"', b"Az\xff\x0f"),
        (rb'"\n\r\t\b\a"', b"\n\r\t\b\a"),
        (rb'"\\\""', b'\\"'),
        (rb'"\q\x4\xzz\x"', b"qx4xzzx"),
        (rb"'a\'b'", b"a'b"),
        (rb"'a\nb\x41'", rb"a\nb\x41"),
    ],
)
def test_escapes_are_those_of_their_kind_of_quotes(line: bytes, word: bytes) -> None:
    assert split_words(line) == [word]


@pytest.mark.parametrize(
    "line",
    [
        b'"open',
        b"'open",
        b'a"open',
        b"a'b",
        b'"a"b',
        b"'a'b",
        b"\"a\"'b'",
        b'"a\\',
        b"'a\\",
        rb'"a\"',
        rb"'a\\'",
    ],
)
def test_a_quote_must_be_closed_and_followed_by_a_blank(line: bytes) -> None:
    assert split_words(line) is None
