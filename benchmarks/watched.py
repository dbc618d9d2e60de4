"""Penstock watching itself: ``python benchmarks/watched.py OPTION ...`` serves as usual.

It watches the Penstock that is installed for the Python that runs it.

A timer in its event loop is due every millisecond; how late it comes is how long the loop was busy
with something else, and how much processor time it took meanwhile tells that from what the machine
did besides. The passes of the garbage collector are timed as well. At SIGUSR1, which begins anew,
and at the end the longest of each since then, in milliseconds, are printed as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import time
from typing import Final
from unittest import mock

from penstock import add_packages

add_packages()

from penstock import cli  # noqa: E402
from server.runtime.process import new_event_loop  # noqa: E402

PERIOD_S: Final = 0.001


class Watch:
    """The longest delay of a timer, the most processor time between two, and the longest pass of
    the collector."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._pass_began = 0.0
        self._used = 0.0
        self.forget()

    def forget(self) -> None:
        """Forgets what was seen."""
        self.values = {"loop_ms": 0.0, "cpu_ms": 0.0, "gc_ms": 0.0}

    def begin_anew(self) -> None:
        """Prints what was seen, and forgets it."""
        print(json.dumps(self.values), flush=True)
        self.forget()

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the server, with the timer."""
        loop = new_event_loop()
        loop.add_signal_handler(signal.SIGUSR1, self.begin_anew)
        loop.call_soon(self._tick, loop, time.monotonic())
        return loop

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = time.monotonic()
        self._note("loop_ms", now - due)
        used = time.thread_time()
        self._note("cpu_ms", used - self._used)
        self._used = used
        loop.call_later(PERIOD_S, self._tick, loop, now + PERIOD_S)

    def collecting(self, phase: str, _: object) -> None:
        """Told by the collector when a pass begins and ends."""
        if phase == "start":
            self._pass_began = time.monotonic()
        else:
            self._note("gc_ms", time.monotonic() - self._pass_began)

    def _note(self, name: str, seconds: float) -> None:
        self.values[name] = max(self.values[name], seconds * 1000)


def main() -> int:
    """Serves, watches, and says what was seen; returns the exit status of the server."""
    watch = Watch()
    gc.callbacks.append(watch.collecting)
    with mock.patch("penstock.cli.new_event_loop", watch.new_event_loop):
        status = cli.main()
    print(json.dumps(watch.values))
    return status


if __name__ == "__main__":
    sys.exit(main())
