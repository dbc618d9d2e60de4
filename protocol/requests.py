# Compiled by mypyc.
"""An incremental parser of requests.

A request is a RESP array of bulk strings, or one line of words (an *inline command*). hiredis
parses whole pieces in C, but it is a parser of replies: it accepts types that a server must refuse,
allocates as many elements as a header announces, and has no limits. Therefore it is given only
pieces whose headers cannot announce more than a piece holds, and its result is used only if the
piece certainly contained nothing but arrays of bulk strings. Everything else, and a request longer
than a piece, goes through :class:`StrictParser`, which implements all rules. Both return the same
requests.
"""

from __future__ import annotations

import re
from typing import Final

from hiredis import HiredisError, Reader, pack_command

from protocol.strict import (
    ARGUMENT_OVERHEAD,
    MAX_BULK,
    ProtocolError,
    QueryTooLong,
    Request,
    StrictParser,
)

__all__ = [
    "ARGUMENT_OVERHEAD",
    "ChunkReader",
    "ProtocolError",
    "QueryTooLong",
    "Request",
    "RequestParser",
    "StrictParser",
    "memory_of",
]


def memory_of(request: Request) -> int:
    """How much memory the request takes."""
    return sum(map(len, request)) + ARGUMENT_OVERHEAD * len(request)


PIECE: Final = 64 * 1024
"""What a read brought is parsed in pieces of so many bytes at most."""

MEMORABLE: Final = 1024
"""What was read is remembered with its requests if it has no more bytes than this."""
MOST_REMEMBERED: Final = 64
"""So many reads are remembered, the newest ones."""

STEPS: Final = 500
"""How much the strict parser does at most in one batch."""

_SUSPICIOUS: Final = re.compile(rb"\*(?:[2-9][0-9]|[0-9]{3}|[0-9]{1,2}\r\n\*)")
"""What may be the header of an array of twenty elements or more, or of an array of arrays."""
_ANNOUNCED: Final = re.compile(rb"\*([0-9]{2,9})")
_NESTED: Final = re.compile(rb"\*[0-9]+\r\n\*")

_LEAST_ELEMENT: Final = len(b"$0\r\n\r\n")

_OTHER_TYPES: Final = b"+=(~>|%#"
_SIGNS: Final = tuple([b"%c" % sign for sign in _OTHER_TYPES])
"""The signs of types that only replies have, and whose elements are byte strings or whatever."""
_AGGREGATES: Final = {sign: re.compile(re.escape(sign) + rb"[0-9]+\r\n") for sign in _SIGNS}
"""What may be the header of an aggregate of such a type."""
_USUAL_ARGUMENTS: Final = {sign: b"$1\r\n%b\r\n" % sign for sign in (b">", b"+", b"~")}
"""Arguments that read like such signs, and how requests spell them."""

_END_MARK: Final = b"*0\r\n"


class ChunkReader:
    """hiredis, reading whole pieces. Nothing stays in it between two of them, so the connections of
    a server may share one: a reader takes a kilobyte.

    Many clients say the same few things again and again (PING, XLEN, an XREADGROUP): short pieces
    are remembered with their requests, which nobody may change.
    """

    __slots__ = ("_reader", "_remembered")

    def __init__(self) -> None:
        self._reader = Reader()
        self._remembered: dict[bytes, list[Request]] = {}

    def recall(self, data: bytes) -> list[Request] | None:
        """The requests of a piece, if it is remembered."""
        return self._remembered.get(data) if len(data) <= MEMORABLE else None

    def remember(self, data: bytes, requests: list[Request]) -> None:
        """Remembers a piece that is nothing but these requests, if it is short."""
        if len(data) <= MEMORABLE:
            remembered = self._remembered
            if len(remembered) >= MOST_REMEMBERED:
                del remembered[next(iter(remembered))]
            remembered[data] = requests

    def read(self, data: bytes) -> tuple[list[Request], bool]:
        """The lists of byte strings in a piece, and whether it ends where the last of them does."""
        found: list[Request] = []
        gets = self._reader.gets
        # Joining is the quickest way to see that all elements are byte strings.
        join = b"".join
        try:
            self._reader.feed(data)
            while (request := gets()) is not False:
                join(request)
                found.append(request)
            ended = self._has_ended()
        except (TypeError, ValueError, HiredisError):
            return [], False
        # What is empty may have been something else than an array.
        return (found, ended) if all(found) else ([], False)

    def forget(self) -> None:
        """Drops what is left of a piece that is going to be read otherwise."""
        self._reader = Reader()

    def _has_ended(self) -> bool:
        """Whether hiredis waits for nothing more. It does not say so, but a mark comes out then."""
        self._reader.feed(_END_MARK)
        try:
            return bool(self._reader.gets() == [])
        except HiredisError:  # The end has cut a header, and the mark makes no sense within it.
            return False


