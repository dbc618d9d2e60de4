"""Standard output and standard error of ``penstock-pipeline``: what cannot be written is lost, and
changes nothing else.

Whoever reads a pipe may leave, and a disk may be full: a pipeline that runs goes on.
"""

from __future__ import annotations

import errno
import io
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_standard: Final[list[LossyFile]] = []
"""What :func:`protect` has made."""


class LossyFile(io.FileIO):
    """A file that takes everything. ``lost`` says whether some of it could not be written; that
    nobody reads a pipe any more is no loss."""

    lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written; the first loss is told on standard error."""
        size = memoryview(data).nbytes
        try:
            return super().write(data) or size
        except OSError as error:
            if not self.lost and error.errno != errno.EPIPE:
                self.lost = True
                if self.fileno() != 2:
                    reason = f"can't write to standard output: {error.strerror}"
                    print(f"penstock-pipeline: {reason}", file=sys.stderr)
            return size


def protect() -> None:
    """Let standard output and standard error take everything."""
    encoding = sys.stdout.encoding if sys.stdout else "utf-8"
    _standard[:] = [LossyFile(number, "w", closefd=False) for number in (1, 2)]
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.BufferedWriter(each), encoding, "backslashreplace", line_buffering=True)
        for each in _standard
    )


def status(of_command: int) -> int:
    """Return the exit status of a command, which has failed if some of its output is lost."""
    return of_command or int(any(each.lost for each in _standard[:1]))
