"""Splitting a script line into arguments, with the quoting that redis-cli users know.

One thing is added: ``"text"*3`` is the text three times, for input of great length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

REPETITION = re.compile(r"(?:\*(\d+))?(?= |$)")
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}


class QuotingError(ValueError):
    """A quoted argument that never ends, or that is followed by more text."""


def split_arguments(line: str, values: Mapping[str, bytes]) -> list[bytes]:
    """The arguments of a command line; ``{name}`` outside quotes stands for a saved value."""
    arguments: list[bytes] = []
    position = 0
    while position < len(line):
        if line[position] == " ":
            position += 1
        elif line[position] == '"':
            argument, position = _quoted(line, position + 1)
            arguments.append(argument)
        else:
            end = line.find(" ", position)
            end = len(line) if end < 0 else end
            arguments.append(_substitute(line[position:end], values))
            position = end
    return arguments


def _substitute(word: str, values: Mapping[str, bytes]) -> bytes:
    """An unquoted word with the saved values filled in."""
    data = word.encode("utf-8")
    for name, value in values.items():
        data = data.replace(b"{%b}" % name.encode("ascii"), value)
    return data


def _quoted(line: str, position: int) -> tuple[bytes, int]:
    """The text up to the closing quote, and the position after that quote."""
    parts: list[bytes] = []
    while position < len(line):
        character = line[position]
        if character == '"':
            times, position = _repetition(line, position + 1)
            return b"".join(parts) * times, position
        if character == "\\":
            part, position = _escaped(line, position + 1)
        else:
            part, position = character.encode("utf-8"), position + 1
        parts.append(part)
    raise QuotingError(f"a quote is not closed: {line}")


def _repetition(line: str, position: int) -> tuple[int, int]:
    """How often the quoted text before ``position`` counts, and where the argument ends."""
    found = REPETITION.match(line, position)
    if not found:
        raise QuotingError(f"text after a closing quote: {line}")
    return int(found.group(1) or 1), found.end()


def _escaped(line: str, position: int) -> tuple[bytes, int]:
    """The byte that the escape sequence at ``position`` stands for."""
    character = line[position : position + 1]
    if character == "x":
        return bytes.fromhex(line[position + 1 : position + 3]), position + 3
    return ESCAPES.get(character, character.encode("utf-8")), position + 1
