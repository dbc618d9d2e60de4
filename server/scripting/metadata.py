"""The first line of a library, which names its language and itself: ``#!lua name=mylib``."""

from __future__ import annotations

import re
from typing import Final

from protocol.errors import CommandError, shown
from server.scripting import errors as script_errors

ENGINE: Final = "lua"
_NAME: Final = re.compile(r"\w+", re.ASCII)


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
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        raise CommandError(script_errors.LIBRARY_METADATA_INVALID) from None
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
