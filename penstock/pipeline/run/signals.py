"""Keeps Spark's Java process from SIGTERM, which is for the pipeline.

A terminal, a shell or a container runtime may send SIGTERM to the whole group of processes. Java
would end in the middle of a batch, and everything that talks to it would fail with a page of
traces. A child that is started with the signal ignored stays deaf to it, Java included; it ends
when the pipeline does, because then its standard input does. Ignoring the signal in this process
instead, while the child is started, would lose one that comes meanwhile.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_deaf = 0
_is_registered = False


@contextmanager
def deaf_children() -> Iterator[None]:
    """Children that are started meanwhile ignore SIGTERM."""
    global _deaf, _is_registered
    if not _is_registered:
        # It can't be taken back, so it asks whether it is wanted. A Popen with a `preexec_fn`, as
        # PySpark's is, calls it between fork and exec.
        os.register_at_fork(after_in_child=_ignore)
        _is_registered = True
    _deaf += 1
    try:
        yield
    finally:
        _deaf -= 1


def _ignore() -> None:
    if _deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
