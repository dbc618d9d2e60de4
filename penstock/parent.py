"""Ends the server with the process that started it, however that ends: its standard input, a pipe
whose other end that process holds, ends then, too (``shutdown-on-stdin-eof``)."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from typing import Final

from server.runtime.log import Log

STDIN: Final = 0

PATIENCE_S: Final = 10
"""How long the server may take to shut down before it is killed: it may be held by a command."""

_CHUNK: Final = 4096


def follow(log: Log) -> None:
    """Shuts the server down as SIGTERM does when standard input ends; what comes there is ignored.

    Only that of a pipe or a socket means anything: another one is named in the log."""
    mode = os.fstat(STDIN).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        # A thread, since a command may hold the event loop for longer than anybody wants.
        threading.Thread(target=_follow, args=[log], name="penstock-stdin", daemon=True).start()
    else:
        log.warning("shutdown-on-stdin-eof: standard input is neither a pipe nor a socket")


def _follow(log: Log) -> None:
    _read_to_end()
    log.notice("Standard input has ended")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _read_to_end() -> None:
    try:
        while os.read(STDIN, _CHUNK):
            pass
    except OSError:  # The other side of a socket was reset.
        return
