"""Reads replies of XRANGE as tables where they are, and leaves all else to redis-py.

redis-py connects, authenticates, tries again and follows a cluster as ever. Only its reading of
one reply is replaced: bytes that turn out to be no table are put back, and it reads them itself.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark_redis_streams.read.tables import PADDING, Lines, Table

FIRST_BYTES: Final = 1 << 16
"""How much is read at once, at least."""

MOST_BYTES: Final = 1 << 26
"""Bytes of a reply from which on it is left to redis-py."""

IDLE_S: Final = 1.0
"""How long the rest of a reply may keep one waiting that has the end of a line at its end: it may
be whole, with values that imitate entries."""

_ENTRIES: Final = re.compile(rb"\*[1-9]")
"""How a reply with entries begins."""

MOST_SKIPPED: Final = 64
"""Replies, at most, that are left to redis-py behind one that was no table."""


class _Socket:
    """The socket of a connection, in front of which bytes that were read can be put back."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        self._ahead = memoryview(b"")
        self._error: OSError | None = None

    def put_back(self, data: memoryview, error: OSError | None) -> None:
        """Has these bytes be read next, and then the error be raised, once."""
        self._ahead, self._error = data, error

    def recv_into(self, buffer: Any, *more: int) -> int:
        """Reads as a socket does."""
        if not self._ahead:
            self._raise()
            return int(self.plain.recv_into(buffer, *more))
        count = min(more[0] if more and more[0] else len(buffer), len(self._ahead))
        buffer[:count] = self._ahead[:count]
        self._ahead = self._ahead[count:]
        return count

    def recv(self, size: int, *flags: int) -> bytes:
        """Reads as a socket does."""
        if not self._ahead:
            self._raise()
            return bytes(self.plain.recv(size, *flags))
        found, self._ahead = bytes(self._ahead[:size]), self._ahead[size:]
        return found

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def take_tables(connection: Any) -> None:
    """Has a connection of redis-py, which has its socket, answer XRANGE with tables if it can."""
    replies = connection.send_command.__self__
    if not isinstance(replies, _Replies):
        replies = _Replies(connection)
        connection.send_command, connection.read_response = replies.send, replies.read
    replies.socket = connection._sock = _Socket(connection._sock)


class _Replies:
    """Reads the replies of a connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.socket: _Socket | None = None
        self._is_range = False
        self._expected = FIRST_BYTES
        self._failures = 0
        self._skip = 0

    def send(self, *words: Any, **options: Any) -> None:
        """Sends a command, as the method of the connection does."""
        # It may connect first, which sends other commands.
        type(self._connection).send_command(self._connection, *words, **options)
        self._is_range = words[0] == "XRANGE"

    def read(self, *args: Any, **options: Any) -> Any:
        """Read a reply, as the method of the connection does; a table if it is one of XRANGE."""
        is_range, self._is_range = self._is_range, False
        if is_range and self._skip:
            self._skip -= 1
        elif is_range and self.socket is not None:
            found = self._table(self.socket)
            if found is not None:
                return found
        return type(self._connection).read_response(self._connection, *args, **options)

    def _table(self, source: _Socket) -> Table | None:
        """The table of the next reply; None if it is none, and has to be read as ever."""
        reply = _Reply(self._expected)
        error = reply.receive(source)
        found = None if error else reply.table()
        if found is None:
            source.put_back(reply.data, error)
            self._skip = min(1 << self._failures, MOST_SKIPPED) - 1
            self._failures += 1
        else:
            size = len(reply.data)
            self._expected = size + size // 8 + FIRST_BYTES
            self._failures = 0
        return found


class _Reply:
    """The bytes of a reply that may be a table; about so many are expected."""

    def __init__(self, expected: int) -> None:
        self._buffer = bytearray(expected + PADDING)
        self._size = 0
        self._lines = Lines()

    @property
    def data(self) -> memoryview:
        """What has come."""
        return memoryview(self._buffer)[: self._size]

    def table(self) -> Table | None:
        """Return the table, if it is one."""
        return self._lines.table(self._buffer, self._size)

    def receive(self, source: _Socket) -> OSError | None:
        """Receive until there is a table, or can be none; return what the socket raises."""
        timeout = source.gettimeout()
        idle = IDLE_S if timeout is None else min(IDLE_S, timeout)
        try:
            while self._may_go_on():
                source.settimeout(idle if self._ends_line() else timeout)
                if not self._add(source.plain):
                    break
        except TimeoutError as late:
            # Within a line it was the connection's own limit.
            return None if self._ends_line() else late
        except OSError as lost:
            return lost
        finally:
            source.settimeout(timeout)
        return None

    def _ends_line(self) -> bool:
        return self._buffer[max(self._size - 2, 0) : self._size] == b"\r\n"

    def _may_go_on(self) -> bool:
        """Whether more has to come for a table."""
        if self._size >= MOST_BYTES or self._lines.are_enough(self._buffer, self._size):
            return False
        if not self._ends_line():
            return True
        is_like = _ENTRIES.match(self._buffer) is not None
        return is_like and self._lines.may_go_on(self._buffer, self._size)

    def _add(self, plain: Any) -> int:
        """Receives once, into a buffer with room for it."""
        if len(self._buffer) - self._size < FIRST_BYTES:
            self._buffer = self._buffer + bytes(len(self._buffer))
        count: int = plain.recv_into(memoryview(self._buffer)[self._size : -PADDING])
        self._size += count
        return count
