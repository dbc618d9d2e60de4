"""What servers log of errors that nothing handles, until somebody takes it.

Whoever starts a server as a process gives what it has printed to :func:`read`, or lets its log file
be followed. :mod:`tests.support.log_check` listens to servers in the process of the tests, and lets
a test fail for what was found.
"""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import Final

_ERROR: Final = re.compile(
    r"^.*(?:"
    r"Traceback \(most recent call last\):(?:\n[ \t].*)*(?:\n.*)?"
    r"|Exception (?:in|ignored)\b.*|never (?:retrieved|awaited)\b.*|Unexpected error: .*"
    r")$",
    re.MULTILINE,
)

_found: Final[list[str]] = []
_read_up_to: Final[dict[Path, int]] = {}


def errors_in(text: str) -> list[str]:
    """The lines of a log that tell of an error which nothing handles; a traceback is one of them,
    up to the exception."""
    return _ERROR.findall(text)


def note(error: str) -> None:
    """Keeps an error."""
    _found.append(error)


def read(text: str) -> None:
    """Keeps the errors in a part of a log."""
    _found.extend(errors_in(text))


class Lines(deque[str]):
    """The lines that a server of the plugin prints, each of which is read as it comes."""

    def append(self, line: str) -> None:
        """Takes one more line."""
        read(line)
        super().append(line)


def follow(log: Path) -> None:
    """Reads what is in a log file, and what will be, whenever errors are taken."""
    _read_up_to.setdefault(log, 0)


def read_followed() -> None:
    """Reads what has been added to the log files that are followed."""
    for log, begin in list(_read_up_to.items()):
        if log.is_file():
            data = log.read_bytes()
            read(data[begin:].decode(errors="replace"))
            _read_up_to[log] = len(data)
        elif not log.parent.exists():  # The test that it belongs to has ended.
            del _read_up_to[log]


def take() -> list[str]:
    """The errors since the last call."""
    read_followed()
    taken = list(_found)
    _found.clear()
    return taken
