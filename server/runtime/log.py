"""The server's own messages, a line each, in the form that redis-server gives them."""

from __future__ import annotations

import os
import time
from typing import Final, TextIO

LEVELS: Final = ("debug", "verbose", "notice", "warning", "nothing")

_MARKS: Final = {"debug": ".", "verbose": "-", "notice": "*", "warning": "#"}


class Log:
    """Writes messages of a level or above; to nowhere if there is no ``stream``."""

    def __init__(self, stream: TextIO | None = None, level: str = "notice") -> None:
        self._stream = stream
        self.set_level(level)

    def set_level(self, level: str) -> None:
        """Leaves out what is less important than ``level`` from now on."""
        self._lowest = LEVELS.index(level)

    def shows(self, level: str) -> bool:
        """Whether a message of this level is written."""
        return self._stream is not None and LEVELS.index(level) >= self._lowest

    def write(self, level: str, message: str) -> None:
        """Writes ``pid:M day time mark message``."""
        if self._stream is None or not self.shows(level):
            return
        now = time.time()
        day = time.strftime("%d %b %Y %H:%M:%S", time.localtime(now))
        line = f"{os.getpid()}:M {day}.{int(now * 1000) % 1000:03} {_MARKS[level]} {message}\n"
        self._stream.write(line)
        self._stream.flush()

    def debug(self, message: str) -> None:
        """For those who look for a fault in the server."""
        self.write("debug", message)

    def verbose(self, message: str) -> None:
        """Log what clients do."""
        self.write("verbose", message)

    def notice(self, message: str) -> None:
        """Log what one wants to know in production."""
        self.write("notice", message)

    def warning(self, message: str) -> None:
        """Log what somebody should look at."""
        self.write("warning", message)
