"""``python -m tests.support.copied LOG ...`` is the command penstock, and copies to a file what it
prints: for servers that other programs start, and whose output the test does not see."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.__main__ import main
from penstock.output import Output

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def copy_output(log: str) -> None:
    """Copies to a file what this process prints."""
    write = Output.write

    def write_twice(output: Output, data: ReadableBuffer, /) -> int:
        with open(log, "ab") as copy:
            copy.write(data)
        return write(output, data)

    Output.write = write_twice  # type: ignore[method-assign]


if __name__ == "__main__":
    copy_output(sys.argv.pop(1))
    sys.exit(main())
