"""The framing of an append-only file: a strict parser of its commands, and what may be wrong.

A command is a RESP array of bulk strings, in canonical form. Between commands there may be
annotations, lines that begin with ``#``. An error inside a bulk string cannot be detected here, but
every byte around it is verified; checksums (:mod:`storage.aof.checksum_lines`) are annotations.

What is whole is parsed by looking at single bytes, which is quick where it is compiled. Whatever
that does not get through with, be it only long, is parsed once more by expressions, which tell what
is wrong.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from storage.errors import BadBytes

Command = list[bytes]
"""A command's name and arguments; never empty."""

MAX_ARGUMENTS: Final = 2**31 - 1
MAX_ANNOTATION: Final = 1022
"""The longest annotation with its CRLF that Redis reads as one line, in bytes."""

_CRLF: Final = b"\r\n"
_CR: Final = 0x0D
_LF: Final = 0x0A
_HASH: Final = 0x23
_DOLLAR: Final = 0x24
_STAR: Final = 0x2A
_ZERO: Final = 0x30
_NINE: Final = 0x39
_LARGE: Final = 2**26
"""Numbers of so many digits are left to the expressions."""
_NONE: Final = -1

PORTION: Final = 64 * 1024
"""In so many bytes commands begin that are parsed at once; what fits a processor's cache."""

_COUNT: Final = re.compile(rb"\*([1-9][0-9]{0,9})\r\n")
_COUNT_CUT: Final = re.compile(rb"(?:\*(?:[1-9][0-9]{0,9}\r?)?)?\Z")
_LENGTH: Final = re.compile(rb"\$(0|[1-9][0-9]{0,9})\r\n")
_LENGTH_CUT: Final = re.compile(rb"(?:\$(?:(?:0|[1-9][0-9]{0,9})\r?)?)?\Z")
_ANNOTATION: Final = re.compile(rb"#[ -~]{0,%d}\r\n" % (MAX_ANNOTATION - 3))
_ANNOTATION_CUT: Final = re.compile(rb"#[ -~]{0,%d}\r?\Z" % (MAX_ANNOTATION - 3))

_LATER_COMMAND: Final = re.compile(
    rb"\r\n(?=\*[1-9][0-9]{0,9}\r\n\$[1-9][0-9]?\r\n[A-Za-z][A-Za-z._-]{0,98}\r\n)"
)
LATER_COMMAND_SIZE: Final = len(b"\r\n*1234567890\r\n$99\r\n") + 99 + len(_CRLF)
"""The longest stretch of bytes that :func:`find_command` has to see at once."""


_LONGEST_SHOWN: Final = 64
"""How many bytes of an argument messages show."""


class Misframed(BadBytes):
    """Bytes that no file of commands has in this place; ``offset`` is theirs in the data."""


class Cut(Exception):
    """The data ends within a command or an annotation, and all that is there is well-formed.

    ``needed`` more bytes end what is cut. ``content`` is where in the data the content of an
    argument begins that does not end there; the end of the data if something else is cut.
    """

    def __init__(self, needed: int, content: int) -> None:
        super().__init__(needed)
        self.needed = needed
        self.content = content


