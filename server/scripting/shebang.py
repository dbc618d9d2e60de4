"""The first line of a script, where it says what the script may do: ``#!lua flags=no-writes``."""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.errors import CommandError, shown
from server.scripting import errors as script_errors

FLAGS: Final = frozenset(
    {"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}
)
ENGINE: Final = "#!lua"


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
    flags = _flags(_words(shown(source[:end])))
    return Header(True, "no-writes" in flags, "allow-oom" in flags, source[end:])


def _words(line: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        raise CommandError(script_errors.SHEBANG_UNREADABLE) from None
    if words[0] != ENGINE:
        raise CommandError(script_errors.unexpected_engine(words[0]))
    return words[1:]


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