class RequestParser:
    """Bytes of one connection in, batches of requests out.

    :meth:`feed` takes what a read brought. While the parser is :attr:`ready`, :meth:`batch` goes on
    by a step that takes a millisecond at most and returns the requests it completed, which may be
    none. A :class:`ProtocolError` or :class:`QueryTooLong` is raised only after every request
    before it has been returned. While ``restricted`` (a client that has not authenticated) the
    limits of such clients hold and a batch is a single request, since that request may lift the
    restriction.
    """

    __slots__ = (
        "_error",
        "_pieces",
        "_plain",
        "_reader",
        "_refused",
        "_skipped",
        "_strict",
        "_tail",
        "_waiting",
    )

    def __init__(self, max_bulk: int = MAX_BULK, reader: ChunkReader | None = None) -> None:
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._reader = reader or ChunkReader()
        self._strict = StrictParser(max_bulk)
        self._plain = True
        """Whether whole pieces may go to hiredis: nothing else is under way."""
        self._refused = False
        """Whether the strict parser is at bytes that hiredis has had before."""
        self._skipped = False
        """Whether requests have been passed over that stood right before the next piece."""
        self._tail = b""
        """The beginning of a request that the end of a piece cut, as it came."""
        self._error: ProtocolError | QueryTooLong | None = None

    @property
    def restricted(self) -> bool:
        """Whether the limits of unauthenticated clients hold."""
        return self._strict.restricted

    @restricted.setter
    def restricted(self, value: bool) -> None:
        if value != self._strict.restricted:
            self._strict.restricted = value
            self._plain = not (value or self._strict.pending or self._error)

    def limit(self, max_bulk: int, max_query: int) -> None:
        """Sets how long one argument may be, by ``proto-max-bulk-len`` and as part of the query
        buffer."""
        self._strict.max_bulk = max_bulk
        self._strict.max_query = max_query

    @property
    def held(self) -> int:
        """How many bytes have been fed that are in no request and no argument yet."""
        return self._waiting + self._strict.held

    @property
    def argument_bytes(self) -> int:
        """How long the arguments of the unfinished request are together."""
        return self._strict.argument_bytes

    @property
    def memory(self) -> int:
        """What has been fed and is in no finished request takes so many bytes of memory."""
        return self._waiting + self._strict.memory

    @property
    def ready(self) -> bool:
        """Whether a batch can go on without more bytes."""
        if self._pieces:
            return True
        if self._plain:
            return False
        return self._error is not None or (self._strict.pending and not self._strict.stalled)

    @property
    def unfinished(self) -> bool:
        """Whether there may be bytes that belong to no finished request."""
        return len(self._pieces) > 0 or not self._plain

    def feed(self, data: bytes) -> None:
        """Adds what the client sent."""
        self._waiting += len(data)
        pieces = self._pieces
        if len(data) > PIECE:
            pieces.extend([data[at : at + PIECE] for at in range(0, len(data), PIECE)])
        elif pieces and len(pieces[-1]) + len(data) <= PIECE:
            pieces[-1] += data
        else:
            pieces.append(data)

    def peek(self, least: int) -> bytes:
        """Bytes that have been fed and looked at by nobody, from the beginning of a request on;
        none if they are fewer than ``least``.

        The request that the end of what came before has cut is put before them. There are none in
        the midst of a long request, and while the limits of unauthenticated clients hold."""
        strict = self._strict
        if not self._pieces or self._waiting + len(self._tail) < least:
            return b""
        if strict.restricted or self._error is not None:
            return b""
        piece = self._pieces[0]
        if not self._plain:
            if not self._tail or not strict.stalled:
                return b""
            piece = self._tail + piece
        return piece if len(piece) <= min(strict.max_bulk, strict.max_query) else b""

    def skip(self, peeked: bytes, count: int) -> None:
        """Passes over the first bytes of what :meth:`peek` returned: they are whole requests."""
        self._take_piece()
        if not self._plain:
            self._tail = b""
            self._strict.clear()
            self._plain = True
        self._put_back(peeked[count:])
        self._skipped = True

    def batch(self) -> list[Request]:
        """The requests that the next step completes."""
        if self._plain:
            return self._parse_whole(self._take_piece()) if self._pieces else []
        if self._error is not None:
            raise self._error
        return self._go_on()

    def _go_on(self) -> list[Request]:
        """The next step of what does not begin with a whole piece."""
        strict = self._strict
        if not strict.pending or strict.stalled:
            if not self._pieces:
                return []
            data = self._take_piece()
            if self._tail or not (strict.pending or strict.restricted):
                data, self._tail = self._tail + data, b""
                strict.clear()
                self._plain = True
                return self._parse_whole(data)
            strict.feed(data)
            self._refused = False
        return self._parse_strictly()

    def _take_piece(self) -> bytes:
        piece = self._pieces.pop(0)
        self._waiting -= len(piece)
        return piece

    def _parse_strictly(self) -> list[Request]:
        """Parses what hiredis has refused, or else the one request that it is not to have."""
        strict = self._strict
        requests: list[Request] = []
        strict.steps = STEPS
        try:
            while (request := strict.next()) is not None:
                self._tail = b""
                requests.append(request)
                if strict.restricted:
                    break
                if not self._refused:
                    self._put_back(strict.take_rest())
                    break
        except (ProtocolError, QueryTooLong) as error:
            self._error = error
            if not requests:
                raise
        return requests

    def _put_back(self, rest: bytes) -> None:
        if rest:
            self._waiting += len(rest)
            self._pieces.insert(0, rest)

    def _parse_whole(self, data: bytes) -> list[Request]:
        """Parses a piece with hiredis; what is left goes to the strict parser.

        That is the request which the piece's end has cut, or all of it if a rule may be broken.
        """
        known = self._reader.recall(data)
        if known is not None and len(data) <= self._strict.max_bulk:
            return known
        found: list[Request] = []
        rest = data
        plain = len(data.translate(None, _OTHER_TYPES)) == len(data)
        signs = [] if plain else [sign for sign in _SIGNS if sign in data]
        if data[:1] == b"*" and len(data) <= self._strict.max_bulk and _is_worth(data, signs):
            found, complete = self._reader.read(data)
            rest = b""
            if not complete or (signs and not _are_arguments(signs, data, found)):
                packed = _pack(found)
                if not data.startswith(packed):
                    found, packed = [], b""
                rest = data[len(packed) :]
            if rest:
                self._reader.forget()
            else:
                self._reader.remember(data, found)
        skipped, self._skipped = self._skipped, False
        if rest:
            self._strict.feed(rest)
            self._plain = False
            self._refused = True
            if not (found or skipped):
                return self._parse_strictly()
            # Once more, with what comes next; if that is no help the request is a long one.
            self._tail = rest
        return found


