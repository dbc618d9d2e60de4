# Compiled by mypyc.
"""A parser of requests that implements every rule of the protocol.

Each byte is processed once: arguments that have been parsed are not parsed again when the rest of
their request arrives, and a long value is assembled in place. :attr:`StrictParser.steps` bounds the
work of one call.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Final

from hiredis import pack_command

from protocol import errors
from protocol.inline import split_words

Request = list[bytes]
"""A command's name and arguments; never empty."""

MAX_LINE: Final = 64 * 1024
"""The longest header or inline command, in bytes."""
MAX_ARGUMENTS: Final = 2**31 - 1
MAX_BULK: Final = 512 * 1024 * 1024
MAX_QUERY: Final = 1024**3
MAX_UNAUTHENTICATED_ARGUMENTS: Final = 10
MAX_UNAUTHENTICATED_BULK: Final = 16384

ARGUMENT_OVERHEAD: Final = 48
"""What an argument takes apart from its bytes: the head of the object and its place in a list."""

_INTEGER = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")

_MANY: Final = 8
"""So many missing arguments are looked for together."""
_WINDOW: Final = 16 * 1024
"""In so many bytes at a time."""
_WINDOW_STEPS: Final = 100
_LINE_BYTES_A_STEP: Final = 64
_LONG: Final = 16 * 1024
"""A value of more bytes is put together apart from the buffer."""