class LoadError(Exception):
    """A command of an append-only file cannot be applied; the text says which, and why.

    ``place`` is how many of the commands that were to be applied with it were before it."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))
        self.place = 0


Annotation = tuple[int, int, int]
"""Before which of the commands an annotation stands, where in the data, and its size in bytes."""


class Parsed(NamedTuple):
    """The things that :func:`parse` found in its data."""

    commands: list[Command]
    places: list[int]
    """Where in the data each of them begins."""
    annotations: list[Annotation]
    end: int
    """Where they end."""


# --- many commands ---------------------------------------------------------------------------


def parse(data: bytes, at: int = 0) -> Parsed:
    """The whole commands in ``data`` from ``at`` on, as far as they begin in the same portion; what
    follows them is not looked into.

    If there is nothing whole, raises :class:`Cut` if there could be with more data, and
    :class:`Misframed` if not.
    """
    commands: list[Command] = []
    places: list[int] = []
    annotations: list[Annotation] = []
    begin, stop = at, min(len(data), at + PORTION)
    while True:
        at = _take_plain(data, at, stop, commands, places)
        if at >= stop:
            break
        try:
            if data[at] == _HASH:
                end = _end_of_annotation(data, at)
                annotations.append((len(commands), at, end - at))
            else:
                command, end = parse_command(data, at)
                commands.append(command)
                places.append(at)
        except (Cut, Misframed):
            if at == begin:
                raise
            break
        at = end
    return Parsed(commands, places, annotations, at)


def _take_plain(data: bytes, at: int, stop: int, commands: list[Command], places: list[int]) -> int:
    """Takes commands that begin before ``stop``, up to the first that is not plain; returns where
    they end."""
    begin = at
    try:
        while at < stop:
            begin = at
            left, at = _count(data, at)
            command: Command = []
            while left > 0:
                start, end = find_bulk(data, at)
                if start < 0:
                    return begin
                command.append(data[start:end])
                at = end + 2
                left -= 1
            if not command:
                return begin
            commands.append(command)
            places.append(begin)
    except IndexError:  # The data ends within a command.
        return begin
    return at


def _count(data: bytes, at: int) -> tuple[int, int]:
    """The number of arguments of the command that begins here, and where the first one begins; 0 if
    it is not plain. Raises :class:`IndexError` if the data may end before that."""
    if data[at] != _STAR:
        return 0, at
    at += 1
    byte = data[at]
    if byte == _ZERO:
        return 0, at
    count = 0
    while _ZERO <= byte <= _NINE and count < _LARGE:
        count = count * 10 + byte - _ZERO
        at += 1
        byte = data[at]
    if byte != _CR or data[at + 1] != _LF:
        return 0, at
    return count, at + 2


def find_bulk(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of the bulk string begins and ends that begins here; negative if there is
    none in canonical form, or a long one.

    Raises :class:`IndexError` if the data may end before that."""
    if data[at] != _DOLLAR:
        return _NONE, _NONE
    at += 1
    byte = data[at]
    length = 0
    if byte == _ZERO:
        at += 1
        byte = data[at]
    else:
        while _ZERO <= byte <= _NINE and length < _LARGE:
            length = length * 10 + byte - _ZERO
            at += 1
            byte = data[at]
        if not length:
            return _NONE, _NONE
    if byte != _CR or data[at + 1] != _LF:
        return _NONE, _NONE
    start = at + 2
    end = start + length
    if data[end] != _CR or data[end + 1] != _LF:
        return _NONE, _NONE
    return start, end


def _end_of_annotation(data: bytes, at: int) -> int:
    match = _ANNOTATION.match(data, at)
    if match is not None:
        return match.end()
    if _ANNOTATION_CUT.match(data, at):
        raise Cut(1, len(data))
    raise Misframed(
        at, f"an annotation is a line of at most {MAX_ANNOTATION} printable characters and CRLF"
    )


# --- one command -----------------------------------------------------------------------------


def parse_command(data: bytes, at: int) -> tuple[Command, int]:
    """The command that begins at ``at``, and where it ends; raises like :func:`parse`."""
    match = _COUNT.match(data, at)
    if match is None:
        if _COUNT_CUT.match(data, at):
            raise Cut(1, len(data))
        raise Misframed(at, f"expected * and a number of arguments, not {_shown(data, at)}")
    count = int(match[1])
    if count > MAX_ARGUMENTS:
        raise Misframed(at, f"{count} arguments are more than any command has")
    command: Command = []
    at = match.end()
    for _ in range(count):
        argument, at = _parse_argument(data, at)
        command.append(argument)
    return command, at


def _parse_argument(data: bytes, at: int) -> tuple[bytes, int]:
    """An argument, and where it ends."""
    match = _LENGTH.match(data, at)
    if match is None:
        if _LENGTH_CUT.match(data, at):
            raise Cut(1, len(data))
        raise Misframed(at, f"expected $ and an argument's length, not {_shown(data, at)}")
    start = match.end()
    end = start + int(match[1])
    terminator = data[end : end + len(_CRLF)]
    if terminator == _CRLF:
        return data[start:end], end + len(_CRLF)
    if not _CRLF.startswith(terminator):
        raise Misframed(end, f"expected CRLF behind an argument, not {_shown(data, end)}")
    raise Cut(end + len(_CRLF) - len(data), start)


def _shown(data: bytes, at: int) -> str:
    """The next bytes, for a message."""
    return ascii(data[at : at + 12])[1:]


def find_command(data: bytes) -> int:
    """Where in ``data`` another command seems to begin, or -1.

    That is so behind a CRLF, if there are a command's header and a name made of letters.
    """
    match = _LATER_COMMAND.search(data)
    return -1 if match is None else match.end()


# --- texts of messages -----------------------------------------------------------------------


def printable(text: str) -> str:
    """A text in one line, in which bytes that cannot be printed are ``\\x..``; for messages with
    what stands in files, or what files are called."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def shown(text: bytes) -> str:
    """An argument as messages show it, in one line, cut short if it is long."""
    readable = "".join(
        chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in text[:_LONGEST_SHOWN]
    )
    return f"'{readable}{'...' if len(text) > _LONGEST_SHOWN else ''}'"
