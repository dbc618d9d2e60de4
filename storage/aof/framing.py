"""The framing of an append-only file: a strict parser of its commands.

A command is a RESP array of bulk strings, in canonical form. Between commands there may be
annotations, lines that begin with ``#``. An error inside a bulk string cannot be detected here, but
every byte around it is verified; checksums (:mod:`storage.aof.checksum_lines`) are annotations.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

Command = list[bytes]
"""A command's name and arguments; never empty."""

MAX_ARGUMENTS: Final = 2**31 - 1
MAX_ANNOTATION: Final = 1022
"""The longest annotation with its CRLF that Redis reads as one line, in bytes."""

_CRLF: Final = b"\r\n"
_SPLIT_AT_MOST: Final = 1024 * 1024
"""In more bytes than these there may be more lines than memory is meant for."""

_WIDTHS: Final = {b"*%d" % count: 2 * count for count in range(1, 1025)}
"""How many lines follow the header of a command, if none of its arguments holds a CRLF."""
_LENGTHS: Final = tuple(b"$%d" % length for length in range(4097))
"""The header of an argument, by its length. Longer ones do not come often enough to matter."""

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


class Misframed(Exception):
    """Bytes that no file of commands has in this place; ``offset`` is theirs in the data."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


class Cut(Exception):
    """The data ends within a command or an annotation, and all that is there is well-formed.

    ``needed`` more bytes end what is cut. ``content`` is where in the data the content of an
    argument begins that does not end there; the end of the data if something else is cut.
    """

    def __init__(self, needed: int, content: int) -> None:
        super().__init__(needed)
        self.needed = needed
        self.content = content


Annotation = tuple[int, int, int]
"""Before which of the commands an annotation stands, where in the data, and its size in bytes."""


class Parsed(NamedTuple):
    """What :func:`parse` found at the beginning of its data."""

    commands: list[Command]
    annotations: list[Annotation]
    end: int
    """How many bytes they take."""


# --- many commands ---------------------------------------------------------------------------


def parse(data: bytes) -> Parsed:
    """The whole commands at the beginning of ``data``; what follows them is not looked into.

    Of more than a mebibyte only one command is taken: it is a long one, or else the data was cut
    badly. If there is nothing whole, raises :class:`Cut` if there could be with more data, and
    :class:`Misframed` if not.
    """
    commands: list[Command] = []
    annotations: list[Annotation] = []
    if len(data) > _SPLIT_AT_MOST:
        return Parsed(commands, annotations, _take_other(data, 0, commands, annotations))
    lines = data.split(_CRLF)
    index = end = 0
    while end < len(data):
        following = _take_plain(lines, index, commands)
        end += sum(map(len, lines[index:following])) + len(_CRLF) * (following - index)
        index = following
        try:
            start, end = end, _take_other(data, end, commands, annotations)
        except (Cut, Misframed):
            if end == 0:
                raise
            break
        index += data.count(_CRLF, start, end)
    return Parsed(commands, annotations, end)


def _take_plain(lines: list[bytes], index: int, commands: list[Command]) -> int:
    """Appends commands up to one that is not plain; returns the index of the line it begins with.

    Plain is what has no CRLF in an argument: then the lines are headers and contents by turns, and
    comparing all headers with those that the contents should have is all there is to check.
    """
    add, length_of = commands.append, _LENGTHS.__getitem__
    last = len(lines) - 1
    try:
        while True:
            end = index + _WIDTHS[lines[index]]
            if end >= last:
                return index
            command = lines[index + 2 : end + 1 : 2]
            if list(map(length_of, map(len, command))) != lines[index + 1 : end : 2]:
                return index
            add(command)
            index = end + 1
    except (KeyError, IndexError):
        return index


def _take_other(
    data: bytes, at: int, commands: list[Command], annotations: list[Annotation]
) -> int:
    """Takes one command or annotation of any kind, or nothing at the end; returns where it ends."""
    if data.startswith(b"#", at):
        end = _end_of_annotation(data, at)
        annotations.append((len(commands), at, end - at))
        return end
    if at == len(data):
        return at
    command, end = parse_command(data, at)
    commands.append(command)
    return end


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


def encoded_size(command: Command) -> int:
    """How many bytes a command takes in the file."""
    sizes = list(map(len, command))
    headers = len(b"*%d\r\n" % len(command)) + sum(len(b"$%d\r\n\r\n" % size) for size in sizes)
    return headers + sum(sizes)
