"""The first line of a script or of a library.

A script says there what it may do: ``#!lua flags=no-writes``; a library names its language and
itself: ``#!lua name=mylib``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from protocol.errors import CommandError, shown
from protocol.inline import split_words
from server.scripting import errors as script_errors

FLAGS: Final[tuple[str, ...]] = (
    "no-writes",
    "allow-oom",
    "allow-stale",
    "no-cluster",
    "allow-cross-slot-keys",
)
"""The flags that scripts and functions may have, in the order that FUNCTION LIST shows them in."""
ENGINE: Final = b"lua"
_KNOWN: Final = frozenset(flag.encode() for flag in FLAGS)
_NAME: Final = re.compile(rb"\w+")
_LONGEST: Final = 64 * 1024
"""Bytes that the line may have, as an inline request."""
_MOST_SHOWN: Final = 128
"""Bytes of a word that an error text shows."""


class Header(NamedTuple):
    """Whether a script has such a line, whether it promises not to write, whether it may take more
    memory when there is none left, and what is behind the line."""

    present: bool
    no_writes: bool
    allow_oom: bool
    body: bytes


def read(source: bytes) -> Header:
    """Reads the first line; raises :class:`CommandError` if it says what cannot be.

    The line's end stays in the body, so that lines keep their numbers.
    """
    if not source.startswith(b"#!"):
        return Header(False, False, False, source)
    end = _end_of_line(source, script_errors.SHEBANG_INVALID)
    words = split_words(source[:end])
    if words is None:
        raise CommandError(script_errors.SHEBANG_UNREADABLE)
    if words[0] != b"#!" + ENGINE:
        raise CommandError(script_errors.unexpected_engine(_shown(words[0])))
    flags = _flags(words[1:])
    return Header(True, b"no-writes" in flags, b"allow-oom" in flags, source[end:])


def _end_of_line(source: bytes, error: str) -> int:
    """Where the line ends; raises :class:`CommandError` if that is too far, or a NUL is in it."""
    end = source.find(b"\n", 0, _LONGEST)
    if end < 0 or b"\0" in source[:end]:
        raise CommandError(error)
    return end


def _shown(word: bytes) -> str:
    """A word as it stands in an error text."""
    return shown(word[:_MOST_SHOWN])


def _flags(options: list[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for option in options:
        name, equals, value = option.partition(b"=")
        if name != b"flags" or not equals:
            raise CommandError(script_errors.unknown_shebang_option(_shown(option)))
        for flag in value.split(b",") if value else ():
            if flag not in _KNOWN:
                raise CommandError(script_errors.unexpected_flag(_shown(flag)))
            found.add(flag)
    return found


def name_of(code: bytes) -> bytes:
    """The name of a library; raises :class:`CommandError` if the first line is not right."""
    if not code.startswith(b"#!"):
        raise CommandError(script_errors.LIBRARY_WITHOUT_METADATA)
    line = code[2 : _end_of_line(code, script_errors.LIBRARY_METADATA_INVALID)]
    words = split_words(line)
    if words is None:
        raise CommandError(script_errors.LIBRARY_METADATA_INVALID)
    # The language may be missing.
    engine = b"" if line[:1].isspace() or not words else words.pop(0)
    name = _name(words)
    if _NAME.fullmatch(name) is None:
        raise CommandError(script_errors.LIBRARY_NAME_INVALID)
    if engine.lower() != ENGINE:
        raise CommandError(script_errors.engine_not_found(_shown(engine)))
    return name


def _name(words: list[bytes]) -> bytes:
    found: bytes | None = None
    for word in words:
        key, equals, value = word.partition(b"=")
        if key.lower() != b"name" or not equals:
            raise CommandError(script_errors.metadata_invalid(_shown(word)))
        if found is not None:
            raise CommandError(script_errors.LIBRARY_NAMED_TWICE)
        found = value
    if found is None:
        raise CommandError(script_errors.LIBRARY_NAME_MISSING)
    return found
