"""Requests out of bytes: an incremental parser for what clients send.

A request is a RESP array of bulk strings, or one line of words (an *inline command*). hiredis
parses whole chunks in C, but it is a parser of replies: it takes shapes that a server must refuse
and knows no limits. So what hiredis says counts only where the chunk is certain to have held
nothing but arrays of bulk strings; everything else, and every request that is cut by the end of a
read, goes through :class:`StrictParser`, which knows all the rules. Both give the same requests.
"""

from __future__ import annotations

import re
from typing import Final

from hiredis import ProtocolError as HiredisProtocolError
from hiredis import Reader, pack_command

from protocol import errors
from protocol.inline import split_words

Request = list[bytes]
"""A command's name and arguments; never empty."""

MAX_LINE: Final = 64 * 1024
"""The longest header or inline command, in bytes."""
MAX_ARGUMENTS: Final = 2**31 - 1
MAX_BULK: Final = 512 * 1024 * 1024
MAX_UNAUTHENTICATED_ARGUMENTS: Final = 10
MAX_UNAUTHENTICATED_BULK: Final = 16384

_INTEGER = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")

_LARGE_COUNT: Final = re.compile(rb"\*([0-9]{3,9})")
"""What may be the header of an array of a hundred elements or more."""

_LEAST_ELEMENT: Final = len(b"$0\r\n\r\n")

_OTHER_TYPES: Final = b"+=(~>|%#"
_USUAL_ARGUMENTS: Final = [(sign, b"$1\r\n%b\r\n" % sign) for sign in (b">", b"+", b"~")]
"""Arguments that read like the signs of types, and how requests spell them."""

_END_MARK: Final = b"*0\r\n"


class ProtocolError(Exception):
    """The client broke the protocol; the connection ends after this error has been sent."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def _wire_integer(text: bytes) -> int | None:
    """The 64-bit signed integer that ``text`` spells in the one way it may be spelt."""
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class StrictParser:
    """Parses one request at a time, by every rule of the protocol.

    :meth:`feed` takes bytes cut anywhere; :meth:`next` returns one request or ``None`` when more
    bytes are needed, and raises :class:`ProtocolError`.
    """

    __slots__ = (
        "_arguments",
        "_buffer",
        "_bulk_length",
        "_missing",
        "_position",
        "max_bulk",
        "restricted",
    )

    def __init__(self, max_bulk: int = MAX_BULK) -> None:
        self.max_bulk = max_bulk
        self.restricted = False
        self._buffer = bytearray()
        self._position = 0
        self._missing = 0
        self._bulk_length: int | None = None
        self._arguments: Request = []

    @property
    def pending(self) -> bool:
        """Whether bytes are held that belong to no finished request."""
        return self._missing > 0 or self._position < len(self._buffer)

    @property
    def held(self) -> int:
        """How many bytes wait in the buffer."""
        return len(self._buffer) - self._position

    def feed(self, data: bytes) -> None:
        """Adds what the client sent."""
        if self._position == len(self._buffer):
            self._buffer.clear()
            self._position = 0
        self._buffer += data

    def take_rest(self) -> bytes:
        """Removes and returns the bytes after the last finished request."""
        rest = bytes(self._buffer[self._position :])
        self._buffer.clear()
        self._position = 0
        return rest

    def next(self) -> Request | None:
        """The next request, or ``None``; blank lines and empty arrays are passed over."""
        while True:
            if self._missing:
                return self._read_arguments()
            if self._position == len(self._buffer):
                return None
            if self._buffer[self._position] == 0x2A:  # '*'
                if not self._read_count():
                    return None
            else:
                words = self._read_inline()
                if words or words is None:
                    return words

    def _read_line(self, end: bytes, too_long: str) -> bytes | None:
        """The line up to ``end``, which is passed over; ``None`` if that is not there.

        A line that holds a NUL has no end: so it is in Redis, which looks for it in a C string.
        """
        found = self._buffer.find(end, self._position)
        if found >= 0 and self._buffer.find(b"\0", self._position, found) < 0:
            line = bytes(self._buffer[self._position : found])
            self._position = found + len(end)
            return line
        if self.held > MAX_LINE:
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

    def _read_arguments(self) -> Request | None:
        while self._missing:
            if self._bulk_length is None:
                self._bulk_length = self._read_bulk_length()
                if self._bulk_length is None:
                    return None
            end = self._position + self._bulk_length
            if end + 2 > len(self._buffer):
                self._discard_parsed()
                return None
            self._arguments.append(bytes(self._buffer[self._position : end]))
            self._position = end + 2
            self._bulk_length = None
            self._missing -= 1
        request, self._arguments = self._arguments, []
        return request

    def _discard_parsed(self) -> None:
        """Drops what has been parsed, so that a long value is not moved again and again."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0

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
        return length

    def _read_inline(self) -> Request | None:
        line = self._read_line(b"\n", errors.TOO_BIG_INLINE)
        if line is None:
            return None
        words = split_words(line.removesuffix(b"\r"))
        if words is None:
            raise ProtocolError(errors.UNBALANCED_QUOTES)
        return words


