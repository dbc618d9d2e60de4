"""How long a server lets a client wait: ``python -m benchmarks.pinger HOST PORT``.

A process of its own, so that nothing but the server can keep it waiting. It pings every millisecond
until its standard input ends, and then prints the longest and the 99.9th of a hundred answers in
milliseconds, as JSON.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Final

from benchmarks.driver import Address, Client
from benchmarks.measure import quantile

PERIOD_S: Final = 0.001


def main() -> None:
    """Pings the server that the arguments name."""
    gc.disable()
    with contextlib.suppress(PermissionError):
        os.nice(-10)  # the kernel should not let it wait either
    took = []
    with Client((sys.argv[1], int(sys.argv[2]))) as client:
        client.call("PING")
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], PERIOD_S)[0]:
            started = time.perf_counter_ns()
            client.call("PING")
            took.append((time.perf_counter_ns() - started) / 1e6)
    longest = max(took, default=0.0)
    print(json.dumps({"longest_ms": longest, "p999_ms": quantile(took or [0.0], 0.999)}))


class Pinger:
    """Pings a server in another process; as a context manager until the end of the block."""

    def __init__(self, address: Address) -> None:
        self._arguments = [address[0], str(address[1])]
        self.values: dict[str, float] = {}
        """The answers' times, after the end."""

    def __enter__(self) -> Pinger:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.pinger", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        output, _ = self._process.communicate()
        if kind is None:
            self.values = json.loads(output)


if __name__ == "__main__":
    main()
