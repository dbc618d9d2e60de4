"""Parse requests: bytes of a connection, cut anywhere, become lists of byte strings.

A request is a RESP array of bulk strings, or one line of words (an *inline command*). Nearly all
come whole and in one spelling: :mod:`protocol.scanner` proves where such requests end and cuts them
out; where it is not compiled, hiredis builds what :mod:`protocol.scanner_plain` has proved. hiredis
alone would not do, as it is a parser of replies: it accepts types that a server must refuse,
allocates what a header announces, and has no limits. What has been proved is in proportion to its
bytes and can be nothing but requests, so that nothing is left to be checked.

Everything else is read by all rules of the protocol, with Redis's error texts, an argument at a
time: requests that the end of a read cuts, long ones, odd spellings, inline commands, and the
requests of clients that have not authenticated. Each byte is looked at once, or twice for the first
cut of a request (:meth:`RequestParser.peek` may show it whole then): arguments that have been read
are not read again when the rest arrives, and a long value is assembled in place.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Final

from hiredis import Reader

from protocol import errors, scanner, scanner_plain
from protocol.inline import split_words

IS_COMPILED: Final = not scanner.__file__.endswith(".py")

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

PIECE: Final = 64 * 1024
"""What a read brought is parsed in pieces of so many bytes at most."""
STEPS: Final = 500
"""How much is read by the rules in one batch: about the number of arguments and lines."""

MEMORABLE: Final = 512
"""A read that is longer is not remembered, unless it is a single request of many arguments: such
as that of a worker for many streams, which is the same each time."""

MEMORABLE_OF_MANY: Final = 64 * 1024
"""Nor is such a request that is longer than this: each connection may keep one."""

_MANY: Final = 32
"""So many missing arguments are proved and built together."""
_STEPS_OF_MANY: Final = 4
_LINE_BYTES_A_STEP: Final = 64
_LONG: Final = 16 * 1024
"""A value of more bytes is put together apart from the buffer."""

_NO_ARGUMENTS: Final[Request] = []
_NO_REQUESTS: Final[list[Request]] = []
_NO_PIECES: Final[list[bytes]] = []
"""Those of a client that is not in the midst of a request. Nothing is put in here."""

_INTEGER = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")


class ProtocolError(Exception):
    """The client broke the protocol; the connection ends after this error has been sent."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class QueryTooLong(Exception):
    """The client sends more than ``client-query-buffer-limit`` allows; the connection ends."""


def memory_of(request: Request) -> int:
    """Return how many bytes of memory the request takes."""
    return sum(map(len, request)) + ARGUMENT_OVERHEAD * len(request)