class ProtocolError(Exception):
    """The client broke the protocol; the connection ends after this error has been sent."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class QueryTooLong(Exception):
    """The client sends more than ``client-query-buffer-limit`` allows; the connection ends."""


def _wire_integer(text: bytes) -> int | None:
    """The 64-bit signed integer that ``text`` spells in the one way it may be spelt."""
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class StrictParser:
    """Parses one request at a time, by every rule of the protocol.

    :meth:`feed` takes bytes cut anywhere; :meth:`next` returns one request or ``None``, and raises
    :class:`ProtocolError` or :class:`QueryTooLong`. After ``None`` it is ``stalled`` if more bytes
    are needed; otherwise it has taken all of its ``steps`` and goes on when it is given more.
    """

    __slots__ = (
        "_arguments",
        "_buffer",
        "_bulk_length",
        "_long",
        "_missing",
        "_position",
        "argument_bytes",
        "max_bulk",
        "max_query",
        "restricted",
        "stalled",
        "steps",
    )

    def __init__(self, max_bulk: int = MAX_BULK) -> None:
        self.max_bulk = max_bulk
        self.max_query = MAX_QUERY
        self.restricted = False
        self.steps = 2**62
        """How much may still be done: about the number of arguments, empty requests and lines."""
        self.clear()

    def clear(self) -> None:
        """Forgets everything that was fed."""
        self._buffer = b""
        self._position = 0
        self._missing = 0
        self._bulk_length: int | None = None
        self._long: BytesIO | None = None
        self._arguments: Request = []
        self.argument_bytes = 0
        """How long the arguments of the unfinished request are together."""
        self.stalled = False

    @property
    def pending(self) -> bool:
        """Whether bytes are held that belong to no finished request."""
        return self._missing > 0 or self._position < len(self._buffer)

    @property
    def held(self) -> int:
        """How many bytes wait in the buffer, those of an unfinished value included."""
        unfinished = 0 if self._long is None else self._long.tell()
        return len(self._buffer) - self._position + unfinished

    @property
    def memory(self) -> int:
        """What is held takes so many bytes of memory."""
        return self.held + self.argument_bytes + ARGUMENT_OVERHEAD * len(self._arguments)

    def feed(self, data: bytes) -> None:
        """Adds what the client sent."""
        self._buffer = self._buffer[self._position :] + data
        self._position = 0
        self.stalled = False

    def take_rest(self) -> bytes:
        """Removes and returns the bytes after the last finished request."""
        rest = self._buffer[self._position :]
        self.clear()
        return rest

    def next(self) -> Request | None:
        """The next request, or ``None``; blank lines and empty arrays are passed over."""
        while self.steps > 0 and not self.stalled:
            if self._missing:
                return self._read_arguments()
            self.steps -= 1
            if self._position == len(self._buffer):
                self.stalled = True
            elif self._buffer[self._position] == 0x2A:  # '*'
                self.stalled = not self._read_count()
            else:
                words = self._read_inline()
                if words:
                    return words
                self.stalled = words is None
        return None

    # --- lines ----------------------------------------------------------------------------

    def _read_line(self, end: bytes, too_long: str) -> bytes | None:
        """The line up to ``end``, which is passed over; ``None`` if that is not there.

        A line that holds a NUL has no end: so it is in Redis, which looks for it in a C string.
        """
        found = self._buffer.find(end, self._position)
        if found >= 0 and self._buffer.find(b"\0", self._position, found) < 0:
            line = self._buffer[self._position : found]
            self._position = found + len(end)
            return line
        if len(self._buffer) - self._position > MAX_LINE:
            raise ProtocolError(too_long)
        return None

    def _read_header(self, too_long: str) -> bytes | None:
        """The line up to CR; the byte behind that is passed over, whatever it is."""
        start = self._position
        line = self._read_line(b"\r", too_long)
        if line is None or self._position == len(self._buffer):
            self._position = start
            return None
        self._position += 1
        return line

    def _read_count(self) -> bool:
        line = self._read_header(errors.TOO_BIG_COUNT)
        if line is None:
            return False
        count = _wire_integer(line[1:])
        if count is None or count > MAX_ARGUMENTS:
            raise ProtocolError(errors.INVALID_MULTIBULK_LENGTH)
        if self.restricted and count > MAX_UNAUTHENTICATED_ARGUMENTS:
            raise ProtocolError(errors.UNAUTHENTICATED_MULTIBULK_LENGTH)
        self._missing = max(count, 0)
        return True

    def _read_inline(self) -> Request | None:
        line = self._read_line(b"\n", errors.TOO_BIG_INLINE)
        if line is None:
            return None
        self.steps -= len(line) // _LINE_BYTES_A_STEP
        words = split_words(line.removesuffix(b"\r"))
        if words is None:
            raise ProtocolError(errors.UNBALANCED_QUOTES)
        return words

    # --- arguments ------------------------------------------------------------------------

    def _read_arguments(self) -> Request | None:
        while self._missing >= _MANY and self.steps > 0:
            if not self._read_plain_arguments():
                break
        while self._missing:
            if self.steps <= 0:
                return None
            self.steps -= 1
            if not self._read_argument():
                self.stalled = True
                return None
        request, self._arguments = self._arguments, []
        self.argument_bytes = 0
        return request

    def _read_plain_arguments(self) -> bool:
        """Reads the next arguments together; false if that is not possible.

        They are taken to be every other line, and are that if they give the same bytes again: no
        argument holds the end of a line, and every header is spelt as it should be.
        """
        if self._bulk_length is not None or self.restricted or self.max_bulk < _WINDOW:
            return False
        window = self._buffer[self._position : self._position + _WINDOW]
        arguments = window.split(b"\r\n", 2 * self._missing)[1:-1:2]
        if not arguments:
            return False
        packed = pack_command(tuple(arguments))  # type: ignore[arg-type]
        plain = packed[packed.index(b"$") :]
        if not window.startswith(plain):
            return False
        self._arguments += arguments
        self.argument_bytes += sum(map(len, arguments))
        self._missing -= len(arguments)
        self._position += len(plain)
        self.steps -= _WINDOW_STEPS
        return True

    def _read_argument(self) -> bool:
        """Reads one argument; false if more bytes are needed."""
        if self._bulk_length is None:
            self._bulk_length = self._read_bulk_length()
            if self._bulk_length is None:
                return False
        if self._bulk_length > _LONG:
            value = self._read_long(self._bulk_length)
            if value is None:
                return False
        else:
            end = self._position + self._bulk_length
            if end + 2 > len(self._buffer):
                return False
            value = self._buffer[self._position : end]
            self._position = end + 2
        self._arguments.append(value)
        self.argument_bytes += len(value)
        self._bulk_length = None
        self._missing -= 1
        return True

    def _read_long(self, length: int) -> bytes | None:
        """Adds to a long value; it is handed out as it lies in memory, without another copy."""
        if self._long is None:
            self._long = BytesIO()
        part = self._buffer[self._position : self._position + length - self._long.tell()]
        self._long.write(part)
        self._position += len(part)
        if self._long.tell() < length or self._position + 2 > len(self._buffer):
            return None
        self._position += 2
        value, self._long = self._long.getvalue(), None
        return value

    def _read_bulk_length(self) -> int | None:
        line = self._read_header(errors.TOO_BIG_BULK_COUNT)
        if line is None:
            return None
        if line[:1] != b"$":
            raise ProtocolError(errors.expected_dollar(line[:1] or b"\r"))
        length = _wire_integer(line[1:])
        if length is None or not 0 <= length <= self.max_bulk:
            raise ProtocolError(errors.INVALID_BULK_LENGTH)
        if self.restricted and length > MAX_UNAUTHENTICATED_BULK:
            raise ProtocolError(errors.UNAUTHENTICATED_BULK_LENGTH)
        if length + 2 > self.max_query:
            raise QueryTooLong
        return length
