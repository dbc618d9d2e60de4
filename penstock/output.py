"""Standard output, standard error and the log file: what cannot be written there is lost, and
changes nothing else.

Whoever reads a pipe may leave, a disk may be full, and a descriptor may have been closed before the
process began. A server goes on all the same, and so does a tool, which may be changing data.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_standard: Final[list[Output]] = []
"""What :func:`protect` has made."""


class Output(io.FileIO):
    """A file that takes everything. ``lost`` says whether some of it could not be written; that
    nobody reads a pipe any more is no loss."""

    lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes what can be written; the first loss is told on standard error."""
        size = memoryview(data).nbytes
        try:
            return super().write(data) or size
        except OSError as error:
            if not self.lost and error.errno != errno.EPIPE:
                self.lost = True
                self._tell(error)
            return size

    def _tell(self, error: OSError) -> None:
        if self.fileno() != 2:
            name = self.name if isinstance(self.name, str) else "standard output"
            print(f"penstock: can't write to {name}: {error.strerror}", file=sys.stderr)


class LogFile(Output):
    """A file at ``path`` that is written at its end, and opened again before a write if nothing, or
    another file, is at the path: who moves log files away needs to tell nobody.

    Where it cannot be opened again, writing goes on in the file that was moved. Raises
    :class:`OSError` if it cannot be opened at first."""

    def __init__(self, path: str) -> None:
        super().__init__(os.path.abspath(path), "a")

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes what can be written to the file that is at the path now."""
        with contextlib.suppress(OSError):
            self.follow()
        return super().write(data)

    def follow(self) -> None:
        """Opens the file again unless it is the one at its path; raises :class:`OSError`."""
        path = str(self.name)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(self.fileno())):
                return
        with io.FileIO(path, "a") as again:
            os.dup2(again.fileno(), self.fileno(), inheritable=False)


def text_of(output: Output, encoding: str = "utf-8") -> TextIO:
    """Text that is written into it at the end of each line, whatever is in it."""
    return io.TextIOWrapper(
        io.BufferedWriter(output), encoding, "backslashreplace", line_buffering=True
    )


def protect() -> None:
    """Lets standard output and standard error take everything. What is closed leads nowhere from
    now on: no other file and no connection gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    encoding = sys.stdout.encoding if sys.stdout else "utf-8"
    _standard[:] = [Output(number, "w", closefd=False) for number in (1, 2)]
    sys.stdout, sys.stderr = (text_of(each, encoding) for each in _standard)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))


def status(of_tool: int) -> int:
    """The exit status of a tool, which has failed if some of its output is lost."""
    return of_tool or int(any(each.lost for each in _standard[:1]))