def _pack(requests: list[Request]) -> bytes:
    """The bytes that the requests were, if they were nothing but arrays of bulk strings."""
    return b"".join([pack_command(tuple(request)) for request in requests])  # type: ignore[arg-type]


def _is_worth(data: bytes, signs: list[bytes]) -> bool:
    """Whether no header in ``data`` can make hiredis take more memory than the data is worth.

    It makes room for every element of an aggregate as soon as it has read the header, at any depth.
    So there must be no header of a map, a set, an attribute or a push, no array right within
    another, and arrays must not announce more elements than the data can hold.
    """
    for sign in signs:
        if _AGGREGATES[sign].search(data) is not None:
            return False
    if _SUSPICIOUS.search(data) is None:
        return True
    announced = sum(map(int, _ANNOUNCED.findall(data)))
    return announced * _LEAST_ELEMENT <= len(data) and _NESTED.search(data) is None


def _are_arguments(signs: list[bytes], data: bytes, found: list[Request]) -> bool:
    """Whether every one of the ``signs`` in ``data`` is surely an argument of a request found.

    Many requests hold such an argument: XREADGROUP a ``>``, XRANGE a ``+``, trimming a ``~``.
    """
    for sign in signs:
        argument = _USUAL_ARGUMENTS.get(sign)
        if argument is None:
            return False
        count = data.count(argument)
        if count != data.count(sign):
            return False
        if count != sum([request.count(sign) for request in found]):
            return False
    return True