class RequestParser:
    """Bytes of one connection in, batches of requests out.

    :meth:`feed` takes what a read brought. While the parser is ``ready``, :meth:`batch` goes on by
    a step that takes a millisecond at most and returns the requests it completed, which may be
    none. A :class:`ProtocolError` or :class:`QueryTooLong` is raised only after every request
    before it has been returned. While ``restricted`` (a client that has not authenticated) the
    limits of such clients hold and a batch is a single request, since that request may lift the
    restriction.

    ``buffer`` is what is being parsed and ``position`` how far that is; it is empty when all that
    came is in finished requests. What is fed meanwhile waits in pieces: there are none when more
    bytes are needed to go on. ``argument_bytes`` is how long the arguments of the unfinished
    request are together. ``reader`` builds what has been proved. Nothing stays in it, so the
    connections of a server may share one.
    """

    __slots__ = (
        "_arguments",
        "_bulk_length",
        "_error",
        "_known",
        "_known_requests",
        "_long",
        "_max_bulk",
        "_max_query",
        "_missing",
        "_pieces",
        "_reader",
        "_start",
        "_steps",
        "_waiting",
        "argument_bytes",
        "buffer",
        "position",
        "ready",
        "restricted",
    )

    def __init__(self, max_bulk: int = MAX_BULK, reader: Reader | None = None) -> None:
        self.limit(max_bulk, MAX_QUERY)
        self.restricted = False
        self._reader = reader or Reader()
        self._pieces = _NO_PIECES
        self._waiting = 0
        self.buffer = b""
        self.position = 0
        self._start = 0
        """Where in the buffer the request begins that is being read by the rules."""
        self.ready = False
        """Whether a batch can go on without more bytes, or raises an error."""
        self._steps = 0
        self._error: ProtocolError | QueryTooLong | None = None
        self._known = b""
        """The last read to be remembered, which was nothing but whole requests, and these, which
        nobody changes, once it has come twice: many clients send the same again and again."""
        self._known_requests = _NO_REQUESTS
        self._forget_arguments()

    def _forget_arguments(self) -> None:
        """Forgets what has been read of the request that is not finished."""
        self._missing = 0
        self._bulk_length: int | None = None
        self._long: BytesIO | None = None
        self._arguments = _NO_ARGUMENTS
        self.argument_bytes = 0

    def limit(self, max_bulk: int, max_query: int) -> None:
        """Sets how long one argument may be, by ``proto-max-bulk-len`` and as part of the query
        buffer."""
        self._max_bulk = max_bulk
        self._max_query = max_query

    @property
    def held(self) -> int:
        """How many bytes have been fed that are in no request and no argument yet."""
        unfinished = 0 if self._long is None else self._long.tell()
        return self._waiting + len(self.buffer) - self.position + unfinished

    @property
    def memory(self) -> int:
        """Count the bytes of memory of what was fed and is in no finished request."""
        return self.held + self.argument_bytes + ARGUMENT_OVERHEAD * len(self._arguments)

    # --- what comes in --------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Adds what the client sent."""
        if self.ready or len(data) > PIECE:
            self._put_aside(data)
        elif self.buffer:
            self._append(data)
        else:
            self.buffer = data
            self.ready = True

    def _put_aside(self, data: bytes) -> None:
        """Lets bytes wait until what came before them has been parsed."""
        self._waiting += len(data)
        if not self._pieces:
            self._pieces = []
        pieces = self._pieces
        if len(data) > PIECE:
            pieces.extend([data[at : at + PIECE] for at in range(0, len(data), PIECE)])
        elif pieces and len(pieces[-1]) + len(data) <= PIECE:
            pieces[-1] += data
        else:
            pieces.append(data)
        if not self.ready:
            self._take_piece()

    def _take_piece(self) -> None:
        piece = self._pieces.pop(0)
        self._waiting -= len(piece)
        self._append(piece)

    def _append(self, piece: bytes) -> None:
        """Puts bytes behind what is left of the buffer, with which nothing more can be done.

        If whole requests stood before the one that the buffer's end has cut, this one is looked at
        from its beginning, once more: most likely it is whole now. Else it is a long one.
        """
        self.ready = True
        if self.buffer:
            left = self.position
            if self._start:
                left = self._start
                self._forget_arguments()
            piece = self.buffer[left:] + piece
            self.position = self._start = 0
        self.buffer = piece

    def _pass_to(self, position: int) -> None:
        """Notes that everything before this position is in finished requests."""
        self.position = position
        self._start = 0
        if position == len(self.buffer):
            self.buffer = b""
            self.position = 0
            self.ready = False

    def peek(self, least: int) -> bool:
        """Whether bytes that nobody has looked at stand at ``position`` in ``buffer``, ``least`` or
        more, with the beginning of a request first.

        There are none in the midst of a long request, and while the limits of unauthenticated
        clients hold."""
        size = len(self.buffer)
        if not self.ready or self._missing or size - self.position < least:
            return False
        fits = size <= self._max_query and size <= self._max_bulk
        return fits and not self.restricted and self._error is None

    def skip(self, position: int) -> None:
        """Passes over what :meth:`peek` has shown up to a position: it was whole requests."""
        self._pass_to(position)
        if self._pieces and not self.ready:
            self._take_piece()

    # --- what comes out -------------------------------------------------------------------

    def batch(self, apart: bool = False) -> list[Request]:
        """The requests that the next step completes. With ``apart`` none of them is an XADD but the
        first, where that costs nothing: whoever is shown others may add their entries directly."""
        if self._error is not None:
            raise self._error
        requests: list[Request] = []
        self._steps = STEPS
        try:
            while self._steps > 0 and self.ready:
                if not (self._missing or self.restricted) and self._read_proved(requests, apart):
                    break
                request = self._read_request()
                if request is not None:
                    requests.append(request)
                    if self.restricted:
                        break
        except (ProtocolError, QueryTooLong) as error:
            self._error = error
            self.ready = True
            if not requests:
                raise
        if self._pieces and not self.ready:
            self._take_piece()
        return requests

    def _read_proved(self, requests: list[Request], apart: bool) -> bool:
        """Reads all whole requests in their plain spelling, up to an XADD that is to stay
        ``apart``; whether the step ends with them."""
        data, at = self.buffer, self.position
        size = len(data)
        if size > self._max_bulk:
            return False  # One may be too long.
        again = data == self._known and at == 0
        if again and self._known_requests:
            requests += self._known_requests
            self._pass_to(size)
            return True
        if IS_COMPILED:
            end = scanner.read_requests(data, at, requests, apart)
        else:
            end = self._build(requests)
        if end > at:
            is_one_of_many = len(requests) == 1 and len(requests[0]) >= _MANY
            most = MEMORABLE_OF_MANY if is_one_of_many else MEMORABLE
            if end - at == size <= most:
                self._known, self._known_requests = data, requests if again else _NO_REQUESTS
            self._pass_to(end)
        return not self.ready or (apart and end > at)

    def _build(self, requests: list[Request]) -> int:
        """Has the requests built that the other scanner has proved; returns where they end."""
        end = scanner_plain.requests_end(self.buffer, self.position)
        if end > self.position:
            self._reader.feed(self.buffer, self.position, end - self.position)
            requests += iter(self._reader.gets, False)
        return end

    def _read_request(self) -> Request | None:
        """Reads by the rules: the next request, or ``None`` if it is not complete or if the steps
        have been taken; blank lines and empty arrays are passed over."""
        while self._steps > 0 and self.ready:
            if self._missing:
                return self._read_arguments()
            self._pass_to(self.position)
            if not self.ready:
                break
            self._steps -= 1
            self._start = self.position
            if self.buffer[self.position] == 0x2A:  # '*'
                self.ready = self._read_count()
            else:
                words = self._read_inline()
                if words:
                    self._pass_to(self.position)
                    return words
                self.ready = words is not None
        return None

    # --- lines ----------------------------------------------------------------------------

    def _read_line(self, end: bytes, too_long: str) -> bytes | None:
        """The line up to ``end``, which is passed over; ``None`` if that is not there.

        A line that holds a NUL has no end: so it is in Redis, which looks for it in a C string.
        """
        found = self.buffer.find(end, self.position)
        if found >= 0 and self.buffer.find(b"\0", self.position, found) < 0:
            line = self.buffer[self.position : found]
            self.position = found + len(end)
            return line
        if len(self.buffer) - self.position > MAX_LINE:
            raise ProtocolError(too_long)
        return None

    def _read_header(self, too_long: str) -> bytes | None:
        """The line up to CR; the byte behind that is passed over, whatever it is."""
        start = self.position
        line = self._read_line(b"\r", too_long)
        if line is None or self.position == len(self.buffer):
            self.position = start
            return None
        self.position += 1
        return line

    def _read_count(self) -> bool:
        """Reads the header of a request; false if more bytes are needed."""
        line = self._read_header(errors.TOO_BIG_COUNT)
        if line is None:
            return False
        count = _wire_integer(line[1:])
        if count is None or count > MAX_ARGUMENTS:
            raise ProtocolError(errors.INVALID_MULTIBULK_LENGTH)
        if self.restricted and count > MAX_UNAUTHENTICATED_ARGUMENTS:
            raise ProtocolError(errors.UNAUTHENTICATED_MULTIBULK_LENGTH)
        if count > 0:
            self._missing = count
            self._arguments = []
        return True

    def _read_inline(self) -> Request | None:
        """Reads the words of a line, which may be none; ``None`` if more bytes are needed."""
        line = self._read_line(b"\n", errors.TOO_BIG_INLINE)
        if line is None:
            return None
        self._steps -= len(line) // _LINE_BYTES_A_STEP
        words = split_words(line.removesuffix(b"\r"))
        if words is None:
            raise ProtocolError(errors.UNBALANCED_QUOTES)
        return words

    # --- arguments ------------------------------------------------------------------------

    def _read_arguments(self) -> Request | None:
        """Reads missing arguments; the request, if it is complete now."""
        while self._missing >= _MANY and self._steps > 0:
            if not self._read_many():
                break
        while self._missing:
            if self._steps <= 0:
                return None
            self._steps -= 1
            if not self._read_argument():
                self.ready = False
                return None
        request = self._arguments
        self._forget_arguments()
        self._pass_to(self.position)
        return request

    def _read_many(self) -> bool:
        """Reads the next arguments together; false if not all are there in their plain form."""
        data, at = self.buffer, self.position
        if self._bulk_length is not None or self.restricted or len(data) > self._max_bulk:
            return False
        end = (
            scanner.bulks_end(data, at, _MANY)
            if IS_COMPILED
            else scanner_plain.bulks_end(data, at, _MANY)
        )
        if end < 0:
            return False
        self._reader.feed(_HEADER_OF_MANY)
        self._reader.feed(data, at, end - at)
        arguments: list[bytes] = self._reader.gets()
        self._arguments += arguments
        self.argument_bytes += sum(map(len, arguments))
        self._missing -= _MANY
        self.position = end
        self._steps -= _STEPS_OF_MANY
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
            end = self.position + self._bulk_length
            if end + 2 > len(self.buffer):
                return False
            value = self.buffer[self.position : end]
            self.position = end + 2
        self._arguments.append(value)
        self.argument_bytes += len(value)
        self._bulk_length = None
        self._missing -= 1
        return True

    def _read_long(self, length: int) -> bytes | None:
        """Adds to a long value; it is handed out as it lies in memory, without another copy."""
        if self._long is None:
            self._long = BytesIO()
        part = self.buffer[self.position : self.position + length - self._long.tell()]
        self._long.write(part)
        self.position += len(part)
        if self._long.tell() < length or self.position + 2 > len(self.buffer):
            return None
        self.position += 2
        value, self._long = self._long.getvalue(), None
        return value

    def _read_bulk_length(self) -> int | None:
        """Reads how long the next argument is; ``None`` if more bytes are needed."""
        line = self._read_header(errors.TOO_BIG_BULK_COUNT)
        if line is None:
            return None
        if line[:1] != b"$":
            raise ProtocolError(errors.expected_dollar(line[:1] or b"\r"))
        length = _wire_integer(line[1:])
        if length is None or not 0 <= length <= self._max_bulk:
            raise ProtocolError(errors.INVALID_BULK_LENGTH)
        if self.restricted and length > MAX_UNAUTHENTICATED_BULK:
            raise ProtocolError(errors.UNAUTHENTICATED_BULK_LENGTH)
        if length + 2 > self._max_query:
            raise QueryTooLong
        return length


_HEADER_OF_MANY: Final = b"*%d\r\n" % _MANY


def _wire_integer(text: bytes) -> int | None:
    """The 64-bit signed integer that ``text`` spells in the one way it may be spelt."""
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
