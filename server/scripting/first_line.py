"""The first line of a script or of a library.

A script says there what it may do: ``#!lua flags=no-writes``; a library names its language and
itself: ``#!lua name=mylib``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from protocol.errors import CommandError, shown
from server.scripting import errors as script_errors

FLAGS: Final[tuple[str, ...]] = (
    "no-writes",
    "allow-oom",
    "allow-stale",
    "no-cluster",
    "allow-cross-slot-keys",
)
"""The flags that scripts and functions may have, in the order that FUNCTION LIST shows them in."""
ENGINE: Final = "lua"
_NAME: Final = re.compile(r"\w+", re.ASCII)


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
    end = source.find(b"\n")
    if end < 0:
        raise CommandError(script_errors.SHEBANG_INVALID)
    words = _split(shown(source[:end]), script_errors.SHEBANG_UNREADABLE)
    if words[0] != f"#!{ENGINE}":
        raise CommandError(script_errors.unexpected_engine(words[0]))
    flags = _flags(words[1:])
    return Header(True, "no-writes" in flags, "allow-oom" in flags, source[end:])


def _split(line: str, error: str) -> list[str]:
    """Split a line as a shell does; raises :class:`CommandError` where a quote has no end."""
    # A server that runs no script does without it.
    import shlex

    try:
        return shlex.split(line)
    except ValueError:
        raise CommandError(error) from None


def _flags(options: list[str]) -> set[str]:
    found: set[str] = set()
    for option in options:
        name, equals, value = option.partition("=")
        if name != "flags" or not equals:
            raise CommandError(script_errors.unknown_shebang_option(option))
        for flag in value.split(",") if value else ():
            if flag not in FLAGS:
                raise CommandError(script_errors.unexpected_flag(flag))
            found.add(flag)
    return found


def name_of(code: bytes) -> bytes:
    """The name of a library; raises :class:`CommandError` if the first line is not right."""
    if not code.startswith(b"#!"):
        raise CommandError(script_errors.LIBRARY_WITHOUT_METADATA)
    end = code.find(b"\n")
    if end < 0:
        raise CommandError(script_errors.LIBRARY_METADATA_INVALID)
    engine, words = _words(shown(code[2:end]))
    name = _name(words)
    if _NAME.fullmatch(name) is None:
        raise CommandError(script_errors.LIBRARY_NAME_INVALID)
    if engine.lower() != ENGINE:
        raise CommandError(script_errors.engine_not_found(engine))
    return name.encode()


def _words(line: str) -> tuple[str, list[str]]:
    """The language, which may be missing, and the words behind it."""
    words = _split(line, script_errors.LIBRARY_METADATA_INVALID)
    if not words or line[0].isspace():
        return "", words
    return words[0], words[1:]


def _name(words: list[str]) -> str:
    found: str | None = None
    for word in words:
        key, equals, value = word.partition("=")
        if key.lower() != "name" or not equals:
            raise CommandError(script_errors.metadata_invalid(word))
        if found is not None:
            raise CommandError(script_errors.LIBRARY_NAMED_TWICE)
        found = value
    if found is None:
        raise CommandError(script_errors.LIBRARY_NAME_MISSING)
    return found
