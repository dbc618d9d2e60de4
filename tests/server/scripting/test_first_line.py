"""The first lines of scripts and libraries: which words are in them, and how long they may be."""

from __future__ import annotations

import pytest

from protocol.errors import CommandError
from server.scripting import first_line


def said_of_script(line: bytes) -> str:
    """Whether a script with this line may be run, or why not."""
    try:
        header = first_line.read(line + b"\nreturn 1")
    except CommandError as error:
        return error.text
    assert header.body == b"\nreturn 1"
    return "may write" if not header.no_writes else "writes nothing"


def said_of_library(line: bytes) -> str:
    """The name of the library with this line, or why it has none."""
    try:
        return first_line.name_of(line + b"\nreturn").decode()
    except CommandError as error:
        return error.text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"#!lua flags=no-writes", "writes nothing"),
        (b"#!'lua' \x0cflags=no-writes\r", "writes nothing"),
        (b'#!lua "flags=no\\x2dwrites"', "writes nothing"),
        (b"#!lua flags= flags=allow-oom", "may write"),
        (b"#!lua flags=no\\-writes", "ERR Unexpected flag in script shebang: no\\-writes"),
        (b"#!lua 'flags=no\\'x'", "ERR Unexpected flag in script shebang: no'x"),
        (b"#!lua flags='no-writes'x", "ERR Invalid engine in script shebang"),
        (b'#!lua flags="no-writes', "ERR Invalid engine in script shebang"),
        (b"#!lua name=a", "ERR Unknown lua shebang option: name=a"),
        (b"#!LUA", "ERR Unexpected engine in script shebang: #!LUA"),
        (b"#!lua\0 x", "ERR Invalid script shebang"),
    ],
)
def test_a_scripts_first_line_has_the_words_that_redis_finds(line: bytes, expected: str) -> None:
    assert said_of_script(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'#!LUA "NAME=\\x61"', "a"),
        (b"#!lua\tname='a'\r", "a"),
        (b"#!lua name='a'x", "ERR Invalid library metadata"),
        (b"#!lua\0 name=a", "ERR Invalid library metadata"),
        (b"#! lua name=a", "ERR Invalid metadata value given: lua"),
        (b"#!", "ERR Library name was not given"),
        (b"#!js name=a", "ERR Engine 'js' not found"),
    ],
)
def test_a_librarys_first_line_has_the_words_that_redis_finds(line: bytes, expected: str) -> None:
    assert said_of_library(line) == expected


def test_a_line_may_be_as_long_as_an_inline_request() -> None:
    line = b"#!lua " + b"flags= " * 9361
    assert said_of_script(line) == "may write"
    assert said_of_script(line + b"          ") == "ERR Invalid script shebang"
    assert said_of_library(line + b"          ") == "ERR Invalid library metadata"


def test_an_error_shows_the_beginning_of_a_long_word() -> None:
    long, shown = b"x" * 1000, "x" * 128
    assert said_of_script(b"#!lua " + long) == f"ERR Unknown lua shebang option: {shown}"
    assert said_of_script(b"#!lua flags=" + long) == (
        f"ERR Unexpected flag in script shebang: {shown}"
    )
    assert said_of_script(b"#!" + long) == f"ERR Unexpected engine in script shebang: #!{shown[2:]}"
    assert said_of_library(b"#!lua " + long) == f"ERR Invalid metadata value given: {shown}"
    assert said_of_library(b"#!" + long + b" name=a") == f"ERR Engine '{shown}' not found"