class ChunkReader:
    """hiredis, reading whole chunks. Nothing stays in it between two of them, so the connections of
    a server may share one: a reader takes a kilobyte."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = Reader()

    def read(self, data: bytes) -> tuple[list[Request], bool]:
        """The lists of byte strings in a chunk, and whether it ends where the last of them does."""
        found: list[Request] = []
        gets = self._reader.gets
        # Joining is the quickest way to see that all elements are byte strings.
        join = b"".join
        try:
            self._reader.feed(data)
            while (request := gets()) is not False:
                join(request)
                found.append(request)
        except (TypeError, HiredisProtocolError):
            return [], False
        return found, self._has_ended()

    def forget(self) -> None:
        """Drops what is left of a chunk that is going to be read otherwise."""
        self._reader = Reader()

    def _has_ended(self) -> bool:
        """Whether hiredis waits for nothing more. It does not say so, but a mark comes out then."""
        self._reader.feed(_END_MARK)
        try:
            return bool(self._reader.gets() == [])
        except HiredisProtocolError:
            return False


class RequestParser:
    """Bytes of one connection in, batches of requests out.

    :meth:`feed` takes what a read brought and :meth:`batch` returns the requests it completed,
    until it returns an empty list. A :class:`ProtocolError` is raised only after every request
    before it has been returned. While ``restricted`` (a client that has not authenticated) the
    limits of such clients hold and a batch is a single request, since that request may lift the
    restriction.
    """

    __slots__ = ("_chunks", "_error", "_reader", "_strict")

    def __init__(self, max_bulk: int = MAX_BULK, reader: ChunkReader | None = None) -> None:
        self._chunks: list[bytes] = []
        self._reader = reader or ChunkReader()
        self._strict = StrictParser(max_bulk)
        self._error: ProtocolError | None = None

    @property
    def restricted(self) -> bool:
        """Whether the limits of unauthenticated clients hold."""
        return self._strict.restricted

    @restricted.setter
    def restricted(self, value: bool) -> None:
        self._strict.restricted = value

    @property
    def max_bulk(self) -> int:
        """The longest argument that is accepted, in bytes."""
        return self._strict.max_bulk

    @max_bulk.setter
    def max_bulk(self, value: int) -> None:
        self._strict.max_bulk = value

    @property
    def held(self) -> int:
        """How many bytes have been fed and not yet been returned in a request."""
        return sum(map(len, self._chunks)) + self._strict.held

    def feed(self, data: bytes) -> None:
        """Adds what the client sent."""
        self._chunks.append(data)

    def batch(self) -> list[Request]:
        """The requests that are complete; empty when more bytes are needed."""
        if self._error is not None:
            raise self._error
        if not self._chunks and not self._strict.pending:
            return []
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        requests: list[Request] = []
        try:
            self._parse(data, requests)
        except ProtocolError as error:
            self._error = error
            if not requests:
                raise
        return requests

    def _parse(self, data: bytes, requests: list[Request]) -> None:
        strict = self._strict
        if strict.pending or strict.restricted:
            strict.feed(data)
            request = strict.next()
            if request is None:
                return
            requests.append(request)
            if strict.restricted:
                return
            data = strict.take_rest()
        rest = self._parse_whole(data, requests)
        if rest:
            strict.feed(rest)
            while (request := strict.next()) is not None:
                requests.append(request)

    def _parse_whole(self, data: bytes, requests: list[Request]) -> bytes:
        """Parses a chunk with hiredis; returns what is left for the strict parser.

        That is the request which the chunk's end has cut, or all of it if a rule may be broken.
        """
        if data[:1] != b"*" or len(data) > self._strict.max_bulk or _announces_too_much(data):
            return data
        found, complete = self._reader.read(data)
        rest = b""
        if not complete or _names_other_types(data, found):
            plain = _pack(found)
            if not data.startswith(plain):
                found, plain = [], b""
            rest = data[len(plain) :]
        if rest:
            self._reader.forget()
        requests += filter(None, found)
        return rest


def _pack(requests: list[Request]) -> bytes:
    """The bytes that the requests were, if they were nothing but arrays of bulk strings."""
    return b"".join([pack_command(tuple(request)) for request in requests])  # type: ignore[arg-type]


def _announces_too_much(data: bytes) -> bool:
    """Whether the headers in ``data`` call for more elements than it can hold.

    hiredis makes room for every element of an array as soon as it has read the header.
    """
    if _LARGE_COUNT.search(data) is None:
        return False
    announced = sum(map(int, _LARGE_COUNT.findall(data)))
    return announced * _LEAST_ELEMENT > len(data)


def _names_other_types(data: bytes, found: list[Request]) -> bool:
    """Whether the sign of a type that only replies have is anywhere in ``data``, apart from signs
    that are surely arguments of the requests found in it.

    Many requests hold such an argument: XREADGROUP a ``>``, XRANGE a ``+``, trimming a ``~``.
    """
    signs = len(data) - len(data.translate(None, _OTHER_TYPES))
    if not signs:
        return False
    for sign, argument in _USUAL_ARGUMENTS:
        count = data.count(argument)
        if count:
            if count != sum([request.count(sign) for request in found]):
                return True
            signs -= count
    return signs > 0
