"""Penstock watching itself: ``python benchmarks/watched.py OPTION ...`` serves as usual.

It watches the Penstock that is installed for the Python that runs it.

A timer in its event loop is due every millisecond; how late it comes is how long the loop was busy
with something else. The passes of the garbage collector are timed as well. SIGUSR1 begins anew; at
the end the longest of both since then, in milliseconds, are printed as JSON.
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
    """The longest delay of a timer, and the longest pass of the collector."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._pass_began = 0.0
        self.reset()

    def reset(self) -> None:
        """Forgets what was seen."""
        self.values = {"loop_ms": 0.0, "gc_ms": 0.0}

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the server, with the timer."""
        loop = new_event_loop()
        loop.add_signal_handler(signal.SIGUSR1, self.reset)
        loop.call_soon(self._tick, loop, time.monotonic())
        return loop

    def _tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = time.monotonic()
        self._note("loop_ms", now - due)
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
